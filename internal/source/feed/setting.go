package feed

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Setting is what a machine is doing as an operator or another system says it,
// on disk: it lasts until the next one. It is safe for concurrent use.
type Setting struct {
	path string

	mu    sync.Mutex
	now   inUse
	lives lives
	by    Named               // what the machine's control named last
	named string              // the tool that the last frame named itself; empty if none
	names map[string][]string // the names that tools had since the start, by what they fold to
	last  string              // of them, the last one

	mint func() string // the name of a life

	// NoTool are the placeholders by which senders and controls say that no tool is in; nil means defaultNoTool.
	// Case, width and leading zeros do not count. Set it before the Setting is used.
	NoTool []string
}

// defaultNoTool are placeholders of controls for a spindle without a tool, and words for a value that is not known. A blank name is one in any case.
var defaultNoTool = []string{"0", "0.0", "-", "--", "?", "none", "n/a", "na", "nan", "nil", "null", "no tool", "unknown", "undefined", "unavailable"}

// life is a tool that was declared new.
type life struct {
	Tool string `json:"tool"`
	Life string `json:"life"` // see signal.Context.ToolLife
}

// lives are the tools that were declared new, the last used one at the end. A slice
// that was returned is never changed.
type lives []life

// maxLives is how many tools are remembered to have been declared new.
const maxLives = 64

// declare gives a tool another life.
func (l lives) declare(tool, name string) lives {
	l = append(l.without(tool), life{tool, name})
	return l[max(0, len(l)-maxLives):]
}

// touch moves a tool that is used to the end: others are forgotten first.
func (l lives) touch(tool string) lives {
	if of := l.of(tool); of != "" {
		return append(l.without(tool), life{tool, of})
	}
	return l
}

// of returns the life of a tool; empty if it was never declared new.
func (l lives) of(tool string) string {
	for _, one := range l {
		if one.Tool == tool {
			return one.Life
		}
	}
	return ""
}

func (l lives) without(tool string) lives {
	return slices.DeleteFunc(slices.Clone(l), func(one life) bool { return one.Tool == tool })
}

// kept is the form of a Setting on disk.
type kept struct {
	inUse
	Lives lives `json:"lives,omitempty"`
	By    Named `json:"control,omitzero"`
}

// Named is the tool and the hole that a machine's control named last. Empty: it has named none.
type Named struct {
	Tool string `json:"tool,omitempty"`
	Hole string `json:"hole,omitempty"`
}

// inUse is what a machine is doing.
type inUse struct {
	Tool         string  `json:"tool"`
	Hole         string  `json:"hole"`
	SpindleSpeed float64 `json:"spindle_speed"`
	FeedRate     float64 `json:"feed_rate,omitempty"`
	Programme    string  `json:"programme,omitempty"`
	Material     string  `json:"material,omitempty"`
}

// Change says what is new of a machine; nil is what is not. It is the JSON of
// schemas/context.schema.json.
type Change struct {
	Tool         *string  `json:"tool,omitempty"`
	Hole         *string  `json:"hole,omitempty"`
	SpindleSpeed *float64 `json:"spindle_speed,omitempty"` // rev/min
	FeedRate     *float64 `json:"feed_rate,omitempty"`     // mm/min
	Programme    *string  `json:"programme,omitempty"`
	Material     *string  `json:"material,omitempty"`

	// New says that Tool, or the tool in use where there is none, is another one than
	// had its name before: it was reground, or is a fresh insert.
	New bool `json:"new,omitempty"`
}

// Errors of Apply that callers test for.
var (
	ErrNamed  = errors.New("the machine's samples name their tool")
	ErrNoTool = errors.New("no tool is known that could be new")
)

// maxText is the most bytes that the name of a tool, a hole, a programme or a material may have.
const maxText = signal.MaxContextText

// OpenSetting reads the file at path, which need not be there yet.
func OpenSetting(path string) (*Setting, error) {
	s := &Setting{path: path, mint: mintLife}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("feed: tool in use: %w", err)
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("feed: %s, which says what tool is in use, is damaged: %w: remove it and name the tool again by `ingest tool`", path, err)
	}
	s.now, s.lives, s.by = k.inUse, k.Lives, k.By
	return s, nil
}

