package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
)

// Event is a message of tcm.alerts.v1 on its way to a receiver.
type Event struct {
	ID      string // ce_id, the same whenever the event comes again
	Type    string // ce_type
	Machine string // its key
	At      time.Time
	Sent    time.Time // when Kafka got it

	facts
	message bus.Message
}

// facts are what filters and receivers know of an event of any type. The names are the
// names of the schemas; a property that an event lacks is empty.
type facts struct {
	Group    string `json:"group"` // that published it
	Machine  string `json:"machine"`
	Tool     string `json:"tool"`
	Hole     string `json:"hole"`
	State    string `json:"state"`
	Alarm    string `json:"alarm"`
	Incident string `json:"incident"`
	Severity string `json:"severity"`
	Magazine bool   `json:"magazine"` // of a tool that is not in the spindle

	Since time.Time `json:"since"`

	Score float64 `json:"score"`
	Model string  `json:"model"`
	By    string  `json:"by"`
	Text  string  `json:"text"`

	Wear *event.Wear `json:"wear"` // of the tool; nil if it is not known

	// Of advisories.
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Status  string `json:"status"`

	// Of evidence, and of an alert that has some.
	URL      string `json:"url"`
	Evidence struct {
		URL string `json:"url"`
	} `json:"evidence"`
}

// attribute is the form of the names of attributes of CloudEvents. Others may not be names of headers of HTTP.
var attribute = regexp.MustCompile(`^[a-z0-9]+$`)

// open returns the event in a message. It returns an error if the message is not an
// event. An unknown type is an event too: more types may come within v1.
func open(m bus.Message) (*Event, error) {
	e := &Event{ID: string(m.Header("ce_id")), Type: string(m.Header("ce_type")), Machine: m.Key, Sent: m.Time, message: m}
	if e.ID == "" || e.Type == "" {
		return nil, errors.New("route: no headers ce_id and ce_type: not an event that Flank sent")
	}
	for _, h := range m.Headers {
		if name, ok := strings.CutPrefix(h.Key, "ce_"); ok && !attribute.MatchString(name) {
			return nil, fmt.Errorf("route: header %.40q: not the name of an attribute: not an event that Flank sent", h.Key)
		}
	}
	var err error
	if e.At, err = time.Parse(time.RFC3339Nano, string(m.Header("ce_time"))); err != nil {
		return nil, fmt.Errorf("route: header ce_time %.40q: not a time", m.Header("ce_time"))
	}
	if err := json.Unmarshal(m.Value, &e.facts); err != nil {
		return nil, fmt.Errorf("route: not an event that Flank sent: %w", err)
	}
	if e.Group == "" {
		return nil, errors.New("route: it names no group of monitors: not an event that Flank sent")
	}
	if e.facts.Machine != e.Machine {
		return nil, fmt.Errorf("route: key %.64q, the event is of machine %.64q", e.Machine, e.facts.Machine)
	}
	return e, nil
}

// Of returns an event of a message that is made here: v, of a type and with an
// id, about a machine.
func Of(v any, id, typ, machine string, at time.Time) (*Event, error) {
	return open(envelope.Event(bus.TopicAlerts, id, machine, typ, at, event.JSON(v)))
}

// word returns what the event is called in a route's `kinds`: alert, evidence, or
// the kind of an advisory. It is empty for a type that is not known.
func (e *Event) word() string {
	switch e.Type {
	case event.AlertType:
		return "alert"
	case event.EvidenceType:
		return "evidence"
	case event.AdvisoryType:
		return e.Kind
	}
	return ""
}

// link returns where the evidence is, if that is known.
func (e *Event) link() string {
	if e.Type == event.EvidenceType {
		return e.URL
	}
	return e.Evidence.URL
}

// test is what the ids of events begin with that `monitor alerts test` sends.
const test = "test/"

// isTest reports whether the event only tests a route.
func (e *Event) isTest() bool { return strings.HasPrefix(e.ID, test) }

// TestEvent returns an alert that is marked as a test. The nonce makes its id new.
func TestEvent(nonce string, at time.Time) *Event {
	const machine = "test/test/test/test/test"
	a := event.Alert{
		ID: test + "command/" + nonce + "/raised", Group: "test", Machine: machine, State: event.Raised, Alarm: "raised", Severity: "warning",
		Since: at, At: at, Epoch: strings.Repeat("0", 16), K: 1, N: 1, Model: "none",
		Text: "TEST of a route by `monitor alerts test`: nothing is wrong with any machine.",
	}
	e, err := Of(a, a.ID, event.AlertType, machine, at)
	if err != nil {
		panic("route: TestEvent: " + err.Error())
	}
	return e
}
