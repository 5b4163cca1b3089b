//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/flank-tcm/flank/pkg/signal"
)

var shots = flag.String("web.shots", "", "folder for pictures of the page, as TestPage saw it")

// browser is one tab of Chromium. It remembers the page's complaints: errors and warnings of its
// console, exceptions, requests that failed or were refused, and files that its policy blocked.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	requests   map[network.RequestID]string // address
	complaints []string
}

// chromium is the browser of all tests, which the first one starts. TestMain closes it.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, errors.New("no chromium: apt-get install chromium")
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)...)
	ctx, _ = chromedp.NewContext(ctx)
	closeChromium = func() { _ = chromedp.Cancel(ctx) }
	return ctx, chromedp.Do(ctx)
})

var closeChromium = func() {}

// openBrowser opens a page with cookies, stores and permissions of its own.
func openBrowser(t *testing.T, address string) *browser {
	ctx, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, requests: map[network.RequestID]string{}}
	ctx, cancel := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.listen))
	t.Cleanup(cancel)
	b.ctx = ctx
	for _, domain := range []cdp.Command[cdp.Empty, cdp.Empty]{log.Enable, runtime.Enable, audits.Enable} {
		if _, err := chromedp.Call(b.ctx, domain, cdp.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	b.size(1280)
	b.do(chromedp.Navigate(address))
	return b
}

func (b *browser) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	complain := func(format string, args ...any) { b.complaints = append(b.complaints, fmt.Sprintf(format, args...)) }
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		b.requests[ev.RequestID] = ev.Request.URL
	case *network.EventResponseReceived:
		if ev.Response.Status >= 400 {
			complain("%d of %s", ev.Response.Status, ev.Response.URL)
		}
	case *network.EventLoadingFailed:
		if !ev.Canceled { // by the page, when another machine is chosen
			complain("%s of %s", ev.ErrorText, b.requests[ev.RequestID])
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning {
			complain("%s: %s of %s", ev.Entry.Source, ev.Entry.Text, ev.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeWarning || ev.Type == runtime.ConsoleAPICalledTypeAssert {
			complain("console.%s: %v", ev.Type, ev.Args)
		}
	case *runtime.EventExceptionThrown:
		complain("exception: %v", ev.ExceptionDetails)
	case *audits.EventIssueAdded:
		detail := ""
		if d := ev.Issue.Details; d != nil && d.GenericIssueDetails != nil {
			detail = string(d.GenericIssueDetails.ErrorType)
		}
		if detail == "NavigationEntryMarkedSkippable" {
			return // a test went to another address without a person's press
		}
		complain("issue: %s %s", ev.Issue.Code, detail)
	}
}

// quiet fails the test if the page has complained since the last call. Complaints that contain
// one of the given paths are expected.
func (b *browser) quiet(expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, c := range b.complaints {
		if strings.Contains(c, "net::ERR_CONNECTION_REFUSED of ") && strings.HasSuffix(c, "/static/favicon.svg") {
			continue // the browser asks for the icon when it likes, also while the page's program is away
		}
		for _, e := range expected {
			if strings.Contains(c, e) {
				continue next
			}
		}
		b.t.Errorf("the page complained: %s", c)
	}
	b.complaints = nil
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// js returns the value of an expression in the page, or the result of its promise.
func js[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// gone is in the errors of what was asked of a page that is being left.
var gone = regexp.MustCompile("target navigated|context was destroyed|Cannot find context")

// until waits until an expression holds in the page, also while the page is loaded again.
func (b *browser) until(expression string) {
	b.t.Helper()
	holds := func() bool {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")", chromedp.EvalAwaitPromise))
		if err != nil && !gone.MatchString(err.Error()) {
			b.t.Fatalf("%s: %v", expression, err)
		}
		return err == nil && ok
	}
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.shot("failed")
			b.t.Fatalf("%s never became true; the page says:\n%s", expression, js[string](b, "document.body.innerText"))
		}
	}
}

