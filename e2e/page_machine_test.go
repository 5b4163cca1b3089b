//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/web"
	past "github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	millName     = "acme/spore/bay2/line1/usk25"
	millIncident = "A-K3ZQ7M2P"
	millEpoch    = "00000000000000a1"
	millShift    = 12 * time.Hour // that a tool is in
	millHole     = 20 * time.Minute
)

// mill is a page of one machine with a past of 90 days, in which a tool is changed every
// twelve hours and ends with an alarm.
type mill struct {
	hub   *web.Hub
	store *evidence.Store
	begin time.Time // of the first tool
	pause int       // hour of the day in which the machine stands: half a day ago

	mu     sync.Mutex
	begun  time.Time // before which the history has nothing
	layout *signal.Layout
	seq    uint64
	result event.Result // what every window is judged as
	asked  []string     // steps of histories that were asked for
	latest *past.Alarm  // listed first, if there is one
	rng    *rand.Rand
}

func newMill(t *testing.T, layout *signal.Layout, first event.Result) (*mill, *browser) {
	t.Helper()
	store, err := evidence.Open(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	m := &mill{store: store, layout: layout, result: first, begin: time.Now().Add(-90 * 24 * time.Hour).Truncate(time.Hour), pause: time.Now().UTC().Add(-12 * time.Hour).Hour(), rng: rand.New(rand.NewPCG(7, 1))}
	m.hub = web.NewHub(web.Config{
		Evidence: store.Handler(), History: m.history, Tools: m.tools, Usual: m.usual, Alarms: m.alarms, Alarm: m.detail,
		Facts: func(string, string) web.Facts { return web.Facts{Threshold: 0.62, LimitUM: 300} },
	})
	m.hub.Status(web.Status{Phase: web.Monitoring, Fraction: -1, WindowsPerSecond: 1})
	server := httptest.NewServer(m.hub.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); server.CloseClientConnections(); server.Close() })
	m.send()
	go func() {
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			m.send()
		}
	}()
	return m, openBrowser(t, server.URL+"/#/m/"+millName)
}

// judge says how windows are judged from now on.
func (m *mill) judge(change func(*event.Result)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.result)
}

// send shows a window with its result.
func (m *mill) send() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	start := time.Now().Add(-time.Second)
	w := web.Window{Machine: millName, Layout: m.layout, Tool: m.result.Tool, Hole: "H7", Epoch: millEpoch, Seq: m.seq, Start: start, Learning: m.seq < 5}
	w.Quality = make([]signal.Quality, len(m.layout.Channels()))
	for i, c := range m.layout.Channels() {
		x := make([]float32, int(c.Rate))
		for k := range x {
			x[k] = float32(2*math.Sin(2*math.Pi*0.08*float64(k)) + 0.3*m.rng.NormFloat64())
		}
		w.Samples = append(w.Samples, x)
		if c.Name == "ch03" || c.Name == "s099" {
			w.Quality[i] = signal.Flatline
		}
	}
	m.hub.Window(w)
	r := m.result
	r.ID, r.Machine, r.Epoch, r.Seq, r.Start, r.End, r.Hole, r.Model = event.WindowID(millName, millEpoch, m.seq), millName, millEpoch, m.seq, start, start.Add(time.Second), w.Hole, "ecs-dbn-1d3f"
	m.hub.Result(r)
}

// healthy is a result with wear and what is left.
func healthy() event.Result {
	holes, low, high := 12.0, 7.0, 19.0
	return event.Result{
		Tool: "T180", FeedRate: 82.5, Programme: "O1234 <bore> " + strings.Repeat("X", 60), Material: "42CrMo4", Verdict: event.Healthy, Posterior: []float64{0.9, 0.1}, Score: 0.1, Alarm: "normal",
		Wear: &event.Wear{WearUM: 140, WearLowUM: 118, WearHighUM: 163, HolesLeft: &holes, HolesLeftLow: &low, HolesLeftHigh: &high},
	}
}

// state returns number and age of the tool that is in at a time, as a share of its life.
func (m *mill) state(at time.Time) (tool int, share float64) {
	since := at.Sub(m.begin)
	return int(since / millShift), float64(since%millShift) / float64(millShift)
}

func (m *mill) toolName(n int) string { return fmt.Sprintf("T%d", n+1) }

func millWear(share float64) float64  { return 20 + 300*(0.3*share+0.7*share*share*share) }
func millScore(share float64) float64 { return 1 / (1 + math.Exp(-14*(share-0.9))) }

func (m *mill) history(machine string, from, to time.Time, step time.Duration) (past.History, error) {
	m.mu.Lock()
	asked := fmt.Sprintf("%.0f %.0f", to.Sub(from).Hours(), step.Seconds())
	if step == past.ByHole {
		asked = fmt.Sprintf("%.0f hole", to.Sub(from).Hours())
	}
	m.asked = append(m.asked, asked)
	begun := m.begun
	m.mu.Unlock()
	h := past.History{Machine: machine, From: from, To: to, Since: m.begin, Holes: int(to.Sub(from) / millHole)}
	if step == past.ByHole {
		h.Each = max(1, (h.Holes+past.MaxPoints-1)/past.MaxPoints)
		step = millHole * time.Duration(h.Each)
	} else {
		h.Step = int(step.Seconds())
	}
	h.From = from.Truncate(step)
	p := &h.Points
	for at := h.From; at.Before(to); at = at.Add(step) {
		if at.Before(m.begin) || at.Before(begun) || at.UTC().Hour() == m.pause {
			continue
		}
		tool, share := m.state(at)
		n := int(step.Seconds())
		faulty := int(float64(n) * 0.6 * max(0, millScore(share)-0.4))
		p.T = append(p.T, at.Unix())
		if h.Each > 0 {
			p.End, p.Hole = append(p.End, at.Add(step).Unix()), append(p.Hole, fmt.Sprintf("H%d", 1+int(share*float64(millShift/millHole))))
		}
		p.Windows, p.Cutting, p.NotCutting = append(p.Windows, n), append(p.Cutting, n*7/10), append(p.NotCutting, n-n*7/10)
		p.Unknown, p.SensorFault, p.Late = append(p.Unknown, n/50), append(p.SensorFault, 0), append(p.Late, 0)
		learning, threshold := 0, 0.5
		wear, mean := millWear(share), millScore(share)
		if share < 0.01 {
			learning, wear, mean, faulty = n*7/10-n/50, math.NaN(), math.NaN(), 0
		}
		if at.After(m.begin.Add(75 * 24 * time.Hour)) {
			threshold = 0.62
		}
		p.Learning = append(p.Learning, learning)
		p.Faulty, p.Healthy = append(p.Faulty, faulty), append(p.Healthy, n*7/10-n/50-faulty-learning)
		p.ScoreMean, p.ScoreMax, p.Threshold = append(p.ScoreMean, mean), append(p.ScoreMax, min(0.99, mean+0.08+0.05*math.Sin(float64(at.Unix())))), append(p.Threshold, threshold)
		p.Wear, p.WearLow, p.WearHigh = append(p.Wear, wear), append(p.WearLow, 0.86*wear), append(p.WearHigh, 1.13*wear+5)
		if len(h.Tools) == 0 || h.Tools[len(h.Tools)-1].Tool != m.toolName(tool) {
			h.Tools = append(h.Tools, past.ToolSpan{Tool: m.toolName(tool), From: at, To: at.Add(step)})
		}
		h.Tools[len(h.Tools)-1].To = at.Add(step)
	}
	all, _ := m.alarms(past.AlarmFilter{})
	for _, a := range slices.Backward(all) {
		if a.Since.Before(to) && (a.Cleared.IsZero() || a.Cleared.After(from)) {
			h.Alarms = append(h.Alarms, a)
		}
	}
	h.Advisories = []past.AdvisorySpan{{Kind: event.DriftAdvisory, From: m.begin.Add(80 * 24 * time.Hour), To: m.begin.Add(81 * 24 * time.Hour)}}
	return h, nil
}

