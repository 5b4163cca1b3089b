package web

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
)

// register is a file of people for tests: tokens by name.
type register struct {
	mu     sync.Mutex
	people map[string]Person // by token
	broken bool
}

func newRegister() *register {
	return &register{people: map[string]Person{
		"token-of-vera": {Name: "vera", Role: credential.Viewer},
		"token-of-otto": {Name: "otto", Role: credential.Operator},
		"token-of-emmy": {Name: "emmy", Role: credential.Engineer},
		"token-of-all":  {Role: credential.Operator},
	}}
}

func (g *register) find(sum [sha256.Size]byte) (Person, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken {
		return Person{}, false, errors.New("people.yaml:3: name: \"\\x1b[2J\"")
	}
	for token, p := range g.people {
		if sha256.Sum256([]byte(token)) == sum {
			return p, true, nil
		}
	}
	return Person{}, false, nil
}

func (g *register) set(token string, p Person) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.Role == "" {
		delete(g.people, token)
	} else {
		g.people[token] = p
	}
}

// site is a guarded page that says who asked, and passes commands to sent.
type site struct {
	*Guard
	*register
	h    http.Handler
	at   time.Time
	sent []event.Command
	log  []Refusal
}

func newSite(p Protection) *site {
	s := &site{register: newRegister(), at: time.Unix(1_800_000_000, 0)}
	p.Find, p.Hosts = s.find, append(p.Hosts, "example.com")
	p.Log = func(r Refusal) { s.log = append(s.log, r) }
	s.Guard = NewGuard(p)
	s.now = func() time.Time { return s.at }
	control := &Control{Send: func(_ context.Context, c event.Command) error { s.sent = append(s.sent, c); return nil }}
	mux := http.NewServeMux()
	mux.Handle("POST /api/commands", http.HandlerFunc(control.serve))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { text(w, http.StatusOK, "asked by "+who(r).Name) })
	s.h = s.Handler(mux)
	return s
}

