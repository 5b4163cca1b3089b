package web

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// Under which names the page answers.
func TestHosts(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(Protection{Listen: "flank.local:9102", Hosts: []string{"Usk25.example", "[fd00::1]"}})
	for host, good := range map[string]bool{
		"localhost": true, "localhost:9102": true, "LOCALHOST:1": true, "localhost.": true,
		"127.0.0.1:9102": true, "[::1]:9102": true, "[::1]": true, "10.1.2.3": true, "[fd00::1]:1": true,
		"flank.local:9102": true, "flank.local": true, "usk25.example": true, "usk25.EXAMPLE:443": true, name: true, name + ":9102": true,
		"evil.example": false, "evil.example:9102": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "xlocalhost": false,
		"usk25.example.evil": false, "": false, "\x1b[2J": false, "a b": false, "10.1.2": false, "0x7f.1": false,
	} {
		w := s.ask("GET", "/", "", "Host", host)
		if (w.Code == http.StatusOK) != good || !good && (w.Code != http.StatusMisdirectedRequest || !strings.Contains(w.Body.String(), "page.hosts") || strings.Contains(w.Body.String(), "\x1b")) {
			t.Errorf("%q: %d %s", host, w.Code, w.Body)
		}
		if w := s.ask("POST", "/api/login", `{"token":"token-of-otto"}`, "Host", host); (w.Code == http.StatusOK) != good {
			t.Errorf("login at %q: %d", host, w.Code)
		}
		// Programs that watch come under every name.
		if w := s.ask("GET", "/metrics", "", "Host", host); w.Code != http.StatusOK {
			t.Errorf("metrics at %q: %d", host, w.Code)
		}
	}
	for _, r := range s.log {
		if r.Reason != "host" || !strings.HasPrefix(r.Detail, "Host ") || strings.ContainsRune(r.Detail, 0x1b) || r.Address != "192.0.2.1" {
			t.Errorf("%+v", r)
		}
	}
	if len(s.log) == 0 || s.count(refusedHost) == 0 {
		t.Error("nothing was logged or counted")
	}
}

// What is open to everyone, and what needs a login.
func TestReads(t *testing.T) {
	always := []string{"/", "/static/app.js", "/livez", "/readyz", "/metrics", "/api/me"}
	for _, path := range append(always, "/api/machines", "/api/state", "/api/events", "/evidence/x", "/api/evidence/", "/static/../api/machines", "/static", "/x") {
		for _, needs := range []bool{false, true} {
			s := newSite(Protection{ReadsNeedToken: needs})
			open := !needs
			for _, a := range always {
				open = open || a == path
			}
			for _, method := range []string{"GET", "HEAD"} {
				w := s.ask(method, path, "")
				if (w.Code == http.StatusUnauthorized) == open {
					t.Errorf("%s %s: %d, reads need a token: %v", method, path, w.Code, needs)
				}
			}
			for _, header := range [][]string{s.login(t, "token-of-vera"), {"Authorization", "Bearer token-of-vera"}} {
				if w := s.ask("GET", path, "", header...); w.Code == http.StatusUnauthorized {
					t.Errorf("vera: %s: %d", path, w.Code)
				}
			}
			// A wrong token is refused, and not passed over: who sends it learns of it.
			if w := s.ask("GET", path, "", "Authorization", "Bearer wrong"); w.Code != http.StatusUnauthorized && path != "/livez" && path != "/readyz" && path != "/metrics" {
				t.Errorf("a wrong token: %s: %d", path, w.Code)
			}
		}
	}
	s := newSite(Protection{ReadsNeedToken: true})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT"} {
		if w := s.ask(method, "/api/machines", ""); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if s.count(refusedLogin) != 6 || len(s.log) > 0 {
		t.Errorf("counted %d, logged %+v", s.count(refusedLogin), s.log)
	}
}

