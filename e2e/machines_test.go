//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
	past "github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/signal"
)

// shop is a plant of several machines of two layouts behind a page. Their windows come
// interleaved. It answers the page's commands as a monitor does.
type shop struct {
	hub     *web.Hub
	rng     *rand.Rand
	address string // where its page is served
	handler http.Handler
	server  *http.Server

	mu       sync.Mutex
	machines []*shopMachine
	commands []event.Command
	paused   bool // no windows come
}

type shopMachine struct {
	name, incident, alarm string
	layout                *signal.Layout
	seq                   uint64
	magazine              bool                // the tool of the alarm is there
	shape                 func(*event.Result) // changes what the monitor says of a window; may be nil
}

// Tokens of people in the shop.
const (
	operatorToken = "correct-horse-battery"
	viewerToken   = "staple-viewer-battery"
	engineerToken = "battery-engineer-horse"
)

func newShop(t *testing.T, machines int, change ...func(*web.Config, *web.Protection)) *shop {
	t.Helper()
	s := &shop{rng: rand.New(rand.NewPCG(9, uint64(machines)))}
	people := map[[sha256.Size]byte]web.Person{
		sha256.Sum256([]byte(operatorToken)): {Name: "kim", Role: credential.Operator},
		sha256.Sum256([]byte(viewerToken)):   {Name: "eve", Role: credential.Viewer},
		sha256.Sum256([]byte(engineerToken)): {Name: "ada", Role: credential.Engineer},
	}
	config := web.Config{
		Title: "Shop", Layout: signal.GunDrill(), Control: &web.Control{Send: s.send},
		Facts: func(string, string) web.Facts { return web.Facts{LimitUM: 300, Threshold: 0.5} },
	}
	protection := web.Protection{Find: func(sum [sha256.Size]byte) (web.Person, bool, error) { p, ok := people[sum]; return p, ok, nil }}
	for _, f := range change {
		f(&config, &protection)
	}
	s.hub = web.NewHub(config)
	s.handler = web.NewGuard(protection).Handler(s.hub.Handler())
	s.hub.Status(web.Status{Phase: web.Monitoring, Fraction: -1, WindowsPerSecond: float64(machines)})
	layouts := []*signal.Layout{signal.GunDrill(), layoutOf(t, "lathe", "force-x", "force-y", "spindle")}
	for i := range machines {
		s.machines = append(s.machines, &shopMachine{
			name: fmt.Sprintf("acme/spore/bay%d/line%d/usk%02d", 1+i/6%4, 1+i%2, 20+i/2), alarm: "normal", layout: layouts[i%2],
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.address = freeAddr(t)
	s.open(t)
	t.Cleanup(func() { cancel(); s.shut() })
	for i := range s.machines {
		s.window(i)
	}
	go s.run(ctx)
	return s
}

func (s *shop) url() string { return "http://" + s.address + "/" }

// open serves the page, shut ends that and every connection.
func (s *shop) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.server = &http.Server{Handler: s.handler}
	go func() { _ = s.server.Serve(l) }()
}

func (s *shop) shut() { _ = s.server.Close() }

// run sends a window of one machine after the other until ctx ends.
func (s *shop) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		order := s.rng.Perm(len(s.machines))
		s.mu.Unlock()
		for _, i := range order {
			s.window(i)
			time.Sleep(100 * time.Millisecond / time.Duration(len(s.machines)))
		}
		time.Sleep(time.Millisecond) // a shop may be empty
	}
}

// window judges a window of a machine, half an hour's work in: wear grows from machine to machine.
func (s *shop) window(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[i]
	if s.paused {
		return
	}
	m.seq++
	start := time.Now().Add(-time.Second)
	w := web.Window{Machine: m.name, Layout: m.layout, Tool: fmt.Sprintf("T%02d", i), Hole: fmt.Sprintf("H%d", m.seq/5), Epoch: "00000000000000a1", Seq: m.seq, Start: start}
	samples := make([][]float32, len(m.layout.Channels()))
	for c := range samples {
		samples[c] = make([]float32, 200)
		for j := range samples[c] {
			samples[c][j] = float32((1 + float64(i)/9) * s.rng.NormFloat64())
		}
	}
	w.Samples, w.Quality = samples, make([]signal.Quality, len(samples))
	s.hub.Window(w)
	verdict, score := event.Healthy, 0.1+0.02*float64(i%20)+0.02*math.Sin(float64(m.seq))
	if m.alarm != "normal" {
		verdict, score = event.Faulty, 0.9
	}
	wear, low, high, left := 60+float64(i*29%200), 40+float64(i*29%200), 95+float64(i*29%200), 12+float64(i%7)
	r := event.Result{
		ID: event.WindowID(m.name, w.Epoch, m.seq), Machine: m.name, Tool: w.Tool, Hole: w.Hole, Epoch: w.Epoch, Seq: m.seq, Start: start, End: start.Add(time.Second),
		Verdict: verdict, Posterior: []float64{1 - score, score}, Score: score, Model: "m", Alarm: m.alarm, Incident: m.incident,
		Wear: &event.Wear{WearUM: wear, WearLowUM: low, WearHighUM: high, HolesLeft: &left, HolesLeftLow: ref(8), HolesLeftHigh: ref(20)},
	}
	if m.shape != nil {
		m.shape(&r)
	}
	s.hub.Result(r)
}

func ref(v float64) *float64 { return &v }

// be makes the monitor say something else of a machine's windows from now on.
func (s *shop) be(i int, shape func(*event.Result)) {
	s.mu.Lock()
	s.machines[i].shape = shape
	s.mu.Unlock()
	s.window(i)
}

