package monitor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Windows of a layout that no model is deployed for move the tool and the alarms, also where the gateway sends features only, whose layout
// the monitor does not know.
func TestOtherLayoutMovesTheTool(t *testing.T) {
	t.Parallel()
	for _, edge := range []bool{false, true} {
		t.Run(fmt.Sprint("edge ", edge), func(t *testing.T) {
			t.Parallel()
			p := newPlant(t, 1)
			mon := p.monitor()
			seal := func(layout *signal.Layout, w *window.Window) bus.Message {
				if !edge {
					c, err := window.NewCodec(layout, window.Spec{Length: w.Length})
					if err != nil {
						t.Fatal(err)
					}
					e, err := c.Seal(w)
					if err != nil {
						t.Fatal(err)
					}
					return envelope.Window(e)
				}
				form, err := window.NewForm(layout, p.model.Window, signal.FeatureSpec{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				var x window.Features
				form.NewExtractor().Extract(w, &x)
				e, err := form.Seal(&x)
				if err != nil {
					t.Fatal(err)
				}
				return envelope.Features(e, envelope.Gateway, 0)
			}
			seq := uint64(0)
			for _, faulty := range []bool{false, false, false, true, true, true} {
				p.send(seal(p.model.Layout, at(seq, "T1", faulty)))
				seq++
			}
			p.untilResults(6)
			two := machinetest.TwoValues(t).Layout
			w := at(seq, "t1", false)
			w.Samples, w.Quality = [][]float32{{10}, {10}}, make([]signal.Quality, 2)
			p.send(seal(two, w))
			p.until(bus.TopicAlerts, func(ms []bus.Message) bool {
				return strings.Contains(string(ms[len(ms)-1].Value), "windows_refused")
			})
			var all []string
			for _, a := range p.alertsByID() {
				all = append(all, fmt.Sprint(a.State, " ", a.Reason, " ", a.Tool))
			}
			if !strings.Contains(fmt.Sprint(all), "cleared tool_change T1") {
				t.Errorf("alerts %q", all)
			}
			if st := p.standing(machinetest.Drill); st.Tool != "t1" || st.Alarm != "normal" || st.Unwatched() == "" {
				t.Errorf("%s is in the spindle, alarm %s, not watched: %s", st.Tool, st.Alarm, st.Unwatched())
			}
			mon.untilStats(t, func(s Stats) bool { return s.Alike == 1 })
		})
	}
}
