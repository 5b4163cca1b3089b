package monitor

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Anyone who may write to the topics can send windows and features of any numbers. A message is
// judged or set aside. The monitor goes on, and can say in JSON what it makes of it.
func TestAnyNumbers(t *testing.T) {
	numbers := []float32{
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32, 1e30, -1e30, math.SmallestNonzeroFloat32, 0, 10, 20,
	}
	for name, m := range map[string]*model.Model{
		"one value": machinetest.OneValue(t), "wear": machinetest.WithWear(t), "a cycle": machinetest.Cycling(t), "unknown": machinetest.Unsure(t), "three classes": machinetest.OfThree(t),
	} {
		l, err := newLayouts([]*model.Model{m})
		if err != nil {
			t.Fatal(err)
		}
		codec, err := window.NewCodec(m.Layout, m.Window)
		if err != nil {
			t.Fatal(err)
		}
		form, err := m.Form()
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		draw := func() float32 {
			if rng.IntN(2) == 0 {
				return 10
			}
			return numbers[rng.IntN(len(numbers))]
		}
		extractor, own := form.NewExtractor(), make(extractors)
		var x window.Features
		judged, aside := 0, 0
		for range 8 {
			settings := machine.Settings{Group: DefaultGroup, Alarm: testAlarm}
			o := machine.NewOwner(&settings, machine.Everything(m), 0)
			o.On(machine.Fenced{At: machine.Position{}}, time.Time{})
			o.On(machine.Loaded{}, time.Time{})
			for seq := range uint64(40) {
				w := at(seq, []string{"T1", "T2"}[seq/9%2], false)
				now := w.End()
				w.SpindleSpeed, w.FeedRate = float64(draw()), float64(draw())
				in := machine.Input{Offset: int64(seq), At: now}
				if rng.IntN(2) == 0 {
					w.Samples[0][0] = draw()
					e, err := codec.Seal(w)
					if err != nil {
						t.Fatal(err)
					}
					msg := envelope.Window(e)
					in.Open = func(into *window.Features) error {
						var w window.Window
						f, err := l.openWindow(&msg, &w)
						if err == nil {
							own.of(f.judged).Extract(&w, into)
						}
						return err
					}
				} else {
					extractor.Extract(w, &x)
					for i := range x.Values {
						x.Values[i] = draw()
					}
					for i := range x.Frames {
						x.Frames[i] = draw()
					}
					x.Level = float64(draw())
					e, err := form.Seal(&x)
					if err != nil {
						t.Fatal(err)
					}
					msg := envelope.Features(e, envelope.Gateway, 0)
					in.Open = func(into *window.Features) error { return l.openFeatures(&msg, into) }
				}
				for _, a := range o.On(machine.Read{Log: machine.FeatureLog, Inputs: []machine.Input{in}}, now) {
					b, ok := a.(*machine.Batch)
					if !ok {
						continue
					}
					var msgs []bus.Message
					for _, r := range b.State {
						msgs = append(msgs, stateMessage(r, now))
					}
					for _, e := range b.Events {
						msgs = append(msgs, eventMessage(e))
					}
					for _, letter := range b.Letters {
						if !errors.Is(letter.Err, window.ErrCorrupt) {
							t.Fatalf("%s: %v", name, letter.Err)
						}
					}
					judged, aside = judged+int(b.Judged), aside+len(b.Letters)
					if len(msgs)+len(b.Letters) == 0 {
						t.Fatalf("%s: nothing comes of window %d", name, seq)
					}
					o.On(machine.Published{}, now.Add(time.Millisecond))
				}
			}
		}
		if judged < 80 || aside < 13 {
			t.Errorf("%s: %d windows were judged and %d set aside: the test looks at nothing", name, judged, aside)
		}
	}
}

// A command that cannot be read becomes a dead letter that says why, and the position passes it.
func TestDamagedCommand(t *testing.T) {
	damaged := bus.Message{Topic: bus.TopicCommands, Offset: 7, Damage: errors.New("torn")}
	settings := machine.Settings{Group: DefaultGroup, Alarm: testAlarm}
	o := machine.NewOwner(&settings, machine.Everything(machinetest.OneValue(t)), 0)
	o.On(machine.Fenced{At: machine.Position{}}, time.Time{})
	o.On(machine.Loaded{}, time.Time{})
	var b *machine.Batch
	o.On(machine.CommandsRead{commandOf(&damaged)}, time.Now())
	for _, a := range o.On(machine.End{Known: true}, time.Now()) { // no window waits before it
		if published, ok := a.(*machine.Batch); ok {
			b = published
		}
	}
	if b == nil || b.Position.Commands != 8 || len(b.Letters) != 1 || b.Letters[0].Log != machine.CommandLog || b.Letters[0].Offset != 7 {
		t.Fatalf("%+v", b)
	}
	aside := setAside{damaged, b.Letters[0].Reason, b.Letters[0].Err}
	if l, err := bus.OpenLetter(aside.letter(time.Now())); err != nil || !strings.Contains(l.Reason, "torn") || l.Message.Offset != 7 {
		t.Errorf("%+v, %v", l, err)
	}
}