// alert says that a machine's alarm changed. s.mu must be held.
func (s *shop) alert(m *shopMachine, state event.AlertState, severity, command, by, text string) {
	s.hub.Alert(event.Alert{
		ID: fmt.Sprintf("%s/%d/%s/%s", m.name, m.seq, state, command), Machine: m.name, Tool: "T1", Magazine: m.magazine, State: state, Alarm: m.alarm, Incident: m.incident, By: by,
		Severity: severity, Since: time.Now(), At: time.Now(), Epoch: "00000000000000a1", Seq: m.seq, Faulty: 5, Of: 8, K: 5, N: 8, Command: command, Text: text,
	})
}

// raise ends the alarm of a machine, if there is one, and raises another.
func (s *shop) raise(i int) (machine, incident string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[i]
	if m.incident != "" {
		m.alarm = "normal"
		s.alert(m, event.Cleared, "info", "", "", m.incident+" is over")
	}
	var b [5]byte
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	m.seq++
	m.alarm, m.incident = "raised", "A-"+base32.StdEncoding.EncodeToString(b[:])
	s.alert(m, event.Raised, "warning", "", "", m.name+" FAULTY")
	return m.name, m.incident
}

// change puts another tool in. The alarm stays open and waits in the magazine.
func (s *shop) change(i int) {
	s.mu.Lock()
	m := s.machines[i]
	m.seq++
	s.hub.Alert(event.Alert{
		ID: fmt.Sprintf("%s/%d/change", m.name, m.seq), Machine: m.name, Tool: "T1", State: event.Cleared, Reason: "tool_change", Alarm: "normal", Incident: m.incident,
		Severity: "info", Since: time.Now(), At: time.Now(), Epoch: "00000000000000a1", Seq: m.seq, Of: 8,
	})
	m.magazine = true
	s.mu.Unlock()
	s.be(i, func(r *event.Result) { r.Tool, r.Alarm, r.Incident, r.Verdict = "T99", "normal", "", event.Healthy })
}

// end ends the alarm of a machine.
func (s *shop) end(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[i]
	m.seq++
	m.alarm = "normal"
	s.alert(m, event.Cleared, "info", "", "", m.incident+" is over")
	m.incident = ""
}

func (s *shop) send(_ context.Context, c event.Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, c)
	m := s.machines[slices.IndexFunc(s.machines, func(m *shopMachine) bool { return m.name == c.Machine })]
	if c.Incident != m.incident {
		s.alert(m, "refused", "info", c.ID, c.By, fmt.Sprintf("refused: alarm %s does not stand any more", c.Incident))
		return nil
	}
	did, ok := map[event.Action]struct {
		alarm string
		state event.AlertState
	}{
		event.Acknowledge: {"acknowledged", event.Acknowledged}, event.Shelve: {"shelved", event.Shelved}, event.Unshelve: {"raised", event.Unshelved},
		event.Suppress: {"suppressed", event.Suppressed}, event.Unsuppress: {"raised", event.Unsuppressed},
		event.OutOfService: {"out_of_service", event.TakenOutOfService}, event.InService: {"raised", event.BackInService},
	}[c.Action]
	if !ok {
		s.alert(m, event.AlertState(c.Action), "info", c.ID, c.By, string(c.Action)+" by "+c.By)
		return nil
	}
	m.alarm = did.alarm
	s.alert(m, did.state, "info", c.ID, c.By, m.alarm+" by "+c.By)
	return nil
}

func (s *shop) sent() []event.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// login logs the page's person in.
func (b *browser) login(token string) {
	b.t.Helper()
	b.press(".who button")
	b.until(`document.querySelector('dialog[open] input[name=token]')`)
	b.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=token]"), token+kb.Enter))
	b.until(`!document.querySelector('dialog[open]') && document.querySelector('.who span')`)
}

type point struct{ X, Y float64 }