func (m *mill) tools(_ string, limit int) (all []past.Life, err error) {
	now, share := m.state(time.Now())
	for n := now; n > now-limit; n-- {
		end := 1.0
		if n == now {
			end = share
		}
		wear := millWear(end)
		l := past.Life{Tool: m.toolName(n), From: m.begin.Add(time.Duration(n) * millShift), To: m.begin.Add(time.Duration(n) * millShift).Add(time.Duration(end * float64(millShift))), CuttingSeconds: end * 0.7 * millShift.Seconds(), WearUM: &wear}
		for i := range 100 {
			x := end * float64(i+1) / 100
			wobble := 1 + 0.1*math.Sin(float64(7*n))
			l.Curve.Cutting = append(l.Curve.Cutting, math.Round(x*0.7*millShift.Seconds()))
			l.Curve.Wear, l.Curve.Score = append(l.Curve.Wear, wobble*millWear(x)), append(l.Curve.Score, millScore(wobble*x))
		}
		all = append(all, l)
	}
	return all, nil
}

// usual says that the channels were between ±4 while the reference was made, or in as many
// windows as it has by now.
func (m *mill) usual(string, string) (u past.Usual, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u.Windows = 10; m.result.Verdict == event.Learning {
		u.Windows = m.result.ReferenceLen
	}
	for _, c := range m.layout.Channels() {
		u.Channels = append(u.Channels, event.Range{Channel: c.Name, Low: -4, High: 4})
	}
	return u, nil
}

// alarms returns an alarm for each of the last tools but the one that is in, and before them
// the latest one.
func (m *mill) alarms(past.AlarmFilter) (all []past.Alarm, err error) {
	m.mu.Lock()
	if m.latest != nil {
		all = append(all, *m.latest)
	}
	m.mu.Unlock()
	now, _ := m.state(time.Now())
	for n := now - 1; n > now-20; n-- {
		raised, wear := m.begin.Add(time.Duration(n)*millShift+millShift*19/20), 290.0
		all = append(all, past.Alarm{
			Incident: millName26(n), Machine: millName, Tool: m.toolName(n), Since: raised.Add(-8 * time.Second), Raised: raised, Cleared: raised.Add(millShift / 20),
			State: "normal", Faulty: 5, Of: 8, WearUM: &wear,
		})
	}
	return all, nil
}

// millName26 returns the short name of an alarm of a tool.
func millName26(n int) string {
	name := []byte("A-AAAAAAAA")
	for i := len(name) - 1; n > 0; i-- {
		name[i] += byte(n % 26)
		n /= 26
	}
	return string(name)
}

func (m *mill) detail(string) (past.AlarmDetail, error) { return past.AlarmDetail{}, past.ErrNoAlarm }

// lastAsked returns the span in hours and the step in seconds of the last history, or hole.
func (m *mill) lastAsked() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1]
}

// mouse moves, presses or releases the mouse over an element, at a share of its width.
func (b *browser) mouse(selector string, what input.DispatchMouseEventType, share float64) {
	b.t.Helper()
	at := js[[]float64](b, fmt.Sprintf(`((r) => [r.left + %v * r.width, r.top + r.height / 2])(document.querySelector(%q).getBoundingClientRect())`, share, selector))
	p := input.DispatchMouseEventParams{Type: what, X: at[0], Y: at[1]}
	if what != input.DispatchMouseEventTypeMouseMoved {
		p.Button, p.ClickCount = input.MouseButtonLeft, 1
	}
	if _, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, p); err != nil {
		b.t.Fatal(err)
	}
}

// open leads the page to another address.
func (b *browser) open(hash string) {
	b.t.Helper()
	b.do(chromedp.Navigate(js[string](b, "location.origin") + "/" + hash))
}

// everyWidth fails the test if the page is wider than the window at a width at which people
// use it, in light and in dark.
func (b *browser) everyWidth(what string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, width := range []int64{400, 768, 1280, 1920} {
			b.fitsInto(what, width)
			b.shot(fmt.Sprintf("%s-%s-%d", what, scheme, width))
		}
	}
	b.size(1280)
}

