package machine

import (
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/machine/order"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// How much of the past a machine remembers.
const (
	keptTools    = 64  // tools of a machine, those seen last
	keptDeclared = 100 // tools that were declared new and are not remembered
	keptRaised   = 50  // alarms that are over and may still be marked as false
)

// State is everything that is remembered of one machine. It is plain data; [Machine.Records]
// writes what changed of it, and [Load] reads it back.
type State struct {
	order.Order
	headState
	slowState

	Tools []*Tool // the one in the spindle last, before it those seen last
}

// find returns the first of them that is so; nil: none is.
func find[T any](all []T, is func(T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return &all[i]
	}
	return nil
}

// headState changes with every window.
type headState struct {
	Machine      string        `json:"machine"`
	Model        string        `json:"model"`                   // id of the model that judged last
	Layout       string        `json:"layout,omitempty"`        // fingerprint of the layout of its last window in order
	Newest       time.Time     `json:"newest,omitzero"`         // end of the last window in order
	Unnamed      time.Duration `json:"unnamed_ns,omitempty"`    // for how long windows in order have named no tool, since they named the tool in the spindle
	Masks        alarm.Masks   `json:"masks,omitzero"`          // of all its alarms
	Unjudged     int           `json:"unjudged,omitempty"`      // windows in order since one had a verdict, those without cutting aside
	Notices      notices       `json:"notices,omitempty"`       // conditions other than the alarm
	Evidence     []EvidenceJob `json:"evidence,omitempty"`      // that alerts have announced and that is not written yet
	LastWindowAt time.Time     `json:"last_window_at,omitzero"` // when a window came last, by the clock of the monitor that took it
}

// slowState changes with a tool, an alarm or a command.
type slowState struct {
	Drift     map[string]*model.DriftMemory `json:"drift,omitempty"`     // over the tools, by model
	Raised    []pastAlarm                   `json:"raised,omitempty"`    // that were published as raised, the last one last
	Commands  commands                      `json:"commands,omitzero"`   // that were carried out or refused
	Forgotten event.ToolNames               `json:"forgotten,omitempty"` // tools that were in the spindle and are forgotten for room: under these names no new tool comes
	Declared  []declaration                 `json:"declared,omitempty"`  // of tools that are not remembered, the last one last
}

// declaration says that the tool that comes next under a name was declared new.
type declaration struct {
	Tool string `json:"tool"`
	Life string `json:"life"` // see Tool.Declared
}

// Tool is what is remembered of one life of a tool of a machine. It waits while another tool is
// in the spindle.
type Tool struct {
	Name     string           `json:"tool"`
	Life     string           `json:"life,omitempty"`     // of the tool under this name, see signal.Context; empty: never declared new to its ingester
	Declared string           `json:"declared,omitempty"` // id of the command that declared it new to the monitor, its life if windows name none
	Seen     int              `json:"seen"`               // orders the tools of a machine: the greater, the later it was in the spindle
	First    FirstWindow      `json:"first,omitzero"`
	Drifted  []string         `json:"drift_seen,omitempty"` // ids of the models whose drift has taken its reference into account
	Used     bool             `json:"used,omitempty"`       // it came back after it was forgotten: First is not the window with which it began
	PastGone bool             `json:"past_gone,omitempty"`  // its first windows are not in Kafka any more, or not known: no build can find them
	Windows  int              `json:"windows"`              // that moved it
	Moved    order.Windows    `json:"moved,omitempty"`      // these; the head has the last epoch of them only
	By       string           `json:"by,omitempty"`         // id of the model whose judging moves the alarm
	Alarm    Alarm            `json:"alarm"`
	Cutting  time.Duration    `json:"cutting_ns,omitempty"` // since it came, as far as the monitor saw it
	CutUntil time.Time        `json:"cut_until,omitzero"`   // end of the last window that counted for Cutting
	Epoch    string           `json:"epoch,omitempty"`      // of the windows in Trace
	Trace    event.StateTrace `json:"trace,omitempty"`      // the last windows

	Judgings []*Judging `json:"-"` // By's, the next one's, former ones', shadows'; each has a record of its own
}