// middle scrolls to an element and returns the point in its middle.
func (b *browser) middle(selector string) point {
	b.t.Helper()
	return js[point](b, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({ block: "center" });
		const r = e.getBoundingClientRect();
		return { X: r.x + r.width / 2, Y: r.y + r.height / 2 };
	})()`, selector))
}

// under returns the machine of the tile at a point, and the value of the button there.
func (b *browser) under(p point) (machine, action string) {
	b.t.Helper()
	both := js[[]string](b, fmt.Sprintf(`(() => {
		const e = document.elementFromPoint(%f, %f);
		return [e?.closest(".tile")?.dataset.machine ?? "", e?.closest("button")?.value ?? ""];
	})()`, p.X, p.Y))
	return both[0], both[1]
}

// The windows of nine machines of two layouts come interleaved, and alarms of other machines come
// while a person moves the mouse. The machine under the mouse is the machine that is commanded,
// always: no tile moves while the mouse is on the list, and a dialog and its command belong to
// the machine and the alarm that the button was drawn with.
func TestPageOfNineMachines(t *testing.T) {
	s := newShop(t, 9)
	b := openBrowser(t, s.url())
	b.until(`document.querySelectorAll('.tile').length === 9`)
	b.login(operatorToken)
	js[bool](b, "window.loadedOnce = true")
	away := point{3, 3}

	rng := rand.New(rand.NewPCG(25, 9))
	at := rng.IntN(9)
	machine, incident := s.raise(at)
	drawn := func(machine, incident string) string {
		return fmt.Sprintf("document.querySelector(`.tile[data-machine='%s'] [data-incident='%s']`)", machine, incident)
	}
	for click := range 25 {
		action := []event.Action{event.Acknowledge, event.Shelve}[rng.IntN(2)]
		button := fmt.Sprintf(".tile[data-machine='%s'] [value=%s][data-incident='%s']", machine, action, incident)
		b.until(fmt.Sprintf("document.querySelector(%q) && !document.querySelector('.held')", button))

		// The mouse goes to the button. Then other alarms come, sometimes of the same machine.
		p := b.middle(button)
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, p.X, p.Y))
		b.until(`document.querySelector('.held')`)
		p = b.middle(button) // the list may have been sorted just before the mouse came
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, p.X, p.Y))
		const places = `JSON.stringify([...document.querySelectorAll('.tile:not(:hover)')].map((e) => { const r = e.getBoundingClientRect(); return [e.dataset.machine, r.x, r.y, r.height]; }))`
		before := js[string](b, places)
		next := (at + 1 + rng.IntN(8)) % 9
		nextMachine, nextIncident := s.raise(next)
		if also := rng.IntN(9); also != next {
			other, raised := s.raise(also)
			if also == at {
				incident = raised
			}
			b.until(drawn(other, raised))
		}
		b.until(drawn(nextMachine, nextIncident))
		if after := js[string](b, places); after != before {
			t.Errorf("click %d: tiles moved under the mouse:\n%s\n%s", click, before, after)
		}
		if of, what := b.under(p); of != machine || what != string(action) {
			t.Errorf("click %d: under the mouse is %s of %s, was %s of %s", click, what, of, action, machine)
		}
		count := len(s.sent())
		b.do(chromedp.MouseClickXY(p.X, p.Y))
		b.until(`document.querySelector('#ask')?.open`)
		about := js[string](b, `[...document.querySelectorAll('#ask dd')].map((e) => e.textContent).join(' | ')`)
		if want := machine + " | " + incident + " | kim · operator"; strings.ReplaceAll(about, " / ", "/") != want {
			t.Errorf("click %d: the dialog says %q, want %q", click, about, want)
		}
		b.fill("note", "test piece")
		b.press("#go")
		b.until(`!document.querySelector('#ask')`)
		sent := s.sent()
		if len(sent) != count+1 || sent[count].Machine != machine || sent[count].Incident != incident || sent[count].Action != action || sent[count].By != "kim" {
			t.Errorf("click %d on %s of %s %s sent %+v", click, action, machine, incident, sent[count:])
		}
		at, machine, incident = next, nextMachine, nextIncident
		b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, away.X, away.Y))
		js[bool](b, `document.activeElement.blur(), true`)
	}

	// Away from the list the tiles are sorted again, the worst first.
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, away.X, away.Y), chromedp.Focus(chromedp.CSS("input[type=search]")))
	b.until(`!document.querySelector('.held')`)
	worst, _ := s.raise(rng.IntN(9))
	b.until(fmt.Sprintf(`[...document.querySelectorAll('.grid section')].some((g) => [...g.querySelectorAll('.tile')].findIndex((e) => e.dataset.machine === %q) === 0 || [...g.querySelectorAll('.tile')].slice(0, [...g.querySelectorAll('.tile')].findIndex((e) => e.dataset.machine === %q)).some((e) => e.dataset.state === 'raised'))`, worst, worst))
	sorted := js[bool](b, `[...document.querySelectorAll('.grid section')].every((g) => {
		const calls = [...g.querySelectorAll('.tile')].map((e) => e.dataset.state === 'raised');
		return calls.lastIndexOf(true) === calls.filter(Boolean).length - 1;
	})`)
	if !sorted {
		t.Error("machines whose alarm calls are not first")
	}
	b.fits("nine")
	b.quiet()

	// While a person writes, the alarm ends and another is raised: the command is for the first.
	machine, incident = s.raise(4)
	button := fmt.Sprintf(".tile[data-machine='%s'] [value=acknowledge][data-incident='%s']", machine, incident)
	b.until(fmt.Sprintf("document.querySelector(%q)", button))
	b.press(button)
	b.until(`document.querySelector('#ask')?.open`)
	_, next := s.raise(4)
	b.until(drawn(machine, next))
	b.press("#go")
	b.until(`document.querySelector('#ask-says').textContent.includes('does not stand any more') && document.querySelector('#ask').open`)
	if last := s.sent()[len(s.sent())-1]; last.Incident != incident {
		t.Errorf("the dialog of %s sent %+v", incident, last)
	}
	b.shot("refused")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector('#ask')`)
	if !js[bool](b, "window.loadedOnce === true") {
		t.Error("the page was loaded again")
	}
	b.quiet()
}

