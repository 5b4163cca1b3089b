package signal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
)

// Layout is an ordered list of channels. Treat it as immutable once made: its
// groups and fingerprint are computed when it is made.
type Layout struct {
	name        string
	channels    []Channel
	groups      []Group
	fingerprint string
	limits      Limits
}

// Group is the channels of one rate.
type Group struct {
	Rate     float64 // samples per second
	Channels []int   // indices into Layout.Channels, ascending
}

// NewLayout checks the channels and returns them as a Layout. It reports the
// first channel that cannot be used.
func NewLayout(name string, channels []Channel) (*Layout, error) {
	if len(channels) == 0 {
		return nil, errors.New("signal: layout: no channels: list at least one under `channels`")
	}
	l := &Layout{name: name, channels: slices.Clone(channels)}
	seen := make(map[string]int, len(channels))
	for i, c := range l.channels {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("signal: layout: channel %d: %w", i+1, err)
		}
		if j, dup := seen[c.Name]; dup {
			return nil, fmt.Errorf("signal: layout: channel %d: name %q is taken by channel %d: give it another", i+1, c.Name, j+1)
		}
		seen[c.Name] = i
		g := slices.IndexFunc(l.groups, func(g Group) bool { return g.Rate == c.Rate })
		if g < 0 {
			g = len(l.groups)
			l.groups = append(l.groups, Group{Rate: c.Rate})
		}
		l.groups[g].Channels = append(l.groups[g].Channels, i)
	}
	slices.SortStableFunc(l.groups, func(a, b Group) int {
		return int(math.Copysign(1, b.Rate-a.Rate))
	})
	l.fingerprint = fingerprint(l.channels)
	l.limits = Limits{}.filled()
	return l, nil
}

// WithLimits returns l with other limits, of which a zero means its default, and
// the same fingerprint. It reports a limit that cannot be used.
func (l *Layout) WithLimits(limits Limits) (*Layout, error) {
	if err := limits.check(); err != nil {
		return nil, fmt.Errorf("signal: layout: quality: %w", err)
	}
	other := *l
	other.limits = limits.filled()
	return &other, nil
}

// Limits returns from where on something counts as a fault of a sensor, every
// default filled in.
func (l *Layout) Limits() Limits { return l.limits }

func (c Channel) check() error {
	return cmp.Or(
		config.Wrong(c.Name == "", "has no name"),
		config.Wrong(strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }), "name %q holds a control character", c.Name),
		config.Wrong(!slices.Contains(kinds, c.Kind), "%s: kind %q is not one of %v", c.Name, c.Kind, kinds),
		config.Wrong(!(c.Rate > 0) || c.Rate > 1e9, "%s: rate %v Hz: must be positive, and at most 1e9", c.Name, c.Rate),
		config.Wrong(!(c.Range >= 0) || math.IsInf(c.Range, 0), "%s: range %v: must be zero (not known) or positive", c.Name, c.Range))
}

