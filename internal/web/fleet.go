package web

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/flank-tcm/flank/internal/web/summary"
)

// The pace and the memory of the page of the fleet.
const (
	framePause = time.Second // least time between two frames
	keptFrames = 60
	frameBytes = 1 << 20 // that the kept frames have together at most
)

// frames are what is new for pages of the fleet, made at most once a second and the same for
// every page. A page that comes back gets the frames that it missed.
type frames struct {
	last   uint64 // number of the last one; 0: none was made
	kept   []frame
	bytes  int
	at     time.Time // when the last one was looked for
	events uint64    // of the hub, that are in them
	status uint64    // changes of the status, likewise
	alarms int       // that the last one says
	crowd  bool      // likewise
}

type frame struct {
	number uint64
	data   []byte // of the event "update"
}

// fleetJSON is the answer of /api/machines, and the data of the event "snapshot" of the page of
// the fleet.
type fleetJSON struct {
	pageHead
	Limit    int     `json:"limit"`    // of machines
	Crowded  bool    `json:"crowded"`  // there are more machines than are shown
	Machines []*Tile `json:"machines"` // the worst first, then by name
}

// frameJSON is the data of the event "update" of the page of the fleet.
type frameJSON struct {
	Now      time.Time         `json:"now"`
	Alarms   *int              `json:"alarms,omitempty"`   // if it changed
	Crowded  *bool             `json:"crowded,omitempty"`  // likewise
	Status   *Status           `json:"status,omitempty"`   // likewise
	Machines []json.RawMessage `json:"machines,omitempty"` // new ones as a Tile; changes of others, see patchOf
}

// fleet returns all tiles as they are by now.
func (x *server) fleet(r *http.Request) fleetJSON {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	now := x.hub.now()
	all := x.fleetHead(r, now)
	for _, m := range x.hub.machines {
		all.Machines = append(all.Machines, m.tile(now))
	}
	slices.SortFunc(all.Machines, byRank)
	return all
}

// fleetSnapshot returns the tiles as the last frame left them, and its number. It makes a frame
// if that is due.
func (x *server) fleetSnapshot(r *http.Request) (fleetJSON, uint64) {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	now := x.hub.now()
	x.hub.makeFrame(now)
	all := x.fleetHead(r, now)
	all.Alarms, all.Crowded = x.hub.frames.alarms, x.hub.frames.crowd // updates say what differs from the last frame
	for _, m := range x.hub.machines {
		if m.sent != nil {
			t := *m.sent
			t.age(now)
			all.Machines = append(all.Machines, &t)
		}
	}
	slices.SortFunc(all.Machines, byRank)
	return all, x.hub.frames.last
}

// fleetHead returns what is not of one machine. x.hub.mu must be held.
func (x *server) fleetHead(r *http.Request, now time.Time) fleetJSON {
	return fleetJSON{x.headAt(r, now), x.hub.limit, x.hub.crowded(now), []*Tile{}}
}

// byRank orders tiles: the worst first, then by name.
func byRank(a, b *Tile) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name)) }

// crowded reports whether there was no place for a machine a short time ago. h.mu must be held.
func (h *Hub) crowded(now time.Time) bool {
	return !h.refused.IsZero() && now.Sub(h.refused) < idleAfter
}

// age sets the ages of a tile to what they are at a time.
func (t *Tile) age(now time.Time) {
	t.WindowAge, t.RefusedAge = ageOf(t.seen, now), ageOf(t.refused, now)
}

// frameDue returns how long it is until the next frame may be made.
func (x *server) frameDue() time.Duration {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	return max(0, framePause-x.hub.now().Sub(x.hub.frames.at))
}

// framesAfter returns the data of all frames after a number. It makes a frame if that is due. It
// reports false if the page must start from a snapshot.
func (x *server) framesAfter(number uint64) (all [][]byte, ok bool) {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	x.hub.makeFrame(x.hub.now())
	f := &x.hub.frames
	if number > f.last || number < f.last && (len(f.kept) == 0 || f.kept[0].number > number+1) {
		return nil, false
	}
	for _, k := range f.kept {
		if k.number > number {
			all = append(all, k.data)
		}
	}
	return all, true
}

// makeFrame makes a frame of what has changed since the last one, unless that is too short a
// time ago. h.mu must be held.
func (h *Hub) makeFrame(now time.Time) {
	f := &h.frames
	if f.last > 0 && now.Sub(f.at) < framePause {
		return
	}
	f.at, f.last = now, max(f.last, 1) // pages start with 0 and get a snapshot
	if h.removed > f.events {
		f.forget()
	}
	j := frameJSON{Now: now.UTC(), Machines: h.patches(now)}
	f.events = h.events
	if h.alarms != f.alarms {
		f.alarms, j.Alarms = h.alarms, ptr(h.alarms)
	}
	if crowd := h.crowded(now); crowd != f.crowd {
		f.crowd, j.Crowded = crowd, &crowd
	}
	if h.changes != f.status {
		s := h.status
		f.status, j.Status = h.changes, &s
	}
	if j.Machines == nil && j.Alarms == nil && j.Crowded == nil && j.Status == nil {
		return
	}
	f.add(encode(j))
}

// patches returns what has changed of tiles since the last frame, in order.
func (h *Hub) patches(now time.Time) (all []json.RawMessage) {
	for _, m := range h.machines {
		if m.event > h.frames.events || m.sent == nil {
			t := m.tile(now)
			if data := patchOf(m.sent, t); data != nil {
				all = append(all, data)
			}
			m.sent = t
		}
	}
	slices.SortFunc(all, func(a, b json.RawMessage) int { return slices.Compare(a, b) })
	return all
}