// Keys reach everything on the list: "/" the search, arrows the tiles, Enter a machine. Filters
// show what they say.
func TestPageKeysAndFilters(t *testing.T) {
	s := newShop(t, 9)
	bad, incident := s.raise(3)
	b := openBrowser(t, s.url())
	b.until(`document.querySelectorAll('.tile').length === 9`)
	slash := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "/", Code: "Slash"} // chromedp.KeyEvent sends the character, too, even if the page takes the key
	if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, slash); err != nil {
		t.Fatal(err)
	}
	b.until(`document.activeElement.type === 'search'`)
	b.do(chromedp.KeyEvent("t03"))
	b.until(fmt.Sprintf(`document.querySelectorAll('.tile').length === 1 && document.querySelector('.tile').dataset.machine === %q`, bad))
	b.until(`document.querySelector('.filter [role=status]').textContent === '1 of 9 shown'`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelectorAll('.tile').length === 9`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.until(`document.activeElement === document.querySelector('.tile .name a')`)
	for _, key := range []string{kb.ArrowRight, kb.ArrowDown, kb.ArrowLeft, kb.ArrowUp, kb.End, kb.Home} {
		was := js[string](b, `document.activeElement.dataset.machine`)
		b.do(chromedp.KeyEvent(key))
		if now := js[string](b, `document.activeElement.dataset.machine ?? ''`); now == "" || now == was && key != kb.ArrowUp {
			t.Errorf("key %q leads from %q to %q", key, was, now)
		}
	}
	if n := js[int](b, `document.querySelectorAll('.tile .name a[tabindex="0"]').length`); n != 1 {
		t.Errorf("Tab stops at %d tiles, want 1", n)
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`document.activeElement.type === 'search'`)
	b.choose("only", "bad")
	b.until(`document.querySelectorAll('.tile').length === 1`)
	b.choose("only", "all")
	b.choose("group", "acme/spore/bay2/line1")
	b.until(`document.querySelectorAll('.tile').length === 2 && document.querySelectorAll('.grid section').length === 1`)

	// Old addresses lead to the right page.
	for old, want := range map[string]string{
		"#machine=" + bad: "#/m/" + bad, "#machine=" + bad + "&alarm=" + incident: "#/a/" + incident, "#/" + incident: "#/a/" + incident,
	} {
		js[string](b, fmt.Sprintf("location.hash = %q", old))
		b.until(fmt.Sprintf("location.hash === %q && document.querySelector('h1')?.textContent", want))
	}
	js[string](b, `location.hash = "#/nothing/here"`)
	b.until(`document.querySelector('main').textContent.includes('leads to nothing')`)
	b.quiet("/api/") // this program keeps no past
}

// choose chooses in a list of the page.
func (b *browser) choose(name, value string) {
	b.t.Helper()
	js[bool](b, fmt.Sprintf("(() => { const s = document.querySelector(`select[name=%s]`); s.value = %q; return s.dispatchEvent(new Event('change', { bubbles: true })); })()", name, value))
}

// People see why they may not press a button: the role does not allow it, or the program takes
// no commands.
func TestPageSaysWhyNot(t *testing.T) {
	s := newShop(t, 2)
	machine, incident := s.raise(0)
	b := openBrowser(t, s.url())
	button := fmt.Sprintf(".tile[data-machine='%s'] [value=acknowledge][data-incident='%s']", machine, incident)
	b.until(fmt.Sprintf("document.querySelector(%q)", button))
	b.login(viewerToken)
	b.until(`document.querySelector('.who').textContent.includes('eve · viewer')`)
	b.until(fmt.Sprintf("document.querySelector(%q).getAttribute('aria-disabled') === 'true'", button))
	b.until(tile(machine, ".why") + `.textContent === 'You are logged in as viewer. This needs operator.'`)
	b.press(button)
	time.Sleep(200 * time.Millisecond)
	if js[bool](b, `document.querySelector('#ask') !== null`) {
		t.Error("a viewer gets the dialog")
	}
	b.shot("viewer")
	b.press(".who button")
	b.until(`document.querySelector('.who').textContent === 'Log in'`)
	b.quiet()

	// A session that is over is not shown as one: the dialog asks for the token.
	b.login(operatorToken)
	b.press(button)
	b.until(`document.querySelector('#ask')?.open`)
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.press("#go")
	b.until(`document.querySelector('#ask [name=token]') && document.querySelector('.who').textContent === 'Log in'`)
	b.fill("token", operatorToken)
	b.press("#go")
	b.until(`!document.querySelector('#ask') && document.querySelector('.who').textContent.includes('kim · operator')`)
	b.quiet("/api/commands") // 401

	open := newShop(t, 1, func(c *web.Config, p *web.Protection) { c.Control, p.Find = nil, nil })
	machine, _ = open.raise(0)
	b.do(chromedp.Navigate(open.url()))
	b.until(tile(machine, "[value=acknowledge]") + `?.getAttribute('aria-disabled') === 'true'`)
	b.until(`document.querySelector('.hint').textContent.includes('page_token')`)
	b.fits("no-token")
	b.quiet()

	// A page that shows nothing before its person has logged in asks for that at once, also
	// after Escape, with which a browser closes a dialog at the second try at the latest.
	closed := newShop(t, 1, func(_ *web.Config, p *web.Protection) { p.ReadsNeedToken = true })
	b.do(chromedp.Navigate(closed.url()))
	b.until(`document.querySelector('dialog[open] input[name=token]')`)
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector('dialog[open] input[name=token]')`)
	b.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=token]"), "wrong-horse-battery"+kb.Enter))
	b.until(`document.querySelector('dialog .error').textContent !== ''`)
	js[string](b, `document.querySelector('dialog input[name=token]').value = ''`)
	b.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=token]"), viewerToken+kb.Enter))
	b.until(`document.querySelectorAll('.tile').length === 1`)
	b.quiet("/api/events", "/api/login")
}

// What the page must never show: see each part.
func TestPageNeverSays(t *testing.T) {
	s := newShop(t, 4)
	b := openBrowser(t, s.url())
	b.until(`document.querySelectorAll('.tile').length === 4`)
	name := func(i int) string { return s.machines[i].name }

	// Healthy, and at its limit, on one card. What is left keeps its interval at 0.
	s.be(0, func(r *event.Result) {
		r.Wear = &event.Wear{WearUM: 312, WearLowUM: 280, WearHighUM: 340, HolesLeft: ref(0), HolesLeftLow: ref(0), HolesLeftHigh: ref(6)}
	})
	b.until(tile(name(0), ".state strong") + `.textContent === 'Tool at its limit'`)
	b.until(tile(name(0), ".wear .figures") + `.textContent === '312 µm (280 to 340) of 3000 holes left (0 to 6)'`)
	for _, word := range []string{"Healthy", "Normal"} {
		if js[bool](b, tile(name(0), "")+fmt.Sprintf(".innerText.includes(%q)", word)) {
			t.Errorf("a tile says %s of a tool at its limit", word)
		}
	}

	// An estimate for a tool whose reference is not there.
	s.be(1, func(r *event.Result) { r.Verdict, r.Posterior, r.Score = event.Learning, nil, 0 })
	b.until(tile(name(1), "p.wear") + `?.textContent.startsWith('Wear: not known')`)
	if js[bool](b, tile(name(1), "")+`.innerText.includes('µm') || `+tile(name(1), "")+`.innerText.includes('left')`) {
		t.Error("a tile says how worn a tool is whose reference is being learnt")
	}

	// Dates of 1970, or of year 1, for a recording that does not say when it began.
	s.be(2, func(r *event.Result) { r.Start, r.End = time.Unix(100, 0), time.Unix(101, 0) })
	s.hub.Advisory(event.Advisory{
		ID: "x", Machine: name(3), Kind: event.SilenceAdvisory, State: event.Raised, Severity: "warning", Since: time.Unix(120, 0), At: time.Unix(130, 0), Text: "SILENT",
	})
	b.until(tile(name(3), ".does") + `?.textContent.includes('second 120')`)
	if js[bool](b, `/\b(1970|0001)\b/.test(document.body.innerText)`) {
		t.Error("the page shows a date of 1970")
	}

	// A raised mark that becomes a circle of another colour: the shape and the word of an alarm
	// stay what the alarm is, also after a healthy window.
	machine, _ := s.raise(2)
	s.be(2, func(r *event.Result) { r.Verdict, r.Score, r.Posterior = event.Healthy, 0.1, []float64{0.9, 0.1} })
	b.until(tile(machine, ".state use") + `.getAttribute('href') === '#raised' && ` + tile(machine, ".state strong") + `.textContent === 'Alarm' && ` + tile(machine, "") + `.classList.contains('alarm')`)
	if js[bool](b, tile(machine, "")+`.innerText.includes('Healthy')`) {
		t.Error("a tile says Healthy next to its alarm")
	}
	b.fits("never")

	// Offline with lamps and words as if all were known. The page comes back by itself.
	s.shut()
	b.until(`document.querySelector('#connection').dataset.state === 'lost'`)
	b.grey()
	b.fits("offline-tiles")
	s.open(t)
	b.until(`document.querySelector('#connection').dataset.state === 'live' && !document.querySelector('#offline') && document.querySelector('.tile.alarm')`)
	b.quiet("/api/events", "/api/me")
}

