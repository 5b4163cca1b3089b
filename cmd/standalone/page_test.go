package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/credential"
)

// The token of the first start lets people in, also after the next start. Where it would
// travel for everyone to read there is none.
func TestOwnToken(t *testing.T) {
	dir := t.TempDir()
	start := func(f flags) (string, func(token string) bool) {
		t.Helper()
		f.DataDir, f.PageAccess.Read = dir, "open"
		_, g, login, err := (&plant{flags: f}).guard()
		if err != nil {
			t.Fatal(err)
		}
		return login, func(token string) bool {
			if g.Find == nil {
				return false
			}
			p, ok, err := g.Find(sha256.Sum256([]byte(token)))
			return ok && err == nil && p.Role == credential.Operator
		}
	}
	login, knows := start(flags{Page: "0.0.0.0:0"})
	if !strings.Contains(login, "it only shows") || knows("") {
		t.Errorf("%q", login)
	}
	file := filepath.Join(dir, tokenFile)
	if _, err := os.Stat(file); err == nil {
		t.Error("a token that no one may use was made")
	}
	login, knows = start(flags{Page: "127.0.0.1:0"})
	_, token, _ := strings.Cut(login, "token to answer alarms: ")
	token, _, _ = strings.Cut(token, " ")
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 || len(token) < 26 || !knows(token) || knows(token+"x") {
		t.Fatalf("%q, %v, %v", login, info, err)
	}
	for _, f := range []flags{{Page: "localhost:0"}, {Page: "0.0.0.0:0", PageAccess: pageAccess{Insecure: true}}} {
		if login, knows = start(f); strings.Contains(login, token) || !strings.Contains(login, file) || !knows(token) {
			t.Errorf("again: %q", login)
		}
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	if login, knows = start(flags{Page: "127.0.0.1:0", PageToken: pageToken{File: other}}); login != "" || knows(token) || !knows("0123456789abcdef") {
		t.Errorf("a token of one's own: %q", login)
	}
	if _, g, _, err := (&plant{flags: flags{Page: "off", DataDir: dir}}).guard(); g != nil || err != nil {
		t.Errorf("no page: %v, %v", g, err)
	}
}