// add keeps the data of the next frame.
func (f *frames) add(data []byte) {
	f.last++
	f.kept, f.bytes = append(f.kept, frame{f.last, data}), f.bytes+len(data)
	for len(f.kept) > keptFrames || f.bytes > frameBytes && len(f.kept) > 1 {
		f.bytes -= len(f.kept[0].data)
		f.kept[0].data = nil
		f.kept = f.kept[1:]
	}
}

// forget makes every page start from a snapshot: a machine is gone.
func (f *frames) forget() {
	f.last++
	f.kept, f.bytes = nil, 0
}

// patchOf returns what has changed of a tile, nil if nothing has. Of a machine that pages do
// not know, which is one with was nil, it is the whole tile. Otherwise it has the machine's id
// and the members that have changed: each replaces the one before, and null removes it. Of wear
// it has the members that have changed, if there was a wear before. A member "+" has the letters
// to append to strip, of which the last 60 stay. With it go two rules that make patches short:
// verdict_at moves on by span seconds for each letter unless the patch has verdict_at, and
// the last window came when the frame was made unless the patch has window_age.
func patchOf(was, t *Tile) []byte {
	if was == nil {
		return encode(t)
	}
	p := patch{buf: strconv.AppendUint([]byte(`{"id":`), t.ID, 10)}
	bare := len(p.buf)
	more := t.verdicts - was.verdicts
	switch {
	case more > summary.MaxStrip:
		p.set("strip", t.Strip)
	case more > 0:
		p.set("+", t.Strip[max(0, len(t.Strip)-int(more)):])
	}
	p.text("layout", was.Layout, t.Layout)
	p.text("tool", was.Tool, t.Tool)
	p.text("hole", was.Hole, t.Hole)
	p.text("alarm", was.Alarm, t.Alarm)
	p.text("incident", was.Incident, t.Incident)
	p.text("verdict", string(was.Verdict), string(t.Verdict))
	p.value("since", was.Since, t.Since)
	if !follows(was, t, more) {
		p.value("verdict_at", was.VerdictAt, t.VerdictAt)
	}
	if unexpected(was, t, more) {
		p.set("window_age", t.WindowAge)
	}
	p.value("score", was.Score, t.Score)
	p.value("threshold", was.Threshold, t.Threshold)
	p.value("span", was.Span, t.Span)
	if !t.refused.Equal(was.refused) {
		p.value("refused_age", was.RefusedAge, t.RefusedAge)
	}
	p.wear(was.Wear, t.Wear)
	p.value("left", was.Left, t.Left)
	p.value("level", was.Level, t.Level)
	p.value("borrowed", was.Borrowed, t.Borrowed)
	p.value("instruction", was.Instruction, t.Instruction)
	p.value("models", was.Models, t.Models)
	p.value("magazine", was.Magazine, t.Magazine)
	p.value("advisories", was.Advisories, t.Advisories)
	p.value("more_advisories", was.MoreAdvisories, t.MoreAdvisories)
	p.value("rank", was.Rank, t.Rank)
	if len(p.buf) == bare {
		return nil
	}
	return append(p.buf, '}')
}

// unexpected reports whether the last window did not come just now, with a verdict: Kafka may bring results late.
func unexpected(was, t *Tile, more uint64) bool {
	if more > 0 {
		return t.WindowAge != nil && *t.WindowAge > framePause.Seconds()
	}
	return !t.seen.Equal(was.seen)
}

// follows reports whether the end of the last window is where a page expects it, which knows
// the tile before and how many verdicts came.
func follows(was, t *Tile, more uint64) bool {
	if was.VerdictAt == nil || t.VerdictAt == nil || t.Span == nil || was.Span == nil || *was.Span != *t.Span {
		return false
	}
	moved := t.VerdictAt.Sub(*was.VerdictAt).Seconds()
	return math.Abs(moved-float64(more)**t.Span) < 1e-3
}

// patch writes the members of a tile that have changed.
type patch struct{ buf []byte }

func (p *patch) set(name string, value any) {
	p.name(name)
	p.buf = append(p.buf, encode(value)...)
}

func (p *patch) name(name string) {
	if p.buf[len(p.buf)-1] != '{' {
		p.buf = append(p.buf, ',')
	}
	p.buf = append(strconv.AppendQuote(p.buf, name), ':')
}

func (p *patch) text(name, was, now string) {
	switch {
	case was == now:
	case now == "":
		p.set(name, nil)
	default:
		p.set(name, now)
	}
}

func (p *patch) wear(was, now *tileWear) {
	if was == nil || now == nil {
		p.value("wear", was, now)
		return
	}
	whole := len(p.buf)
	p.name("wear")
	p.buf = append(p.buf, '{')
	inner := len(p.buf)
	p.value("um", was.UM, now.UM)
	p.value("low_um", was.LowUM, now.LowUM)
	p.value("high_um", was.HighUM, now.HighUM)
	p.value("limit_um", was.LimitUM, now.LimitUM)
	switch {
	case now.Unknown && !was.Unknown:
		p.set("unknown", true)
	case was.Unknown && !now.Unknown:
		p.set("unknown", nil)
	}
	if len(p.buf) == inner {
		p.buf = p.buf[:whole]
		return
	}
	p.buf = append(p.buf, '}')
}

// value writes a member if it has changed; null removes it.
func (p *patch) value(name string, was, now any) {
	if !reflect.DeepEqual(was, now) {
		p.set(name, now)
	}
}
