package machine_test

import (
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// A machine learns the reference of a tool from its first two windows, then judges it. The
// second faulty window of three raises the alarm. The caller of Apply publishes what it decides.
func ExampleMachine_Apply() {
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	settings := &machine.Settings{Group: "tcm-monitor", Alarm: alarm.Settings{K: 2, N: 3, Threshold: 0.5, Latch: true}}
	by := machinetest.OneValue(fatal{})
	m, err := machine.New(machinetest.Drill, settings, machine.NewModel(by), start)
	if err != nil {
		fmt.Println(err)
		return
	}
	for seq := range uint64(6) {
		w := machinetest.At(seq, "T1", seq >= 4)
		d := m.Apply(machine.Window{Features: machinetest.Features(by, w), Offset: event.Offset{At: int64(seq)}, At: start, Now: start})
		fmt.Println(seq, d.Result.Verdict, d.Result.Alarm)
		for _, a := range d.Alerts {
			fmt.Println("alert:", a.State, a.Tool)
		}
	}
	// Output:
	// 0 learning normal
	// 1 learning normal
	// 2 healthy normal
	// 3 healthy normal
	// 4 faulty normal
	// 5 faulty raised
	// alert: raised T1
}

// fatal ends an example that cannot go on.
type fatal struct{}

func (fatal) Helper()           {}
func (fatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
