//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
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

func openBrowser(t *testing.T, address string) *browser {
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("no chromium: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	b := &browser{t: t, requests: map[network.RequestID]string{}}
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(b.listen))
	t.Cleanup(cancel)
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
		complain("issue: %s", ev.Issue.Code)
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

// until waits until an expression holds in the page.
func (b *browser) until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !js[bool](b, "!!("+expression+")"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.shot("failed")
			b.t.Fatalf("%s never became true; the page says:\n%s", expression, js[string](b, "document.body.innerText"))
		}
	}
}

// size sets the width of the window in CSS pixels.
func (b *browser) size(width int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 900))
}

// fits fails the test if, at a usual width, the page is wider than the window.
func (b *browser) fits(what string) {
	b.t.Helper()
	for _, width := range []int64{400, 1280} {
		b.size(width)
		b.until(fmt.Sprintf("innerWidth === %d", width))
		if w := js[int64](b, "document.documentElement.scrollWidth"); w > width {
			b.t.Errorf("%s is %d pixels wide in a window of %d", what, w, width)
		}
		b.shot(fmt.Sprintf("%s-%d", what, width))
	}
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

// order fills in the form of a command for the alarm, and sends it.
func (b *browser) order(button, note, token string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(button), chromedp.NodeVisible))
	b.until(`document.querySelector('#ask').open`)
	b.fill("by", "kim")
	b.fill("note", note)
	b.fill("token", token)
	b.do(chromedp.Click(chromedp.CSS("#go")))
}