// Before the first verdict the page says how far the program is. A step that is complete and goes
// on has no share: the bar moves.
func TestPageFirstRun(t *testing.T) {
	s := newShop(t, 0)
	s.hub.Status(web.Status{Phase: web.LearningHistory, Text: "reading 4 hours", Fraction: 0.42})
	b := openBrowser(t, s.url())
	b.until(`document.querySelector('progress')?.value === 0.42 && document.querySelector('.first .number').textContent === '42 %'`)
	b.until(`document.querySelector('.steps [aria-current=step]').textContent === 'Learning history' && document.querySelector('.first [role=status]').textContent === 'reading 4 hours'`)
	b.fits("prepare")
	b.accessible("the first run")
	s.hub.Status(web.Status{Phase: web.Training, Text: "writing the model", Fraction: 1})
	b.until(`document.querySelector('.steps [aria-current=step]').textContent === 'Training' && !document.querySelector('progress').hasAttribute('value') && !document.querySelector('.first').textContent.includes('100 %')`)
	s.hub.Status(web.Status{Phase: web.Monitoring, Text: "waiting for windows", Fraction: -1})
	b.until(`!document.querySelector('progress') && document.querySelector('.first pre').textContent.includes('ingest run')`)
	b.quiet()
}

// The page speaks German and shows UTC if a person chooses so, and keeps the choice.
func TestPageLanguageAndZone(t *testing.T) {
	s := newShop(t, 2)
	s.raise(0)
	b := openBrowser(t, s.url())
	b.until(`document.querySelector('.tile.alarm')`)
	b.choose("language", "de")
	b.until(`document.documentElement.lang === 'de' && document.querySelector('nav a').textContent === 'Maschinen' && document.querySelector('.tile.alarm .does')?.textContent.startsWith('Werkzeug vor dem nächsten Teil wechseln.')`)
	b.choose("zone", "utc")
	b.until(`document.querySelector('#zone').textContent === 'UTC'`)
	b.until(`document.querySelector('.tile.alarm .since')`)
	since := js[string](b, `document.querySelector('.tile.alarm .since').textContent`)
	if now := time.Now().UTC(); since != "seit "+now.Format("15:04") && since != "seit "+now.Add(-time.Minute).Format("15:04") {
		t.Errorf("the alarm is %q, it is %s UTC", since, now.Format("15:04"))
	}
	b.reload()
	b.until(`document.documentElement.lang === 'de' && document.querySelector('#zone').textContent === 'UTC' && document.querySelector('.tile.alarm')`)
	b.fits("german")
	b.open("#/system") // the machine needs a person, in German
	b.until(`document.querySelector('.problems .what')?.textContent.includes('` + s.machines[0].name + `: Werkzeug vor dem nächsten Teil wechseln.') && document.querySelector('.problems a').hash === '#/m/` + s.machines[0].name + `'`)
	b.quiet("/api/models") // which this program does not have
}

// The clock of the page is the program's, also in a browser whose clock is an hour off. The page says so, and dates an
// alarm of now as of now.
func TestPageClock(t *testing.T) {
	s := newShop(t, 2)
	s.raise(0)
	b := openBrowser(t, s.url())
	b.until(`document.querySelector('.tile.alarm') && !document.querySelector('#skew')`)
	for ahead, want := range map[int]string{3600: "This computer's clock is 60 min fast", -3600: "This computer's clock is 60 min slow"} {
		script := fmt.Sprintf(`(() => { const own = window.own ??= Date.now; Date.now = () => own() + %d; })()`, 1000*ahead)
		if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
			t.Fatal(err)
		}
		b.reload()
		b.until(fmt.Sprintf(`document.querySelector('#skew')?.textContent === %q`, want))
		b.until(`((c, s) => Math.abs((Date.parse('2000-01-01T' + c) - Date.parse('2000-01-01T' + s + ':00')) / 60000) % 1438 < 2)(document.querySelector('.clock time').textContent, document.querySelector('.tile.alarm .since').textContent.match(/\d\d:\d\d/)[0])`)
	}
	b.fits("skew")
	b.accessible("a browser whose clock is wrong")
	b.quiet("/api/events", "/api/me")
}

