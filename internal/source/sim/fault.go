package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Fault is something that goes wrong between sensor and program, on request and
// always in the same way.
type Fault struct {
	Kind    FaultKind
	Channel string        // that it strikes; of clocks and blocks: all of that channel's rate, or of every rate if empty
	From    time.Duration // sensor time from the first sample of the source on
	For     time.Duration // how long; 0 means to the end
	Size    float64       // what it means depends on the kind; 0 means the kind's default
}

// FaultKind is a way in which a sensor, its clock or its wire fails.
type FaultKind string

// The kinds, with what Size means.
const (
	Dropout    FaultKind = "dropout"     // samples are missing (NaN); Size has no meaning
	Flatline   FaultKind = "flatline"    // the channel keeps the value it had; no meaning
	Clipping   FaultKind = "clipping"    // the amplifier's gain is Size (default 100) times too high, and it saturates at the channel's range
	Gain       FaultKind = "gain"        // the channel reads Size (default 1.25) times what it should
	dead       FaultKind = "dead"        // the channel reads zero; no meaning
	bias       FaultKind = "bias"        // Size (default 10) is added, in the unit of the channel
	NonFinite  FaultKind = "non_finite"  // every 1000th sample is +Inf, and at least one a second; no meaning
	ClockStep  FaultKind = "clock_step"  // the sensor clock jumps by Size seconds (default 1), and back at the end
	ClockDrift FaultKind = "clock_drift" // the sensor clock runs fast by Size (default 0.01 of the time), and jumps back at the end
	Missing    FaultKind = "missing"     // blocks in which the fault is present never arrive; no meaning
	late       FaultKind = "late"        // blocks arrive Size seconds (default 5) late, in order, while blocks of other rates are in time
)

// faultRule is what is to be known of a kind.
type faultRule struct {
	kind FaultKind
	size float64 // default; 0: Size has no meaning

	spoil func(f *struck, v float32, counter int64) float32 // what a sample becomes; nil: the kind strikes whole blocks, not one channel
}

var kinds = []faultRule{
	{Dropout, 0, func(*struck, float32, int64) float32 { return float32(math.NaN()) }},
	{Flatline, 0, func(f *struck, _ float32, _ int64) float32 { return f.stuck }},
	{Clipping, 100, func(f *struck, v float32, _ int64) float32 {
		return float32(max(-f.limit, min(f.limit, float64(v)*f.size())))
	}},
	{Gain, 1.25, func(f *struck, v float32, _ int64) float32 { return v * float32(f.size()) }},
	{dead, 0, func(*struck, float32, int64) float32 { return 0 }},
	{bias, 10, func(f *struck, v float32, _ int64) float32 { return v + float32(f.size()) }},
	{NonFinite, 0, func(f *struck, v float32, counter int64) float32 {
		if counter%f.every == 0 {
			return float32(math.Inf(1))
		}
		return v
	}},
	{ClockStep, 1, nil}, {ClockDrift, 0.01, nil}, {Missing, 0, nil}, {late, 5, nil},
}

// parseFault reads a fault as people write it: kind:channel@from+for=size, as in
// "flatline:ch07@30s+10s" or "clock_step@1m=-2". Channel, for and size may be
// left out.
func parseFault(text string) (Fault, error) {
	bad := func(format string, args ...any) (Fault, error) {
		return Fault{}, fmt.Errorf("fault %q: %s", text, fmt.Sprintf(format, args...))
	}
	what, when, ok := strings.Cut(text, "@")
	if !ok {
		return bad("does not say when: write kind:channel@from+for=size, for example flatline:ch07@30s+10s")
	}
	var f Fault
	kind, channel, _ := strings.Cut(what, ":")
	f.Kind, f.Channel = FaultKind(kind), channel
	when, size, sized := strings.Cut(when, "=")
	from, span, limited := strings.Cut(when, "+")
	var err error
	if f.From, err = time.ParseDuration(from); err != nil {
		return bad("%q is not a time such as 30s", from)
	}
	if limited {
		if f.For, err = time.ParseDuration(span); err != nil || f.For <= 0 {
			return bad("%q is not a positive time such as 10s", span)
		}
	}
	if sized {
		if f.Size, err = strconv.ParseFloat(size, 64); err != nil || f.Size == 0 {
			return bad("%q is not a number but 0", size)
		}
	}
	if err := f.check(); err != nil {
		return bad("%v", err)
	}
	return f, nil
}