// The page of a machine: what to do, history that is picked, zoomed and read as a table, and
// tools before this one.
func TestPageMachineHistory(t *testing.T) {
	m, b := newMill(t, signal.GunDrill(), healthy())
	b.until(`document.querySelector('.machine .now')?.dataset.state === 'normal' && document.querySelectorAll('.lane canvas').length === 7`)
	b.until(`document.querySelector('.machine-head .verdict').textContent.includes('score 0.10, threshold 0.62')`)
	for name, want := range map[string]string{"Programme": healthy().Programme, "Material": "42CrMo4", "Feed rate": "82.5 mm/min"} {
		b.until(fmt.Sprintf(`[...document.querySelectorAll('.machine-head .facts > div')].some((d) => d.querySelector('dt').textContent === %q && d.querySelector('dd').textContent === %q)`, name, want))
	}
	b.until(`document.querySelector('.life .figures').textContent.includes('140 µm (118 to 163) of 300') && document.querySelector('.life .figures').textContent.includes('12 holes left (7 to 19)')`)

	// Ranges.
	for label, want := range map[string]string{"1 h": "1 60", "24 h": "24 60", "30 d": "720 1800", "90 d": "2160 7200"} {
		js[bool](b, fmt.Sprintf(`([...document.querySelectorAll('.seg button')].find((x) => x.textContent === %q).click(), true)`, label))
		b.until(fmt.Sprintf(`document.querySelector('.seg [aria-pressed=true]').textContent === %q`, label))
		for deadline := time.Now().Add(patience); m.lastAsked() != want; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: asked for %s, want %s", label, m.lastAsked(), want)
			}
		}
	}
	js[bool](b, `([...document.querySelectorAll('.seg button')][2].click(), true)`)
	b.until(`location.hash.endsWith('?range=24h')`)

	// Keys walk and zoom.
	b.do(chromedp.Focus(chromedp.CSS(`.lanes .chart`)), chromedp.KeyEvent(kb.End))
	b.until(`/window/.test(document.querySelector('#lanes-at').textContent)`)
	last := js[string](b, `document.querySelector('#lanes-at').textContent`)
	b.do(chromedp.KeyEvent(kb.ArrowLeft))
	b.until(fmt.Sprintf(`document.querySelector('#lanes-at').textContent !== %q`, last))
	span := `((l) => l.match(/from (.*) to (.*)/).slice(1).map((x) => Date.parse(x)))(document.querySelector('.lanes .chart').getAttribute('aria-label'))`
	hours := func() float64 { return js[float64](b, `((x) => (x[1] - x[0]) / 3600000)(`+span+`)`) }
	if got := hours(); math.Abs(got-24) > 0.1 {
		t.Errorf("a day is %.2f hours", got)
	}
	b.do(chromedp.KeyEvent("+"))
	b.until(`document.querySelector('.lanes .reset') !== null`)
	if got := hours(); math.Abs(got-12) > 0.1 {
		t.Errorf("a zoomed day is %.2f hours", got)
	}

	// So does the mouse: a drag over a lane, and the wheel with Shift.
	hint := js[string](b, `document.querySelector('.lanes').scrollIntoView(), document.querySelector('#lanes-at').textContent`)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseMoved, 0.2)
	b.until(fmt.Sprintf(`document.querySelector('#lanes-at').textContent !== %q`, hint))
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseMoved, 0.25)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMousePressed, 0.25)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseMoved, 0.4)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseMoved, 0.75)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseReleased, 0.75)
	b.until(`Math.abs(((x) => (x[1] - x[0]) / 3600000)(` + span + `) - 6) < 0.3`)
	js[bool](b, `(() => {
		const over = document.querySelector('.lane.wear .u-over'), box = over.getBoundingClientRect();
		return over.dispatchEvent(new WheelEvent('wheel', { deltaY: -90, shiftKey: true, clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true, cancelable: true })) || true;
	})()`)
	b.until(`((x) => (x[1] - x[0]) / 3600000)(` + span + `) < 5`)
	b.do(chromedp.Focus(chromedp.CSS(`.lanes .chart`)), chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector('.lanes .reset') === null`)

	// The table has the same numbers, and its newest step grows with every window.
	js[bool](b, `([...document.querySelectorAll('.seg button')][0].click(), true)`)
	js[bool](b, `(document.querySelector('.as-table').click(), true)`)
	b.until(`document.querySelectorAll('.numbers tbody tr').length >= 50 && /^\d+ steps with windows, 60 s each/.test(document.querySelector('.numbers caption').textContent)`)
	newest := `+document.querySelector('.numbers tbody tr td:nth-child(8)').textContent`
	stamp := js[string](b, `document.querySelector('.numbers tbody th').textContent`)
	n := js[int](b, newest)
	b.until(fmt.Sprintf(`document.querySelector('.numbers tbody th').textContent !== %q || %s > %d`, stamp, newest, n))
	b.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll('.seg button')][5].click()`))
	b.until(`[...document.querySelectorAll('.numbers thead th')].length === 12 && document.querySelector('.numbers .pages')?.textContent.includes('1 /')`)
	js[bool](b, `(document.querySelector('.as-table').click(), true)`)

	// This tool and those before it.
	b.until(`document.querySelector('#tools-title')?.textContent === 'This tool and those before it' && getComputedStyle(document.querySelector('.tools .list')).display === 'block'`)
	b.until(`document.querySelectorAll('.tools tbody tr').length === 20 && document.querySelectorAll('.tools canvas').length === 2`)
	js[bool](b, `(document.querySelector('.tools tbody tr:nth-child(3) button').click(), true)`)
	b.until(`document.querySelector('.tools tr.strong button').textContent === document.querySelector('.tools tbody tr:nth-child(3) button').textContent`)
	b.until(`document.querySelectorAll('.past-alarms tbody a[href^="#/a/A-"]').length === 19`)
	b.everyWidth("machine")
	b.quiet("/api/me") // no one can log in
}