// Every page is without findings of axe, in dark and light, and not wider than the window.
func TestPageIsAccessible(t *testing.T) {
	s := newShop(t, 9, func(c *web.Config, _ *web.Protection) {
		c.System, c.ListModels, c.Model, c.ModelUse, c.History = shopSystem, shopModels, shopModel, shopUse, shopHistory
	})
	machine, incident := s.raise(1)
	s.be(2, func(r *event.Result) { r.Wear.WearUM, r.Wear.WearHighUM = 320, 350 })
	s.be(3, func(r *event.Result) { r.Verdict, r.Posterior = event.Learning, nil })
	s.hub.Advisory(event.Advisory{ID: "s", Machine: s.machines[5].name, Kind: event.SensorAdvisory, Subject: "acc1-x", Status: "failure", State: event.Raised, Severity: "warning", Since: time.Now(), At: time.Now(), Text: "acc1-x: failure"})
	s.hub.Advisory(event.Advisory{ID: "d", Machine: s.machines[6].name, Kind: event.DriftAdvisory, State: event.Raised, Severity: "info", Since: time.Now(), At: time.Now(), Text: "DRIFT"})
	b := openBrowser(t, s.url())
	b.until(`document.querySelector('.tile.alarm')`)
	b.login(operatorToken)
	for _, page := range []struct{ name, hash, ready string }{
		{"fleet", "#/", `document.querySelectorAll('.tile').length === 9`},
		{"system", "#/system", `document.querySelectorAll('.problems li').length === 5 && document.querySelectorAll('main table').length >= 4`},
		{"model", "#/model/m", `document.querySelectorAll('main canvas').length === 3 && document.querySelectorAll('main table').length === 5`},
		{"machine", "#/m/" + machine, `document.querySelector('.machine h1') && document.querySelector('main canvas')`},
		{"alarm", "#/a/" + incident, fmt.Sprintf(`document.querySelector('main').innerText.includes(%q)`, incident)},
		{"tv", "#/?tv", `document.querySelector('.tv .tile')`},
	} {
		js[string](b, fmt.Sprintf("location.hash = %q", page.hash))
		b.until(page.ready)
		b.accessible(page.name)
		b.fits(page.name)
	}
	b.size(1920)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.shot("tv-" + scheme)
	}
	js[string](b, "location.hash = '#/'")
	b.until(`document.querySelector('.tile.alarm [value=acknowledge]')`)
	b.shot("fleet-dark")
	b.press(".tile.alarm [value=acknowledge]")
	b.until(`document.querySelector('#ask')?.open`)
	b.shot("dialog")
	b.accessible("the dialog of a command")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector('#ask')`)

	// The first stop of Tab skips to the content.
	b.reload()
	b.until(`document.activeElement === document.body && document.querySelector('.tile.alarm')`)
	b.do(chromedp.KeyEvent(kb.Tab))
	b.until(`document.activeElement.className === 'skip' && document.activeElement.getBoundingClientRect().x >= 0`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.activeElement.tagName === 'MAIN'`)
	b.quiet("/api/alarms", "/tools", "/spectrum") // this program keeps no alarms and no tools
}

// A machine that no model is deployed for: its tile says so once, and the system lists it. Before the first
// machine, the page shows how far the program has prepared itself.
func TestPageOfUnwatchedMachine(t *testing.T) {
	s := newShop(t, 0)
	s.hub.Status(web.Status{Phase: web.Training, Fraction: 0.4})
	b := openBrowser(t, s.url())
	b.until(`document.querySelector('.steps .now')?.textContent === 'Training'`)
	b.fits("first-run")
	if h := js[[]float64](b, `[...document.querySelectorAll('.steps li')].map((x) => x.offsetHeight)`); len(h) != 3 || h[0] != h[1] || h[1] != h[2] {
		t.Errorf("the steps are %v pixels high", h)
	}
	const name = "acme/spore/bay2/line1/usk26"
	s.hub.Status(web.Status{Phase: web.Monitoring, Fraction: -1})
	s.hub.Advisory(event.Advisory{
		ID: "r", Machine: name, Kind: event.RefusedAdvisory, State: event.Raised, Severity: "warning", Since: time.Now(), At: time.Now(),
		Text: "usk26: NOT WATCHED, no model is deployed for it with layout gun-drill. Deploy one: `trainer promote MODEL --for MACHINE`",
	})
	b.until(tile(name, ".does code") + `?.textContent === 'trainer promote MODEL --for ` + name + `'`)
	if said := js[string](b, tile(name, "")+".innerText"); strings.Contains(said, "`") || strings.Contains(said, "NOT WATCHED") || strings.Contains(said, "Windows refused") {
		t.Errorf("the tile says:\n%s", said)
	}
	b.fits("not-watched")
	b.choose("language", "de") // one sentence, and English behind it alone
	b.until(tile(name, ".does") + `?.textContent.startsWith('Für diese Maschine gibt es kein Modell. Eines einsetzen: trainer')`)
	if said := js[string](b, tile(name, "")+".innerText"); strings.Contains(said, "no model") || !strings.Contains(said, "Einzelheiten") {
		t.Errorf("in German the tile says:\n%s", said)
	}
	b.open("#/m/" + name)
	b.until(`document.querySelector('.open-advisories .details:not([open]) summary')?.textContent === 'Einzelheiten'`)
	b.open("#/?tv") // the remedy is seen
	b.until(`document.querySelector('.tv .tile .does')?.textContent.endsWith(' --for ` + name + `')`)
	if js[bool](b, `((t, d) => d.bottom > t.bottom)(document.querySelector('.tv .tile').getBoundingClientRect(), document.querySelector('.tv .tile .does').getBoundingClientRect())`) {
		t.Error("on a television the remedy is cut off")
	}
	b.open("#/")
	b.until(tile(name, ""))
	b.choose("language", "en")
	b.until(tile(name, ".does") + `?.textContent.startsWith('No model is deployed')`)
	b.open("#/m/" + name)
	b.until(`document.querySelector('.open-advisories code') && !document.querySelector('main').innerText.includes('` + "`" + `')`)
	b.fits("machine-not-watched")
	b.open("#/system")
	b.until(`document.querySelector('.problems .what')?.textContent.includes('` + name + `: NOT WATCHED') && document.querySelector('.problems pre').textContent === 'trainer promote MODEL --for ` + name + `'`)
	b.accessible("system with a machine that is not watched")
	b.fits("system-not-watched")
	b.quiet("/api/")
}