// reload loads the page again. The marker tells the new page from the one before.
func (b *browser) reload() {
	b.t.Helper()
	js[bool](b, "window.before = true, setTimeout(() => location.reload()), true")
	b.until("!window.before && document.readyState === 'complete'")
}

// size sets the width of the window in CSS pixels.
func (b *browser) size(width int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 900))
}

// fits fails the test if, at a usual width, the page is wider than the window.
func (b *browser) fits(what string) {
	b.t.Helper()
	for _, width := range []int64{400, 1920, 1280} {
		b.fitsInto(what, width)
		b.shot(fmt.Sprintf("%s-%d", what, width))
	}
}

// fitsInto makes the window so wide, and fails the test if the page stays wider.
func (b *browser) fitsInto(what string, width int64) {
	b.t.Helper()
	b.size(width)
	b.until(fmt.Sprintf("innerWidth === %d", width))
	for try := 0; ; try++ { // plots follow the window a moment later
		w := js[int64](b, "document.documentElement.scrollWidth")
		if w <= width {
			return
		}
		if try == 500 {
			b.t.Errorf("%s is %d pixels wide in a window of %d", what, w, width)
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// scheme chooses what the browser says that its person prefers: "light" or "dark".
func (b *browser) scheme(name string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}}); err != nil {
		b.t.Fatal(err)
	}
}

// accessible fails the test if axe finds something on the page, in dark or in light. The file
// of axe-core is at FLANK_AXE.
func (b *browser) accessible(what string) {
	b.t.Helper()
	axe, err := os.ReadFile(os.Getenv("FLANK_AXE"))
	if err != nil {
		b.t.Fatalf("axe-core is missing: run make e2e-web, which fetches it: %v", err)
	}
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		if !js[bool](b, "'axe' in window") {
			b.do(chromedp.Evaluate[chromedp.Void](string(axe) + ";0"))
		}
		found := js[[]string](b, `axe.run(document, { resultTypes: ["violations"] }).then((r) =>
			r.violations.map((v) => v.id + " (" + v.impact + "): " + v.nodes.slice(0, 3).map((n) => n.target + ": " + n.failureSummary).join("\n   ")))`)
		for _, f := range found {
			b.t.Errorf("%s, %s: %s", what, scheme, f)
		}
	}
	b.scheme("light")
}

func (b *browser) shot(name string) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// press clicks what a selector names once it can be seen, lies under nothing and is enabled. The
// page looks and clicks in one step: between a look and a mouse that comes later it could move.
func (b *browser) press(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`((x) => {
		x?.scrollIntoView({ block: 'nearest', behavior: 'instant' });
		const r = x?.getClientRects()[0], top = r && document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
		return !!top && x.contains(top) && !x.disabled && (x.focus(), x.click(), true);
	})(document.querySelector(%q))`, selector))
}

// key presses a key on what a selector names, and again every two seconds, until an expression
// holds: what the key is about may not be on the page yet.
func (b *browser) key(selector, key, expression string) {
	b.t.Helper()
	begun := time.Now()
	for try := 1; ; try++ {
		b.do(chromedp.Focus(chromedp.CSS(selector)), chromedp.KeyEvent(key))
		for wait := time.Now().Add(2 * time.Second); time.Now().Before(wait); time.Sleep(20 * time.Millisecond) {
			if js[bool](b, "!!("+expression+")") {
				return
			}
		}
		if time.Since(begun) > patience {
			b.shot("failed")
			b.t.Fatalf("%s did not become true by %d times the key %q on %s; the page says:\n%s", expression, try, key, selector, js[string](b, "document.body.innerText"))
		}
	}
}

// order presses a button, fills in the form of its command, and sends it. A page that knows who
// is logged in asks for no name and no token.
func (b *browser) order(button, note, token string) {
	b.t.Helper()
	b.press(button)
	b.until(`document.querySelector('#ask')?.open`)
	b.fill("by", "kim")
	b.fill("note", note)
	b.fill("token", token)
	b.press("#go")
}

// fill writes into a field of the form of a command, if the form has it.
func (b *browser) fill(field, value string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("{ const f = document.querySelector('#order').elements[%q]; if (f) f.value = %q; }", field, value)))
}