// The history by hole: each hole is a step, also in a zoom and in the table.
func TestPageMachineHoles(t *testing.T) {
	m, b := newMill(t, signal.GunDrill(), healthy())
	b.until(`document.querySelectorAll('.lane canvas').length === 7`)
	asks := func(want ...string) {
		t.Helper()
		for deadline := time.Now().Add(patience); !slices.Contains(want, m.lastAsked()); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("asked for %s, want %s", m.lastAsked(), strings.Join(want, " or "))
			}
		}
	}
	js[bool](b, `([...document.querySelectorAll('.seg button')][2].click(), true)`)
	b.until(`[...document.querySelectorAll('.lanes select option')].some((x) => x.value === 'hole')`)
	b.choose("by", "hole")
	asks("24 hole")
	b.until(`document.querySelector('.lane.axis') && document.querySelector('.lanes select').value === 'hole'`)
	b.key(".lanes .chart", kb.Home, `/^Hole H\d+ · .*windows$/.test(document.querySelector('#lanes-at').textContent)`)
	// The hole that is being drilled: no answer has it, it comes with the next window.
	b.key(".lanes .chart", kb.End, `/^Hole H7 · /.test(document.querySelector('#lanes-at').textContent)`)

	// A drag over holes asks for the holes of that time.
	js[bool](b, `(document.querySelector('.lanes').scrollIntoView(), true)`)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseMoved, 0.25)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMousePressed, 0.25)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseMoved, 0.4)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseMoved, 0.75)
	b.mouse(".lane.score .u-over", input.DispatchMouseEventTypeMouseReleased, 0.75)
	b.until(`document.querySelector('.lanes .reset') !== null`)
	asks("12 hole", "13 hole") // whole holes
	js[bool](b, `(document.querySelector('.as-table').click(), true)`)
	b.until(`document.querySelector('.numbers thead th').textContent === 'Hole' && [...document.querySelectorAll('.numbers tbody th')].every((x) => /^H\d+$/.test(x.textContent))`)
	if n := js[int](b, `document.querySelectorAll('.numbers tbody tr').length`); n < 30 || n > 38 {
		t.Errorf("a drag over half a day of holes of %v shows %d holes", millHole, n)
	}
	js[bool](b, `(document.querySelector('.as-table').click(), true)`)
	b.shot("machine-holes")

	// More holes than points are drawn several at a time, and the page says so.
	js[bool](b, `([...document.querySelectorAll('.seg button')][5].click(), true)`)
	asks("2160 hole")
	b.until(`document.querySelector('.lanes').textContent.includes('Each step is 4 holes')`)
	b.choose("by", "time")
	asks("2160 7200")
	b.until(`!document.querySelector('.lanes').textContent.includes('Each step is')`)
	b.accessible("machine by hole")

	// A span in which nothing came can be zoomed, too, on every axis.
	b.do(chromedp.Focus(chromedp.CSS(".lanes .chart")), chromedp.KeyEvent(kb.PageUp), chromedp.KeyEvent(kb.PageUp))
	b.until(`document.querySelector('.lanes .says.none') !== null`)
	hours := `((x) => (x[1] - x[0]) / 3600000)(document.querySelector('.lanes .chart').getAttribute('aria-label').match(/from (.*) to (.*)/).slice(1).map((x) => Date.parse(x)))`
	b.choose("by", "cutting")
	b.until(`document.querySelector('.lanes select').value === 'cutting'`)
	b.do(chromedp.KeyEvent("+"))
	b.until(`Math.abs(` + hours + ` - 1080) < 1`)
	b.choose("by", "hole")
	b.until(`document.querySelector('.lanes .says.none').textContent.startsWith('No hole')`)
	b.do(chromedp.KeyEvent("+"))
	b.until(`Math.abs(` + hours + ` - 540) < 1`)
	b.quiet("/api/me") // no one can log in
}

// The channels of a machine with 152 of them: only what is seen is drawn, a filter finds one,
// and what is not normal stands alone on request.
func TestPageMachineChannels(t *testing.T) {
	var all []signal.Channel
	for i := range 152 {
		all = append(all, signal.Channel{Name: fmt.Sprintf("s%03d", i+1), Kind: signal.Force, Unit: "N", Rate: 100, Range: 5000, Sensor: fmt.Sprintf("node%02d", i/8)})
	}
	layout, err := signal.NewLayout("panel", all)
	if err != nil {
		t.Fatal(err)
	}
	_, b := newMill(t, layout, healthy())
	b.until(`document.querySelectorAll('.channel').length === 152`)
	b.until(`document.querySelector('#channels-count').textContent === 'panel · 1 failure · 151 normal'`)
	js[bool](b, `(document.querySelector('.groups').scrollIntoView(), true)`)
	drawn := `[...document.querySelectorAll('.channel canvas')].filter((c) => c.width !== 300).length`
	b.until(drawn + ` > 8`)
	if n := js[int](b, drawn); n > 130 {
		t.Errorf("%d of 152 channels were drawn, although few are seen", n)
	}
	b.until(`document.querySelector('.channel .scale span').textContent !== '' && document.querySelector('.channel .unit').textContent === 'N'`)
	b.do(chromedp.Evaluate[chromedp.Void](`((i) => { i.value = 's14'; i.dispatchEvent(new Event('input', { bubbles: true })); })(document.querySelector('.find'))`))
	b.until(`document.querySelectorAll('.channel').length === 10`)
	b.do(chromedp.Evaluate[chromedp.Void](`((i) => { i.value = ''; i.dispatchEvent(new Event('input', { bubbles: true })); })(document.querySelector('.find'))`))
	js[bool](b, `(document.querySelector('#only-bad').click(), true)`)
	b.until(`document.querySelectorAll('.channel').length === 1 && document.querySelector('.channel[data-status=failure] .fault').textContent === 'failure: does not move'`)
	js[bool](b, `(document.querySelector('#only-bad').click(), true)`)

	// The spectrum of the last window, on demand.
	js[bool](b, `(document.querySelector('.channel button.name').click(), true)`)
	b.until(`document.querySelector('#spectrum canvas') !== null && document.querySelector('#spectrum figcaption').textContent.includes('N²/Hz')`)
	b.everyWidth("channels")
	b.quiet("/api/me") // no one can log in
}

// Of a silent machine the page says that nothing is known of its sensors: no state, no value, no unit and no picture
// of the last window. When windows come again, they are back.
func TestPageSilentMachine(t *testing.T) {
	m, b := newMill(t, signal.GunDrill(), healthy())
	normal := `document.querySelectorAll('.channel[data-status=no_data]').length === 0 && [...document.querySelectorAll('.channel .value')].some((v) => v.textContent !== '–')`
	b.until(`document.querySelectorAll('.channel').length === 14 && ` + normal)
	silence := event.Advisory{ID: "s", Machine: millName, Kind: event.SilenceAdvisory, State: event.Raised, Severity: "warning", Since: time.Now(), At: time.Now(), Text: "usk25: SILENT"}
	m.hub.Advisory(silence)
	b.until(`document.querySelector('#channels-count').textContent.endsWith(' · 14 no data') && document.querySelector('#channels-silent').textContent.startsWith('No windows come')`)
	b.until(`[...document.querySelectorAll('.channel')].every((c) => c.querySelector('.value').textContent === '–' && c.querySelector('.unit').textContent === '' && c.dataset.status === 'no_data')`)
	b.accessible("a silent machine")
	b.fits("silent")
	silence.ID, silence.State = "c", event.Cleared
	m.hub.Advisory(silence)
	b.until(`!document.querySelector('#channels-silent') && ` + normal)
	b.quiet("/api/me")
}

