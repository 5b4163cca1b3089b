package source

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/pkg/signal"
)

// waves reads the channels of a recording in which each is a track of its own,
// at any rate: a [Source] for all formats but text.
//
// A file may hold the same channels several times, in groups of which each is
// the recording of one hole. Then each group is a session, in the order of the
// file, and its name is Context.Hole. Groups with other rates than the
// layout, such as decimated copies, are left out, with a warning.
type waves struct {
	name   string
	file   track.File
	infos  []track.Info
	layout *signal.Layout
	rec    signal.Recording
	opt    tableOptions
	parts  []part
	gains  []calibration // by channel

	part   int // that is being read
	start  time.Time
	ended  time.Time   // when the part before it ended
	groups []waveGroup // of the part, one per group of the layout; nil before it is opened
	err    error
	block  Block
}

// part is the tracks that are recorded together.
type part struct {
	hole   string
	tracks []int // by channel
}

// waveGroup is the channels of one rate within a part.
type waveGroup struct {
	rate    float64
	most    int // samples in a block
	reader  track.Reader
	next    int64 // counter of the next sample
	ended   bool
	samples [][]float32
}

func newWaves(file track.File, name string, layout *signal.Layout, rec signal.Recording, opt tableOptions) (*waves, error) {
	w := &waves{name: name, file: file, infos: file.Tracks(), layout: layout, rec: rec, opt: opt}
	if w.opt.Start.IsZero() {
		w.opt.Start = time.Unix(0, 0).UTC()
	}
	w.block.Session = opt.Session
	w.block.Machine = opt.Machine
	var from []string
	for _, ch := range layout.Channels() {
		o := rec.Origin(ch.Name)
		from = append(from, o.From)
		w.gains = append(w.gains, calibration{o.Gain, o.Offset, missingOf(rec.Missing)})
	}
	var err error
	if w.parts, err = w.findParts(from); err != nil {
		return nil, err
	}
	var names []string
	for _, i := range w.parts[0].tracks {
		names = append(names, w.infos[i].Name)
	}
	warnOfUnits(name, layout, rec, names, opt.Warn)
	return w, nil
}

// findParts finds the tracks of the channels, given what they are called.
func (w *waves) findParts(from []string) ([]part, error) {
	candidates := make([][]int, len(from))
	several := -1
	for i, name := range from {
		candidates[i] = findTracks(name, w.infos)
		switch n := len(candidates[i]); {
		case n == 0:
			return nil, w.notFound(i, name)
		case n > 1:
			several = i
		}
	}
	if several < 0 {
		single := part{tracks: slices.Concat(candidates...)}
		return []part{single}, w.checkPart(single)
	}
	var parts []part
	var mismatch error
	var lacking, unfit skipped
	seen := make(map[string]bool)
	for _, track := range slices.Sorted(slices.Values(slices.Concat(candidates...))) {
		p := part{hole: w.infos[track].Group}
		if seen[p.hole] {
			continue
		}
		seen[p.hole] = true
		within := func(j int) bool { return w.infos[j].Group == p.hole }
		for _, cs := range candidates {
			k := slices.IndexFunc(cs, within)
			if k < 0 {
				break
			}
			if slices.ContainsFunc(cs[k+1:], within) {
				return nil, fmt.Errorf("source: %s: two channels are named %q: rename or remove one", w.name, w.infos[cs[k]].Path())
			}
			p.tracks = append(p.tracks, cs[k])
		}
		if len(p.tracks) < len(from) {
			lacking.add("%q", p.hole)
		} else if err := w.checkPart(p); err != nil {
			mismatch = err
			unfit.add("%q: %s", p.hole, strings.TrimPrefix(err.Error(), "source: "+w.name+": "))
		} else {
			parts = append(parts, p)
		}
	}
	leave := func(groups string, s skipped) {
		if s.count > 0 && len(parts) > 0 && w.opt.Warn != nil {
			w.opt.Warn(fmt.Sprintf("%s: groups %s the layout, left out: %d, the first is %s", w.name, groups, s.count, s.first))
		}
	}
	leave("without all channels of", lacking)
	leave("with other channels than", unfit)
	if len(parts) > 0 {
		return parts, nil
	}
	if mismatch != nil {
		return nil, mismatch
	}
	return nil, fmt.Errorf("source: %s: %q is in %d groups, and none of them holds all channels of the layout: write `from: %q` to name one",
		w.name, from[several], len(candidates[several]), w.infos[candidates[several][0]].Path())
}