// parseChange reads a Change from JSON. It reports what cannot be meant.
func parseChange(text []byte) (Change, error) {
	var c Change
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("feed: context: %w: write, for example, {\"tool\": \"T08\", \"hole\": \"12\", \"spindle_speed\": 1650}", err)
	}
	if err := c.Check(); err != nil {
		return c, err
	}
	if c.Tool != nil {
		*c.Tool, _ = ToolName(*c.Tool)
	}
	return c, nil
}

// Check reports what cannot be meant.
func (c Change) Check() error {
	if c == (Change{}) {
		return errors.New("feed: context: says nothing: give tool, hole, spindle_speed, feed_rate, programme, material or new")
	}
	if c.Tool != nil {
		switch name, err := ToolName(*c.Tool); {
		case err != nil:
			return fmt.Errorf("feed: context: tool: %w", err)
		case name == "":
			return errors.New("feed: context: the tool has no name: give one, which need only differ from the name of the tool before")
		}
	}
	for name, text := range map[string]*string{"hole": c.Hole, "programme": c.Programme, "material": c.Material} {
		if text != nil {
			if err := checkText(*text); err != nil {
				return fmt.Errorf("feed: context: %s: %w", name, err)
			}
		}
	}
	if v := c.SpindleSpeed; v != nil && checkSpeed(*v) != nil {
		return fmt.Errorf("feed: context: %w", checkSpeed(*v))
	}
	if v := c.FeedRate; v != nil && (!(*v >= 0) || *v > 1e6) {
		return fmt.Errorf("feed: context: feed_rate: %v: must be mm/min from 0 (not known) to 1,000,000", *v)
	}
	return nil
}

// ToolName returns the name of a tool as all programs write it, see plain.Name.
func ToolName(s string) (string, error) {
	name, err := plain.Name(s)
	if err == nil {
		err = checkText(name)
	}
	return name, err
}

// tool returns the tool that c, which was checked, is about, where now is true.
func (c Change) tool(now signal.Context) string {
	if c.Tool != nil {
		name, _ := ToolName(*c.Tool)
		return name
	}
	return now.Tool
}

func checkText(s string) error {
	if len(s) > maxText {
		return fmt.Errorf("%.32q…: must be at most %d bytes of UTF-8", s, maxText)
	}
	if err := plain.Check(s); err != nil {
		return err
	}
	_, err := plain.Name(s)
	return err
}

func checkSpeed(v float64) error {
	if !(v >= 0) || v > 1e6 || math.IsInf(v, 0) {
		return fmt.Errorf("spindle_speed: %v: must be rev/min from 0 (not known) to 1,000,000", v)
	}
	return nil
}