// What became of the samples is on the page of the machine and on the page of the system, in both languages: what is in
// windows is not rounded up, and what is lost not down to nothing. Samples that are lost have an advisory.
func TestPageLedger(t *testing.T) {
	m, b := newMill(t, signal.GunDrill(), healthy())
	b.until(`document.querySelector('.machine .now')?.dataset.state === 'normal' && !document.querySelector('.ledger')`)
	ledger := event.Ledger{At: time.Now(), Seconds: 3600, Received: 1e6, InWindows: 999_799, Unused: []event.UnusedSamples{{Reason: "repeat", Samples: 200}, {Reason: "gap", Samples: 1}}}
	m.judge(func(r *event.Result) { r.Ledger = &ledger })
	b.until(`document.querySelector('.ledger')?.textContent === 'Of the last 60 min: 99.97 % in windows, 0.02 % repeats, < 0.01 % next to gaps'`)
	m.judge(func(r *event.Result) { r.Ledger = nil })
	b.accessible("a machine with a ledger")
	b.fits("ledger")
	lost := event.Advisory{ID: "l", Machine: millName, Kind: event.LossAdvisory, State: event.Raised, Severity: "warning", Since: time.Now(), At: time.Now(), Text: "usk25: SAMPLES LOST"}
	m.hub.Advisory(lost)
	b.until(`document.querySelector('.open-advisories')?.textContent.includes('Samples lost') && document.querySelector('.now .does').textContent.startsWith('Too many samples of this machine are in no window since')`)

	b.open("#/system")
	b.until(`document.querySelector('[aria-labelledby=ledger] tbody tr')?.innerText === 'usk25\t99.97 % in windows\t0.02 % repeats, < 0.01 % next to gaps'`)
	b.until(`document.querySelector('.problems')?.textContent.includes('Too many samples of this machine are in no window')`)
	b.accessible("a system with ledgers")
	b.fits("ledger-system")
	b.choose("language", "de")
	b.until(`document.querySelector('[aria-labelledby=ledger] tbody tr')?.innerText === 'usk25\t99.97 % in Fenstern\t0.02 % Wiederholungen, < 0.01 % neben Lücken'`)
	b.until(`document.querySelector('.problems')?.textContent.includes('Zu viele Messwerte dieser Maschine')`)
	b.open("#/m/" + millName)
	b.until(`document.querySelector('.ledger')?.textContent.startsWith('Von den letzten 60 min: 99.97 % in Fenstern')`)
	b.quiet("/api/")
}

// What one page must never say at once, and times that are none.
func TestPageMachineSaysOneThing(t *testing.T) {
	none, two := 0.0, 2.0
	m, b := newMill(t, signal.GunDrill(), healthy())
	b.until(`document.querySelector('.machine .now')?.dataset.state === 'normal'`)

	// What is usual is of this life of the tool, also if a new tool has the old name.
	usual := `document.querySelector('#channels-usual')?.textContent.includes('first %d windows')`
	b.until(fmt.Sprintf(usual, 10))
	m.judge(func(r *event.Result) { r.Verdict, r.ReferenceLen, r.Wear = event.Learning, 4, nil })
	b.until(fmt.Sprintf(usual, 4))
	m.judge(func(r *event.Result) { *r = healthy() })
	b.until(fmt.Sprintf(usual, 10))

	// A tool at its limit is not called normal or healthy, and what is left keeps its interval.
	m.judge(func(r *event.Result) {
		r.Wear.HolesLeft, r.Wear.HolesLeftLow, r.Wear.HolesLeftHigh = &none, &none, &two
	})
	b.until(`document.querySelector('.machine .now').dataset.state === 'at_limit'`)
	if said := js[string](b, `document.querySelector('.now-row').innerText`); strings.Contains(said, "Normal") || strings.Contains(said, "Healthy") {
		t.Errorf("a tool at its limit is called:\n%s", said)
	}
	b.until(`document.querySelector('.life').textContent.includes('0 holes left (0 to 2)')`)

	// Nothing is estimated of a tool whose reference is not there.
	m.judge(func(r *event.Result) { r.Verdict, r.ReferenceLen, r.Tool, r.Wear = event.Learning, 3, "T181", nil })
	b.until(`document.querySelector('.machine .now').dataset.state === 'learning'`)
	if said := js[string](b, `document.querySelector('.life').innerText`); strings.Contains(said, "µm") || strings.Contains(said, "left") {
		t.Errorf("of a tool without a reference the page says:\n%s", said)
	}

	// A raised alarm keeps its mark when the next window is healthy.
	at := time.Now()
	m.hub.Alert(event.Alert{
		ID: "raised", Machine: millName, Tool: "T181", State: event.Raised, Alarm: "raised", Incident: millIncident, Severity: "warning",
		Since: at.Add(-8 * time.Second), At: at, Epoch: millEpoch, Seq: 1, Faulty: 5, Of: 8, K: 5, N: 8, Score: 0.9, Model: "m", Threshold: 0.62, Text: "usk25: FAULTY",
	})
	m.judge(func(r *event.Result) {
		*r = healthy()
		r.Tool, r.Alarm, r.Incident = "T181", "raised", millIncident
	})
	b.until(`document.querySelector('.machine .now').dataset.state === 'raised' && document.querySelector('.verdict').dataset.verdict === 'healthy'`)
	b.until(`document.querySelector('.now use').getAttribute('href') === '#raised' && document.querySelector('.now').matches('.alarm')`)
	b.until(`document.querySelector('.now .does').textContent.length > 10 && document.title.startsWith('ALARM')`)
	for _, action := range []string{"acknowledge", "shelve", "mark_false"} {
		b.until(fmt.Sprintf(`((x) => x?.dataset.machine === %q && x.dataset.incident === %q)(document.querySelector('.now [value=%s]'))`, millName, millIncident, action))
	}
	b.everyWidth("machine-alarm")

	// The list of alarms says what people made of it.
	for _, state := range []event.AlertState{event.Acknowledged, event.MarkedFalse} {
		marked := state == event.MarkedFalse
		m.judge(func(r *event.Result) {
			r.Alarm = "acknowledged"
			m.latest = &past.Alarm{Incident: millIncident, Machine: millName, Tool: "T181", Since: at, Raised: at, State: "acknowledged", FalseAlarm: marked, Faulty: 5, Of: 8}
		})
		m.hub.Alert(event.Alert{
			ID: string(state), Machine: millName, Tool: "T181", State: state, Alarm: "acknowledged", Incident: millIncident, Severity: "info",
			Since: at, At: at, Epoch: millEpoch, Seq: 2, By: "kim", Text: string(state),
		})
		b.until(fmt.Sprintf(`((x) => x.includes(%q) && x.includes('Acknowledged') && x.includes('marked as false') === %v)(document.querySelector('.past-alarms tbody tr').textContent)`, millIncident, marked))
	}

	// The alarm is over: the page is grey again.
	m.hub.Alert(event.Alert{
		ID: "cleared", Machine: millName, Tool: "T181", State: event.Cleared, Alarm: "normal", Incident: millIncident, Severity: "info",
		Since: at, At: at.Add(time.Minute), Epoch: millEpoch, Seq: 9, Of: 8, K: 5, N: 8, Reason: "recovered", Model: "m", Text: "over",
	})
	m.judge(func(r *event.Result) { r.Alarm, r.Incident = "normal", "" })
	b.until(`document.querySelector('.machine .now').dataset.state === 'normal'`)
	b.until(`document.querySelector('.now .does').textContent === 'Nothing to do.' && document.querySelector('.now [value=shelve]').dataset.incident === ''`)
	if said := js[string](b, `document.body.innerText`); strings.Contains(said, "1970") || strings.Contains(said, "Invalid") || strings.Contains(said, "NaN") {
		t.Errorf("the page says:\n%s", said)
	}
	b.quiet("/api/me") // no one can log in
}