// Wrong tokens of an address are slowed down, by login and by header; another address and
// sessions go on, and the address comes back by waiting.
func TestBruteForce(t *testing.T) {
	s := newSite(Protection{ReadsNeedToken: true})
	const attacker, neighbour = "203.0.113.9:4444", "203.0.113.10:4444"
	cookie := s.login(t, "token-of-vera", "Address", attacker)
	try := func(n int, address string) int {
		if n%2 == 0 {
			return s.ask("POST", "/api/login", fmt.Sprintf(`{"token":"guess %d"}`, n), "Address", address).Code
		}
		return s.ask("GET", "/api/machines", "", "Address", address, "Authorization", fmt.Sprintf("Bearer guess %d", n)).Code
	}
	looked := 0
	for n := range 10_000 { // a hundred a second
		s.at = s.at.Add(10 * time.Millisecond)
		switch code := try(n, attacker); code {
		case http.StatusUnauthorized:
			looked++
		case http.StatusTooManyRequests:
		default:
			t.Fatal(code)
		}
	}
	if looked < 10 || looked > 5+4+100/8+1 {
		t.Errorf("%d of 10,000 tokens in 100 s were looked at", looked)
	}
	w := s.ask("POST", "/api/login", `{"token":"token-of-otto"}`, "Address", attacker)
	if wait := w.Header().Get("Retry-After"); w.Code != http.StatusTooManyRequests || wait < "1" || wait > "8" || len(wait) != 1 {
		t.Errorf("%d, Retry-After %q", w.Code, wait)
	}
	if w := s.ask("GET", "/api/machines", "", cookie...); w.Code != http.StatusOK {
		t.Errorf("a session of the same address: %d", w.Code)
	}
	if code := try(0, neighbour); code != http.StatusUnauthorized {
		t.Errorf("another address: %d", code)
	}
	s.login(t, "token-of-otto", "Address", neighbour)
	s.at = s.at.Add(maxWait)
	s.login(t, "token-of-otto", "Address", attacker)
	if s.count(refusedToken) != uint64(looked)+1 || s.count(refusedSlowed) != 10_000-uint64(looked)+1 {
		t.Errorf("%d tokens and %d slowed were counted of %d looked at", s.count(refusedToken), s.count(refusedSlowed), looked)
	}
	for _, r := range s.log {
		if r.Reason != "token" || strings.Contains(fmt.Sprint(r), "guess") {
			t.Errorf("%+v", r)
		}
	}
	if len(s.log) < 10 {
		t.Errorf("%d lines", len(s.log))
	}
	s.at = s.at.Add(forgetFailures + time.Second)
	for n := range freeFailures {
		if code := try(n, attacker); code != http.StatusUnauthorized {
			t.Errorf("after a long time: %d", code)
		}
	}
}

// The table of addresses with wrong tokens is bounded, and the newest stay.
func TestFailingIsBounded(t *testing.T) {
	l := newLimits()
	now := time.Unix(1_800_000_000, 0)
	for i := range 3 * maxFailing {
		now = now.Add(time.Millisecond)
		l.fail(fmt.Sprint(i), now)
		if len(l.failing) > maxFailing {
			t.Fatal(len(l.failing))
		}
	}
	if _, ok := l.failing[fmt.Sprint(3*maxFailing-1)]; !ok {
		t.Error("the last address is not there")
	}
	now = now.Add(forgetFailures + time.Second)
	if l.fail("last", now); len(l.failing) != 1 {
		t.Errorf("%d addresses, and all but one are to be forgotten", len(l.failing))
	}
}

// The log gets some lines at once, then one every few seconds with the number of what it
// did not get.
func TestLinesAreBounded(t *testing.T) {
	s := newSite(Protection{})
	var lines, unlogged uint64
	for i := range 1000 {
		s.at = s.at.Add(100 * time.Millisecond)
		s.ask("GET", "/", "", "Host", "evil.example", "Address", fmt.Sprintf("198.51.100.%d:1", i%256))
	}
	for _, r := range s.log {
		lines++
		unlogged += r.Unlogged
	}
	if lines < 30 || lines > 20+100/secondsALine+1 || lines+unlogged > 1000 || lines+unlogged < 900 || s.count(refusedHost) != 1000 {
		t.Errorf("%d lines, %d others, %d counted", lines, unlogged, s.count(refusedHost))
	}
}

// Every reason has a word and begins at 0.
func TestRefusals(t *testing.T) {
	s := newSite(Protection{})
	all := maps.Collect(s.Refusals())
	for r := range reasons {
		if n, ok := all[r.String()]; !ok || n != 0 {
			t.Errorf("%s: %d, %v", r, n, ok)
		}
	}
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for word := range all {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("docs/reference/metrics.md lacks the reason %s", word)
		}
	}
	if len(all) != int(reasons) {
		t.Errorf("%v", all)
	}
}

// A damaged file of tokens lets no one in, but shows the page to everyone who may see it
// without a login.
func TestUnreadable(t *testing.T) {
	s := newSite(Protection{})
	cookie := s.login(t, "token-of-otto")
	s.broken = true
	if w := s.ask("GET", "/", "", "Authorization", "Bearer token-of-otto"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.ask("POST", "/api/commands", commandOf("shelve"), cookie...); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, header := range [][]string{cookie, nil} {
		if w := s.ask("GET", "/api/machines", "", header...); w.Code != http.StatusOK || w.Body.String() != "asked by \n" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if len(s.log) == 0 || s.log[0].Reason != "unreadable" || !strings.Contains(s.log[0].Detail, "people.yaml:3") {
		t.Errorf("%+v", s.log)
	}
}

func TestAddressOf(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:80": "192.0.2.7", "[::ffff:192.0.2.7]:80": "192.0.2.7", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[2001:db8:1:2::1]:9": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80": "fe80::/64", "@": "unknown", "": "unknown",
	} {
		if got := addressOf(remote); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}
