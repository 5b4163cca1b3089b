package event

import (
	"regexp"
	"strings"
	"testing"
)

// All messages about a window are of one trace. Each has a parent id of its own, which is the same
// whenever the message is sent.
func TestTraceParent(t *testing.T) {
	const window = "acme/spore/bay2/line1/usk25/00c0ffee00c0ffee/17"
	valid := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-01$`)
	trace := TraceID("acme/spore/bay2/line1/usk25", "00c0ffee00c0ffee", 17)
	// For ever: spools, topics and tools of others keep them.
	if got, want := TraceParent(WindowType, window), "00-7c24e8ec794c8e9478866564d56f7534-7402cfa810cb6029-01"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	parents := make(map[string]string)
	for _, m := range [][2]string{{WindowType, window}, {FeaturesType, window}, {ResultType, window + "/tcm-monitor"}, {ResultType, window + "/other"}, {AlertType, window + "/tcm-monitor/raised"}, {EvidenceType, window + "/tcm-monitor/raised/evidence"}, {AdvisoryType, window + "/tcm-monitor/sensor/force/raised"}} {
		got := valid.FindStringSubmatch(TraceParent(m[0], m[1]))
		if got == nil || got[1] != trace {
			t.Errorf("%q: %s, want trace %s", m, got, trace)
			continue
		}
		if before, twice := parents[got[2]]; twice {
			t.Errorf("%q and %q have one parent id", m, before)
		}
		parents[got[2]] = m[1]
	}
	if other := TraceID("acme/spore/bay2/line1/usk25", "00c0ffee00c0ffee", 18); other == trace {
		t.Error("two windows are of one trace")
	}
	for _, id := range []string{"", "acme/line1/usk25/command/K3ZQ/acknowledged", "acme/line1/usk25/tcm-monitor/state", "00c0ffee00c0ffee/17", "acme/00C0FFEE00c0ffee/17", "acme/00c0ffee00c0ffee/x", "acme/00c0ffee00c0ffee/-1"} {
		if got := TraceParent(AlertType, id); got != "" {
			t.Errorf("%s: %s", id, got)
		}
	}
}

func TestSplitWindowID(t *testing.T) {
	machine, epoch, seq, ok := SplitWindowID(WindowID("acme/a/b", "0123456789abcdef", 1<<60) + "/0123456789abcdef/7/raised")
	if !ok || machine != "acme/a/b" || epoch != "0123456789abcdef" || seq != 1<<60 {
		t.Error(machine, epoch, seq, ok)
	}
}

func FuzzSplitWindowID(f *testing.F) {
	f.Add("acme/spore/bay2/line1/usk25/00c0ffee00c0ffee/17/tcm-monitor/raised")
	f.Add("////")
	f.Fuzz(func(t *testing.T, id string) {
		machine, epoch, seq, ok := SplitWindowID(id)
		if ok && !strings.HasPrefix(id, machine+"/"+epoch+"/") {
			t.Errorf("%q: %q %q %d", id, machine, epoch, seq)
		}
	})
}