// longLife is a table of one tool that wears out within 240 rows and is used on. Without noise
// that channel is missing. Holes are short, so that rows are sent on time: the source paces
// blocks, and a block ends with its hole.
func longLife(withoutNoise bool) string {
	var b strings.Builder
	b.WriteString("force,power,noise,tool,hole,VB\n")
	rng := rand.New(rand.NewPCG(3, 1))
	for i := range 20000 {
		vb := min(420, 1.75*float64(i))
		noise := fmt.Sprintf("%.4f", rng.NormFloat64())
		if withoutNoise {
			noise = "NaN"
		}
		fmt.Fprintf(&b, "%.4f,%.4f,%s,T1,H%d,%.1f\n", 100+vb/2+4*rng.NormFloat64(), 20+vb/8+rng.NormFloat64(), noise, i/4, vb)
	}
	return b.String()
}

// tile returns an expression for an element of the tile of a machine.
func tile(machine, selector string) string {
	return fmt.Sprintf("document.querySelector(`.tile[data-machine='%s'] %s`)", machine, selector)
}

// The page in a browser, with an ingester that sends and a monitor that dies. The page shows new
// windows, sends commands, and reconnects.
func TestPage(t *testing.T) {
	broker, _ := startServer(t, 1)
	dir := prepare(t, broker.Addr(), 20)
	write(t, dir, "layout.yaml", "name: small\nchannels:\n  - {names: [force, power, noise], kind: feature, rate: 1}\nrecording: {tool: tool, hole: hole, vb_max_um: VB}\n")
	write(t, dir, "day.csv", longLife(false))
	address := freeAddr(t)
	const token = "correct-horse-battery"
	write(t, dir, "page-token", token)
	write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: %q\npage_token: {file: page-token}\nevidence: {dir: evidence}\nsilence: 5s\n", broker.Addr(), address))
	monitor := start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	awaitPage(t, address)

	// Before there is a machine the page says what it waits for. It is loaded once and then only
	// updated.
	b := openBrowser(t, "http://"+address)
	js[bool](b, "window.loadedOnce = true")
	b.until(`document.querySelector('#connection').dataset.state === 'live' && document.querySelector('#first-title')?.textContent === 'No machine yet'`)
	b.fits("first")
	ingester := start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml"))
	b.until(`document.querySelectorAll('.tile').length === 1`)
	name := js[string](b, `document.querySelector('.tile').dataset.machine`)
	b.until(tile(name, ".strip path.healthy"))
	b.quiet()

	// The tool wears out.
	b.until(`document.querySelector('.tile').dataset.state === 'raised' && document.title.startsWith('ALARM')`)
	b.until(tile(name, ".does") + `?.textContent.includes('Change the tool')`)
	b.until(`document.querySelector('#spoken').textContent.includes('Alarm on')`)
	b.fits("raised")
	b.quiet()

	// A person acknowledges the alarm, first with a wrong token.
	ack := fmt.Sprintf(".tile[data-machine='%s'] [value=acknowledge]", name)
	b.order(ack, "change at hole end", "wrong-horse-battery")
	b.until(`document.querySelector('#ask-says').textContent !== ''`)
	if state := js[string](b, `document.querySelector('.tile').dataset.state`); state != "raised" {
		t.Errorf("a wrong token made the alarm %s", state)
	}
	b.shot("wrong-token")
	b.fill("token", token)
	b.press("#go")
	b.until(`!document.querySelector('#ask') && document.querySelector('.tile').dataset.state === 'acknowledged'`)
	b.until(tile(name, ".does") + `?.textContent.includes('Acknowledged by kim')`)
	b.quiet("/api/login") // 401

	// Keys are enough; a mouse is not needed.
	b.do(chromedp.Focus(chromedp.CSS(".tile .name a")), chromedp.KeyEvent(kb.Enter))
	b.until(`location.hash.startsWith('#/m/') && document.querySelector('h1').textContent.length > 0 && document.activeElement.tagName === 'MAIN'`)
	b.until(`document.querySelector('main [value=shelve]')`)
	b.do(chromedp.Focus(chromedp.CSS("main [value=shelve]")), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('#ask')?.open`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector('#ask') && document.activeElement.value === 'shelve'`)
	b.order("main [value=shelve]", "test piece", token)
	b.until(`!document.querySelector('#ask') && document.querySelector('main [value=unshelve]')`)
	b.order("main [value=unshelve]", "", token)
	b.until(`!document.querySelector('#ask') && document.querySelector('main [value=shelve]')`)
	b.press("header .brand")
	b.until(`location.hash === '#/' && document.querySelectorAll('.tile').length === 1`)
	b.quiet()

	// The monitor dies: nothing on the page looks as if it were new. It comes back, and so does
	// the page, with what was before.
	monitor.kill()
	b.until(`document.querySelector('#connection').dataset.state === 'lost'`)
	b.grey()
	b.shot("offline")
	monitor = start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	b.until(`document.querySelector('#connection').dataset.state === 'live' && document.querySelector('.tile')?.dataset.state === 'acknowledged'`)
	b.until(tile(name, ".strip path.faulty"))
	b.quiet("/api/events", "/api/me", "/api/system")

	// Advisories: a machine that falls silent, a sensor that fails.
	ingester.kill()
	b.until(tile(name, ".advisories") + `?.textContent.includes('Silent')`)
	write(t, dir, "day.csv", longLife(true))
	ingester = start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml"))
	b.until(tile(name, ".advisories") + `?.textContent.includes('Sensor noise · failure')`)
	b.fits("advisory")
	if !js[bool](b, "window.loadedOnce === true") {
		t.Error("the page was loaded again")
	}
	b.quiet()
	ingester.kill()
	monitor.kill()
}