// A recording without a clock counts from 1970: the page says seconds, and no date.
func TestPageMachineWithoutClock(t *testing.T) {
	hub := web.NewHub(web.Config{History: func(name string, from, to time.Time, step time.Duration) (past.History, error) {
		h := past.History{Machine: name, From: from, To: to, Step: 60}
		for s := int64(0); s < 600; s += 60 {
			h.Points.T = append(h.Points.T, s)
			for _, n := range []*[]int{&h.Points.Windows, &h.Points.Cutting, &h.Points.Healthy} {
				*n = append(*n, 60)
			}
			for _, n := range []*[]int{&h.Points.Faulty, &h.Points.Unknown, &h.Points.Learning, &h.Points.NotCutting, &h.Points.SensorFault, &h.Points.Late} {
				*n = append(*n, 0)
			}
			for _, n := range []*past.Numbers{&h.Points.ScoreMean, &h.Points.ScoreMax, &h.Points.Threshold, &h.Points.Wear, &h.Points.WearLow, &h.Points.WearHigh} {
				*n = append(*n, 0.2)
			}
		}
		h.Tools = []past.ToolSpan{{Tool: "T1", From: time.Unix(0, 0).UTC(), To: time.Unix(600, 0).UTC()}}
		return h, nil
	}})
	server := httptest.NewServer(hub.Handler())
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	start := time.Unix(599, 0).UTC()
	r := healthy()
	r.ID, r.Machine, r.Epoch, r.Seq, r.Start, r.End = event.WindowID(millName, millEpoch, 1), millName, millEpoch, 1, start, start.Add(time.Second)
	hub.Window(web.Window{Machine: millName, Layout: signal.GunDrill(), Tool: "T180", Epoch: millEpoch, Seq: 1, Start: start, Quality: make([]signal.Quality, len(signal.GunDrill().Channels()))})
	hub.Result(r)
	hub.Advisory(event.Advisory{ID: "a", Machine: millName, Kind: event.DriftAdvisory, State: event.Raised, Severity: "info", Since: start, At: start, Text: "drift"})
	b := openBrowser(t, server.URL+"/#/m/"+millName)
	b.until(`document.querySelector('.open-advisories')?.textContent.includes('second 599')`)
	b.until(`document.querySelectorAll('.lane canvas').length === 7`)
	js[bool](b, `(document.querySelector('.as-table').click(), true)`)
	b.until(`document.querySelector('.numbers tbody th')?.textContent.startsWith('second ')`)
	if said := js[string](b, `document.body.innerText`); strings.Contains(said, "1970") || strings.Contains(said, "1969") {
		t.Errorf("the page says:\n%s", said)
	}
}

// js1 returns the result of an expression that may use the exports of a module of the page as x.
func js1[T any](b *browser, module, expression string) T {
	b.t.Helper()
	return js[T](b, fmt.Sprintf("import('/static/%s').then((x) => %s)", module, expression))
}

// A history that has just begun fills its lanes, until a person chooses a range.
func TestPageMachineHistoryBegins(t *testing.T) {
	m, b := newMill(t, signal.GunDrill(), healthy())
	span := `((l) => l.match(/from (.*) to (.*)/).slice(1).map((x) => Date.parse(x)))(document.querySelector('.lanes .chart').getAttribute('aria-label'))`
	minutes := `((x) => (x[1] - x[0]) / 60000)(` + span + `)`
	b.until(`document.querySelector('.lanes .chart') !== null && Math.abs(` + minutes + ` - 480) < 2`)
	m.mu.Lock()
	m.begun = time.Now().Add(-20 * time.Minute)
	m.mu.Unlock()
	b.reload()
	b.until(`document.querySelector('.lanes .chart') !== null && ` + minutes + ` < 25`)
	js[bool](b, `([...document.querySelectorAll('.seg button')].find((x) => x.textContent === '8 h').click(), true)`)
	b.until(`Math.abs(` + minutes + ` - 480) < 2`)
	b.quiet("/api/me")
}

