package evidence

import (
	"math"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// maxPairs is how many pairs an envelope has of a channel at most.
const maxPairs = 600

// envelope is what a plot of evidence needs.
type envelope struct {
	Alert    string            `json:"alert"`
	From     time.Time         `json:"from"`
	To       time.Time         `json:"to"`
	At       time.Time         `json:"at"`
	Channels []channelEnvelope `json:"channels"`
}

// channelEnvelope is one channel of an envelope. Pairs are the least and the greatest
// sample in equal stretches of the span from From to To; a stretch of which no
// sample is there is nil, null in JSON. There are maxPairs of them, or as many as
// the span has samples if those are fewer.
type channelEnvelope struct {
	Name  string        `json:"name"`
	Unit  string        `json:"unit"`
	Kind  signal.Kind   `json:"kind"`
	Rate  float64       `json:"rate"` // samples a second
	Pairs []*[2]float32 `json:"pairs"`
	Usual []Band        `json:"usual,omitempty"` // of the tool's reference, ascending; nil if it is not known
}

func newEnvelope(l *signal.Layout, f Facts) *envelope {
	e := &envelope{Alert: f.Alert, From: f.From, To: f.To, At: f.At}
	usual := make(map[string][]Band)
	for _, b := range f.Usual {
		usual[b.Channel] = append(usual[b.Channel], b)
	}
	for _, c := range l.Channels() {
		n := int(math.Round(c.Rate * f.To.Sub(f.From).Seconds()))
		e.Channels = append(e.Channels, channelEnvelope{Name: c.Name, Unit: c.Unit, Kind: c.Kind, Rate: c.Rate, Pairs: make([]*[2]float32, min(max(n, 1), maxPairs)), Usual: usual[c.Name]})
	}
	return e
}

// add widens the pairs by the samples of a window that lie in the span.
func (e *envelope) add(w *window.Window) {
	span := e.To.Sub(e.From).Seconds()
	before := w.Start.Sub(e.From).Seconds()
	for i := range e.Channels {
		c := &e.Channels[i]
		n := float64(len(c.Pairs))
		for k, v := range w.Samples[i] {
			// A sample counts at its middle, so that clocks that are a little off move
			// none of a slow channel to the next stretch.
			at := math.Floor((before + (float64(k)+0.5)/c.Rate) / span * n)
			if v-v != 0 || !(at >= 0 && at < n) {
				continue // missing, infinite or outside
			}
			switch p := c.Pairs[int(at)]; {
			case p == nil:
				c.Pairs[int(at)] = &[2]float32{v, v}
			default:
				p[0], p[1] = min(p[0], v), max(p[1], v)
			}
		}
	}
}
