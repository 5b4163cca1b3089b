//go:build !race

package monitor

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// What a window of the gun drill takes, of 968 kB, from the message until the messages that follow from it: few objects, and the memory
// of those messages. No sample is copied. With the race detector, pools forget what they hold.
func TestWindowMakesFewObjects(t *testing.T) {
	m := drillModel(t)
	l, err := newLayouts([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(m.Layout, m.Window)
	if err != nil {
		t.Fatal(err)
	}
	settings := machine.Settings{Group: DefaultGroup, Alarm: testAlarm}
	s := &partition{mon: &Monitor{layouts: l, now: time.Now, took: newDurations()}, owner: machine.NewOwner(&settings, machine.Everything(m), 0), extractors: make(extractors), log: zerolog.Nop()}
	s.owner.OnFeatures, s.owner.OnWindow = s.seal, s.show
	s.owner.On(machine.Fenced{}, time.Time{})
	s.owner.On(machine.Loaded{}, time.Time{})
	w := drillWindow(m.Layout, drill, 0)
	offset, made := int64(0), 0
	var memory []byte // of all windows, one after the other
	message := func() bus.Message {
		e, err := codec.SealIn(memory, w)
		if err != nil {
			t.Fatal(err)
		}
		memory = e.Value
		return envelope.Window(e)
	}
	next := func() {
		msg := message()
		msg.Offset, msg.Time = offset, w.End()
		w.Seq, w.Start, offset = w.Seq+1, w.End(), offset+1
		made += s.judgeAlone(&msg)
	}
	send := func() { _ = message() }
	for range 8 { // the reference, and a trace that is full
		next()
	}
	const n = 20
	made = 0
	objects := testing.AllocsPerRun(n, next) - testing.AllocsPerRun(n, send)
	bytes := math.Inf(1) // the least: of another test a goroutine may be left
	for range 3 {
		bytes = min(bytes, bytesPerRun(n, next)-bytesPerRun(n, send))
	}
	if want := 3 * (4*n + 1); made != want { // state of the machine and of the tool, or the result, and features
		t.Errorf("%d messages of %d windows, want %d", made, 4*n+1, want)
	}
	if objects > 78 || bytes > 30_000 { // the message of features has 6,200 bytes, the others a few hundred each
		t.Errorf("%v objects of %.0f bytes, at most 78 of 30,000 may be", objects, bytes)
	}
	t.Logf("%v objects of %.0f bytes", objects, bytes)
}

// bytesPerRun returns how many bytes f takes on average.
func bytesPerRun(n int, f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}

// judgeAlone judges a window as a batch of its own, and returns how many messages follow from it.
func (s *partition) judgeAlone(m *bus.Message) (n int) {
	for _, a := range s.owner.On(machine.Read{Log: machine.WindowLog, Inputs: []machine.Input{s.windowInput(m)}}, m.Time) {
		b, ok := a.(*machine.Batch)
		if !ok {
			continue
		}
		for _, r := range b.State {
			_ = stateMessage(r, m.Time)
		}
		for _, e := range b.Events {
			_ = eventMessage(e)
		}
		n = len(b.State) + len(b.Events) + len(s.sealed)
		s.sealed = s.sealed[:0]
		s.owner.On(machine.Published{}, m.Time)
	}
	return n
}
