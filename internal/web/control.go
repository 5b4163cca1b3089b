package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// Control lets people send commands from pages. A [Guard] in front of the hub's handler
// says who they are: without one every command is refused.
type Control struct {
	// Send passes a command on.
	Send func(context.Context, event.Command) error

	// Label keeps a label of a tool, given the tools that were seen at its machine, with their lives. Unless it is to be kept
	// anyway, it returns why it may be a mistake, and keeps nothing.
	Label func(ctx context.Context, l event.Label, tools map[string]string, anyway bool) (doubts []string, err error)

	tools func(machine string) map[string]string // see Hub.toolsOf
}

// Bounds of a request that changes something.
const (
	maxOrder  = 16 << 10
	orderWait = 10 * time.Second
)

// order is the body of POST /api/commands.
type order struct {
	Machine  string       `json:"machine"`
	Action   event.Action `json:"action"` // one of actions
	Incident string       `json:"incident"`
	Tool     string       `json:"tool"` // that is new, or whose alarm alone is masked
	By       string       `json:"by"`   // counts only where people share a token
	Note     string       `json:"note"`
	Minutes  float64      `json:"minutes"` // to shelve for
	labelOrder
}

// serve answers POST /api/commands.
func (c *Control) serve(w http.ResponseWriter, r *http.Request) {
	person := who(r)
	if person.Role == "" {
		askLogin(w)
		return
	}
	var o order
	if !decode(w, r, &o) {
		auditCommand(r, order{}, "", errors.New("the request cannot be read"))
		return
	}
	if person.Name != "" {
		o.By = person.Name
	}
	if offered(o.Action) && !may(person.Role, o.Action) {
		refused(r, refusedRole, fmt.Sprintf("%q, who is %s, asked for %s", person.Name, person.Role, o.Action))
		auditCommand(r, o, "", fmt.Errorf("the role %s may not ask for it", person.Role))
		text(w, http.StatusForbidden, fmt.Sprintf("the role %s may not ask for %s: someone with another role can", person.Role, o.Action))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), orderWait)
	defer cancel()
	if o.Action == event.AddLabel {
		c.addLabel(ctx, w, r, o)
		return
	}
	command, err := o.command(time.Now())
	if err != nil {
		auditCommand(r, o, "", errors.New("a field cannot be used"))
		text(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := c.Send(ctx, command); err != nil {
		auditCommand(r, o, command.ID, errors.New("it could not be sent"))
		text(w, http.StatusBadGateway, "the command could not be sent: "+err.Error())
		return
	}
	auditCommand(r, o, command.ID, nil)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	w.Write(encode(map[string]string{"id": command.ID}))
}

// decode reads the body of a request that changes something into v, strictly. If it
// cannot, it answers with the reason and returns false. The guard has bounded the time.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	if typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || typ != "application/json" {
		text(w, http.StatusUnsupportedMediaType, "send application/json")
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		text(w, http.StatusBadRequest, "the request cannot be read: "+err.Error())
		return false
	}
	if _, err := d.Token(); err != io.EOF {
		text(w, http.StatusBadRequest, "the request cannot be read: something follows its JSON")
		return false
	}
	return true
}

// command returns the command that o asks for.
func (o order) command(now time.Time) (event.Command, error) {
	c := event.Command{
		ID: event.NewCommandID(), Machine: o.Machine, Action: o.Action, Incident: o.Incident, Tool: o.Tool, By: o.By, Note: o.Note, Issued: now,
	}
	if !offered(o.Action) {
		return c, fmt.Errorf("action %.32q: a page cannot ask for it", o.Action)
	}
	if o.Action == event.Shelve {
		if !(o.Minutes > 0 && o.Minutes <= 7*24*60) {
			return c, fmt.Errorf("minutes is %v: shelve for more than none and less than a week", o.Minutes)
		}
		c.Until = now.Add(time.Duration(o.Minutes * float64(time.Minute)))
	}
	return c, c.Check()
}
