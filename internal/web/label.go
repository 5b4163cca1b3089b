package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// labelOrder is what an order to add a label says.
type labelOrder struct {
	ToolLife string    `json:"tool_life"` // as in results and alerts
	Wear     string    `json:"wear"`      // with its unit
	State    string    `json:"state"`
	Since    time.Time `json:"since,omitzero"` // of a state: since when, as of the alarm
	Until    time.Time `json:"until,omitzero"` // when the tool was so; zero: now
	Anyway   bool      `json:"anyway"`         // the person has seen why it may be a mistake
}

// label returns the label that o gives.
func (o order) label(now time.Time) (event.Label, error) {
	l := event.Label{
		Machine: o.Machine, Tool: o.Tool, ToolLife: o.ToolLife, State: o.State, Incident: o.Incident, By: o.By, Note: o.Note,
		At: cmp.Or(o.Until, now).UTC().Truncate(time.Second), Method: "eye", Given: now.UTC(),
	}
	if o.Wear != "" {
		um, err := event.ParseWear(o.Wear)
		if err != nil {
			return l, err
		}
		l.WearUM, l.Method = &um, "measured"
	} else if since := o.Since.UTC(); !since.IsZero() && since.Before(l.At) {
		l.At, l.Until = since, l.At
	}
	l.ID = l.NewLabelID()
	return l, l.Check()
}

// addLabel answers an order to add a label. What may be a mistake is asked about: code 409, with the question.
func (c *Control) addLabel(ctx context.Context, w http.ResponseWriter, r *http.Request, o order) {
	tools := c.tools(o.Machine)
	if o.Until.IsZero() { // of the tool as it is now
		o.ToolLife = cmp.Or(o.ToolLife, tools[o.Tool])
	}
	l, err := o.label(time.Now())
	if err != nil {
		auditCommand(r, o, "", errors.New("a field cannot be used"))
		text(w, http.StatusBadRequest, err.Error())
		return
	}
	doubts, err := c.Label(ctx, l, tools, o.Anyway)
	switch {
	case err != nil:
		auditCommand(r, o, "", errors.New("it could not be sent"))
		text(w, http.StatusBadGateway, "the label could not be sent: "+err.Error())
	case len(doubts) > 0:
		auditCommand(r, o, "", errors.New("it may be a mistake"))
		text(w, http.StatusConflict, strings.Join(doubts, "\n"))
	default:
		auditCommand(r, o, l.ID, nil)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		w.Write(encode(map[string]string{"id": l.ID}))
	}
}

// toolsOf returns the lives of the tools that the hub has seen at a machine lately, by name; nil if it does not know the machine.
func (h *Hub) toolsOf(machine string) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.machines[machine]
	if m == nil {
		return nil
	}
	tools := make(map[string]string)
	for _, a := range m.tools {
		tools[a.Tool] = ""
	}
	for _, a := range m.alerts.since(m.alerts.first()) {
		if !a.State.Marks() && a.State != event.Refused {
			tools[a.Tool] = a.ToolLife
		}
	}
	if r := m.lastResult; r != nil {
		tools[r.Tool] = r.ToolLife
	}
	return tools
}