// The newest step of a history grows by the results that came after it, and lines end where
// windows are missing and where the tool changes.
func TestPageMachineHistoryGrows(t *testing.T) {
	_, b := newMill(t, signal.GunDrill(), healthy())
	const points = `{ t: [60, 120], windows: [60, 3], cutting: [60, 3], healthy: [60, 2], faulty: [0, 1], unknown: [0, 0], learning: [0, 0], not_cutting: [0, 0], sensor_fault: [0, 0], score_mean: [0.1, 0.4], score_max: [0.2, 0.9], threshold: [0.5, 0.5], wear: [100, 101], wear_low: [90, 91], wear_high: [110, 111] }`
	const results = `[
		{ end: "1970-01-01T00:02:03Z", verdict: "healthy", score: 0 },
		{ end: "1970-01-01T00:02:05Z", verdict: "faulty", score: 0.8, wear_um: 102, wear_low_um: 92, wear_high_um: 112 },
		{ end: "1970-01-01T00:02:06Z", verdict: "faulty", score: 1, late: true },
		{ end: "1970-01-01T00:03:01Z", verdict: "not_cutting", score: 0 },
	]`
	const drilled = `[
		{ start: "1970-01-01T00:02:04Z", end: "1970-01-01T00:02:05Z", verdict: "faulty", score: 0.8, wear_um: 102, wear_low_um: 92, wear_high_um: 112, tool: "T1", hole: "H2" },
		{ start: "1970-01-01T00:02:04.5Z", end: "1970-01-01T00:02:05.5Z", verdict: "not_cutting", score: 0, tool: "T1" },
		{ start: "1970-01-01T00:02:05Z", end: "1970-01-01T00:02:06Z", verdict: "healthy", score: 0.1, tool: "T1", hole: "H3" },
		{ start: "1970-01-01T00:02:06Z", end: "1970-01-01T00:02:07Z", verdict: "healthy", score: 0.1, tool: "T2", hole: "H3" },
	]`
	for expression, want := range map[string]string{
		`[0, 500, 800, 990].map((first) => x.begunSpan({ from: 0, to: 1000 }, first).from).concat(x.begunSpan({ from: 0, to: 1000 }, undefined).from)`:                                             `[0,0,700,700,0]`,
		`(({ t, windows, faulty, cutting, not_cutting, score_max, wear }) => [t, windows, faulty, cutting, not_cutting, score_max, wear])(x.grow(` + points + `, 60, ` + results + `, 123, 0.62))`: `[[60,120,180],[60,4,1],[0,2,0],[60,4,0],[0,0,1],[0.2,0.9,null],[100,102,null]]`,
		`x.grow(` + points + `, 60, ` + results + `, 123, 0.62).score_mean.map((v) => v && +v.toFixed(3))`:                                                                                         `[0.1,0.5,null]`,
		`x.grow(` + points + `, 60, [], 123, 0.62).windows`:                                                                                                                                           `[60,3]`,
		`((p) => [p.t, p.wear])(x.fill({ ...` + points + `, t: [60, 300] }, 60, []))`:                                                                                                                 `[[60,270,300],[100,null,101]]`,
		`((p) => [p.t, p.wear])(x.fill(` + points + `, 60, [{ from: "1970-01-01T00:02:00Z" }]))`:                                                                                                      `[[60,90,120],[100,null,101]]`,
		`x.fill({ ...` + points + `, learning: [60, 0], healthy: [0, 2] }, 60, []).wear`:                                                                                                              `[null,101]`,
		`((s) => [s.x, s.max, s.at(90), s.time(60)])(x.scaleOf(` + points + `, 60, "cutting", {}))`:                                                                                                   `[[0,60],120,30,120]`,
		`((s) => [s.x, s.max, s.at(30), s.at(200), s.time(1.5), s.until(2)])(x.scaleOf({ t: [0, 60, 61], end: [50, null, 181], hole: ["H1", null, "H2"], windows: [1, null, 1] }, 0, "hole", {}, 1))`: `[[0,1,1],2,0.5,2,121,2]`,
		`["cutting", "hole"].map((by) => ((s) => [s.time(s.min), s.time(s.max)])(x.scaleOf({ t: [], end: [], hole: [], windows: [], cutting: [] }, 60, by, { from: 100, to: 700 }, 1)))`:              `[[100,700],[100,700]]`,
		`((s) => [s.x, s.max])(x.scaleOf({ t: [0, 61], end: [50, 181], hole: ["H1", "H5"], windows: [1, 1] }, 0, "hole", {}, 4))`:                                                                     `[[0,4],8]`,
		`((p) => [p.t, p.end, p.hole, p.windows, p.wear])(x.grow({ ...` + points + `, end: [100, 123], hole: ["H1", "H2"] }, 0, ` + drilled + `, 123, 0.62, "T1"))`:                                   `[[60,120,125,126],[100,125,126,127],["H1","H2","H3","H3"],[60,4,1,1],[100,102,null,null]]`,
		`((p) => [p.t, p.hole])(x.grow({ ...` + points + `, t: [], windows: [], healthy: [], faulty: [] }, 0, ` + drilled + `, 123, 0.62))`:                                                           `[[124,125,126],["H2","H3","H3"]]`,
		`((p) => [p.t, p.hole])(x.fill({ ...` + points + `, end: [100, 999], hole: ["H1", "H2"], t: [60, 900] }, 0, []))`:                                                                             `[[60,900],["H1","H2"]]`,
		`((p) => [p.t, p.hole])(x.fill({ ...` + points + `, end: [100, 999], hole: ["H1", "H2"], t: [60, 900] }, 0, [{ from: "1970-01-01T00:15:00.4Z" }]))`:                                           `[[60,899.5,900],["H1",null,"H2"]]`,
		`x.machineNow({ verdict_at: "2018-03-01T00:00:00Z", window_age: 1, at: 1e12 }, 1e12 + 5000)`:                                                                                                  `1519862406`,
	} {
		got := js1[string](b, "lanes.js", "JSON.stringify("+expression+")")
		if got != want {
			t.Errorf("%s\n is %s\nwant %s", expression, got, want)
		}
	}
}

