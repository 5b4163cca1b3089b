//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/flank-tcm/flank/internal/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/signal"
)

// shop is a plant of several machines behind a page. Their windows come interleaved. It answers
// the page's commands as a monitor does.
type shop struct {
	hub *web.Hub
	rng *rand.Rand

	mu       sync.Mutex
	machines []*shopMachine
	commands []event.Command
}

type shopMachine struct {
	name, incident, alarm string
	seq                   uint64
}

const shopToken = "correct-horse-battery"

func newShop(t *testing.T, machines int) (*shop, string) {
	t.Helper()
	s := &shop{rng: rand.New(rand.NewPCG(9, uint64(machines)))}
	s.hub = web.NewHub(web.Config{Layout: signal.GunDrill(), Control: &web.Control{Send: s.send}})
	guard := web.NewGuard(web.Protection{Find: func(sum [sha256.Size]byte) (web.Person, bool, error) {
		return web.Person{Role: credential.Operator}, sum == sha256.Sum256([]byte(shopToken)), nil
	}})
	s.hub.Status(web.Status{Phase: web.Monitoring, Fraction: -1, WindowsPerSecond: float64(machines)})
	for i := range machines {
		s.machines = append(s.machines, &shopMachine{name: fmt.Sprintf("acme/spore/bay%d/line%d/usk%d", 1+i/6, 1+i%2, 20+i/2), alarm: "normal"})
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewUnstartedServer(guard.Handler(s.hub.Handler()))
	server.Start()
	t.Cleanup(func() { cancel(); server.CloseClientConnections(); server.Close() })
	go s.run(ctx)
	return s, server.URL
}

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
	}
}

func (s *shop) window(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[i]
	m.seq++
	start := time.Now().Add(-time.Second)
	w := web.Window{Machine: m.name, Tool: fmt.Sprintf("T%02d", i), Hole: fmt.Sprintf("H%d", m.seq/5), Epoch: "00000000000000a1", Seq: m.seq, Start: start}
	samples := make([][]float32, len(signal.GunDrill().Channels()))
	for c := range samples {
		samples[c] = make([]float32, 200)
		for j := range samples[c] {
			samples[c][j] = float32((1 + float64(i)/9) * s.rng.NormFloat64())
		}
	}
	w.Summarize(samples)
	w.Quality = make([]signal.Quality, len(samples))
	s.hub.Window(w)
	verdict, score := event.Healthy, 0.1+0.02*float64(i)+0.02*math.Sin(float64(m.seq))
	if m.alarm != "normal" {
		verdict, score = event.Faulty, 0.9
	}
	s.hub.Result(event.Result{
		ID: event.WindowID(m.name, w.Epoch, m.seq), Machine: m.name, Tool: w.Tool, Hole: w.Hole, Epoch: w.Epoch, Seq: m.seq, Start: start, End: start.Add(time.Second),
		Verdict: verdict, Posterior: []float64{1 - score, score}, Score: score, Model: "m", Alarm: m.alarm, Incident: m.incident,
	})
}

// alert says that a machine's alarm changed. s.mu must be held.
func (s *shop) alert(m *shopMachine, state event.AlertState, severity, command, text string) {
	s.hub.Alert(event.Alert{
		ID: fmt.Sprintf("%s/%d/%s/%s", m.name, m.seq, state, command), Machine: m.name, Tool: "T1", State: state, Alarm: m.alarm, Incident: m.incident,
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
		s.alert(m, event.Cleared, "info", "", m.incident+" is over")
	}
	var b [5]byte
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	m.seq++
	m.alarm, m.incident = "raised", "A-"+base32.StdEncoding.EncodeToString(b[:])
	s.alert(m, event.Raised, "warning", "", m.name+" FAULTY")
	return m.name, m.incident
}

func (s *shop) send(_ context.Context, c event.Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, c)
	m := s.machines[slices.IndexFunc(s.machines, func(m *shopMachine) bool { return m.name == c.Machine })]
	if c.Incident != m.incident {
		s.alert(m, "refused", "info", c.ID, fmt.Sprintf("refused: alarm %s does not stand any more", c.Incident))
		return nil
	}
	m.alarm = map[event.Action]string{event.Acknowledge: "acknowledged", event.Shelve: "shelved"}[c.Action]
	s.alert(m, event.AlertState(m.alarm), "info", c.ID, m.alarm+" by "+c.By)
	return nil
}