// lineage is what the page shows of shopData.
const lineage = `2026-10-07.tdms|2 100|T01|–|–|1a1a1a1a1a1a1a1a…
tcm.windows.v1|2 010|drill01 T01, T02 drill02 T07 and 12 more|Oct 9, 2026, 06:00:00 UTC to Oct 9, 2026, 06:35:10 UTC|partition 3, offsets 1200 to 2309 partition 5, offsets 0 to 899|2b2b2b2b2b2b2b2b…
older.csv|100|–|–|–|–`

// The page of a model lists what it was trained on. Of a model that has judged for an hour, the hour is in the middle of a time axis of six.
func TestPageOfYoungModel(t *testing.T) {
	s := newShop(t, 1, func(c *web.Config, _ *web.Protection) {
		c.ListModels, c.Model = shopModels, shopModel
		c.ModelUse = func(id string, from, to time.Time) (past.ModelUse, error) {
			u, err := shopUse(id, from, to)
			u.T, u.Judged, u.Unknown = u.T[:1], u.Judged[:1], u.Unknown[:1]
			u.Trials[0].T, u.Trials[0].Hours = u.T, u.Trials[0].Hours[:1]
			return u, err
		}
	})
	b := openBrowser(t, s.url()+"#/model/m")
	b.until(`document.querySelectorAll('main canvas').length === 3`)
	if got := js[string](b, `(document.querySelector('main details').open = true, [...document.querySelectorAll('main details tbody tr')].map((r) => [...r.cells].map((c) => c.innerText.replace(/\s+/g, ' ').trim()).join('|')).join('\n'))`); got != lineage {
		t.Errorf("lineage\n%s\nwant\n%s", got, lineage)
	}
	b.fits("young-model")
	if got := js1[[]float64](b, "model.js", "[...x.around(7200, 7200), ...x.around(0, 36000)]"); !slices.Equal(got, []float64{7200 - 3*3600, 7200 + 3*3600, 0, 36000}) {
		t.Errorf("the axes reach over %v", got)
	}
	b.quiet("/api/")
}

func shopSystem(context.Context) web.System {
	missing := uint64(3)
	return web.System{
		Lag: []web.Lag{{Partition: 0, Windows: 12}, {Partition: 1, Windows: 4012}}, Missing: &missing,
		Dead:         &web.Dead{Count: 4, Reasons: []web.DeadReason{{Reason: "checksum", Count: 3}, {Reason: "layout_unknown", Count: 1}}},
		Routes:       []web.RouteLag{{Name: "opcua", Lag: 0}, {Name: "mes", Lag: 120, Seconds: 340}},
		Certificates: []web.Certificate{{File: "/etc/flank/client.pem", Days: 12}, {File: "broker kafka1:9093", Days: 200}},
		Disk:         &web.Disk{FreeBytes: 3e9, UsedBytes: 9e9},
		Problems: []web.Problem{
			{What: "Partition 1 is 4012 windows behind.", Command: "monitor check --config monitor.yaml"},
			{What: "/etc/flank/client.pem ends in 12 days.", Command: "openssl x509 -in /etc/flank/client.pem -noout -enddate"},
		},
	}
}

// shopHistory says that two in a hundred windows of each hour were unknown, more or less.
func shopHistory(machine string, from, to time.Time, step time.Duration) (past.History, error) {
	h := past.History{Machine: machine, From: from, To: to, Step: int(step.Seconds())}
	for at := from.Truncate(time.Hour); at.Before(to); at = at.Add(time.Hour) {
		n := int(100 + 60*math.Sin(float64(at.Unix())/1e5))
		h.Points.T = append(h.Points.T, at.Unix())
		h.Points.Windows, h.Points.Cutting = append(h.Points.Windows, 5000), append(h.Points.Cutting, 5000)
		h.Points.Healthy, h.Points.Unknown = append(h.Points.Healthy, 5000-n), append(h.Points.Unknown, n)
		for _, none := range []*[]int{&h.Points.Faulty, &h.Points.Learning, &h.Points.NotCutting, &h.Points.SensorFault, &h.Points.Late} {
			*none = append(*none, 0)
		}
	}
	return h, nil
}

func shopModels(context.Context) (web.Deployed, error) {
	m, _ := shopModel(context.Background(), "m")
	return web.Deployed{Models: []web.ModelFacts{m.ModelFacts}, Deployments: m.Deployments}, nil
}