// Apply makes c true from the next frame on, and durable before it returns. With
// another or a new tool, all else is not known unless c says it. It
// returns what is true now.
//
// Where frames name their tool, c cannot say which one is in use (ErrNamed), but
// it can say that one is new, also one that is not in use. ErrNoTool is returned
// for a new tool without a name where none is in use.
func (s *Setting) Apply(c Change) (signal.Context, error) {
	if err := c.Check(); err != nil {
		return signal.Context{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(c, s.by)
}

// Control returns what the machine's control named last. It lasts as the Setting does.
func (s *Setting) Control() Named {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by
}

// ApplyControl is Apply for a machine's control, and keeps what the control named. A c that says nothing
// changes nothing else.
func (s *Setting) ApplyControl(c Change, by Named) (signal.Context, error) {
	if c != (Change{}) {
		if err := c.Check(); err != nil {
			return signal.Context{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply(c, by)
}

// set makes a value what is new of it, which may be nothing.
func set[T any](value, is *T) {
	if is != nil {
		*value = *is
	}
}

// apply makes c true, which was checked.
func (s *Setting) apply(c Change, by Named) (signal.Context, error) {
	if c.Tool != nil && s.named != "" && !c.New {
		return signal.Context{}, fmt.Errorf("feed: tool %q: the last frame says it is %q: %w: change it there", *c.Tool, s.named, ErrNamed)
	}
	tool := c.tool(signal.Context{Tool: cmp.Or(s.named, s.now.Tool)})
	if c.New && s.isNoTool(tool) {
		return signal.Context{}, fmt.Errorf("feed: context: %w: name the tool too", ErrNoTool)
	}
	next := kept{s.now, s.lives, by}
	if s.named == "" && (c.New || tool != next.Tool) {
		next.inUse = inUse{Tool: tool}
	}
	if c.New {
		next.Lives = next.Lives.declare(tool, s.mint())
	}
	set(&next.Hole, c.Hole)
	set(&next.SpindleSpeed, c.SpindleSpeed)
	set(&next.FeedRate, c.FeedRate)
	set(&next.Programme, c.Programme)
	set(&next.Material, c.Material)
	if next.inUse != s.now || next.By != s.by || c.New {
		if err := s.keep(next); err != nil {
			return signal.Context{}, err
		}
	}
	return s.context(), nil
}

// keep makes k durable, and true.
func (s *Setting) keep(k kept) error {
	k.Lives = k.Lives.touch(k.Tool)
	text, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	if err := config.WriteDataFile(s.path, text); err != nil {
		return fmt.Errorf("feed: what tool is in use cannot be noted: %w", err)
	}
	s.now, s.lives, s.by = k.inUse, k.Lives, k.By
	return nil
}

// mintLife returns the time and random digits.
func mintLife() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%s-%x", time.Now().UTC().Format(time.RFC3339), b)
}

// Context returns what is true now.
func (s *Setting) Context() signal.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.context()
}

func (s *Setting) context() signal.Context {
	tool := cmp.Or(s.named, s.now.Tool)
	return signal.Context{
		Tool: s.real(tool), Hole: s.now.Hole, SpindleSpeed: s.now.SpindleSpeed, ToolLife: s.lives.of(tool),
		FeedRate: s.now.FeedRate, Programme: s.now.Programme, Material: s.now.Material,
	}
}

// more describes feed rate, programme and material as far as they are known, each behind a comma.
func more(c signal.Context) (text string) {
	if c.FeedRate != 0 {
		text = fmt.Sprintf(", feed rate %v mm/min", c.FeedRate)
	}
	if c.Programme != "" {
		text += fmt.Sprintf(", programme %q", c.Programme)
	}
	if c.Material != "" {
		text += fmt.Sprintf(", material %q", c.Material)
	}
	return text
}

// fill adds to c what a frame does not say. It returns an error, once, for a tool whose name is nearly the name
// of another one.
func (s *Setting) fill(c *signal.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named != c.Tool {
		s.lives = s.lives.touch(c.Tool)
	}
	s.named, c.Tool = c.Tool, cmp.Or(c.Tool, s.now.Tool)
	c.Hole, c.SpindleSpeed = cmp.Or(c.Hole, s.now.Hole), cmp.Or(c.SpindleSpeed, s.now.SpindleSpeed)
	c.FeedRate, c.Programme, c.Material = s.now.FeedRate, s.now.Programme, s.now.Material // frames do not say them
	c.Tool, c.ToolLife = s.real(c.Tool), s.lives.of(c.Tool)
	return s.seen(c.Tool)
}

// How many names of tools are compared with each other, and how many that fold to the same.
const (
	maxNames = 1024
	maxAlike = 16
)

// seen notes the name of the tool in use, and reports the first use of one that another tool nearly has.
func (s *Setting) seen(tool string) error {
	if tool == s.last {
		return nil
	}
	s.last = tool
	fold := plain.Fold(tool)
	alike := s.names[fold]
	if tool == "" || slices.Contains(alike, tool) || len(alike) == maxAlike {
		return nil
	}
	if s.names == nil || len(s.names) == maxNames {
		s.names = map[string][]string{}
	}
	s.names[fold] = append(alike, tool)
	if len(alike) == 0 {
		return nil
	}
	return fmt.Errorf("feed: tools %q and %q have nearly the same name, and are judged as two tools: if they are one, let all senders write it in one way", alike[0], tool)
}

// isNoTool reports whether a name of a tool, which may be empty, says that none is in.
func (s *Setting) isNoTool(name string) bool {
	list := s.NoTool
	if list == nil {
		list = defaultNoTool
	}
	fold := plain.Fold(name)
	return fold == "" || slices.ContainsFunc(list, func(none string) bool { return plain.Fold(none) == fold })
}

// real returns the name of a tool, empty for a placeholder.
func (s *Setting) real(name string) string {
	if s.isNoTool(name) {
		return ""
	}
	return name
}