// fingerprint covers everything that changes what a value means. Fields are
// length-prefixed, so no two lists of channels share an encoding.
func fingerprint(channels []Channel) string {
	h := sha256.New()
	for _, c := range channels {
		for _, s := range []string{c.Name, string(c.Kind), c.Unit, c.Sensor} {
			fmt.Fprintf(h, "%d:%s", len(s), s)
		}
		fmt.Fprintf(h, "%x;%x\n", math.Float64bits(c.Rate), math.Float64bits(c.Range))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Name returns the name of the layout, which is for people and no part of its
// identity.
func (l *Layout) Name() string { return l.name }

// Channels returns the channels in order. The caller must not change them.
func (l *Layout) Channels() []Channel { return l.channels }

// Groups returns the channels by rate, the highest rate first. The caller must
// not change them.
func (l *Layout) Groups() []Group { return l.groups }

// Fingerprint identifies the channels, their order, kinds, units, rates, ranges
// and sensors: 16 hexadecimal digits, equal for equal layouts.
func (l *Layout) Fingerprint() string { return l.fingerprint }

// Index returns the position of the named channel, or -1.
func (l *Layout) Index(name string) int {
	return slices.IndexFunc(l.channels, func(c Channel) bool { return c.Name == name })
}

// errLayout is returned where a layout is not the one that was expected.
var errLayout = errors.New("layouts differ")

// Match returns nil if other has the fingerprint of l, and otherwise an error
// that wraps errLayout and names the first difference.
func (l *Layout) Match(other *Layout) error {
	if l.fingerprint == other.fingerprint {
		return nil
	}
	for i := range max(len(l.channels), len(other.channels)) {
		switch {
		case i >= len(other.channels):
			return fmt.Errorf("%w: channel %d, %s, is missing", errLayout, i+1, l.channels[i].Name)
		case i >= len(l.channels):
			return fmt.Errorf("%w: channel %d, %s, is one too many", errLayout, i+1, other.channels[i].Name)
		case l.channels[i] != other.channels[i]:
			return fmt.Errorf("%w: channel %d is %v, expected %v", errLayout, i+1, other.channels[i], l.channels[i])
		}
	}
	return errLayout
}

// String describes the channel on one line.
func (c Channel) String() string {
	s := fmt.Sprintf("%s (%s, %q, %v Hz", c.Name, c.Kind, c.Unit, c.Rate)
	if c.Range > 0 {
		s += fmt.Sprintf(", ±%v", c.Range)
	}
	if c.Sensor != "" {
		s += ", sensor " + c.Sensor
	}
	return s + ")"
}

// GunDrill returns the default layout: the 14 channels of the gun-drilling
// experiment of Zhang et al. (arXiv 1804.10801, table "sensors"), which are
// four 3-axis accelerometers of ±50 g at 20 kHz, thrust force and torque at
// 100 Hz.
func GunDrill() *Layout {
	var cs []Channel
	for s := 1; s <= 4; s++ {
		for a, axis := range []string{"x", "y", "z"} {
			cs = append(cs, Channel{
				Name: fmt.Sprintf("ch%02d", 3*(s-1)+a+1), Kind: Vibration, Unit: "g",
				Rate: 20_000, Range: 50, Sensor: fmt.Sprintf("acc%d-%s", s, axis),
			})
		}
	}
	cs = append(cs,
		Channel{Name: "thrust", Kind: Force, Unit: "N", Rate: 100, Sensor: "dynamometer"},
		Channel{Name: "torque", Kind: Torque, Unit: "N·m", Rate: 100, Sensor: "dynamometer"})
	l, err := NewLayout("gun-drill", cs)
	if err != nil {
		panic("signal: GunDrill: " + err.Error())
	}
	return l
}

// layoutFile is a layout as people write it: channels that differ in name only
// share an entry.
type layoutFile struct {
	Name      string         `yaml:"name"`
	Channels  []channelEntry `yaml:"channels"`
	Quality   Limits         `yaml:"quality"`
	Recording Recording      `yaml:"recording"`
}

// channels returns the channels, and adds to the recording where each is.
func (f *layoutFile) channels(file string) (cs []Channel, err error) {
	for i, c := range f.Channels {
		names := c.Names
		if c.Name != "" {
			names = append([]string{c.Name}, names...)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("signal: layout %s: entry %d under `channels` has neither `name` nor `names`", file, i+1)
		}
		if err := c.origins(names, &f.Recording); err != nil {
			return nil, fmt.Errorf("signal: layout %s: entry %d under `channels`: %w", file, i+1, err)
		}
		for _, n := range names {
			cs = append(cs, Channel{Name: n, Kind: c.Kind, Unit: c.Unit, Rate: c.Rate, Range: c.Range, Sensor: c.Sensor})
		}
	}
	return cs, nil
}

// ReadLayout reads a layout from YAML; file names it in errors. The grammar is
// in schemas/layout.md. Unknown keys are errors.
func ReadLayout(r io.Reader, file string) (*Layout, Recording, error) {
	text, err := config.Read(r, file)
	if err != nil {
		return nil, Recording{}, fmt.Errorf("signal: layout %s: %w", file, err)
	}
	var f layoutFile
	if err := config.Decode(text, file, &f); err != nil {
		return nil, Recording{}, fmt.Errorf("signal: layout: %w", err)
	}
	cs, err := f.channels(file)
	if err != nil {
		return nil, Recording{}, err
	}
	l, err := NewLayout(f.Name, cs)
	if err == nil {
		l, err = l.WithLimits(f.Quality)
	}
	if err != nil {
		return nil, Recording{}, fmt.Errorf("%w (in %s)", err, file)
	}
	if err := f.Recording.check(); err != nil {
		return nil, Recording{}, fmt.Errorf("signal: layout %s: %w", file, err)
	}
	return l, f.Recording, nil
}

// LoadLayout reads the layout file at path, see [ReadLayout].
func LoadLayout(path string) (*Layout, Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Recording{}, fmt.Errorf("signal: layout: %w", err)
	}
	defer f.Close()
	return ReadLayout(f, path)
}
