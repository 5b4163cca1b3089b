package train

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
)

// WatchConfig says from which figures on a model should be trained again. A limit of 0 leaves its reason out.
type WatchConfig struct {
	Within      time.Duration `yaml:"within"`       // how far back results and alerts count
	NewTools    int           `yaml:"new_tools"`    // tools labelled since the model was trained
	Drifting    int           `yaml:"drifting"`     // machines whose features have drifted
	Unknown     float64       `yaml:"unknown"`      // share of the judged windows
	FalseAlarms float64       `yaml:"false_alarms"` // share of the alarms that people answered
	Shadow      time.Duration `yaml:"shadow"`       // how long a candidate is on trial
}

// defaultWatch is what a configuration means that says nothing. Results stay on Kafka for 30 days.
var defaultWatch = WatchConfig{Within: 14 * 24 * time.Hour, NewTools: 5, Drifting: 1, Unknown: 0.25, FalseAlarms: 0.3, Shadow: 7 * 24 * time.Hour}

func (w *WatchConfig) check() error {
	share := func(s float64) error {
		return config.Wrong(!(s >= 0 && s <= 1), "%v: choose a share from 0 to 1, such as 0.25; 0 leaves the reason out", s)
	}
	long := func(d time.Duration) error {
		return config.Wrong(d <= 0, "%v: must be positive, such as 168h", d)
	}
	count := func(n int) error {
		return config.Wrong(n < 0, "%d: choose 1 or more; 0 leaves the reason out", n)
	}
	return cmp.Or(
		config.Under("watch.within", long(w.Within)), config.Under("watch.shadow", long(w.Shadow)),
		config.Under("watch.new_tools", count(w.NewTools)), config.Under("watch.drifting", count(w.Drifting)),
		config.Under("watch.unknown", share(w.Unknown)), config.Under("watch.false_alarms", share(w.FalseAlarms)))
}

// Asks reports whether a limit is not 0.
func (w WatchConfig) Asks() bool {
	return w.NewTools > 0 || w.Drifting > 0 || w.Unknown > 0 || w.FalseAlarms > 0
}

// Why says which reason for training a model again a figure is.
type Why string

// The reasons.
const (
	NewTools    Why = "new_tools"
	Drifting    Why = "drifting"
	Unknowns    Why = "unknown"
	FalseAlarms Why = "false_alarms"
)

// Figures are what is known of a model that judges machines.
type Figures struct {
	NewTools              int
	FirstWorn             int // new tools that are worn, of a model that has seen no worn one
	Drifting              int
	Judged, Unknown       int
	Answered, FalseAlarms int // alarms

	// Gaps say of a reason what could not be read, so that its figure may be too low.
	Gaps map[Why]string
}

// Reason is a figure next to its limit.
type Reason struct {
	Why    Why      `json:"reason"`
	Figure *float64 `json:"figure"` // nil: not known
	Limit  float64  `json:"limit"`  // from which on training is due
	Of     int      `json:"of,omitempty"`
	Due    bool     `json:"due"`
	Gap    string   `json:"gap,omitempty"`  // what could not be read
	Note   string   `json:"note,omitempty"` // why there is no figure, or why its limit is another one
}

// Due answers whether a model should be trained again.
type Due string

// The answers.
const (
	DueNow    Due = "due"
	DueNot    Due = "not_due"
	DueUnsure Due = "not_known" // no figure says so, and one that might is not known
)

// Shares of fewer say nothing.
const (
	leastJudged   = 100 // windows
	leastAnswered = 5   // alarms
)

