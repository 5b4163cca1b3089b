package machine

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// An ingester has one epoch for each spool, so two epochs of one machine that go on side
// by side are two ingesters: the machine is configured twice, or a disk was copied.
const (
	takeoverRun   = 3                // windows in a row that make a new epoch, with another tool, the current one
	mostAhead     = 10 * time.Minute // of Kafka's clock, by which a window may be dated
	rivalPatience = time.Minute      // without a window of the current epoch, by Kafka's clock, until a rival takes over
)

// position says how a window counts.
type position int

const (
	inOrder     position = iota
	provisional          // of an epoch that may become the current one: it moves its own tool, which is not in the spindle
	late                 // after later ones: it moves nothing
	rival                // of a second ingester: it moves nothing
	repeat
)

// place finds where a window belongs and notes it as judged, unless it was judged before.
//
// The window of an epoch that is seen for the first time may be the beginning of what
// follows, times may begin again with it (a recording that is replayed), or it may be a
// stranger's. So an epoch with another tool takes over with the third of its windows in a
// row. With the tool that is in the spindle it takes over at once, since nothing changes
// but the numbers. If the current epoch goes on after another one has begun, both are
// alive: the other one is a rival, which takes over only after a minute without a window
// of the current one. An epoch that another one followed is the current one again when
// that has paused for a minute and its windows were dated in the future.
func (m *Machine) place(w Window) (p position, missing uint64) {
	id := w.EpochString()
	i := slices.IndexFunc(m.Epochs, func(e Epoch) bool { return e.ID == id })
	switch {
	case len(m.Epochs) == 0:
		m.Epochs = []Epoch{{ID: id, Led: true}}
		i = 0
	case i < 0:
		i = m.addEpoch(id)
		p = m.claim(i, w)
	case m.Epochs[i].Judged.has(w.Seq):
		return repeat, 0
	default:
		p = m.placeInEpoch(i, w)
	}
	if p == inOrder && i != len(m.Epochs)-1 {
		i = m.takeOver(i)
	}
	if p == inOrder {
		m.Newest = w.End()
	}
	return p, m.noteJudged(i, w)
}

// wouldPlace returns where place would find that a window of a layout belongs, and notes nothing.
// It says inOrder for windows of the machine's layout that were not judged before.
func (m *Machine) wouldPlace(w Window, layout string) position {
	if m.Layout == "" || m.Layout == layout {
		id := w.EpochString()
		if slices.ContainsFunc(m.Epochs, func(e Epoch) bool { return e.ID == id && e.Judged.has(w.Seq) }) {
			return repeat
		}
		return inOrder
	}
	as := &Machine{State: m.State}
	as.Epochs = cloneEpochs(m.Epochs)
	p, _ := as.place(w)
	return p
}

func cloneEpochs(epochs []Epoch) []Epoch {
	all := slices.Clone(epochs)
	for i := range all {
		all[i].Judged = slices.Clone(all[i].Judged)
	}
	return all
}

// passedWindow is a window of another layout than the machine's that comes late, or is of a
// second ingester. It is not judged: that would take another model, which then judged the
// windows after it.
type passedWindow struct{ Window }

func (w passedWindow) apply(m *Machine) {
	p, _ := m.place(w.Window)
	m.dirty.head = true
	r := &event.Result{
		ID: resultID(&w.Window.Features.Window, m.settings.Group), Epoch: w.EpochString(), Seq: w.Seq, Tool: w.Tool, Start: w.Start, End: w.End(), Model: m.Model,
	}
	if p == rival {
		m.rivals(p, r)
	}
	m.awake(w.Window, r)
}

// addEpoch puts a new epoch before the current one, forgets the oldest one if there are
// too many, and returns its index.
func (m *Machine) addEpoch(id string) int {
	m.dirty.slow = true
	m.Epochs = slices.Insert(m.Epochs, len(m.Epochs)-1, Epoch{ID: id})
	if n := len(m.Epochs) - keptEpochs; n > 0 {
		m.Epochs = slices.Delete(m.Epochs, 0, n)
	}
	return len(m.Epochs) - 2
}