func (b *browser) fill(field, value string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector('#order').elements[%q].value = %q", field, value)))
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

	// The page is loaded once and then only updated.
	b := openBrowser(t, "http://"+address)
	js[bool](b, "window.loadedOnce = true")
	b.until(`document.querySelector('#connection').dataset.state === 'live' && document.body.dataset.verdict === 'waiting'`)
	ingester := start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml"))
	shown := `+document.querySelector('#chart').getAttribute('aria-label').match(/\d+/)[0]`
	b.until(shown + ` > 0`)
	b.until(fmt.Sprintf("%s >= %d", shown, js[int](b, shown)+5))
	b.until(`document.body.dataset.verdict === 'healthy'`) // for eight seconds
	b.quiet()

	// The tool wears out.
	b.until(`document.body.dataset.alarm === 'loud' && document.body.dataset.verdict === 'faulty'`)
	b.until(`document.querySelector('#alerts li[data-state=raised] .text')?.textContent.includes('tool T1')`)
	b.until(`document.title.startsWith('ALARM')`)
	b.fits("page")
	b.quiet()

	// Its alert says why, and shows the waveform when it comes. Keys open it.
	b.do(chromedp.Focus(chromedp.CSS(`#alerts li[data-state=raised] a`)), chromedp.KeyEvent(kb.Enter))
	b.until(`/^#machine=[a-z0-9/]+&alarm=A-/.test(location.hash) && document.activeElement.id === 'view' && !document.querySelector('.hero').checkVisibility()`)
	b.until(`document.querySelector('#view-text').textContent.includes('force') && document.querySelector('#view-now').textContent === 'raised'`)
	b.until(`document.querySelector('#view-facts').textContent.includes('5 of 8 faulty')`)
	if first := js[string](b, `document.querySelector('#shares li').textContent`); !strings.HasPrefix(first, "force") && !strings.HasPrefix(first, "power") {
		t.Errorf("force and power rise with the wear; the page says %s", first)
	}
	b.until(`document.querySelectorAll('#features tbody tr').length >= 2 && document.querySelector('#past canvas').width > 0`)
	b.until(`document.querySelectorAll('#waves canvas').length >= 1 && document.querySelector('#waves-says').textContent.includes('windows')`)
	plots := js[int](b, `document.querySelectorAll('#waves figure').length`)
	b.do(chromedp.Click(chromedp.CSS(`#waves-pick button`)))
	b.until(fmt.Sprintf("Math.abs(document.querySelectorAll('#waves figure').length - %d) === 1", plots))
	if n := js[int](b, `fetch(document.querySelector('#waves-file').href).then((r) => r.arrayBuffer()).then((b) => new TextDecoder().decode(b.slice(0, 6)) === 'ARROW1' ? b.byteLength : 0)`); n == 0 {
		t.Error("the evidence is not an Arrow file")
	}
	b.fits("alert")
	b.quiet()

	// A person acknowledges the alarm.
	b.order(`#view [value=acknowledge]`, "change at hole end", "wrong-horse-battery")
	b.until(`document.querySelector('#ask-says').textContent.includes('not the token')`)
	if js[string](b, `document.querySelector('#view-now').textContent`) != "raised" {
		t.Error("a wrong token moved the alarm")
	}
	b.fill("token", token)
	b.do(chromedp.Click(chromedp.CSS("#go")))
	b.until(`document.querySelector('#view-now').textContent === 'acknowledged' && !document.querySelector('#ask').open`)
	b.until(`document.querySelector('#history').textContent.includes('acknowledged by kim: change at hole end')`)
	b.quiet("/api/commands") // 401
	b.order(`#view-mark [value=mark_false]`, "test piece", token)
	b.until(`document.querySelector('#history').textContent.includes('marked as false by kim: test piece')`)
	b.order(`#view-mark [value=unmark_false]`, "", token)
	b.until(`document.querySelector('#history').textContent.includes('no longer marked as false by kim') && document.querySelector('#view-now').textContent === 'acknowledged'`)
	b.fits("marked")
	b.quiet()
	b.do(chromedp.Click(chromedp.CSS(`#view .back`)))
	b.until(`document.querySelector('#alarm').checkVisibility() && document.querySelector('#alarm').textContent === 'acknowledged'`)
	b.until(`document.querySelector('#since').textContent.includes('by kim')`)
	b.order(`.hero [value=shelve]`, "test piece", token)
	b.until(`document.querySelector('#alarm').textContent === 'shelved' && document.querySelector('#since').textContent.includes('test piece')`)
	b.order(`.hero [value=unshelve]`, "", token)
	b.until(`document.querySelector('#alarm').textContent === 'acknowledged'`)
	b.quiet()

	// The monitor dies and comes back.
	monitor.kill()
	b.until(`document.querySelector('#connection').dataset.state === 'lost' && document.querySelector('#word').textContent === 'Offline'`)
	monitor = start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	b.until(`document.querySelector('#connection').dataset.state === 'live' && document.body.dataset.verdict === 'faulty'`)
	b.until(`document.querySelector('#alarm').textContent === 'acknowledged'`)
	b.until(`document.querySelectorAll('#alerts li').length === 6`) // raised, acknowledged, marked, unmarked, shelved, unshelved
	b.quiet("/api/events")

	// Keys are enough; a mouse is not needed.
	b.do(chromedp.Focus(chromedp.CSS(`.hero [value=shelve]`)), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('#ask').open`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector('#ask').open && document.activeElement.value === 'shelve'`)

	// Advisories have their own place: a machine that falls silent, a sensor that fails.
	ingester.kill()
	b.until(`document.querySelector('#advisories .stands')?.textContent.startsWith('silence')`)
	write(t, dir, "day.csv", longLife(true))
	ingester = start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml"))
	b.until(`document.querySelector('#advisories .stands')?.textContent.startsWith('sensor noise · failure')`)
	b.until(`document.querySelector('#advisories .over')?.textContent.startsWith('silence')`)
	b.until(`document.querySelector('.tile[data-status=failure] .name')?.textContent === 'noise'`)
	b.fits("advisory")
	if !js[bool](b, "window.loadedOnce === true") {
		t.Error("the page was loaded again")
	}
	b.quiet()
	ingester.kill()
	monitor.kill()
}

// hall is a page of machines with layouts of their own.
type hall struct {
	hub *web.Hub

	mu       sync.Mutex
	machines []hallMachine
	seq      uint64
}

