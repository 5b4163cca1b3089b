package machine

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// A tool is not watched when the model did not know so many of the last windows that
// it might have judged. Of tools never seen it does not know one in thirty, and of the
// worst of them one in ten.
const (
	unknownWindows = 32
	unknownMost    = 16
)

// unknownRule is of whether that is so; it must be over for a minute of cutting.
var unknownRule = alarm.Hysteresis{K: 1, N: 1, Hold: time.Minute}

// countUnknown takes whether the model knew the window of r, and advises if it has not known for
// so long that the tool is not monitored.
func (m *Machine) countUnknown(t *Tool, r *event.Result) {
	if r.Unknown == modelChanged {
		return // an advisory of its own says so
	}
	if r.Verdict != event.Healthy && r.Verdict != event.Faulty && r.Verdict != event.Unknown {
		return
	}
	t.Unknown <<= 1
	if r.Verdict == event.Unknown {
		t.Unknown |= 1
	}
	t.Unknown &= 1<<unknownWindows - 1
	many := bits.OnesCount64(t.Unknown)
	a := m.advise(event.UnknownAdvisory, "", many >= unknownMost, unknownRule, r)
	if a == nil {
		return
	}
	if a.State == event.Cleared {
		a.Text = fmt.Sprintf("%s: the model knows what it sees again, after %s", short(m.Machine), clockTime(a.Since))
		return
	}
	a.Text = fmt.Sprintf("%s: UNKNOWN, %d of the last %d windows of cutting, now %s: its tool is not monitored. Look at sensors, material and cutting data; if they are meant to be so, train on them",
		short(m.Machine), many, unknownWindows, strings.ReplaceAll(r.Unknown, "_", " "))
	m.notice(event.UnknownAdvisory, "").Text = a.Text
}

// drifts takes the reference of the tool into account once it is there, and advises of
// drift of the machine and of its end. It outlives tools. Under another model nothing is
// known of it.
func (m *Machine) drifts(t *Tool, r *event.Result) {
	if !t.Drifted && t.Reference.Center() != nil && !t.Rebuild {
		t.Drifted = true
		m.dirty.slow, m.dirty.tools[t.Name] = true, true
		m.model.judge.Drift(&m.Drift, &t.Reference)
	}
	n := m.notice(event.DriftAdvisory, "")
	if m.Drift.Drifted == (n != nil) {
		return
	}
	by := byResult(r)
	if n != nil {
		was := n.Notice
		a := m.publishNotice(event.DriftAdvisory, "", n.Clear(), was, by)
		a.Text = fmt.Sprintf("%s: new tools are as when the model was trained again; drift of %s is over", short(m.Machine), clockTime(was.Since))
		if m.Drift.Tools == 0 {
			a.Text = fmt.Sprintf("%s: drift of %s is forgotten, the model is another", short(m.Machine), clockTime(was.Since))
		}
		return
	}
	m.Notices = append(m.Notices, Notice{Kind: event.DriftAdvisory})
	n = &m.Notices[len(m.Notices)-1]
	a := m.publishNotice(event.DriftAdvisory, "", n.Raise(r.Start, r.End), alarm.Notice{}, by)
	a.Severity = "info"
	a.Text = fmt.Sprintf("%s: DRIFT, its last tools differed from the tools of the training even when new (F %.1f): %s. Check the sensors, or train on recent tools",
		short(m.Machine), m.Drift.F, moved(&m.Drift, m.model.judge.FeatureNames()))
	m.notice(event.DriftAdvisory, "").Text = a.Text
}

// moved names the channels whose features have moved most: the prefixes of their names.
func moved(d *model.DriftMemory, names []string) string {
	const looked = 50
	features, _ := d.Most(looked)
	counts := make(map[string]int)
	for _, j := range features {
		name, _, _ := strings.Cut(names[j], ".")
		counts[name]++
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return "most " + strings.Join(order[:min(3, len(order))], ", ")
}