// Ask compares figures with their limits.
func (w WatchConfig) Ask(f Figures) (Due, []Reason) {
	reasons := []Reason{
		{Why: NewTools, Limit: float64(w.NewTools), Figure: new(float64(f.NewTools))},
		{Why: Drifting, Limit: float64(w.Drifting), Figure: new(float64(f.Drifting))},
		share(Unknowns, w.Unknown, f.Unknown, f.Judged, leastJudged),
		share(FalseAlarms, w.FalseAlarms, f.FalseAlarms, f.Answered, leastAnswered),
	}
	if f.FirstWorn > 0 && w.NewTools > 0 {
		reasons[0].Limit, reasons[0].Note = 1, "the first worn one"
	}
	reasons = slices.DeleteFunc(reasons, func(r Reason) bool { return r.Limit == 0 })
	answer := DueNot
	for i := range reasons {
		r := &reasons[i]
		r.Gap = f.Gaps[r.Why]
		if r.Why != NewTools && f.Judged == 0 { // no monitor of the group says anything of the model
			r.Gap = cmp.Or(r.Gap, "the model judged no window within "+config.Duration(w.Within))
		}
		if r.Due = r.Figure != nil && *r.Figure >= r.Limit; r.Due {
			answer = DueNow
		} else if r.Gap != "" && answer == DueNot {
			answer = DueUnsure
		}
	}
	return answer, reasons
}

// share returns the reason that n of all are too many. Of few the share is not known.
func share(why Why, limit float64, n, all, least int) Reason {
	r := Reason{Why: why, Limit: limit, Of: all}
	if all >= least {
		r.Figure = new(float64(n) / float64(all))
	} else {
		r.Note = fmt.Sprintf("%d of %d, too few for a share: %d are needed", n, all, least)
	}
	return r
}

// String says the reason in words, with figure and limit.
func (r Reason) String() string {
	var text string
	switch {
	case r.Figure == nil:
		text = fmt.Sprintf("%s %s", r.words(), r.Note)
	case r.Why == NewTools || r.Why == Drifting:
		text = fmt.Sprintf("%s %.0f (limit %.0f)", r.words(), *r.Figure, r.Limit)
		if r.Note != "" {
			text += ", " + r.Note
		}
	default:
		text = fmt.Sprintf("%s %.1f %% of %d (limit %.4g %%)", r.words(), 100**r.Figure, r.Of, 100*r.Limit)
	}
	if r.Gap != "" {
		text += ", not known: " + r.Gap
	}
	return text
}

func (r Reason) words() string {
	return map[Why]string{NewTools: "tools labelled since", Drifting: "machines that drift", Unknowns: "windows unknown", FalseAlarms: "alarms answered as false"}[r.Why]
}

// LabelledTool is a tool of which a label says how worn it was.
type LabelledTool struct {
	Machine string    // empty: any
	Tool    string    // as training names it: of one life, or of all lives of the name
	Given   time.Time // when its first label was given; zero if it is not known
	Worn    bool      // a label says so
}

// is reports whether training named a tool so.
func (t LabelledTool) is(machine, name string) bool {
	anyLife := strings.TrimSuffix(wear.ToolOf(t.Tool, "x"), "x")
	return (t.Machine == "" || machine == "" || t.Machine == machine) && (name == t.Tool || strings.HasPrefix(name, anyLife))
}

// Fresh are tools whose labels a model has not learnt from.
type Fresh []LabelledTool

// Has reports whether a tool, as training names it, is one of them.
func (f Fresh) Has(machine, name string) bool {
	return slices.ContainsFunc(f, func(t LabelledTool) bool { return t.is(machine, name) })
}

// FreshTools returns which of labelled tools a model has not learnt from: tools that it does not name, and tools whose first label
// was given after the model was published. It says what of that the model does not tell.
func FreshTools(p *model.Provenance, published time.Time, labelled []LabelledTool) (fresh Fresh, gap string) {
	named, more := 0, 0
	for _, d := range p.Data {
		more += d.MoreTools
		for _, m := range d.Machines {
			named += len(m.Tools)
		}
	}
	switch {
	case named == 0:
		gap = "the model does not say which tools it learnt from; tools count whose first label came after it was published"
	case more > 0:
		gap = fmt.Sprintf("the model names %d of the %d tools that it learnt from", named, named+more)
	}
	for _, t := range labelled {
		later := !t.Given.IsZero() && t.Given.After(published)
		if later || gap == "" && !learntFrom(p, t) {
			fresh = append(fresh, t)
		}
	}
	return fresh, gap
}

// learntFrom reports whether a model names a tool.
func learntFrom(p *model.Provenance, t LabelledTool) bool {
	for _, d := range p.Data {
		for _, m := range d.Machines {
			if slices.ContainsFunc(m.Tools, func(name string) bool { return t.is(m.Machine, name) }) {
				return true
			}
		}
	}
	return false
}