type hallMachine struct {
	name   string
	layout *signal.Layout
	bare   bool // the gateway has the samples
}

func newHall(t *testing.T, machines ...hallMachine) (*hall, string) {
	t.Helper()
	f := &hall{hub: web.NewHub(web.Config{}), machines: machines}
	f.hub.Status(web.Status{Phase: web.Monitoring, Fraction: -1, WindowsPerSecond: float64(len(machines))})
	server := httptest.NewServer(f.hub.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); server.CloseClientConnections(); server.Close() })
	go func() {
		for ctx.Err() == nil {
			f.send()
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return f, server.URL
}

// send shows a window of each machine. The level of channel i is i+1.
func (f *hall) send() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	start := time.Now().Add(-time.Second)
	for _, m := range f.machines {
		w := web.Window{Machine: m.name, Layout: m.layout, Tool: "T1", Epoch: "00000000000000a1", Seq: f.seq, Start: start}
		samples := make([][]float32, len(m.layout.Channels()))
		for c := range samples {
			samples[c] = make([]float32, 120)
			for i := range samples[c] {
				samples[c][i] = float32(c+1) * float32(1-2*(i%2))
			}
		}
		if !m.bare {
			w.Summarize(samples)
		}
		w.Quality = make([]signal.Quality, len(samples))
		f.hub.Window(w)
		f.hub.Result(event.Result{
			ID: event.WindowID(m.name, w.Epoch, f.seq), Machine: m.name, Tool: "T1", Epoch: w.Epoch, Seq: f.seq, Start: start, End: start.Add(time.Second),
			Verdict: event.Healthy, Posterior: []float64{0.9, 0.1}, Score: 0.1, Model: "m", Alarm: "normal",
		})
	}
}

// change makes a machine another from now on.
func (f *hall) change(m hallMachine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.machines, func(o hallMachine) bool { return o.name == m.name })
	f.machines[i] = m
}

// choose chooses a machine and waits until its verdict is shown.
func (b *browser) choose(machine string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf("#machines a[data-machine='%s']", machine)), chromedp.NodeVisible))
	b.until(fmt.Sprintf(`document.querySelector('#machine').textContent === %q`, machine[strings.LastIndexByte(machine, '/')+1:]))
}

// tiles waits until the page shows the channels of a layout and no others, each with its own
// level, or without levels.
func (b *browser) tiles(l *signal.Layout, levels bool) {
	b.t.Helper()
	want := make(map[string]string)
	for i, c := range l.Channels() {
		if want[c.Name] = ""; levels {
			want[c.Name] = fmt.Sprintf("%#.3g", float64(i+1))
		}
	}
	shown, err := json.Marshal(want)
	if err != nil {
		b.t.Fatal(err)
	}
	b.until(fmt.Sprintf(`((want) => {
		const tiles = [...document.querySelectorAll('.tile')], text = (t, q) => t.querySelector(q).checkVisibility() ? t.querySelector(q).textContent : "";
		return tiles.length === Object.keys(want).length && tiles.every((t) => t.dataset.status === "normal" && want[text(t, ".name")] === text(t, ".value") && t.querySelector("canvas").checkVisibility() === %v);
	})(%s)`, levels, shown))
	b.until(fmt.Sprintf(`document.querySelector('#summary').textContent === '%s · %d normal'`, l.Name(), len(want)))
}

