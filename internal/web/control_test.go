package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
)

const secret = "correct-horse-battery"

// What it takes to send a command from a page, and what does not do.
func TestControl(t *testing.T) {
	const good = `{"machine":"acme/usk25","action":"shelve","by":"kim","note":"test piece","minutes":30}`
	for name, tc := range map[string]struct {
		body   string
		header []string
		code   int
		says   string
	}{
		"shelve":                       {good, nil, 202, `{"id":"`},
		"acknowledge":                  {`{"machine":"m","action":"acknowledge","incident":"A-K3ZQ7M2P","by":"kim"}`, nil, 202, `{"id":"`},
		"an alarm was false":           {`{"machine":"m","action":"mark_false","incident":"A-K3ZQ7M2P","by":"kim"}`, nil, 202, `{"id":"`},
		"no incident":                  {`{"machine":"m","action":"unmark_false","by":"kim"}`, nil, 400, "name the alarm"},
		"from the page itself":         {good, []string{"Origin", "http://example.com", "Sec-Fetch-Site", "same-origin"}, 202, `{"id":"`},
		"no token":                     {good, []string{"Authorization", ""}, 401, "log in"},
		"another scheme":               {good, []string{"Authorization", "Basic a2ltOmtpbQ=="}, 401, "log in"},
		"another token":                {good, []string{"Authorization", "Bearer correct-horse-batterz"}, 401, "not the token"},
		"half of it":                   {good, []string{"Authorization", "Bearer correct"}, 401, "not the token"},
		"a cookie":                     {good, []string{"Authorization", "", "Cookie", "token=" + secret}, 401, "log in"},
		"a session that is not there":  {good, []string{"Authorization", "", "Cookie", "flank_session=" + secret}, 401, "log in"},
		"the tool is new":              {`{"machine":"m","action":"new_tool","tool":"T1","by":"kim"}`, nil, 202, `{"id":"`},
		"the alarm of a tool":          {strings.Replace(good, `"machine"`, `"tool":"T1","machine"`, 1), nil, 400, "tool: goes with"},
		"from another site":            {good, []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		"from a neighbour":             {good, []string{"Sec-Fetch-Site", "same-site"}, 403, ""},
		"from an old browser's form":   {good, []string{"Origin", "http://evil.example"}, 403, ""},
		"a form":                       {"a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "application/json"},
		"no type":                      {good, []string{"Content-Type", ""}, 415, "application/json"},
		"half a command":               {`{"machine":`, nil, 400, "cannot be read"},
		"two commands":                 {good + good, nil, 400, "something follows"},
		"unknown property":             {`{"colour":"red"}`, nil, 400, "colour"},
		"a book":                       {`{"note":"` + strings.Repeat("x", maxOrder) + `"}`, nil, 400, "too large"},
		"no name":                      {strings.Replace(good, "kim", "", 1), nil, 400, "say who it is"},
		"without a reason":             {strings.Replace(good, "test piece", "", 1), nil, 400, "reason"},
		"for no time":                  {strings.Replace(good, "30", "0", 1), nil, 400, "minutes"},
		"for ever":                     {strings.Replace(good, "30", "1e300", 1), nil, 400, "minutes"},
		"what an engineer may do":      {strings.Replace(good, "shelve", "suppress", 1), nil, 403, "the role operator may not ask for suppress"},
		"what no page may do":          {strings.Replace(good, "shelve", "retire", 1), nil, 400, "a page cannot ask for it"},
		"another name for this page":   {good, []string{"Host", "evil.example"}, 421, "page.hosts"},
		"what a page cannot know":      {strings.Replace(good, "shelve", "acknowledge", 1), nil, 400, "name the alarm"},
		"the broker is away":           {strings.Replace(good, "acme/usk25", "away", 1), nil, 502, "no broker"},
		"the token cannot be read now": {good, []string{"X-Test", "unreadable"}, 503, "cannot be read"},
	} {
		var sent []event.Command
		h := NewHub(Config{Layout: twoChannels(), Control: &Control{
			Send: func(_ context.Context, c event.Command) error {
				if c.Machine == "away" {
					return errors.New("no broker answers")
				}
				sent = append(sent, c)
				return nil
			},
		}})
		g := NewGuard(Protection{Hosts: []string{"example.com"}, Find: func(sum [sha256.Size]byte) (Person, bool, error) {
			if strings.Contains(strings.Join(tc.header, " "), "unreadable") {
				return Person{}, false, errors.New("open token: permission denied")
			}
			return Person{Role: credential.Operator}, sum == sha256.Sum256([]byte(secret)), nil
		}})
		r := httptest.NewRequest(http.MethodPost, "/api/commands", strings.NewReader(tc.body))
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(tc.header); i += 2 {
			if tc.header[i] == "Host" {
				r.Host = tc.header[i+1]
			}
			r.Header.Set(tc.header[i], tc.header[i+1])
		}
		w := httptest.NewRecorder()
		g.Handler(h.Handler()).ServeHTTP(w, r)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s: %d %q, want %d %q", name, w.Code, w.Body, tc.code, tc.says)
		}
		if (len(sent) == 1) != (tc.code == http.StatusAccepted) {
			t.Errorf("%s: sent %+v", name, sent)
		}
		if w.Header().Get("Content-Security-Policy") != policy || strings.Contains(w.Body.String(), "permission denied") || strings.Contains(w.Body.String(), secret) {
			t.Errorf("%s: %v, %s", name, w.Header(), w.Body)
		}
		if len(sent) == 1 && (sent[0].By != "kim" || !strings.Contains(w.Body.String(), sent[0].ID) || time.Since(sent[0].Issued) > time.Hour ||
			sent[0].Action == event.Shelve && sent[0].Until.Sub(sent[0].Issued) != 30*time.Minute) {
			t.Errorf("%s: %+v", name, sent[0])
		}
	}
}

// Without a token nothing can be changed, and the page does not offer it.
func TestNoControl(t *testing.T) {
	h := newTestHub()
	r := httptest.NewRequest(http.MethodPost, "/api/commands", strings.NewReader("{}"))
	w := httptest.NewRecorder()
	h.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if s := h.server.head(httptest.NewRequest(http.MethodGet, "/", nil)); s.Commands {
		t.Error("the page offers commands")
	}
	c := NewHub(Config{Layout: twoChannels(), Control: &Control{}})
	if s := c.server.head(httptest.NewRequest(http.MethodGet, "/", nil)); !s.Commands {
		t.Error("the page offers no commands")
	}
}