// A feature is compared with its usual value as what it is: an amplitude, a power, the
// logarithm of a power, a number, or something that may have either sign.
func TestPageComparesFeatures(t *testing.T) {
	_, b := newMill(t, signal.GunDrill(), healthy())
	for _, tc := range []struct{ feature, compared, now, usual string }{
		{`{ feature: "ch02.band08", channel: "ch02", words: "2.5-4 kHz", unit: "log10 g²", value: -0.163, usual: -0.883 }`, "2.3 × its usual value (+7.2 dB)", "0.829 g", "0.362 g"},
		{`{ feature: "ch02.rms", channel: "ch02", unit: "g", value: 2, usual: 1 }`, "2 × its usual value (+6.0 dB)", "2 g", "1 g"},
		{`{ feature: "ch02.variance", channel: "ch02", unit: "g²", value: 1, usual: 4 }`, "0.25 × its usual value (−6.0 dB)", "1 g²", "4 g²"},
		{`{ feature: "ch02.kurtosis", channel: "ch02", value: 9.3, usual: 3.1 }`, "3 × its usual value", "9.3", "3.1"},
		{`{ feature: "torque.mean", channel: "torque", unit: "N·m", value: 31.4, usual: 20.2 }`, "11.2 N·m above its usual value", "31.4 N·m", "20.2 N·m"},
		{`{ feature: "torque.mean", channel: "torque", unit: "N·m", value: -3, usual: 2 }`, "5 N·m below its usual value", "-3 N·m", "2 N·m"},
		{`{ feature: "ch1.band01", channel: "ch1", unit: "log10 (m/s)²", value: 2, usual: 0 }`, "10 × its usual value (+20.0 dB)", "10 m/s", "1 m/s"},
		{`{ feature: "ch1.envelope_depth", channel: "ch1", value: -1, usual: -2 }`, "3.2 × its usual value (+10.0 dB)", "-10 dB", "-20 dB"},
		{`{ feature: "ch1.rms", channel: "ch1", unit: "g", value: 1 }`, "", "1 g", "–"},
		{`{ feature: "ch1.rms", channel: "ch1", unit: "g", value: 1, usual: 0 }`, "1 g above its usual value", "1 g", "0 g"},
		{`{ feature: "force", channel: "force", unit: "N", value: -1234.4, usual: 123456 }`, "124\u202f690 N below its usual value", "-1\u202f234 N", "123\u202f456 N"},
		{`{ feature: "force", channel: "force", unit: "N", value: 3, usual: 3 }`, "at its usual value", "3 N", "3 N"},
	} {
		got := js1[[]string](b, "reasons.js", fmt.Sprintf("((f) => [x.compare(f).text, x.levelOf(f, f.value), x.levelOf(f, f.usual)])(%s)", tc.feature))
		if got[0] != tc.compared || got[1] != tc.now || got[2] != tc.usual {
			t.Errorf("%s: %q, now %s, usual %s", tc.feature, got[0], got[1], got[2])
		}
	}
}

// The page takes as sizes and as logarithms what the list of features has as such.
func TestPageKnowsFeatures(t *testing.T) {
	layout, err := signal.NewLayout("one", []signal.Channel{{Name: "ch0", Kind: signal.Vibration, Unit: "g", Rate: 20000}, {Name: "ch1", Kind: signal.Vibration, Unit: "g", Rate: 20000}})
	if err != nil {
		t.Fatal(err)
	}
	var families []string
	for _, row := range strings.Split(string(read(t, "../docs/reference/features.md")), "\n") {
		if name, ok := strings.CutPrefix(row, "| `"); ok && strings.Count(row, "|") >= 6 {
			families = append(families, name[:strings.IndexByte(name, '`')])
		}
	}
	x, err := signal.NewExtractor(layout, []int{20000, 20000}, signal.FeatureSpec{Version: 2, Set: families})
	if err != nil {
		t.Fatal(err)
	}
	type feature struct {
		Feature string `json:"feature"`
		Channel string `json:"channel"`
		Unit    string `json:"unit"`
	}
	var all []feature
	for i, name := range x.Names() {
		_, unit := x.Describe(i)
		all = append(all, feature{name, layout.Channels()[x.Channels(i)[0]].Name, unit})
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	_, b := newMill(t, signal.GunDrill(), healthy())
	kinds := js1[[]string](b, "reasons.js", string(text)+".map(x.kindOf)")
	logs := 0
	for i, kind := range kinds {
		size := x.Relations()[i] == signal.LogRatio
		log := strings.HasPrefix(all[i].Unit, "log10") || strings.Contains(all[i].Feature, ".envelope0") || strings.HasSuffix(all[i].Feature, ".envelope_depth")
		if size != (kind != "difference" && kind != "log") || log != (kind == "log") {
			t.Errorf("%s in %q is %s for the page, its relation is %v", all[i].Feature, all[i].Unit, kind, x.Relations()[i])
		}
		if log {
			logs++
		}
	}
	if logs < 60 {
		t.Errorf("%d of %d features are logarithms: the test has lost some", logs, len(kinds))
	}
}

// writeEvidence keeps ten windows around a moment. A line of 3 kHz comes up in the second half.
func (m *mill) writeEvidence(t *testing.T, name string, at time.Time) evidence.Kept {
	t.Helper()
	codec, err := window.NewCodec(m.layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 1))
	facts := evidence.Facts{Alert: "raised", Machine: millName, Incident: millIncident, Model: "m", At: at, From: at.Add(-5 * time.Second), To: at.Add(5 * time.Second)}
	for _, c := range m.layout.Channels() {
		for k := range 5 {
			facts.Usual = append(facts.Usual, evidence.Band{Channel: c.Name, LowHz: float64(k) * c.Rate / 10, HighHz: float64(k+1) * c.Rate / 10, DB: -38 - float64(k)})
		}
	}
	kept, err := m.store.Write(name, codec, facts, func(add func(*window.Window) error) error {
		for n := range 10 {
			w := &window.Window{Context: signal.Context{Machine: millName}, Epoch: 1, Seq: uint64(n), Start: facts.From.Add(time.Duration(n) * time.Second), Length: time.Second, Quality: make([]signal.Quality, len(m.layout.Channels()))}
			for _, c := range m.layout.Channels() {
				x := make([]float32, int(c.Rate))
				for k := range x {
					s := float64(k) / c.Rate
					x[k] = float32(0.4*rng.NormFloat64() + 0.5*math.Sin(2*math.Pi*0.02*c.Rate*s))
					if n >= 3 {
						x[k] += float32((1 + 0.5*math.Sin(2*math.Pi*17*s)) * math.Sin(2*math.Pi*0.15*c.Rate*s))
					}
				}
				w.Samples = append(w.Samples, x)
			}
			if err := add(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}
