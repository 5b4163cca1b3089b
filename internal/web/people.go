package web

import (
	"context"
	"net/http"
	"slices"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
)

// Person is who asks. The zero Person is someone who has not logged in. The token that
// people share has a role and no name.
type Person = credential.Person

// visit is what the guard knows of a request.
type visit struct {
	person  Person
	guard   *Guard
	address string // of the client, as limits count it
	how     event.Identified
}

type visitKey struct{}

// withVisit returns r with what the guard knows of it.
func withVisit(r *http.Request, v visit) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
}

// who returns who asks, as the guard has found out.
func who(r *http.Request) Person { return visitOf(r).person }

// refused counts and logs a request that a handler behind the guard refuses.
func refused(r *http.Request, why reason, detail string) {
	if v, ok := r.Context().Value(visitKey{}).(visit); ok {
		v.guard.refuse(v.address, why, detail)
	}
}

// The actions that a page may ask for, by the least role that may.
var actions = map[credential.Role][]event.Action{
	credential.Operator: {event.Acknowledge, event.Shelve, event.Unshelve, event.MarkFalse, event.UnmarkFalse, event.NewTool, event.AddLabel},
	credential.Engineer: {event.Suppress, event.Unsuppress, event.OutOfService, event.InService},
}

// offered reports whether a page may ask for an action at all.
func offered(a event.Action) bool { return may(credential.Engineer, a) }

// may reports whether people of a role may ask for an action.
func may(role credential.Role, a event.Action) bool {
	for _, r := range credential.Roles[:slices.Index(credential.Roles, role)+1] {
		if slices.Contains(actions[r], a) {
			return true
		}
	}
	return false
}
