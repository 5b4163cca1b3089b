package table

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// OriginFormat is the version of Origin, and of what goes with it.
const OriginFormat = 1

// Origin says of which windows the rows of a table are that `trainer features` wrote.
type Origin struct {
	Format int `json:"format"`
	Layout struct {
		Name     string           `json:"name"`
		Channels []signal.Channel `json:"channels"`
	} `json:"layout"`
	Window struct {
		LengthNS time.Duration `json:"length_ns"`
		HopNS    time.Duration `json:"hop_ns"`
	} `json:"window"`
	Features   signal.FeatureSpec `json:"features"`              // that were computed, with their version
	Relative   string             `json:"relative,omitempty"`    // how features are relative to references; empty: they are not
	JudgedOnly bool               `json:"judged_only,omitempty"` // rows that are not judged are left out
}

// Parse reads what goes with a table into whole, which holds o or is o. It reports false if
// text is empty.
func (o *Origin) Parse(text string, whole any) (bool, error) {
	if strings.TrimSpace(text) == "" {
		return false, nil
	}
	err := json.Unmarshal([]byte(text), whole)
	switch {
	case err != nil:
		return false, fmt.Errorf("what says how the table was made is damaged: %w: %s", err, WriteAgain)
	case o.Format != OriginFormat:
		return false, fmt.Errorf("it was written by another release of Flank (format %d, this one reads %d): %s", o.Format, OriginFormat, WriteAgain)
	}
	return true, nil
}

// OnlyToLookAt returns the flag by which the table is not one to train the model of the
// recordings on; empty if it is.
func (o *Origin) OnlyToLookAt() string {
	switch {
	case o.Relative != "":
		return "--relative"
	case o.JudgedOnly:
		return "--judged"
	}
	return ""
}

// ReadLayout returns the layout of the recordings.
func (o *Origin) ReadLayout() (*signal.Layout, error) {
	return signal.NewLayout(o.Layout.Name, o.Layout.Channels)
}

// WriteAgain is what to do about a table of windows that cannot be used.
const WriteAgain = "write the table again with `trainer features`"

// FormatQuality returns flags of channels as text: "CV3=dropout+clipped; FX=flatline".
func FormatQuality(quality []signal.Quality, channels []signal.Channel) string {
	var words []string
	for i, q := range quality {
		if names := q.Names(); len(names) > 0 {
			words = append(words, channels[i].Name+"="+strings.Join(names, "+"))
		}
	}
	return strings.Join(words, "; ")
}

// ParseQuality reads what FormatQuality returned, for channels in the same order.
func ParseQuality(s string, channels []signal.Channel) ([]signal.Quality, error) {
	out := make([]signal.Quality, len(channels))
	rest := s
	for i, c := range channels {
		flags, ok := strings.CutPrefix(rest, c.Name+"=")
		if !ok {
			continue
		}
		flags, rest, _ = strings.Cut(flags, "; ")
		for name := range strings.SplitSeq(flags, "+") {
			bit := slices.Index(signal.Flags[:], name)
			if bit < 0 {
				return nil, fmt.Errorf("%.60q of channel %s is not a flag: %s", name, c.Name, WriteAgain)
			}
			out[i] |= 1 << bit
		}
	}
	if rest != "" {
		return nil, fmt.Errorf("%.60q does not name channels of the layout in their order: %s", s, WriteAgain)
	}
	return out, nil
}

// FormatFrames returns numbers as text, from which ParseFrames reads the same ones.
func FormatFrames(x []float32) string {
	var b []byte
	for i, v := range x {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendFloat(b, float64(v), 'g', -1, 32)
	}
	return string(b)
}

// ParseFrames reads what FormatFrames returned.
func ParseFrames(s string) ([]float32, error) {
	var x []float32
	for word := range strings.FieldsSeq(s) {
		v, err := strconv.ParseFloat(word, 32)
		if err != nil {
			return nil, fmt.Errorf("%.60q is not a list of numbers", s)
		}
		x = append(x, float32(v))
	}
	return x, nil
}
