package alarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Curve says which settings `trainer tune` chose for a model, and from which: as pages show it, and as a file next to
// the model keeps it.
type Curve struct {
	Model    string  `json:"model"`    // id of the model that the settings are for
	Budget   string  `json:"budget"`   // in words
	Within   bool    `json:"within"`   // Chosen is within the budget
	Tools    int     `json:"tools"`    // that were replayed
	Turned   int     `json:"turned"`   // of them, tools that turn faulty
	Settings int     `json:"settings"` // that were replayed
	Hours    bool    `json:"hours"`    // it is known how long windows last: there are rates, and delays are in seconds
	Now      Point   `json:"now"`      // the settings that were in force
	Chosen   Point   `json:"chosen"`
	Points   []Point `json:"points"` // the trade-off: with each more false alarms than before, and better
}

// Point is what a replay under some settings gave.
type Point struct {
	K         int      `json:"k"`
	N         int      `json:"n"`
	Threshold float64  `json:"threshold"`
	False     int      `json:"false_alarms"`
	PerHour   *float64 `json:"per_hour,omitempty"` // of cutting; nil without hours
	Found     int      `json:"found"`              // tools that turn and were found
	Missed    int      `json:"missed"`
	Delay     *float64 `json:"delay,omitempty"` // mean, seconds of cutting; windows without hours; nil if no tool was found
}

const maxCurve = 1 << 20 // bytes of a file

// LoadCurve reads the file of a curve. It returns nil if there is none, or if it is of another
// model.
func LoadCurve(path, model string) (*Curve, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCurve))
	if err != nil {
		return nil, err
	}
	c, err := ParseCurve(text, model)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: make it again with `trainer tune`", path, err)
	}
	return c, nil
}

// CurveFile returns where `trainer tune` puts the curve of a model's file, unless it was given another place.
func CurveFile(model string) string {
	return strings.TrimSuffix(model, filepath.Ext(model)) + ".tune.json"
}

// ParseCurve reads the curve of a model. It returns nil if the text is of another model. Any text is safe to try.
func ParseCurve(text []byte, model string) (*Curve, error) {
	c, err := parseCurve(text)
	if err != nil || c.Model != model {
		return nil, err
	}
	return c, nil
}

func parseCurve(text []byte) (*Curve, error) {
	c := new(Curve)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("not the curve of an alarm's settings: %w", err)
	}
	for i, p := range append([]Point{c.Now, c.Chosen}, c.Points...) {
		if !p.sound() || c.Hours && p.PerHour == nil {
			return nil, fmt.Errorf("not the curve of an alarm's settings: point %d of it cannot be", i)
		}
	}
	if c.Points == nil {
		c.Points = []Point{}
	}
	return c, nil
}

// sound reports whether tuning can have found the point.
func (p *Point) sound() bool {
	return p.K >= 1 && p.N >= p.K && p.Threshold > 0 && p.Threshold <= 1 && min(p.False, p.Found, p.Missed) >= 0 && positive(p.PerHour) && positive(p.Delay)
}

func positive(v *float64) bool { return v == nil || *v >= 0 && !math.IsInf(*v, 0) }