func shopModel(_ context.Context, id string) (*web.ModelDetail, error) {
	at := time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC)
	m := &web.ModelDetail{
		ModelFacts: web.ModelFacts{ID: id, Title: "Gun drilling, ensemble of 5", Layout: "gun drill", LimitUM: ref(300), At: &at, By: "kim", Key: "plant-2026"},
		Features:   42, Channels: []string{"force-x", "force-y"},
		Deployments: []web.Deployment{{For: "acme/spore/*", Layout: "gun drill", Champion: id, Shadows: []web.Shadow{{Model: "m-next"}}, Alarm: &web.AlarmRule{K: 5, N: 8, Threshold: 0.5}, At: &at, By: "kim"}},
		Card: &web.ModelCard{
			Verdict: "shadow", HeldOut: true, Split: "leave one out by tool, 6 folds", Tools: 6, Windows: 4210, Faulty: 803,
			GMean: &web.CardInterval{Value: 0.961, Low: ref(0.938), High: ref(0.978)}, Recall: &web.CardInterval{Value: 0.948, Low: ref(0.902), High: ref(0.976)}, Specificity: &web.CardInterval{Value: 0.974, Low: ref(0.958), High: ref(0.987)},
			Reasons: []web.CardReason{
				{About: "worn tools", Level: "shadow", Because: "4 tools were worn out", Do: "record two more tools until they are worn"},
				{About: "false alarms", Level: "switch_on", Because: "none in 9.2 h of healthy cutting"},
			},
			Unknown: []string{"no novelty: fewer than 5 tools"}, Data: slices.Clone(shopData), DataCount: 3, DataWindows: 4210, Labels: strings.Repeat("ef", 32),
			Classes: []string{"healthy", "faulty"}, Label: "faulty from VBmax 300 µm on", WindowSeconds: 1, FeatureVersion: 3, Reference: "kind, of a tool's first 10 windows", Threshold: ref(0.31), Program: "trainer 1.0.0", Seed: 1,
		},
		Curve: &alarm.Curve{
			Model: id, Budget: "1 per 8h", Within: true, Tools: 6, Turned: 4, Settings: 6417, Hours: true,
			Now: tunePoint(5, 8, 0.5, 3, 0.33, 4.1), Chosen: tunePoint(6, 10, 0.55, 1, 0.11, 5.2),
			Points: []alarm.Point{tunePoint(10, 12, 0.6, 0, 0, 9.5), tunePoint(6, 10, 0.55, 1, 0.11, 5.2), tunePoint(5, 8, 0.5, 3, 0.33, 4.1), tunePoint(2, 3, 0.4, 9, 0.98, 1.4)},
		},
	}
	return m, nil
}

var shopData = []web.CardData{
	{Name: "2026-10-07.tdms", Windows: 2100, SHA256: strings.Repeat("1a", 32), Machines: []web.CardMachine{{Tools: []string{"T01"}}}},
	{
		Name: "tcm.windows.v1", Windows: 2010, SHA256: strings.Repeat("2b", 32), MoreTools: 12, Offsets: []web.CardOffsets{{Partition: 3, From: 1200, To: 2310}, {Partition: 5, From: 0, To: 900}},
		Machines: []web.CardMachine{{Machine: "acme/spore/bay1/line1/drill01", Tools: []string{"T01", "T02"}}, {Machine: "acme/spore/bay1/line1/drill02", Tools: []string{"T07"}}},
		From:     new(time.Date(2026, 10, 9, 6, 0, 0, 0, time.UTC)), To: new(time.Date(2026, 10, 9, 6, 35, 10, 0, time.UTC)),
	},
	{Name: "older.csv", Windows: 100},
}

func tunePoint(k, n int, threshold float64, alarms int, perHour, delay float64) alarm.Point {
	return alarm.Point{K: k, N: n, Threshold: threshold, False: alarms, PerHour: &perHour, Found: 4, Delay: &delay}
}

// shopUse is what two models made of two days.
func shopUse(model string, _, to time.Time) (u past.ModelUse, _ error) {
	trial := past.Trial{Shadow: "m-next", Champion: model}
	begin := to.Truncate(time.Hour).Add(-48 * time.Hour)
	for i := range 48 {
		d := past.Disagreement{Windows: 3600, Differ: 40 + 9*(i%12), ShadowUnknown: 20, ChampionUnknown: 5, BothAlarm: 60, OnlyShadow: 3 * (i % 20), OnlyChampion: 2 * (i % 7)}
		u.T, u.Judged, u.Unknown = append(u.T, begin.Add(time.Duration(i)*time.Hour).Unix()), append(u.Judged, 3600), append(u.Unknown, 90+15*(i%9))
		trial.T, trial.Hours = u.T, append(trial.Hours, d)
		trial.Sum.Windows += d.Windows
		trial.Sum.Differ += d.Differ
		trial.Sum.BothAlarm += d.BothAlarm
		trial.Sum.OnlyShadow += d.OnlyShadow
		trial.Sum.OnlyChampion += d.OnlyChampion
	}
	trial.Machines = []past.TrialMachine{{Machine: "acme/spore/bay1/line1/drill01", Disagreement: trial.Sum}}
	u.Trials = []past.Trial{trial}
	u.Drift = []past.DriftSpan{{Machine: "acme/spore/bay1/line1/drill01", From: begin, To: begin.Add(5 * time.Hour)}}
	return u, nil
}

// The page shows 200 machines, and TV mode turns its pages by itself. The test logs how long the
// first paint takes: the goal is a second on a computer that does nothing else.
func TestPageOfTwoHundred(t *testing.T) {
	s := newShop(t, 200)
	s.raise(150)
	b := openBrowser(t, s.url())
	b.until(`document.querySelectorAll('.tile').length === 200 && document.querySelector('.tile').dataset.state === 'raised'`)
	b.until(`performance.getEntriesByName("first-contentful-paint").length && performance.getEntriesByName("tiles").length`) // a browser tells of a paint after it
	times := js[map[string]float64](b, `({ paint: performance.getEntriesByName("first-contentful-paint")[0].startTime, tiles: performance.getEntriesByName("tiles")[0].startTime })`)
	t.Logf("first contentful paint after %.0f ms, 200 tiles after %.0f ms", times["paint"], times["tiles"])
	b.fits("two-hundred")
	js[string](b, "location.hash = '#/?tv'")
	b.until(`document.querySelector('.wall .says').textContent.startsWith('Page 1 of')`)
	first := js[string](b, `document.querySelector('.tile').dataset.machine`)
	b.until(fmt.Sprintf(`document.querySelector('.wall .says').textContent.startsWith('Page 2 of') && document.querySelector('.tile').dataset.machine !== %q`, first))
	b.quiet()
}
