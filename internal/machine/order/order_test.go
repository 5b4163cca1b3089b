package order

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/testkit/oracle"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// words are the places in the words of the oracle.
var words = map[Place]oracle.Place{InOrder: oracle.InOrder, Provisional: oracle.Provisional, Late: oracle.Late, Rival: oracle.Rival, Repeat: oracle.Repeat}

// Windows of several epochs and tools, in any order and with pauses, count as docs/concepts/tools.md says, also after a restart
// in between. The oracle knows no gap that was closed, so numbers stay near each other.
func TestFollowsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int{256, 3, 2}).Draw(t, "epochs that are remembered")
		m := oracle.Machine{
			Settings: oracle.Settings{K: 5, N: 8, Clear: 1}, Limits: oracle.Limits{Tools: 64, Epochs: most}, Deployed: map[string]*oracle.Deployment{"": {Champion: oracle.Given}},
		}
		var o Order
		came := make(map[string]map[uint64]bool)
		spindle, at, story := "", noon, ""
		for range rapid.IntRange(1, 60).Draw(t, "windows") {
			epoch := rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "c", "d"}).Draw(t, "epoch")
			tool := rapid.SampledFrom([]string{"T1", "T" + epoch}).Draw(t, "tool")
			next := uint64(len(came[epoch]))
			seq := next
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				seq = uint64(rapid.IntRange(0, int(next)).Draw(t, "before"))
			case 1:
				seq += uint64(rapid.SampledFrom([]int{1, 2, 299, 300, 301, 302, 5000}).Draw(t, "ahead"))
			}
			at = at.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Second, time.Second, 59_999 * time.Millisecond, time.Minute, 2 * time.Minute}).Draw(t, "pause"))
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				text, err := json.Marshal(o.Epochs)
				if err != nil {
					t.Fatal(err)
				}
				o = Order{}
				if err := json.Unmarshal(text, &o.Epochs); err != nil {
					t.Fatal(err)
				}
			}
			want := m.Window(oracle.Window{Tool: tool, Epoch: epoch, Seq: seq, Start: at, End: at.Add(time.Second), At: at, Now: at, Value: oracle.Verdict{Outcome: "healthy"}}).Place
			before, leader := o.rest(), o.leads()
			was := make(map[uint64]bool) // what came of the epoch, as far as it is remembered
			if slices.ContainsFunc(o.Epochs, func(e Epoch) bool { return e.ID == epoch }) {
				was = came[epoch]
			}
			s := o.Put(epoch, seq, at, spindle == tool, most)
			story += fmt.Sprintf("%v %s %s %d: %s\n", at.Sub(noon), epoch, tool, seq, want)
			if words[s.Place] != want {
				t.Fatalf("%swindow is %s", story, words[s.Place])
			}
			if s.Moves() != (want == oracle.InOrder || want == oracle.Provisional) {
				t.Fatalf("%sit moves: %v", story, s.Moves())
			}
			if n := missing(was, seq); s.Place != Repeat && s.Missing != n {
				t.Fatalf("%s%d are missing before it, want %d", story, s.Missing, n)
			}
			if s.Slow == (before == o.rest()) {
				t.Fatalf("%sepochs that do not lead are written: %v, and have changed: %v: %+v", story, s.Slow, !s.Slow, o.Epochs)
			}
			if s.Place == InOrder {
				spindle = tool
			}
			if got := o.leads(); s.Place == InOrder && got != epoch || s.Place != InOrder && got != leader && leader != "" {
				t.Fatalf("%s%s leads", story, got)
			}
			if len(was) == 0 {
				came[epoch] = was
			}
			came[epoch][seq] = true
			if len(o.Epochs) > most {
				t.Fatalf("%s%d epochs are remembered", story, len(o.Epochs))
			}
		}
	})
}

func (o *Order) leads() string {
	if e := o.Leader(); e != nil {
		return e.ID
	}
	return ""
}

// missing counts the numbers between the last one that came and seq.
func missing(came map[uint64]bool, seq uint64) (n uint64) {
	var last uint64
	for s := range came {
		last = max(last, s)
	}
	if len(came) > 0 && seq > last {
		n = seq - last - 1
	}
	return n
}

// rest returns the epochs that do not lead, as they are written.
func (o *Order) rest() string {
	if len(o.Epochs) < 2 {
		return "none"
	}
	text, _ := json.Marshal(o.Epochs[:len(o.Epochs)-1])
	return string(text)
}

// What is missing of all epochs is the sum.
func TestMissing(t *testing.T) {
	o := Order{Epochs: []Epoch{{Judged: Seqs{{0, 1}, {5, 5}}}, {Judged: Seqs{{2, 2}, {4, 9}}}}}
	if n := o.Missing(); n != 4 {
		t.Errorf("%d", n)
	}
}

// Of an epoch that another one follows, few gaps are remembered.
func TestGapsOfFormerEpochs(t *testing.T) {
	var o Order
	for i := range uint64(100) {
		o.Put("a", 2*i, noon, true, 256)
	}
	o.Put("b", 0, noon, true, 256)
	if n := len(o.Epochs[0].Judged); n != pastRanges {
		t.Errorf("%d intervals", n)
	}
	if o.Put("a", 1, noon, false, 256).Place != Repeat || o.Put("a", 197, noon, false, 256).Place != Late {
		t.Error("the oldest gaps are not the ones that were closed")
	}
}

// A tool's windows are known by epoch. The last epoch is the last one, and bounds hold.
func TestWindows(t *testing.T) {
	var w Windows
	for i, step := range []struct {
		epoch   string
		seq     uint64
		changed bool
	}{{"a", 3, true}, {"a", 4, false}, {"b", 0, true}, {"a", 9, true}, {"a", 10, false}} {
		if got := w.Add(step.epoch, step.seq); got != step.changed {
			t.Errorf("step %d: changed %v", i, got)
		}
	}
	want := `[{"epoch":"b","seqs":[[0,0]]},{"epoch":"a","seqs":[[3,4],[9,10]]}]`
	if text, err := json.Marshal(w); err != nil || string(text) != want {
		t.Errorf("%s %v", text, err)
	}
	if !w.Has("a", 4) || w.Has("a", 5) || w.Has("b", 4) || w.Has("c", 0) {
		t.Errorf("%v", w)
	}
	c := w.Clone()
	c.Add("b", 1)
	c[0].Seqs.Add(11)
	if text, _ := json.Marshal(w); string(text) != want {
		t.Errorf("a clone shares memory: %s", text)
	}
	last := Windows{{"b", Seqs{{0, 7}}}}
	if text, _ := json.Marshal(w.Clone().With(last)); string(text) != `[{"epoch":"a","seqs":[[3,4],[9,10]]},{"epoch":"b","seqs":[[0,7]]}]` {
		t.Errorf("%s", text)
	}
	if text, _ := json.Marshal(w.With(nil)); string(text) != want {
		t.Errorf("%s", text)
	}
	for i := range uint64(2 * mostVisits) {
		w.Add("a", 100+2*i)
	}
	if n := len(w[1].Seqs); n != mostVisits || !w.Has("a", 100+4*mostVisits-2) || !w.Has("a", 101) {
		t.Errorf("%d intervals: %v", n, w[1].Seqs)
	}
	for i := range mostMoved {
		w.Add(fmt.Sprint(i), 0)
	}
	if len(w) != mostMoved || w[0].Epoch != "0" {
		t.Errorf("%d epochs from %s on", len(w), w[0].Epoch)
	}
}
