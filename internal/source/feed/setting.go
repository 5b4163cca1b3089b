package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/atomicfile"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Setting is what a machine is doing as an operator or another system says it,
// on disk: it lasts until it is said otherwise. It is safe for concurrent use.
type Setting struct {
	path string

	mu    sync.Mutex
	now   kept
	named string // the tool that the last frame named itself; empty if none
}

// kept is the form of a Setting on disk.
type kept struct {
	Tool         string  `json:"tool"`
	Hole         string  `json:"hole"`
	SpindleSpeed float64 `json:"spindle_speed"`
}

// Change says what is new of a machine; nil is what is not. It is the JSON of
// schemas/context.schema.json.
type Change struct {
	Tool         *string  `json:"tool,omitempty"`
	Hole         *string  `json:"hole,omitempty"`
	SpindleSpeed *float64 `json:"spindle_speed,omitempty"` // rev/min
}

// ErrNamed is returned where a tool is set of a machine whose frames name theirs.
var ErrNamed = errors.New("the machine's samples name their tool")

// MaxText is the most bytes that the name of a tool or a hole may have.
const MaxText = 256

// OpenSetting reads the file at path, which need not be there yet.
func OpenSetting(path string) (*Setting, error) {
	s := &Setting{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("feed: tool in use: %w", err)
	}
	if err := json.Unmarshal(text, &s.now); err != nil {
		return nil, fmt.Errorf("feed: %s, which says what tool is in use, is damaged: %w: remove it and name the tool again by `ingest tool`", path, err)
	}
	return s, nil
}

// ParseChange reads a Change from JSON. It reports what cannot be meant.
func ParseChange(text []byte) (Change, error) {
	var c Change
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("feed: context: %w: write, for example, {\"tool\": \"T08\", \"hole\": \"12\", \"spindle_speed\": 1650}", err)
	}
	return c, c.Check()
}

// Check reports what cannot be meant.
func (c Change) Check() error {
	if c.Tool == nil && c.Hole == nil && c.SpindleSpeed == nil {
		return errors.New("feed: context: says nothing: give tool, hole or spindle_speed")
	}
	if c.Tool != nil && *c.Tool == "" {
		return errors.New("feed: context: the tool has no name: give one, which need only differ from that of the tool before")
	}
	for name, text := range map[string]*string{"tool": c.Tool, "hole": c.Hole} {
		if text != nil {
			if err := checkText(*text); err != nil {
				return fmt.Errorf("feed: context: %s: %w", name, err)
			}
		}
	}
	if v := c.SpindleSpeed; v != nil {
		if err := checkSpeed(*v); err != nil {
			return fmt.Errorf("feed: context: %w", err)
		}
	}
	return nil
}

func checkText(s string) error {
	if len(s) > MaxText || !utf8.ValidString(s) {
		return fmt.Errorf("%.32q…: must be at most %d bytes of UTF-8", s, MaxText)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Errorf("%q: holds a control character", s)
		}
	}
	return nil
}

func checkSpeed(v float64) error {
	if !(v >= 0) || v > 1e6 || math.IsInf(v, 0) {
		return fmt.Errorf("spindle_speed: %v: must be rev/min from 0 (not known) to 1,000,000", v)
	}
	return nil
}

// Apply makes c true from the next frame on, and durable before it returns. With
// another tool, hole and spindle speed are not known unless c says them. It
// returns what is true now. ErrNamed is returned if the frames name their tool.
func (s *Setting) Apply(c Change) (signal.Context, error) {
	if err := c.Check(); err != nil {
		return signal.Context{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Tool != nil && s.named != "" {
		return signal.Context{}, fmt.Errorf("feed: tool %q: the last frame says it is %q: %w: change it there", *c.Tool, s.named, ErrNamed)
	}
	now := s.now
	if c.Tool != nil && *c.Tool != now.Tool {
		now = kept{Tool: *c.Tool}
	}
	if c.Hole != nil {
		now.Hole = *c.Hole
	}
	if c.SpindleSpeed != nil {
		now.SpindleSpeed = *c.SpindleSpeed
	}
	if now != s.now {
		text, err := json.Marshal(now)
		if err != nil {
			return signal.Context{}, fmt.Errorf("feed: %w", err)
		}
		if err := atomicfile.Write(s.path, text); err != nil {
			return signal.Context{}, fmt.Errorf("feed: what tool is in use cannot be noted: %w", err)
		}
		s.now = now
	}
	return s.context(), nil
}

// Context returns what is true now.
func (s *Setting) Context() signal.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.context()
}

func (s *Setting) context() signal.Context {
	return signal.Context{Tool: s.now.Tool, Hole: s.now.Hole, SpindleSpeed: s.now.SpindleSpeed}
}

// fill adds to c what a frame does not say.
func (s *Setting) fill(c *signal.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named = c.Tool; c.Tool == "" {
		c.Tool = s.now.Tool
	}
	if c.Hole == "" {
		c.Hole = s.now.Hole
	}
	if c.SpindleSpeed == 0 {
		c.SpindleSpeed = s.now.SpindleSpeed
	}
}