// grey fails the test if the page, which is offline, shows anything as if it were new: a tile
// with the colour of a state, a state that is not said to be past, or a lamp.
func (b *browser) grey() {
	b.t.Helper()
	b.until(`document.querySelector('#offline').textContent.includes('Offline since')`)
	b.until(`/offline, last word .+/.test(document.querySelector('#connection').textContent)`)
	if n := js[int](b, `document.querySelectorAll('.tile:is(.alarm, .warn, .info), .summary :is(.alarm, .warn, .info)').length`); n != 0 {
		b.t.Errorf("%d parts of the page have the colour of a state while it is offline", n)
	}
	if n := js[int](b, `[...document.querySelectorAll('.tile .state strong')].filter((e) => !e.textContent.startsWith('Was: ')).length`); n != 0 {
		b.t.Errorf("%d tiles name a state as if it were new", n)
	}
	if n := js[int](b, `[...document.querySelectorAll('.tile .state use, .summary use')].filter((e) => e.getAttribute('href') !== '#lost').length`); n != 0 {
		b.t.Errorf("%d lamps while the page is offline", n)
	}
	for _, text := range []string{"Alarm none", "None"} {
		if js[bool](b, fmt.Sprintf("document.querySelector('main').innerText.includes(%q)", text)) {
			b.t.Errorf("the page says %q while it is offline", text)
		}
	}
	if colours := js[[]string](b, `[...new Set([...document.querySelectorAll('main .strip path, main .wear i, main .state, main .tile')].flatMap((e) => { const s = getComputedStyle(e); return [s.fill, s.color]; }))]`); true {
		for _, c := range colours {
			var r, g, bl int
			if n, _ := fmt.Sscanf(c, "rgb(%d, %d, %d)", &r, &g, &bl); n == 3 && max(r, g, bl)-min(r, g, bl) > 40 {
				b.t.Errorf("the page shows the colour %s while it is offline", c)
			}
		}
	}
}

func layoutOf(t *testing.T, name string, channels ...string) *signal.Layout {
	t.Helper()
	var all []signal.Channel
	for _, c := range channels {
		all = append(all, signal.Channel{Name: c, Kind: signal.Force, Unit: "N", Rate: 100})
	}
	l, err := signal.NewLayout(name, all)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// awaitPage waits until a program serves its page.
func awaitPage(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get("http://" + address + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no page at %s: %v", address, err)
		}
	}
}