// ask sends a request with headers, in pairs of name and value. "Host" and "Address" name
// the host and the client.
func (s *site) ask(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		switch header[i] {
		case "Host":
			r.Host = header[i+1]
		case "Address":
			r.RemoteAddr = header[i+1]
		case "Cookie":
			r.Header.Add("Cookie", header[i+1])
		default:
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w
}

// login returns the cookie of a new session as a header.
func (s *site) login(t *testing.T, token string, header ...string) []string {
	t.Helper()
	w := s.ask("POST", "/api/login", fmt.Sprintf(`{"token":%q}`, token), header...)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusOK || len(cookies) != 1 {
		t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	return append(header, "Cookie", cookies[0].Name+"="+cookies[0].Value)
}

// count returns how many requests were refused for a reason.
func (s *site) count(r reason) uint64 { return s.counts[r].Load() }

// commandOf returns a body that asks for an action, with a wrong name in it.
func commandOf(a event.Action) string {
	o := order{Machine: "acme/usk25", Action: a, By: "someone else", Note: "test piece"}
	switch a {
	case event.Acknowledge, event.MarkFalse, event.UnmarkFalse:
		o.Incident = "A-K3ZQ7M2P"
	case event.Shelve:
		o.Minutes = 30
	case event.NewTool, event.Suppress, event.InService:
		o.Tool = "T1"
	}
	return string(encode(o))
}

// Who may ask for what. An action that is new must be decided on here.
func TestRoles(t *testing.T) {
	const no, operators, engineers = "", "otto emmy all", "emmy"
	allowed := map[event.Action]string{
		event.Acknowledge: operators, event.Shelve: operators, event.Unshelve: operators, event.MarkFalse: operators, event.UnmarkFalse: operators, event.NewTool: operators,
		event.Suppress: engineers, event.Unsuppress: engineers, event.OutOfService: engineers, event.InService: engineers,
		event.Retire: no, event.Rename: no, event.Fetch: no,
	}
	if len(allowed) != len(event.Actions) {
		t.Errorf("%d actions in the table of %d", len(allowed), len(event.Actions))
	}
	for _, a := range event.Actions {
		for _, name := range []string{"vera", "otto", "emmy", "all", "no one"} {
			s := newSite(Protection{})
			want, by := http.StatusForbidden, name
			switch may := strings.Fields(allowed[a]); {
			case name == "no one":
				want = http.StatusUnauthorized
			case allowed[a] == no:
				want = http.StatusBadRequest
			case slices.Contains(may, name):
				want = http.StatusAccepted
			}
			if name == "all" {
				by = "someone else" // who shares a token says who it is
			}
			var header []string
			if name != "no one" {
				header = []string{"Authorization", "Bearer token-of-" + name}
			}
			if w := s.ask("POST", "/api/commands", commandOf(a), header...); w.Code != want {
				t.Errorf("%s asks for %s: %d %s, want %d", name, a, w.Code, w.Body, want)
			}
			if want == http.StatusAccepted != (len(s.sent) == 1) || len(s.sent) == 1 && (s.sent[0].By != by || s.sent[0].Action != a || !strings.Contains(commandOf(a), fmt.Sprintf(`"tool":%q`, s.sent[0].Tool))) {
				t.Errorf("%s asks for %s: sent %+v", name, a, s.sent)
			}
			if (want == http.StatusForbidden) != (s.count(refusedRole) == 1) {
				t.Errorf("%s asks for %s: counted %d", name, a, s.count(refusedRole))
			}
		}
	}
}

// What the hub says of who asks agrees with the contract, and with /api/me.
func TestRoleInAnswers(t *testing.T) {
	s := newSite(Protection{})
	h := fullHub()
	s.h = s.Handler(h.Handler())
	for token, role := range map[string]string{"token-of-vera": "viewer", "token-of-otto": "operator", "token-of-emmy": "engineer", "": ""} {
		var header []string
		if token != "" {
			header = s.login(t, token)
		}
		for path, schema := range map[string]string{"/api/me": "Me", "/api/machines": "Fleet"} {
			w := s.ask("GET", path, "", header...)
			if err := readContract().check(schema, w.Body.Bytes()); err != nil || !strings.Contains(w.Body.String(), fmt.Sprintf(`"role":%q`, role)) {
				t.Errorf("%s for %q: %v\n%s", path, role, err, w.Body)
			}
		}
	}
}

// Without a guard that knows who asks, no command is taken.
func TestControlWithoutGuard(t *testing.T) {
	c := &Control{Send: func(context.Context, event.Command) error { t.Error("sent"); return nil }}
	r := httptest.NewRequest(http.MethodPost, "/api/commands", strings.NewReader(commandOf(event.Acknowledge)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	c.serve(w, r)
	if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A browser logs in once and is known until it logs out.
func TestSession(t *testing.T) {
	s := newSite(Protection{})
	w := s.ask("POST", "/api/login", `{"token":"token-of-otto"}`)
	if w.Code != http.StatusOK || w.Body.String() != `{"name":"otto","role":"operator","read":"open","login":true}` || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*3600 || len(c.Value) != 43 {
		t.Errorf("cookie %+v", c)
	}
	cookie := []string{"Cookie", c.Name + "=" + c.Value}
	if w := s.ask("GET", "/", "", cookie...); w.Body.String() != "asked by otto\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.ask("GET", "/api/me", "", cookie...); !strings.Contains(w.Body.String(), `"name":"otto"`) {
		t.Errorf("%s", w.Body)
	}
	if w := s.ask("GET", "/api/me", ""); w.Code != http.StatusOK || w.Body.String() != `{"name":"","role":"","read":"open","login":true}` {
		t.Errorf("not logged in: %s", w.Body)
	}
	if w := s.ask("POST", "/api/commands", commandOf(event.Acknowledge), cookie...); w.Code != http.StatusAccepted || s.sent[0].By != "otto" {
		t.Errorf("%d %s, %+v", w.Code, w.Body, s.sent)
	}
	// Who sends a token means that one.
	if w := s.ask("GET", "/", "", append(cookie, "Authorization", "Bearer token-of-emmy")...); w.Body.String() != "asked by emmy\n" {
		t.Errorf("%s", w.Body)
	}
	// Another login of the browser replaces the first.
	if s.login(t, "token-of-emmy", cookie...); len(s.sessions.all) != 1 {
		t.Errorf("%d sessions", len(s.sessions.all))
	}
	cookie = s.login(t, "token-of-otto")
	w = s.ask("POST", "/api/logout", "", cookie...)
	if w.Code != http.StatusNoContent || w.Result().Cookies()[0].MaxAge != -1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.ask("GET", "/", "", cookie...); w.Body.String() != "asked by \n" {
		t.Errorf("logged out: %s", w.Body)
	}
}

// What ends a session, or changes what it is worth.
func TestSessionEnds(t *testing.T) {
	for why, tc := range map[string]struct {
		change func(*site)
		code   int
		name   string
	}{
		"nothing":              {func(s *site) {}, 202, "otto"},
		"11 hours":             {func(s *site) { s.at = s.at.Add(12*time.Hour - time.Second) }, 202, "otto"},
		"12 hours":             {func(s *site) { s.at = s.at.Add(12 * time.Hour) }, 401, ""},
		"the person is gone":   {func(s *site) { s.set("token-of-otto", Person{}) }, 401, ""},
		"another token":        {func(s *site) { s.set("new", s.people["token-of-otto"]); s.set("token-of-otto", Person{}) }, 401, ""},
		"the token is another": {func(s *site) { s.set("token-of-otto", Person{Name: "olga", Role: credential.Operator}) }, 202, "olga"},
		"less rights":          {func(s *site) { s.set("token-of-otto", Person{Name: "otto", Role: credential.Viewer}) }, 403, "otto"},
		"the file is damaged":  {func(s *site) { s.broken = true }, 503, ""},
		"a restart":            {func(s *site) { s.sessions.all = nil }, 401, ""},
	} {
		s := newSite(Protection{ReadsNeedToken: true})
		cookie := s.login(t, "token-of-otto")
		tc.change(s)
		w := s.ask("POST", "/api/commands", commandOf(event.Shelve), cookie...)
		if w.Code != tc.code {
			t.Errorf("%s: %d %s, want %d", why, w.Code, w.Body, tc.code)
		}
		w = s.ask("GET", "/api/machines", "", cookie...)
		if want := "asked by " + tc.name + "\n"; (w.Body.String() == want) != (tc.name != "") || tc.name == "" && w.Code != tc.code {
			t.Errorf("%s: %d %s, want %q", why, w.Code, w.Body, want)
		}
		if strings.Contains(w.Body.String(), "people.yaml") {
			t.Errorf("%s: the answer says what only the log may: %s", why, w.Body)
		}
	}
	// A person who is back begins again.
	s := newSite(Protection{})
	cookie, otto := s.login(t, "token-of-otto"), s.people["token-of-otto"]
	s.set("token-of-otto", Person{})
	s.ask("GET", "/", "", cookie...)
	s.set("token-of-otto", otto)
	if w := s.ask("GET", "/", "", cookie...); w.Body.String() != "asked by \n" {
		t.Errorf("the session came back: %s", w.Body)
	}
}

// Another site cannot use a person's cookie, nor log the browser in or out.
func TestSessionFromAnotherSite(t *testing.T) {
	s := newSite(Protection{})
	cookie := s.login(t, "token-of-otto")
	for why, header := range map[string][]string{
		"another site":      {"Sec-Fetch-Site", "cross-site"},
		"a neighbour":       {"Sec-Fetch-Site", "same-site"},
		"an old browser":    {"Origin", "http://evil.example"},
		"another port":      {"Origin", "http://example.com:81"},
		"a page of no site": {"Origin", "null"},
	} {
		for path, body := range map[string]string{"/api/commands": commandOf(event.Shelve), "/api/login": `{"token":"token-of-emmy"}`, "/api/logout": ""} {
			before := s.count(refusedOrigin)
			w := s.ask("POST", path, body, append(slices.Clone(cookie), header...)...)
			if w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 || s.count(refusedOrigin) != before+1 {
				t.Errorf("%s: %s: %d %s", why, path, w.Code, w.Body)
			}
		}
	}
	if len(s.sent) > 0 {
		t.Errorf("sent %+v", s.sent)
	}
	if w := s.ask("POST", "/api/commands", commandOf(event.Shelve), append(cookie, "Origin", "http://example.com", "Sec-Fetch-Site", "same-origin")...); w.Code != http.StatusAccepted {
		t.Errorf("the page itself: %d %s", w.Code, w.Body)
	}
}

// Programs on one host, told apart by their ports, do not take each other's cookies. With
// TLS no other site of the domain can set the cookie.
func TestCookieName(t *testing.T) {
	for _, tc := range []struct {
		host  string
		https bool
		want  string
	}{
		{"example.com", false, "flank_session"},
		{"example.com:9102", false, "flank_session_9102"},
		{"[::1]:9103", false, "flank_session_9103"},
		{"example.com:9102;a=b", false, "flank_session"},
		{"example.com:9102", true, "__Host-flank_session_9102"},
	} {
		target := "http://x/"
		if tc.https {
			target = "https://x/"
		}
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Host = tc.host
		if got := cookieName(r); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
		if c := NewGuard(Protection{}).cookie(r, "x", 1); c.Secure != tc.https || c.Valid() != nil {
			t.Errorf("%+v: %+v", tc, c)
		}
	}
	s := newSite(Protection{})
	one := s.login(t, "token-of-otto", "Host", "example.com:9102")
	two := s.login(t, "token-of-emmy", "Host", "example.com:9103", "Cookie", one[3])
	if w := s.ask("GET", "/", "", append(one, "Cookie", two[len(two)-1])...); w.Body.String() != "asked by otto\n" {
		t.Errorf("%s", w.Body)
	}
}

// Sessions are bounded: of a token the oldest gives way, and if all places are taken, the
// oldest of all.
func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	now := time.Unix(1_800_000_000, 0)
	sum := func(i int) (sum [sha256.Size]byte) { return sha256.Sum256([]byte(fmt.Sprint(i))) }
	first := s.begin(sum(0), now)
	var second string
	for i := range 2 * sessionsOfAToken {
		now = now.Add(time.Second)
		c := s.begin(sum(1), now)
		if i == 0 {
			second = c
		}
	}
	if !s.has(keyOf(first), now) || s.has(keyOf(second), now) || len(s.all) != 1+sessionsOfAToken {
		t.Errorf("%d sessions; of another token: %v; the oldest of this one: %v", len(s.all), s.has(keyOf(first), now), s.has(keyOf(second), now))
	}
	for i := range maxSessions + sessionsOfAToken {
		now = now.Add(time.Second)
		s.begin(sum(2+i), now)
	}
	if len(s.all) != maxSessions || s.has(keyOf(first), now) {
		t.Errorf("%d sessions", len(s.all))
	}
	now = now.Add(sessionLife)
	if s.begin(sum(0), now); len(s.all) != 1 {
		t.Errorf("%d sessions, and all but one are over", len(s.all))
	}
}

// A login takes a token in JSON and nothing else.
func TestLoginBody(t *testing.T) {
	s := newSite(Protection{})
	for body, code := range map[string]int{
		`{"token":"token-of-otto"}`:           200,
		`{"token":"token-of-ott"}`:            401,
		`{"token":""}`:                        401,
		`{}`:                                  401,
		`{"token":"token-of-otto","name":""}`: 400,
		`{"token":5}`:                         400,
		`{"token":"` + strings.Repeat("x", maxOrder) + `"}`: 400,
		`{"token":"token-of-otto"}{}`:                       400,
	} {
		w := s.ask("POST", "/api/login", body)
		if w.Code != code || (len(w.Result().Cookies()) == 1) != (code == 200) {
			t.Errorf("%.40s: %d %s, want %d", body, w.Code, w.Body, code)
		}
	}
	if w := s.ask("POST", "/api/login", "token=x", "Content-Type", "application/x-www-form-urlencoded"); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", w.Code)
	}
	s.Find = nil
	if w := s.ask("POST", "/api/login", `{"token":"token-of-otto"}`); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "page.people") {
		t.Errorf("no one can log in: %d %s", w.Code, w.Body)
	}
	var m me
	if err := json.Unmarshal(s.ask("GET", "/api/me", "").Body.Bytes(), &m); err != nil || m.Login {
		t.Errorf("%+v, %v", m, err)
	}
}

// People read the notice before they log in, also where the page shows nothing else.
func TestNotice(t *testing.T) {
	s := newSite(Protection{ReadsNeedToken: true})
	for _, notice := range []string{"", "Only for Acme.\n<b>Logins</b> are recorded."} {
		s.Notice = notice
		w := s.ask("GET", "/api/me", "")
		var m me
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != http.StatusOK || m.Role != "" || m.Notice != notice || strings.Contains(w.Body.String(), `"notice"`) != (notice != "") {
			t.Errorf("%q: %d %s, %v", notice, w.Code, w.Body, err)
		}
	}
}
