//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/signal"
)

// guarded serves the page of a hub to people, and returns its address.
func guarded(t *testing.T, hub *web.Hub, p web.Protection) (address string) {
	t.Helper()
	guard := web.NewGuard(p)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := guard.Server(guard.Handler(hub.Handler()))
	go func() { _ = server.Serve(guard.Listener(l)) }()
	t.Cleanup(func() { server.Close() })
	return "http://" + l.Addr().String()
}

// giveToken gives the page a token when it asks by itself.
func (b *browser) giveToken(token string) {
	b.t.Helper()
	b.until(`document.querySelector('dialog[open] input[name=token]')`)
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector('dialog[open] input[name=token]').value = %q", token)))
	b.press("dialog[open] [type=submit]")
}

// A page that shows itself only to people of a file, in a browser: a wrong token shows
// nothing, the right one everything, also after a reload, and a person who is removed is out.
// A viewer cannot send commands, also not by hand.
func TestPageOfPeople(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	tokens := map[string]string{}
	for name, role := range map[string]credential.Role{"kim": credential.Operator, "vera": credential.Viewer} {
		token, err := credential.AddPerson(file, credential.Person{Name: name, Role: role})
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = token
	}
	people, err := credential.OpenPeople(file)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan event.Command, 10)
	hub := web.NewHub(web.Config{Layout: signal.GunDrill(), Control: &web.Control{Send: func(_ context.Context, c event.Command) error { sent <- c; return nil }}})
	hub.Status(web.Status{Phase: web.Monitoring, Fraction: -1})
	hub.Result(event.Result{
		ID: event.WindowID(machine, "00000000000000a1", 1), Machine: machine, Tool: "T1", Epoch: "00000000000000a1", Seq: 1, Start: time.Now(), End: time.Now(),
		Verdict: event.Healthy, Posterior: []float64{0.9, 0.1}, Score: 0.1, Model: "m", Alarm: "normal",
	})
	b := openBrowser(t, guarded(t, hub, web.Protection{Find: people.Find, ReadsNeedToken: true, Notice: "Only for employees of Acme.\n<b>The program</b> records logins and commands."}))
	const shown = `document.querySelector('main').textContent.includes('lathe') && !document.querySelector('dialog[open]')`
	b.giveToken("correct-horse-battery")
	b.until(`document.querySelector('dialog[open] .error').textContent.includes('not the token')`)
	if js[bool](b, `document.body.textContent.includes('lathe')`) {
		t.Error("the page shows a machine to someone who has not logged in")
	}
	if text := js[string](b, `document.querySelector('dialog[open] .notice').innerText`); text != "Only for employees of Acme.\n<b>The program</b> records logins and commands." {
		t.Errorf("the notice before a login: %q", text)
	}
	b.fits("login")
	b.giveToken(tokens["kim"])
	b.until(shown)
	b.until(`document.querySelector('.who').textContent.includes('kim')`)
	b.do(chromedp.Reload())
	b.until(shown)
	command := func() int {
		return js[int](b, fmt.Sprintf(`fetch("/api/commands", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({machine: %q, action: "unshelve", by: "vera"})}).then((r) => r.status)`, machine))
	}
	if code := command(); code != http.StatusAccepted {
		t.Errorf("kim: %d", code)
	}
	if c := <-sent; c.By != "kim" {
		t.Errorf("the command is by %s", c.By)
	}
	if cookie := js[string](b, "document.cookie"); cookie != "" {
		t.Errorf("scripts see the cookie %s", cookie)
	}
	if err := credential.RemovePerson(file, "kim"); err != nil {
		t.Fatal(err)
	}
	b.giveToken(tokens["vera"]) // the page asks by itself
	b.until(shown)
	b.until(`document.querySelector('.who').textContent.includes('vera')`)
	if code := command(); code != http.StatusForbidden {
		t.Errorf("vera: %d", code)
	}
	b.press(".who button")
	b.until(`document.querySelector('dialog[open] input[name=token]')`)
	b.quiet("401", "403", "/api/events", "/api/login", "PerformanceIssue") // the last: the test reads document.cookie
	if len(sent) > 0 {
		t.Errorf("sent %+v", <-sent)
	}
}
