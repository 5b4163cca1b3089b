package event

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/plain"
)

// CommandType is the CloudEvents type of a command.
const CommandType = "io.tcm.command.v1"

// Action is what a command asks the monitor, or a gateway, to do.
type Action string

// The actions, in the words of schemas/command.schema.json. These act on an alarm.
const (
	Acknowledge  Action = "acknowledge"
	Shelve       Action = "shelve"
	Unshelve     Action = "unshelve"
	Suppress     Action = "suppress"
	Unsuppress   Action = "unsuppress"
	OutOfService Action = "out_of_service"
	InService    Action = "in_service"

	// These mark an alarm, which may have ended, and do not change its state.
	MarkFalse   Action = "mark_false"   // nothing was wrong with the tool
	UnmarkFalse Action = "unmark_false" // withdraw the mark
)

// These act on a machine or its tools.
const (
	NewTool Action = "new_tool" // the tool is new under an old name: reground, or a fresh insert
	Retire  Action = "retire"   // forget the machine; its alarm and advisories end
	Rename  Action = "rename"   // the machine has a new name: what was remembered under the old name goes on under the new one
)

// Fetch asks the machine's gateway, not the monitor, for raw windows.
const Fetch Action = "fetch"

// Bounds of a command that is read, in bytes: one that renames a machine carries the machine's records.
const (
	MaxCommand = 16 << 10
	MaxRename  = 4 << 20
)

// Actions lists every action.
var Actions = []Action{Acknowledge, Shelve, Unshelve, Suppress, Unsuppress, OutOfService, InService, MarkFalse, UnmarkFalse, NewTool, Retire, Rename, Fetch}

// Marks reports whether the action only marks an alarm, which may have ended.
func (a Action) Marks() bool { return a == MarkFalse || a == UnmarkFalse }

// MasksMachine reports whether the action puts a mask on or off that is the machine's, unless it names a tool.
func (a Action) MasksMachine() bool {
	return a == Suppress || a == Unsuppress || a == OutOfService || a == InService
}

// Command is a request of a person or of a program of the plant. Kafka's ACLs decide
// who may send one; By is the name that the sender gives.
type Command struct {
	ID       string    `json:"id"` // each command has its own
	Machine  string    `json:"machine"`
	Action   Action    `json:"action"`
	Incident string    `json:"incident,omitempty"` // the alarm to acknowledge or to mark, so that a person acknowledges only the alarm they saw
	Was      string    `json:"was,omitempty"`      // rename: the old name
	State    []Kept    `json:"state,omitempty"`    // rename: the state records of the old name
	Tool     string    `json:"tool,omitempty"`     // new_tool: its name; empty: the tool without a name. suppress, unsuppress, out_of_service, in_service: only the alarm of that tool; empty: all of the machine
	By       string    `json:"by"`
	Note     string    `json:"note,omitempty"`   // why; needed to shelve, to suppress, and to take out of service
	Issued   time.Time `json:"issued"`           // by the sender's clock
	Until    time.Time `json:"until,omitzero"`   // end of a shelf; fetch: until when a gateway may answer
	Wanted   *Wanted   `json:"wanted,omitempty"` // fetch: the windows

	FalseAlarm bool `json:"false_alarm,omitempty"` // acknowledge: the sender says that nothing was wrong with the tool
}

// Kept is a state record of a machine that is renamed.
type Kept struct {
	Key   string `json:"key"` // as on the state topic
	Value []byte `json:"value"`
}

// NewCommandID returns a new random id.
func NewCommandID() string { return rand.Text() }

// Bounds of a command's texts, in bytes.
const (
	maxBy   = 100
	maxNote = 1000
	maxTool = 200
)

var (
	commandID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	incident  = regexp.MustCompile(`^A-[A-Z2-7]{8}$`)
)

// ReadCommand returns the command in a message with a key. It reports what is not one.
func ReadCommand(key string, value []byte) (*Command, error) {
	if len(value) > MaxRename {
		return nil, fmt.Errorf("command of %d bytes: at most %d", len(value), MaxRename)
	}
	var c Command
	err := json.Unmarshal(value, &c)
	if c.Action != Rename && len(value) > MaxCommand {
		return nil, fmt.Errorf("command of %d bytes: at most %d", len(value), MaxCommand)
	}
	if err = cmp.Or(err, c.Check()); err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	c.Tool, _ = plain.Name(c.Tool) // it was checked
	if c.Machine != key {
		return nil, fmt.Errorf("command: key %.64q, it is for machine %.64q", key, c.Machine)
	}
	return &c, nil
}

// Check reports what is wrong with a command for every state of the alarm.
func (c Command) Check() error {
	if err := c.checkAction(); err != nil {
		return err
	}
	if err := c.checkFields(); err != nil {
		return err
	}
	return c.checkTexts()
}

// checkAction reports what is missing for the action.
func (c Command) checkAction() error {
	switch c.Action {
	case Acknowledge, MarkFalse, UnmarkFalse:
		return config.Wrong(!incident.MatchString(c.Incident), "incident %.32q: name the alarm, as in A-K3ZQ7M2P", c.Incident)
	case Shelve, Suppress, OutOfService:
		return cmp.Or(
			config.Wrong(c.Action == Shelve && c.Until.IsZero(), "shelve: say until when"),
			config.Wrong(c.Note == "", "%s: give a reason", c.Action))
	case Rename:
		return config.Wrong(c.Was == "" || c.Was == c.Machine || len(c.State) == 0, "rename: name the machine that it was, and its state records")
	case Unshelve, Unsuppress, InService, NewTool, Retire, Fetch:
		return nil
	}
	return fmt.Errorf("action %.32q: expected one of %q", c.Action, Actions)
}

// checkFields checks the id, the machine, and that fields go with the action.
func (c Command) checkFields() error {
	return cmp.Or(
		config.Wrong(c.FalseAlarm && c.Action != Acknowledge, "false_alarm: goes with %s only", Acknowledge),
		config.Wrong(!commandID.MatchString(c.ID), "id %.80q: expected 1 to 64 letters, digits, - and _", c.ID),
		config.Wrong(c.Machine == "", "machine: name it by its path"),
		config.Wrong(c.Action != Rename && (c.Was != "" || len(c.State) > 0), "was, state: go with %s only", Rename),
		config.Wrong(c.Tool != "" && c.Action != NewTool && !c.Action.MasksMachine(), "tool: goes with %s, %s, %s, %s and %s only", NewTool, Suppress, Unsuppress, OutOfService, InService),
		c.checkFetch())
}

// checkTexts checks the texts that people write, the alarm's name and the time.
func (c Command) checkTexts() error {
	for _, f := range []struct{ name, text string }{{"machine", c.Machine}, {"was", c.Was}, {"by", c.By}, {"note", c.Note}} {
		if err := plain.Check(f.text); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if _, err := plain.Name(c.Tool); err != nil {
		return fmt.Errorf("tool: %w", err)
	}
	return cmp.Or(
		config.Wrong(len(c.Tool) > maxTool, "tool: at most %d bytes of UTF-8", maxTool),
		config.Wrong(c.By == "" || len(c.By) > maxBy, "by: say who it is, in 1 to %d bytes of UTF-8", maxBy),
		config.Wrong(len(c.Note) > maxNote, "note: at most %d bytes of UTF-8", maxNote),
		config.Wrong(c.Incident != "" && !incident.MatchString(c.Incident), "incident %.32q: expected one as in A-K3ZQ7M2P", c.Incident),
		config.Wrong(c.Issued.IsZero(), "issued: say when"))
}
