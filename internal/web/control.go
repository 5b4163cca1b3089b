package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// Control lets pages acknowledge and shelve alarms, and mark them as false.
type Control struct {
	// Token returns what a page must know. It is asked for every request, so that
	// the token can be changed in place.
	Token func() (string, error)
	// Send passes a command on.
	Send func(context.Context, event.Command) error
}

// Bounds of a request that changes something.
const (
	maxOrder  = 16 << 10
	orderWait = 10 * time.Second
)

// order is the body of POST /api/commands.
type order struct {
	Machine  string       `json:"machine"`
	Action   event.Action `json:"action"` // acknowledge, shelve, unshelve, mark_false or unmark_false
	Incident string       `json:"incident"`
	By       string       `json:"by"`
	Note     string       `json:"note"`
	Minutes  float64      `json:"minutes"` // to shelve for
}

// handler answers POST /api/commands. A browser sends the token only where this
// page's own script says so: it is in a header of its own, never in a cookie, and
// a request from another origin is refused, with or without the token.
func (c *Control) handler() http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(c.serve))
}

func (c *Control) serve(w http.ResponseWriter, r *http.Request) {
	token, err := c.Token()
	if err != nil {
		text(w, http.StatusServiceUnavailable, "the token of this program cannot be read: look at its configuration")
		return
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !matches(given, token) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		text(w, http.StatusUnauthorized, "this is not the token")
		return
	}
	if typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || typ != "application/json" {
		text(w, http.StatusUnsupportedMediaType, "send application/json")
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(orderWait)) // a recorder in a test knows none
	var o order
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		text(w, http.StatusBadRequest, "this is not a command: "+err.Error())
		return
	}
	if _, err := d.Token(); err != io.EOF {
		text(w, http.StatusBadRequest, "this is not a command: something follows it")
		return
	}
	command, err := o.command(time.Now())
	if err != nil {
		text(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), orderWait)
	defer cancel()
	if err := c.Send(ctx, command); err != nil {
		text(w, http.StatusBadGateway, "the command could not be sent: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	w.Write(encode(map[string]string{"id": command.ID}))
}

// command returns the command that o asks for.
func (o order) command(now time.Time) (event.Command, error) {
	c := event.Command{
		ID: event.NewCommandID(), Machine: o.Machine, Action: o.Action, Incident: o.Incident, By: o.By, Note: o.Note, Issued: now,
	}
	switch o.Action {
	case event.Acknowledge, event.Unshelve, event.MarkFalse, event.UnmarkFalse:
	case event.Shelve:
		if !(o.Minutes > 0 && o.Minutes <= 7*24*60) {
			return c, fmt.Errorf("minutes is %v: shelve for more than none and less than a week", o.Minutes)
		}
		c.Until = now.Add(time.Duration(o.Minutes * float64(time.Minute)))
	default:
		return c, fmt.Errorf("action %.32q: a page may acknowledge, shelve, unshelve, and mark as false", o.Action)
	}
	return c, c.Check()
}

// matches compares in a time that depends on neither.
func matches(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
