package web

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"unicode"

	"github.com/flank-tcm/flank/internal/event"
)

// audit passes a record on, without the tokens of people in what a client has written.
func (g *Guard) audit(a event.Audit) {
	if g.Audit == nil {
		return
	}
	for _, s := range []*string{&a.Actor.Name, &a.Machine, &a.Alarm, &a.Object} {
		*s = g.withoutTokens(*s)
	}
	g.Audit(a)
}

// auditAccess records a request that is refused before anything was asked for.
func (g *Guard) auditAccess(v visit, why reason) {
	g.audit(event.Audit{Action: event.Access, Actor: v.actor(), Outcome: event.Denied, Reason: why.text()})
}

// auditLogin records a token that is refused.
func (g *Guard) auditLogin(address string, why reason) {
	g.audit(event.Audit{Action: event.Login, Actor: event.Actor{Identified: event.ByNothing, From: address}, Outcome: event.Denied, Reason: why.text()})
}

// auditCommand records what a page has asked for. err says why it was refused, nil that it was sent.
func auditCommand(r *http.Request, o order, id string, err error) {
	v := visitOf(r)
	if v.guard == nil {
		return
	}
	a := event.Audit{Action: o.Action, Actor: v.actor(), Machine: o.Machine, Alarm: o.Incident, Object: o.Tool, Command: id, Outcome: event.Accepted}
	if !offered(o.Action) {
		a.Action = event.UnreadAction
	}
	if a.Actor.Name == "" {
		a.Actor.Name = o.By
	}
	if err != nil {
		a.Outcome, a.Reason = event.Denied, err.Error()
	}
	v.guard.audit(a)
}

// visitOf returns what the guard knows of a request; without a guard the zero visit.
func visitOf(r *http.Request) visit {
	v, _ := r.Context().Value(visitKey{}).(visit)
	return v
}

func (v visit) actor() event.Actor {
	return event.Actor{Name: v.person.Name, Role: string(v.person.Role), Identified: v.how, From: v.address}
}

// how says how the person is identified.
func (p proof) how() event.Identified {
	switch {
	case p.person.Role == "":
		return event.ByNothing
	case p.person.Name == "":
		return event.BySharedToken
	case p.session != "":
		return event.BySession
	}
	return event.ByToken
}

// text says why a request was refused, for the audit.
func (r reason) text() string {
	return [...]string{
		"the Host header is not a name of the page", "another site sent it", "wrong token", "not logged in", "the role does not allow it",
		"too many wrong tokens came from the address before", "too many event streams", "too many connections", "the tokens cannot be read",
	}[r]
}

// maxAudited is the longest text of a client that is looked through for tokens, in bytes.
const maxAudited = 2000

// leastToken is shorter than any token of a page: people's have 26 characters, and one that is
// shared has 16 or more.
const leastToken = 8

// withoutTokens returns a text of a client in which no word, and not the text itself, is the token
// of a person or the cookie of a session.
func (g *Guard) withoutTokens(s string) string {
	switch {
	case s == "" || g.Find == nil:
		return s
	case len(s) > maxAudited, g.isSecret(s), g.isSecret(strings.TrimSpace(s)):
		return event.Withheld
	}
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`/,;:="'`, r) }) {
		if len(word) >= leastToken && g.isSecret(word) {
			s = strings.ReplaceAll(s, word, event.Withheld)
		}
	}
	return s
}

// isSecret reports whether a text is a token or a cookie that counts now. Where the tokens cannot be
// read, any text may be one.
func (g *Guard) isSecret(s string) bool {
	_, found, err := g.Find(sha256.Sum256([]byte(s)))
	return found || err != nil || g.sessions.has(keyOf(s), g.now())
}
