// Package web holds the dashboard: a page that shows what the sensors of a machine
// deliver, what the monitor makes of it and how sure it is, and a list of all machines.
// Each machine has a layout of its own.
//
// The programs give a [Hub] windows, results, alerts and their status. It keeps every
// machine apart, with what a page needs that opens now: the last window, ten minutes of
// results, the last alerts. Pages read from it through the hub's handler: a
// snapshot first, then updates as server-sent events, both of one machine. Each page is
// served from the hub's memory by a cursor of its own, so a slow page falls behind and
// skips ahead; it never slows the caller or another page.
//
// The channels of a window are shown as an envelope: the (min, max) pairs of
// equal stretches of samples. A page keeps the last [pairs] pairs of a channel,
// which is one window of a fast channel and many windows of a slow one.
package web

import (
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/signal"
)

// pairs is how many (min, max) pairs of a channel a page keeps.
const pairs = 60

// Config says what a hub shows.
type Config struct {
	Layout  *signal.Layout // of machines whose windows name none; nil: it is not known
	Title   string         // of the page; empty means "Flank"
	Control *Control       // what pages may change; nil: nothing

	// Evidence serves the waveforms around alerts, below /evidence/ and
	// /api/evidence/; nil: there are none.
	Evidence http.Handler

	// InsecureModels says that the program accepts models without a signature. Pages warn
	// of it.
	InsecureModels bool

	// Facts, if not nil, returns what is known of the model that judged a machine. It is
	// called for every result, and must not call the hub.
	Facts func(machine, model string) Facts

	// What is kept of the past; a nil function: this program keeps nothing of the kind. They are
	// safe for concurrent use, and the hub owns what they return. They return
	// summary.ErrNoMachine and summary.ErrNoAlarm as the methods of a summary.Store do.
	History func(machine string, from, to time.Time, step time.Duration) (summary.History, error)
	Tools   func(machine string, limit int) ([]summary.Life, error)
	Usual   func(machine, tool string) (summary.Usual, error)
	Alarms  func(summary.AlarmFilter) ([]summary.Alarm, error)
	Alarm   func(incident string) (summary.AlarmDetail, error)

	ModelUse func(model string, from, to time.Time) (summary.ModelUse, error) // likewise

	// KeepUsualSpectrum keeps the usual spectrum of a tool, and UsualSpectrum returns what was
	// kept last for a machine, nil if nothing was; nil functions: it is not kept. The data is
	// the hub's.
	KeepUsualSpectrum func(machine string, data []byte) error
	UsualSpectrum     func(machine string) ([]byte, error)

	// ListModels and Model return what is known of models, for /api/models; nil: nothing. Of
	// an id that is not known Model returns nil.
	ListModels func(context.Context) (Deployed, error)
	Model      func(ctx context.Context, id string) (*ModelDetail, error)

	// System, if not nil, returns how the program and what it depends on are doing. Status is
	// the hub's.
	System func(context.Context) System

	// Ready, if not nil, reports why the program is not ready, for /readyz.
	Ready func() error
}

// Window is what the page shows of one window. The slices have one element per
// channel of the layout; a slice of another length is not shown. A window of which the
// program has no samples, since the gateway extracts the features, has neither Envelope
// nor RMS.
type Window struct {
	Layout              *signal.Layout // nil: Config.Layout
	Machine, Tool, Hole string
	Epoch               string // 16 hexadecimal digits
	Seq                 uint64
	Start               time.Time        // sensor time of the first sample
	Envelope            [][]float32      // (min, max) pairs, see the function Envelope
	RMS                 []float32        // root mean square in the channel's unit; NaN if not known
	Quality             []signal.Quality // what is wrong with the channel

	// Samples are of every channel at its rate; nil: the program does not have them. The hub
	// makes Envelope and RMS of them, and only if a page looks at the machine. It does not keep
	// them.
	Samples  [][]float32
	Learning bool // the reference of the tool is made of this window
	Idle     bool // the machine does not cut, or a sensor is at fault: the window says nothing of the reference
}

// Summarize sets w.Envelope and w.RMS from the samples of every channel. It
// reuses the slices that w has and does not keep samples. Missing and infinite
// samples are left out.
func (w *Window) Summarize(samples [][]float32) {
	if len(w.Envelope) != len(samples) {
		w.Envelope = make([][]float32, len(samples))
	}
	w.RMS = w.RMS[:0]
	for i, x := range samples {
		w.Envelope[i] = envelope(w.Envelope[i][:0], x, pairs)
		w.RMS = append(w.RMS, rms(x))
	}
}

// envelope appends to dst the (min, max) pairs of x cut into equal stretches:
// pairs of them, or len(x) if x has fewer samples. NaN and infinite samples are
// left out; a stretch of nothing else gives the pair (NaN, NaN).
func envelope(dst, x []float32, pairs int) []float32 {
	pairs = min(pairs, len(x))
	for p := range pairs {
		lo, hi := float32(math.NaN()), float32(math.NaN())
		for _, v := range x[p*len(x)/pairs : (p+1)*len(x)/pairs] {
			if v-v != 0 {
				continue // NaN or infinite
			}
			if !(v >= lo) {
				lo = v
			}
			if !(v <= hi) {
				hi = v
			}
		}
		dst = append(dst, lo, hi)
	}
	return dst
}

// rms returns the root mean square of the finite samples, or NaN if there are
// none.
func rms(x []float32) float32 {
	var sum float64
	var n int
	for _, v := range x {
		if v-v == 0 {
			sum += float64(v) * float64(v)
			n++
		}
	}
	return float32(math.Sqrt(sum / float64(n)))
}

// Facts are what the page of a machine shows of the model that judges it, and of its alarm.
type Facts struct {
	Layout    *signal.Layout // nil: it is not known
	Threshold float64        // score from which on a window counts as faulty for the alarm; 0: it is not known
	LimitUM   float64        // wear in µm at which the life of a tool ends; 0: it is not known, or the model estimates no wear
	FirstDay  *FirstDay      // nil: the model has seen worn tools
	Borrowed  bool           // the model names the machines that it learnt from, and this one is not among them
}

// FirstDay is what a model goes by that has seen no worn tool.
type FirstDay struct {
	Sensor string  `json:"sensor"`
	Limit  float64 `json:"limit"` // by what factor a tool that is different differs from its first windows
	Lives  int     `json:"lives"` // healthy ones, that taught it
}

// Models says which models judge a machine, by their ids.
type Models struct {
	Now      string   `json:"now,omitempty"`      // the one whose verdicts count; empty if there is none
	Next     string   `json:"next,omitempty"`     // the one that judges from the next tool on; empty if it is Now
	Shadows  []string `json:"shadows,omitempty"`  // judge too, without effect on the alarm
	Unsigned bool     `json:"unsigned,omitempty"` // the program accepted one of them without a signature that it could check
}

func (m Models) equal(o Models) bool {
	return m.Now == o.Now && m.Next == o.Next && m.Unsigned == o.Unsigned && slices.Equal(m.Shadows, o.Shadows)
}

// The phases of a program, in the order in which it goes through them.
const (
	Starting        = "starting"
	LearningHistory = "learning history"
	Training        = "training"
	Monitoring      = "monitoring"
	Done            = "done"
)

// Status says what the program is doing.
type Status struct {
	Phase            string  `json:"phase"`    // one of the constants above
	Text             string  `json:"text"`     // one line for a person
	Fraction         float64 `json:"fraction"` // of the phase that is done, in [0,1]; negative if not known
	WindowsPerSecond float64 `json:"windows_per_second"`
}
