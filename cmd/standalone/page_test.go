package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/testkit/webtest"
	"github.com/flank-tcm/flank/internal/web/summary"
)

// A page may ask for the facts of the model while it is being trained.
func TestFactsWhileTraining(t *testing.T) {
	t.Parallel()
	p, m, done := new(plant), machinetest.OneValue(t), make(chan struct{})
	go func() {
		defer close(done)
		for p.facts("", "").Layout == nil {
			runtime.Gosched()
		}
	}()
	p.use(m)
	<-done
	if f := p.facts("", ""); f.Layout != m.Layout || f.Threshold == 0 {
		t.Errorf("%+v", f)
	}
}

// The token of the first start lets people in, also after the next start. Where it would
// travel for everyone to read there is none.
func TestOwnToken(t *testing.T) {
	dir := t.TempDir()
	start := func(f flags) (string, func(token string) bool) {
		t.Helper()
		f.DataDir = dir
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
	if login, knows = start(flags{Page: "localhost:0"}); strings.Contains(login, token) || !strings.Contains(login, file) || !knows(token) {
		t.Errorf("again: %q", login)
	}
	if err := os.WriteFile(file, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, knows = start(flags{Page: "127.0.0.1:0"}); knows(token) || !knows("0123456789abcdef") {
		t.Errorf("a token of one's own: %q", login)
	}
	if _, g, _, err := (&plant{flags: flags{Page: "off", DataDir: dir}}).guard(); g != nil || err != nil {
		t.Errorf("no page: %v, %v", g, err)
	}
}

// After a restart the page has the past as soon as it is served: before a model is loaded, before
// the broker answers, and before a window is judged.
func TestPageRemembersAtOnce(t *testing.T) {
	dir := t.TempDir()
	store, _, err := summary.Open(filepath.Join(dir, "history"), monitor.DefaultGroup)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	for seq := range uint64(90) {
		end := now.Add(time.Duration(seq)*time.Second - 2*time.Minute)
		r := event.Result{
			Machine: "drill", Epoch: "00000000000000aa", Seq: seq, Tool: "T1", Hole: fmt.Sprint("H", seq/10), Start: end.Add(-time.Second), End: end,
			Verdict: event.Healthy, Posterior: []float64{0.9, 0.1}, Score: 0.1, Alarm: "raised", Incident: "A-K3ZQ7M2P",
		}
		if err := store.Fold(summary.Position{Topic: "results"}, int64(seq)+1, []summary.Message{{At: end, Offset: int64(seq), Result: &r}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	p := &plant{flags: flags{DataDir: dir, Page: "127.0.0.1:0"}, stderr: io.Discard, bus: bus.Config{Brokers: []string{"127.0.0.1:1"}}}
	defer p.close()
	if err := p.servePage(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/api/machines":                         `"name":"drill","layout":"gun-drill","tool":"T1","hole":"H8","alarm":"raised","incident":"A-K3ZQ7M2P"`,
		"/api/machines/drill":                   `"strip":"` + strings.Repeat("h", 60) + `"`,
		"/api/machines/drill/history":           `"holes":9`,
		"/api/machines/drill/history?step=hole": `"windows":[10,10,10,10,10,10,10,10,10]`,
	} {
		if _, text := webtest.Get(t, strings.TrimSuffix(p.pageURL, "/")+path); !strings.Contains(text, want) {
			t.Errorf("%s: %s; want %s in it", path, text, want)
		}
	}
}