func (w *waves) notFound(channel int, name string) error {
	what := "a channel"
	if ch := w.layout.Channels()[channel].Name; ch != name {
		what = fmt.Sprintf("`from` of channel %q", ch)
	}
	names := TrackNames(w.infos)
	remedy := "correct the layout, or give the recording that belongs to it"
	if near := nearest(name, names); len(near) > 0 {
		remedy = "the nearest names there are " + strings.Join(near, ", ")
	} else if len(names) > 0 {
		remedy = fmt.Sprintf("it holds %s, the layout %s: set `from` of each channel to one of the former", someOf(names), listed(layoutNames(w.layout, w.rec), 2))
	}
	return fmt.Errorf("source: %s: no channel %q, which the layout names as %s: %s", w.name, name, what, remedy)
}

// someOf lists the first names, quoted.
func someOf(names []string) string { return listed(names, 12) }

// listed lists so many names, quoted, and counts the others.
func listed(names []string, most int) string {
	var quoted []string
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	if more := len(names) - len(quoted); more > 0 {
		quoted = append(quoted, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(quoted, ", ")
}

// rateTolerance is by how much the rate that a file states may be off the
// layout's: a clock is, by parts in a million, and decimals are rounded.
const rateTolerance = 1e-3

func (w *waves) checkPart(p part) error {
	for i, j := range p.tracks {
		ch, info := w.layout.Channels()[i], w.infos[j]
		if info.Text {
			return fmt.Errorf("source: %s: channel %q is text, not numbers: take it out of the layout", w.name, info.Path())
		}
		if err := checkUnit(ch, w.rec.Origin(ch.Name), info.Name); err != nil {
			return fmt.Errorf("source: %s: %w", w.name, err)
		}
		if info.Rate != 0 && math.Abs(info.Rate/ch.Rate-1) > rateTolerance {
			return fmt.Errorf("source: %s: channel %q was recorded at %v Hz, but the layout says %v Hz for %s: correct `rate`", w.name, info.Path(), info.Rate, ch.Rate, ch.Name)
		}
	}
	return nil
}

// Layout returns the layout that the recording was opened with.
func (w *waves) Layout() *signal.Layout { return w.layout }

// Close closes the file.
func (w *waves) Close() error { return w.file.Close() }

// Next returns the next samples of one rate, of the rate that is furthest
// behind. The block is used again by the following call.
func (w *waves) Next(ctx context.Context) (*Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for w.err == nil {
		if w.part == len(w.parts) {
			w.err = io.EOF
			break
		}
		if w.groups == nil {
			if w.err = w.openPart(); w.err != nil {
				break
			}
		}
		behind := -1
		for i, g := range w.groups {
			if !g.ended && (behind < 0 || float64(g.next)/g.rate < float64(w.groups[behind].next)/w.groups[behind].rate) {
				behind = i
			}
		}
		if behind < 0 {
			for _, g := range w.groups {
				if at := w.start.Add(seconds(float64(g.next) / g.rate)); at.After(w.ended) {
					w.ended = at
				}
			}
			w.part++
			w.groups = nil
			w.block.Session++
			continue
		}
		g := &w.groups[behind]
		values, n, err := g.reader.Read(g.most)
		if err == io.EOF {
			g.ended = true
			continue
		}
		if err != nil {
			w.err = err
			break
		}
		if w.err = w.deliver(behind, values, n); w.err == nil {
			return &w.block, nil
		}
	}
	return nil, w.err
}

// openPart begins to read the next part.
func (w *waves) openPart() error {
	p := w.parts[w.part]
	w.block.Hole = p.hole
	w.start = w.stated(p)
	for _, group := range w.layout.Groups() {
		g := waveGroup{rate: group.Rate, most: int(min(max(group.Rate/5, 1), 4096))}
		var tracks []int
		for _, ch := range group.Channels {
			tracks = append(tracks, p.tracks[ch])
			g.samples = append(g.samples, make([]float32, g.most))
		}
		if at := w.infos[tracks[0]].Start; !at.IsZero() {
			g.next = int64(math.Round(at.Sub(w.start).Seconds() * g.rate))
		}
		err := checkLengths(w.name, w.infos, tracks, w.opt.Warn)
		if err != nil {
			return err
		}
		if g.reader, err = w.file.Open(tracks); err != nil {
			return err
		}
		w.groups = append(w.groups, g)
	}
	if w.start.IsZero() {
		w.start = w.opt.Start
		if w.part > 0 {
			w.start = w.ended // as a machine drills one hole after another
		}
	}
	return nil
}

// IsShort reports whether n values are too few for a track at the rate of one of most values: a recorder that is stopped loses a few.
func IsShort(n, most int64) bool { return float64(n) < 0.99*float64(most) }

// checkLengths reports tracks that are read side by side, so that they begin together and end with the shortest one. If nothing says their
// rates, a far shorter one is of another rate.
func checkLengths(path string, infos []track.Info, tracks []int, warn func(text string)) error {
	apart := func(j int) bool {
		a, b := infos[tracks[0]], infos[j]
		return !a.Start.IsZero() && !b.Start.IsZero() && a.Start.Sub(b.Start).Abs().Seconds()*a.Rate > 1
	}
	if i := slices.IndexFunc(tracks, apart); i > 0 && warn != nil {
		a, b := infos[tracks[0]], infos[tracks[i]]
		warn(fmt.Sprintf("%s: channels %q and %q begin %v apart, and are read side by side: start them by one trigger, or take one out of the layout",
			path, a.Path(), b.Path(), a.Start.Sub(b.Start).Abs()))
	}
	byLength := func(i, j int) int { return cmp.Compare(infos[i].Len, infos[j].Len) }
	short, long := infos[slices.MinFunc(tracks, byLength)], infos[slices.MaxFunc(tracks, byLength)]
	if short.Len < 0 || short.Len == long.Len {
		return nil
	}
	text := fmt.Sprintf("%s: channel %q has %d values and %q %d, and the layout gives both one rate", path, short.Path(), short.Len, long.Path(), long.Len)
	if short.Rate == 0 && IsShort(short.Len, long.Len) {
		return fmt.Errorf("source: %s: correct `rate` of the former, or take it out of the layout", text)
	}
	if warn != nil {
		warn(text + ": what follows the last value of the former is not read")
	}
	return nil
}

// stated returns when a part began, zero if the file does not say it.
func (w *waves) stated(p part) (start time.Time) {
	for _, j := range p.tracks {
		if at := w.infos[j].Start; !at.IsZero() && (start.IsZero() || at.Before(start)) {
			start = at
		}
	}
	return start
}

// span returns when a recording begins and ends that does not say when it began. It is
// false if reading alone tells it.
func (w *waves) span() (first, end time.Time, ok bool) {
	end = w.opt.Start
	for _, p := range w.parts {
		if !w.stated(p).IsZero() {
			return first, end, false
		}
		var longest time.Duration
		for _, group := range w.layout.Groups() {
			least := int64(math.MaxInt64)
			for _, ch := range group.Channels {
				least = min(least, w.infos[p.tracks[ch]].Len)
			}
			if least < 0 {
				return first, end, false
			}
			longest = max(longest, seconds(float64(least)/group.Rate))
		}
		end = end.Add(longest)
	}
	return w.opt.Start, end, true
}

// deliver puts values into the block.
func (w *waves) deliver(group int, values []track.Values, n int) error {
	g := &w.groups[group]
	channels := w.layout.Groups()[group].Channels
	b := &w.block
	b.Samples = g.samples
	for i, ch := range channels {
		g.samples[i] = g.samples[i][:n]
		gain := &w.gains[ch]
		for k, v := range values[i].Numbers {
			x, ok := gain.apply(v)
			if !ok {
				return fmt.Errorf("source: %s: channel %q: sample %d, %v, is beyond the range of 32-bit numbers with gain %v: correct the gain",
					w.name, w.layout.Channels()[ch].Name, g.next+int64(k), v, gain.gain)
			}
			g.samples[i][k] = x
		}
	}
	b.Group, b.First = group, g.next
	b.Time = w.start.Add(seconds(float64(g.next) / g.rate))
	g.next += int64(n)
	return nil
}
