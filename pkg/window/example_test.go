package window_test

import (
	"fmt"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Two rates become windows of one second. A change of tool begins a session, and what
// does not fill a window is a gap.
func ExampleSlicer() {
	layout, _ := signal.NewLayout("lathe", []signal.Channel{
		{Name: "thrust", Kind: signal.Force, Unit: "N", Rate: 4},
		{Name: "head", Kind: signal.Vibration, Unit: "g", Rate: 8},
	})
	slicer, err := window.NewSlicer(layout, window.Spec{Length: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	for session, tool := range []string{"T1", "T2"} {
		for group, rate := range layout.Groups() {
			b := &signal.Block{Context: signal.Context{Machine: "lathe", Tool: tool}, Session: int64(session), Group: group, Time: start}
			b.Samples = [][]float32{make([]float32, int(rate.Rate)*3/2)} // a second and a half
			slicer.Push(b)
			show(slicer)
		}
	}
	slicer.Flush() // the stream is over
	show(slicer)
	// Output:
	// T1 window of 4 and 8 samples
	// T1 gap of 500ms
	// T2 window of 4 and 8 samples
	// T2 gap of 500ms
}

// show prints everything that a slicer has found.
func show(s *window.Slicer) {
	for event, ok := s.Next(); ok; event, ok = s.Next() {
		if w := event.Window; w != nil {
			fmt.Println(w.Tool, "window of", len(w.Samples[0]), "and", len(w.Samples[1]), "samples")
		} else {
			fmt.Println(event.Gap.Tool, "gap of", event.Gap.Duration)
		}
	}
}