func (s *shop) sent() []event.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// The windows of nine machines come interleaved. The page stays with the machine that a person
// chose. A button's dialog and command belong to the machine and the alarm that the button was
// drawn for.
func TestPageOfNineMachines(t *testing.T) {
	s, address := newShop(t, 9)
	b := openBrowser(t, address)
	b.until(`document.querySelectorAll('#machines li').length === 9`)
	short := func(machine string) string { return machine[strings.LastIndexByte(machine, '/')+1:] }
	if first := js[string](b, `document.querySelector('#machine').textContent`); first != short(s.machines[0].name) {
		t.Errorf("the page begins with %s", first)
	}
	js[bool](b, `window.loadedOnce = true;
		window.header = () => document.querySelector('.where').textContent.replaceAll(' ', '');
		window.headers = [header()];
		new MutationObserver(() => { if (headers.at(-1) !== header()) headers.push(header()) })
			.observe(document.querySelector('.where'), { childList: true, characterData: true, subtree: true });
		true`)
	chosen := []string{s.machines[0].name}

	rng := rand.New(rand.NewPCG(25, 9))
	for click := range 25 {
		machine, incident := s.raise(rng.IntN(9))
		link := fmt.Sprintf("#machines a[data-machine='%s']", machine)
		if click%3 == 0 {
			b.do(chromedp.Focus(chromedp.CSS(link)), chromedp.KeyEvent(kb.Enter))
		} else {
			b.do(chromedp.Click(chromedp.CSS(link), chromedp.NodeVisible))
		}
		if machine != chosen[len(chosen)-1] {
			chosen = append(chosen, machine)
		}
		action := []event.Action{event.Acknowledge, event.Shelve}[rng.IntN(2)]
		button := fmt.Sprintf(".hero [value=%s]", action)
		drawn := fmt.Sprintf(`document.querySelector('%s').checkVisibility() && document.querySelector('%s').dataset.machine === %q && document.querySelector('%s').dataset.incident === %q`, button, button, machine, button, incident)
		b.until(drawn)
		if path := js[string](b, "header()"); path != machine {
			t.Errorf("click %d: the header says %s, chosen is %s", click, path, machine)
		}
		want := fmt.Sprintf("T%02d", slices.IndexFunc(s.machines, func(m *shopMachine) bool { return m.name == machine }))
		if tool := js[string](b, `document.querySelector('#tool').textContent`); tool != want && tool != "–" {
			t.Errorf("click %d: tool %s, the tool of %s is %s", click, tool, machine, want)
		}
		b.until(fmt.Sprintf(`document.querySelector('#tool').textContent === %q`, want))
		before := len(s.sent())
		b.order(button, "test piece", shopToken)
		if about := js[string](b, `document.querySelector('#ask dl').textContent`); strings.ReplaceAll(about, " ", "") != "Machine"+machine+"Alarm"+incident {
			t.Errorf("click %d: the dialog says %q, the button is of %s %s", click, about, machine, incident)
		}
		b.until(`!document.querySelector('#ask').open`)
		sent := s.sent()
		if len(sent) != before+1 || sent[before].Machine != machine || sent[before].Incident != incident || sent[before].Action != action {
			t.Errorf("click %d on %s of %s %s sent %+v", click, action, machine, incident, sent[before:])
		}
	}
	// Only a choice changes the page's machine.
	if got := js[[]string](b, "headers"); !slices.Equal(got, chosen) {
		t.Errorf("the page showed %v\nchosen were %v", got, chosen)
	}
	b.fits("nine")

	// While a person writes, the alarm ends and another is raised.
	machine, incident := s.raise(4)
	b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf("#machines a[data-machine='%s']", machine)), chromedp.NodeVisible))
	b.until(fmt.Sprintf(`document.querySelector('.hero [value=acknowledge]').dataset.incident === %q`, incident))
	b.do(chromedp.Click(chromedp.CSS(".hero [value=acknowledge]"), chromedp.NodeVisible))
	_, next := s.raise(4)
	b.until(fmt.Sprintf(`document.querySelector('.hero [value=acknowledge]').dataset.incident === %q`, next))
	b.fill("by", "kim")
	b.fill("token", shopToken)
	b.do(chromedp.Click(chromedp.CSS("#go")))
	b.until(`document.querySelector('#ask-says').textContent.includes('does not stand any more') && document.querySelector('#ask').open`)
	if last := s.sent()[len(s.sent())-1]; last.Incident != incident {
		t.Errorf("the dialog of %s sent %+v", incident, last)
	}
	b.shot("refused")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`!document.querySelector('#ask').open && document.querySelector('#alarm').textContent === 'raised'`)

	// The choice survives a reload, and keys reach every machine.
	js[bool](b, "setTimeout(() => location.reload()); true")
	b.until(fmt.Sprintf(`window.loadedOnce === undefined && document.querySelector('#machines a[aria-current]')?.dataset.machine === %q`, machine))
	b.until(fmt.Sprintf(`document.querySelector('#machine').textContent === %q && document.querySelector('#tool').textContent === 'T04'`, short(machine)))
	b.do(chromedp.Focus(chromedp.CSS("#machines li:first-child a")), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector('#machines li:nth-child(2) a').getAttribute('aria-current') === 'page' && document.activeElement.getAttribute('aria-current') === 'page'`)
	b.do(chromedp.Focus(chromedp.CSS("#skip")), chromedp.KeyEvent(kb.Enter))
	b.until(`document.activeElement.tagName === 'MAIN'`)

	// The page finds an alarm by its id alone.
	js[string](b, fmt.Sprintf("location.hash = '#/%s'", next))
	b.until(fmt.Sprintf(`location.hash === '#machine=%s&alarm=%s' && document.querySelector('#view-title').textContent.includes(%q)`, machine, next, next))
	b.until(`document.querySelector('#view [value=shelve]').dataset.incident === ` + fmt.Sprintf("%q", next))
	b.fits("nine-alert")
	b.do(chromedp.Click(chromedp.CSS("#view .back")))
	b.until(fmt.Sprintf(`location.hash === '#machine=%s' && document.querySelector('#machine').checkVisibility() && document.querySelector('.hero').checkVisibility()`, machine))
	b.quiet()
}

// With one machine the page has no list and looks as it did before there were lists.
func TestPageOfOneMachine(t *testing.T) {
	s, address := newShop(t, 1)
	b := openBrowser(t, address)
	b.until(fmt.Sprintf(`location.hash === '#machine=%s' && document.body.dataset.verdict === 'healthy'`, s.machines[0].name))
	if js[bool](b, `document.querySelector('#machines').checkVisibility()`) {
		t.Error("a list of one machine")
	}
	b.fits("one")

	// A command for a machine without an alarm does not apply to an alarm that came later.
	b.do(chromedp.Click(chromedp.CSS(".hero [value=shelve]"), chromedp.NodeVisible))
	b.until(`document.querySelector('#ask').open && document.querySelector('#ask-alarm').textContent === 'none is open'`)
	_, incident := s.raise(0)
	b.until(fmt.Sprintf(`document.querySelector('.hero [value=shelve]').dataset.incident === %q`, incident))
	b.fill("by", "kim")
	b.fill("note", "setting up")
	b.fill("token", shopToken)
	b.do(chromedp.Click(chromedp.CSS("#go")))
	b.until(`document.querySelector('#ask-says').textContent.includes('raised meanwhile')`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.order(".hero [value=shelve]", "setting up", shopToken)
	b.until(`!document.querySelector('#ask').open && document.querySelector('#alarm').textContent === 'shelved'`)
	if sent := s.sent(); len(sent) != 1 || sent[0].Incident != incident {
		t.Errorf("sent %+v, want a shelf for %s alone", sent, incident)
	}
	b.quiet()
}
