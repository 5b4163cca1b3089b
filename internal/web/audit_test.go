package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
)

// audited returns a site and what its guard records, one line each.
func audited(p Protection) (*site, func() []string) {
	var lines []string
	p.Audit = func(a event.Audit) {
		text := fmt.Sprintf("%s %s by %s (%s, %s) from %s", a.Action, a.Outcome, a.Actor.Name, a.Actor.Role, a.Actor.Identified, a.Actor.From)
		for _, s := range []string{a.Machine, a.Alarm, a.Object, a.Reason} {
			if s != "" {
				text += ", " + s
			}
		}
		if (a.Command != "") != (a.Outcome == event.Accepted && a.Action != event.Login && a.Action != event.Logout) {
			text += ", command " + a.Command
		}
		lines = append(lines, text)
	}
	s := newSite(p)
	return s, func() []string { got := lines; lines = nil; return got }
}

// Logins, commands and refusals are recorded with who it was, from where, and why not. Reading a page
// is not.
func TestAuditOfPage(t *testing.T) {
	s, records := audited(Protection{ReadsNeedToken: true})
	check := func(what string, want ...string) {
		t.Helper()
		if got := records(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n got %q\nwant %q", what, got, want)
		}
	}
	ack := func(by string) string {
		return fmt.Sprintf(`{"machine":"acme/usk25","action":"acknowledge","incident":"A-K3ZQ7M2P","by":%q}`, by)
	}
	from := []string{"Address", "192.0.2.7:4711"}
	const at = "from 192.0.2.7"

	s.ask("GET", "/", "", from...)
	s.ask("GET", "/livez", "", append(from, "Host", "evil.example")...)
	check("a page before its person logs in")

	s.ask("POST", "/api/login", `{"token":"token-of-mallory"}`, from...)
	check("a wrong token", "login refused by  (, nothing) "+at+", wrong token")
	otto := s.login(t, "token-of-otto", from...)
	check("a login", "login accepted by otto (operator, token) "+at)
	s.ask("GET", "/", "", otto...)
	check("a page")

	s.ask("POST", "/api/commands", ack("root"), otto...)
	check("a command", "acknowledge accepted by otto (operator, session) "+at+", acme/usk25, A-K3ZQ7M2P")
	s.ask("POST", "/api/commands", ack("x"), append(from, "Authorization", "Bearer token-of-emmy")...)
	check("a command by token", "acknowledge accepted by emmy (engineer, token) "+at+", acme/usk25, A-K3ZQ7M2P")
	s.ask("POST", "/api/commands", ack("kim"), append(from, "Authorization", "Bearer token-of-all")...)
	check("by the token that people share", "acknowledge accepted by kim (operator, shared_token) "+at+", acme/usk25, A-K3ZQ7M2P")

	s.ask("POST", "/api/commands", `{"machine":"acme/usk25","action":"suppress","note":"setup"}`, otto...)
	check("a role", "suppress refused by otto (operator, session) "+at+", acme/usk25, the role operator may not ask for it")
	s.ask("POST", "/api/commands", `{"machine":"acme/usk25","action":"retire"}`, otto...)
	check("what pages do not offer", "command refused by otto (operator, session) "+at+", acme/usk25, a field cannot be used")
	s.ask("POST", "/api/commands", `{"machine":`, otto...)
	check("no JSON", "command refused by otto (operator, session) "+at+", the request cannot be read")
	s.ask("POST", "/api/commands", ack("x"), from...)
	check("no login", "access refused by  (, nothing) "+at+", not logged in")

	s.ask("GET", "/", "", append(from, "Host", "evil.example")...)
	check("another name", "access refused by  (, nothing) "+at+", the Host header is not a name of the page")
	s.ask("POST", "/api/commands", ack("x"), append(otto, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example")...)
	check("another site", "access refused by  (, nothing) "+at+", another site sent it")

	s.ask("POST", "/api/logout", "{}", otto...)
	check("a logout", "logout accepted by otto (operator, session) "+at)
	s.ask("POST", "/api/logout", "{}", otto...)
	check("a second logout")

	s.broken = true
	s.ask("POST", "/api/login", `{"token":"token-of-otto"}`, from...)
	check("tokens that cannot be read", "login refused by  (, nothing) "+at+", the tokens cannot be read")
	s.broken = false
	for range 9 {
		s.ask("POST", "/api/login", `{"token":"guess"}`, from...)
	}
	if got := records(); len(got) != 9 || !strings.Contains(got[0], "wrong token") || !strings.Contains(got[8], "too many wrong tokens") {
		t.Errorf("someone who tries tokens: %q", got)
	}
}

// A command that cannot be sent is recorded as refused.
func TestAuditOfUnsentCommand(t *testing.T) {
	var got []event.Audit
	s := newSite(Protection{Audit: func(a event.Audit) { got = append(got, a) }})
	s.h = s.Handler(http.HandlerFunc((&Control{Send: func(context.Context, event.Command) error { return errors.New("no broker at kafka:9093") }}).serve))
	s.ask("POST", "/api/commands", `{"machine":"acme/usk25","action":"unshelve"}`, "Authorization", "Bearer token-of-otto")
	if len(got) != 1 || got[0].Outcome != event.Denied || got[0].Reason != "it could not be sent" || got[0].Action != event.Unshelve {
		t.Errorf("%+v", got)
	}
}

// Wherever a client puts a token, a password or a cookie, no record has it.
func TestAuditOfPageKeepsNoSecret(t *testing.T) {
	const token = "token-of-otto"
	s, records := audited(Protection{})
	cookie := s.login(t, token)[1]
	_, session, _ := strings.Cut(cookie, "=")
	records()
	for _, secret := range []string{token, session} {
		body := func(field string) string { return strings.ReplaceAll(field, "SECRET", secret) }
		for name, send := range map[string]func(){
			"the name": func() {
				s.ask("POST", "/api/commands", body(`{"machine":"m","action":"unshelve","by":"SECRET"}`), "Authorization", "Bearer token-of-all")
			},
			"a part of the name": func() {
				s.ask("POST", "/api/commands", body(`{"machine":"m","action":"unshelve","by":"kim, SECRET"}`), "Authorization", "Bearer token-of-all")
			},
			"the machine": func() {
				s.ask("POST", "/api/commands", body(`{"machine":"acme/SECRET/m","action":"unshelve"}`), "Cookie", cookie)
			},
			"the alarm": func() {
				s.ask("POST", "/api/commands", body(`{"machine":"m","action":"acknowledge","incident":"SECRET"}`), "Cookie", cookie)
			},
			"the action": func() { s.ask("POST", "/api/commands", body(`{"machine":"m","action":"SECRET"}`), "Cookie", cookie) },
			"the tool": func() {
				s.ask("POST", "/api/commands", body(`{"machine":"m","action":"new_tool","tool":"SECRET"}`), "Cookie", cookie)
			},
			"the note": func() {
				s.ask("POST", "/api/commands", body(`{"machine":"m","action":"unshelve","note":"SECRET"}`), "Cookie", cookie)
			},
			"an unknown field":  func() { s.ask("POST", "/api/commands", body(`{"SECRET":"SECRET"}`), "Cookie", cookie) },
			"no JSON":           func() { s.ask("POST", "/api/commands", secret, "Cookie", cookie) },
			"the login":         func() { s.ask("POST", "/api/login", body(`{"token":"SECRET"}`)) },
			"a part of a login": func() { s.ask("POST", "/api/login", body(`{"token":"xSECRET"}`)) },
			"the host":          func() { s.ask("GET", "/", "", "Host", secret+".example") },
			"the origin":        func() { s.ask("POST", "/api/login", "{}", "Origin", "https://"+secret, "Sec-Fetch-Site", "cross-site") },
			"a header": func() {
				s.ask("POST", "/api/commands", "{}", "Authorization", "Basic "+secret, "Referer", secret, "User-Agent", secret)
			},
			"a bearer":    func() { s.ask("POST", "/api/commands", "{}", "Authorization", "Bearer x"+secret) },
			"the address": func() { s.ask("POST", "/api/"+url.PathEscape(secret)+"?token="+secret, "{}") },
		} {
			send()
			got := records()
			if len(got) == 0 && name != "the login" {
				t.Errorf("%s: no record", name)
			}
			if text := strings.Join(got, "\n"); strings.Contains(text, secret) {
				t.Errorf("%s: %s", name, text)
			}
			s.at = s.at.Add(maxWait) // wrong tokens delay the next one
		}
	}
	if w := s.ask("POST", "/api/commands", "{}", "Cookie", cookie); w.Code != http.StatusBadRequest {
		t.Errorf("the session has ended: %d", w.Code)
	}
}