// Machines of two layouts, each with models of its own: the page shows the channels and the
// models of the machine that a person chose, also when the machine gets another layout, when
// its gateway keeps the samples, and when no model is deployed for it.
func TestPageOfTwoLayouts(t *testing.T) {
	lathe := layoutOf(t, "lathe", "force-x", "force-y", "spindle")
	const drill, turning, remote, idle = "acme/spore/bay1/line1/usk25", "acme/spore/bay2/line1/lathe2", "acme/spore/bay2/line1/lathe3", "acme/spore/bay3/line1/mill9"
	f, address := newHall(t, hallMachine{drill, signal.GunDrill(), false}, hallMachine{turning, lathe, false}, hallMachine{remote, lathe, true})
	f.hub.Models(drill, web.Models{Now: "ecs-dbn-1d"})
	f.hub.Models(turning, web.Models{Now: "ecs-dbn-1a", Next: "ecs-dbn-2a", Shadows: []string{"ecs-dbn-3a", "ecs-dbn-4a"}})
	f.hub.Advisory(event.Advisory{
		ID: "refused", Machine: idle, Kind: event.RefusedAdvisory, State: event.Raised, Severity: "warning", Since: time.Now(), At: time.Now(),
		Text: "mill9: NOT WATCHED, no model is deployed for it with layout mill. Deploy one: `trainer promote MODEL --for MACHINE`",
	})
	b := openBrowser(t, address)
	js[bool](b, "window.loadedOnce = true")
	b.until(`document.querySelectorAll('#machines li').length === 4`)
	b.tiles(signal.GunDrill(), true)
	b.until(`document.querySelector('#models').textContent === 'Model: ecs-dbn-1d' && !document.querySelector('#unsigned').checkVisibility()`)
	b.fits("layouts-drill")

	b.choose(turning)
	b.tiles(lathe, true)
	b.until(`document.querySelector('#models').textContent === 'Model: ecs-dbn-1a · from the next tool on: ecs-dbn-2a · in shadow: ecs-dbn-3a, ecs-dbn-4a'`)
	b.fits("layouts-lathe")
	b.choose(drill)
	b.tiles(signal.GunDrill(), true)

	// The gateway has the samples.
	b.choose(remote)
	b.tiles(lathe, false)
	b.until(`document.querySelector('#channels-says').textContent.includes('stay at the gateway') && document.body.dataset.verdict === 'healthy' && document.querySelector('#score').textContent === '0.10'`)
	b.until(`document.querySelector('#model').textContent === 'model m' && document.querySelector('#model').checkVisibility()`)
	b.fits("layouts-remote")

	// The machine gets another layout and then sends samples while the page looks at it.
	other := layoutOf(t, "other", "torque", "force-x", "power", "noise")
	f.change(hallMachine{remote, other, false})
	b.tiles(other, true)
	b.until(`document.querySelector('#channels-says').textContent === ''`)
	f.change(hallMachine{remote, lathe, false})
	b.tiles(lathe, true)

	// No model is deployed, so no window is judged.
	b.choose(idle)
	b.until(`document.querySelector('#word').textContent === 'Not watched' && document.querySelectorAll('.tile').length === 0`)
	b.until("document.querySelector('#says').textContent === 'No model is deployed for it with layout mill. Deploy one: `trainer promote MODEL --for MACHINE`.'")
	b.until(`document.querySelector('#advisories .stands strong').textContent === 'not watched' && document.querySelector('#machines-says').textContent === '4 machines, 1 not watched'`)
	b.until(`document.querySelector('#channels-says').textContent.includes('once the monitor has judged')`)
	b.fits("layouts-idle")

	// A model without a signature.
	f.hub.Models(drill, web.Models{Now: "ecs-dbn-1d", Unsigned: true})
	b.until(`document.querySelector('#unsigned').checkVisibility() && document.querySelector('#unsigned').textContent === 'Models are accepted without a signature. Not signed: the models of usk25.'`)
	b.choose(drill)
	b.until(`document.querySelector('#models').textContent === 'Model: ecs-dbn-1d · not signed'`)
	b.fits("layouts-unsigned")
	f.hub.Models(drill, web.Models{Now: "ecs-dbn-2d"})
	b.until(`document.querySelector('#models').textContent === 'Model: ecs-dbn-2d' && !document.querySelector('#unsigned').checkVisibility()`)
	if !js[bool](b, "window.loadedOnce === true") {
		t.Error("the page was loaded again")
	}
	b.quiet()
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