// ParseFaults reads several.
func ParseFaults(texts []string) (faults []Fault, err error) {
	for _, text := range texts {
		f, err := parseFault(text)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// String returns f as parseFault reads it.
func (f Fault) String() string {
	s := string(f.Kind)
	if f.Channel != "" {
		s += ":" + f.Channel
	}
	s += "@" + f.From.String()
	if f.For != 0 {
		s += "+" + f.For.String()
	}
	if f.Size != 0 {
		s += "=" + strconv.FormatFloat(f.Size, 'g', -1, 64)
	}
	return s
}

// check reports a fault that is impossible for any channels.
func (f Fault) check() error {
	k := f.rule()
	if k == nil {
		var names []string
		for _, k := range kinds {
			names = append(names, string(k.kind))
		}
		return fmt.Errorf("kind %q is not one of %s", f.Kind, strings.Join(names, ", "))
	}
	return cmp.Or(
		config.Wrong(f.From < 0 || f.For < 0, "times must not be negative"),
		config.Wrong(math.IsNaN(f.Size) || math.IsInf(f.Size, 0), "size %v: must be a number", f.Size),
		config.Wrong(k.size == 0 && f.Size != 0, "size %v: %s has none", f.Size, f.Kind),
		config.Wrong(k.spoil != nil && f.Channel == "", "%s strikes one channel: name it, as in %[1]s:ch07@30s", f.Kind),
		config.Wrong((f.Kind == Clipping || f.Kind == Gain || f.Kind == late) && f.Size < 0, "size %v: must be positive", f.Size),
		config.Wrong(f.Kind == late && f.Channel == "", "late blocks are late compared with other rates: name a channel of the rate"))
}

// rule returns the rule of the kind of f, nil if no kind has that name.
func (f Fault) rule() *faultRule {
	if i := slices.IndexFunc(kinds, func(k faultRule) bool { return k.kind == f.Kind }); i >= 0 {
		return &kinds[i]
	}
	return nil
}

// size returns the size of f with the kind's default.
func (f *struck) size() float64 { return cmp.Or(f.Size, f.rule.size) }

// faulty is a source whose blocks suffer faults.
type faulty struct {
	src    source.Source
	faults []struck
	began  bool
	start  time.Time // of the first block
	block  source.Block
	copies [][]float32 // by fault, for the samples of its channel: the source keeps its own
	held   []heldBlock
	now    time.Time // end of the newest block of the source
	ended  bool
}

// struck is a fault with what it strikes.
type struck struct {
	Fault
	rule    *faultRule
	group   int // -1: all
	channel int // index into the group
	limit   float64
	stuck   float32 // of a flatline: the value that it keeps
	every   int64   // of non-finite numbers: one in so many samples is one
	begun   bool
}

// heldBlock is a block that is held back.
type heldBlock struct {
	block *source.Block
	due   time.Time
}

// WithFaults returns a source that delivers the blocks of src with faults, which
// strike in the order given; src itself without any. It reports a fault that src cannot have.
func WithFaults(src source.Source, faults []Fault) (source.Source, error) {
	if len(faults) == 0 {
		return src, nil
	}
	all, err := strikes(src.Layout(), faults)
	if err != nil {
		return nil, err
	}
	return &faulty{src: src, faults: all, copies: make([][]float32, len(faults))}, nil
}

// CheckFaults reports a fault that a source of a layout cannot have.
func CheckFaults(l *signal.Layout, faults []Fault) error {
	_, err := strikes(l, faults)
	return err
}

// strikes returns faults with what they strike in a layout.
func strikes(l *signal.Layout, faults []Fault) (all []struck, err error) {
	for _, f := range faults {
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("sim: fault %s: %w", f, err)
		}
		at := struck{Fault: f, rule: f.rule(), group: -1}
		if f.Channel != "" {
			i := l.Index(f.Channel)
			if i < 0 {
				return nil, fmt.Errorf("sim: fault %s: no channel %q in layout %s", f, f.Channel, l.Name())
			}
			for g, group := range l.Groups() {
				if c := slices.Index(group.Channels, i); c >= 0 {
					at.group, at.channel = g, c
				}
			}
			at.limit = l.Channels()[i].Range
		}
		if f.Kind == Clipping && at.limit == 0 {
			return nil, fmt.Errorf("sim: fault %s: the range of %s is not known, so nothing says where it clips", f, f.Channel)
		}
		all = append(all, at)
	}
	return all, nil
}

func (s *faulty) Layout() *signal.Layout { return s.src.Layout() }

// Close closes the source if it can be closed.
func (s *faulty) Close() error { return source.Close(s.src) }

func (s *faulty) Next(ctx context.Context) (*source.Block, error) {
	for {
		if i := slices.IndexFunc(s.held, func(l heldBlock) bool { return s.ended || !l.due.After(s.now) }); i >= 0 {
			b := s.held[i].block
			s.held = slices.Delete(s.held, i, i+1)
			return b, nil
		}
		if s.ended {
			return nil, io.EOF
		}
		switch b, err := s.src.Next(ctx); {
		case err == io.EOF:
			s.ended = true
		case err != nil:
			return nil, err
		default:
			if b = s.strike(b); b != nil {
				return b, nil
			}
		}
	}
}

// strike returns b with all faults, or nil if it is missing or held back.
func (s *faulty) strike(b *source.Block) *source.Block {
	if !s.began {
		s.began, s.start = true, b.Time
	}
	rate := s.src.Layout().Groups()[b.Group].Rate
	took := time.Duration(math.Round(float64(b.Len()) / rate * float64(time.Second)))
	at := b.Time.Sub(s.start)
	if end := b.Time.Add(took); end.After(s.now) {
		s.now = end
	}
	out := &s.block
	*out = *b
	out.Samples = append([][]float32(nil), b.Samples...)
	delay := time.Duration(0)
	for i := range s.faults {
		f := &s.faults[i]
		if f.group >= 0 && f.group != b.Group || at+took <= f.From || f.For > 0 && at >= f.From+f.For {
			continue
		}
		switch f.Kind {
		case Missing:
			return nil
		case late:
			delay += time.Duration(f.size() * float64(time.Second))
		case ClockStep:
			if at >= f.From { // the clock is read at the first sample
				out.Time = out.Time.Add(time.Duration(f.size() * float64(time.Second)))
			}
		case ClockDrift:
			if at >= f.From {
				out.Time = out.Time.Add(time.Duration(f.size() * float64(at-f.From)))
			}
		default:
			x := append(s.copies[i][:0], out.Samples[f.channel]...)
			s.copies[i], out.Samples[f.channel] = x, x
			first := int(math.Ceil(max(0, f.From-at).Seconds() * rate))
			end := len(x)
			if f.For > 0 {
				end = min(end, int(math.Ceil((f.From+f.For-at).Seconds()*rate)))
			}
			if first < end {
				f.spoil(x[first:end], b.First+int64(first), rate)
			}
		}
	}
	wait, due := delay > 0, b.Time.Add(took+delay)
	for _, l := range s.held {
		if l.block.Group == b.Group { // it stays behind the blocks of its rate
			wait, due = true, time.Unix(0, max(due.UnixNano(), l.due.UnixNano()))
		}
	}
	if wait {
		s.held = append(s.held, heldBlock{clone(out), due})
		return nil
	}
	return out
}

// spoil changes the samples of a sensor's fault, the first of which has the given
// counter.
func (f *struck) spoil(x []float32, counter int64, rate float64) {
	if !f.begun {
		f.begun, f.stuck = true, x[0]
	}
	f.every = int64(max(1, min(1000, rate)))
	for i, v := range x {
		x[i] = f.rule.spoil(f, v, counter+int64(i))
	}
}

func clone(b *source.Block) *source.Block {
	c := *b
	c.Truth = slices.Clone(b.Truth)
	c.Samples = make([][]float32, len(b.Samples))
	for i, x := range b.Samples {
		c.Samples[i] = slices.Clone(x)
	}
	return &c
}