// placeInEpoch finds where a window of a known epoch belongs.
func (m *Machine) placeInEpoch(i int, w Window) position {
	current := len(m.Epochs) - 1
	e := &m.Epochs[i]
	last, any := e.Judged.last()
	switch old := w.Start.Before(m.Newest); {
	case any && w.Seq < last && old && !(i == current && m.ahead(w)):
		return late
	case i == current:
		m.markRivals()
		return inOrder
	case e.Run == 0 && old && !e.Rival && !(m.paused(w.At.UnixMilli()) && m.ahead(w)):
		return late // what a spool brings back of an epoch that another one followed
	}
	m.dirty.slow = true
	return m.claim(i, w)
}

// markRivals marks every epoch that was about to take over as a rival of the current one,
// which goes on.
func (m *Machine) markRivals() {
	for j := range m.Epochs[:len(m.Epochs)-1] {
		if o := &m.Epochs[j]; o.Run > 0 {
			o.Run, o.Rival, m.dirty.slow = 0, true, true
		}
	}
}

// noteJudged notes a window of epoch i as judged and returns how many seqs before it have
// not come.
func (m *Machine) noteJudged(i int, w Window) (missing uint64) {
	e := &m.Epochs[i]
	if last, any := e.Judged.last(); any && w.Seq > last {
		missing = w.Seq - last - 1
	}
	e.Judged.add(w.Seq)
	e.LastMS = w.At.UnixMilli()
	if i != len(m.Epochs)-1 {
		m.dirty.slow = true
	}
	return missing
}

// ahead reports whether the last window was dated in the future by the time at which Kafka
// got this one: its date says nothing of what is late.
func (m *Machine) ahead(w Window) bool { return m.Newest.After(w.At.Add(mostAhead)) }

// paused reports whether no window of the current epoch has come for a while by Kafka's
// clock, which says so in Unix milliseconds: it may have been a stray one.
func (m *Machine) paused(at int64) bool {
	last := m.Epochs[len(m.Epochs)-1].LastMS
	return last > 0 && at-last >= rivalPatience.Milliseconds()
}

// claim says how a window of epoch i counts while another epoch is the current one.
func (m *Machine) claim(i int, w Window) position {
	e := &m.Epochs[i]
	e.Run++
	if e.Rival {
		if e.Run < takeoverRun || !m.paused(w.At.UnixMilli()) {
			return rival
		}
		return inOrder
	}
	t := m.inSpindle()
	if t == nil || t.Name == w.Tool && !t.otherLife(w.ToolLife) || e.Run >= takeoverRun {
		return inOrder
	}
	return provisional
}

// takeOver makes epoch i the current one and returns where it is then.
func (m *Machine) takeOver(i int) int {
	m.dirty.slow = true
	before := &m.Epochs[len(m.Epochs)-1]
	if n := len(before.Judged) - pastRanges; n > 0 {
		before.Judged.close(n)
	}
	before.Run = 0
	e := m.Epochs[i]
	before.Rival = e.Led // it has come back: both are alive
	e.Run, e.Rival, e.Led = 0, false, true
	m.Epochs = append(slices.Delete(m.Epochs, i, i+1), e)
	return len(m.Epochs) - 1
}

// rivals says whether a second ingester sends windows of the machine.
func (m *Machine) rivals(p position, r *event.Result) {
	a := m.advise(event.RivalAdvisory, "", p == rival, rivalRule, r)
	if a == nil {
		return
	}
	if a.State == event.Cleared {
		a.Text = short(m.Machine) + ": one ingester again; windows of a second one came from " + clockTime(a.Since) + " on"
		return
	}
	get := " get a verdict but move no alarm. Remove"
	if r.Verdict == "" {
		get = " are of another layout and get none. Remove"
	}
	a.Text = short(m.Machine) + ": TWO INGESTERS send windows of this machine; epoch " + m.Epochs[len(m.Epochs)-1].ID + " is judged, windows of epoch " + r.Epoch + get +
		" the machine from one of the two configurations, or rename it there"
	m.notice(event.RivalAdvisory, "").Text = a.Text
}
