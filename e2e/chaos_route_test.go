//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/monitor"
)

// webhook is a receiver that can be made to misbehave.
type webhook struct {
	addr string

	mu       sync.Mutex
	mode     string               // "good", "hang", "500" or "early"
	first    map[string]time.Time // when the receiver first took each event, by id
	order    []string             // ids in the order in which the receiver took them
	attempts map[string]int
	broken   int // attempts whose key was not the event's id, or whose body another than before
	bodies   map[string]uint64
	release  chan struct{} // ends requests that hang
	server   *http.Server
}

func startWebhook(t *testing.T) *webhook {
	t.Helper()
	w := &webhook{
		addr: freeAddr(t), mode: "good", first: make(map[string]time.Time), attempts: make(map[string]int),
		bodies: make(map[string]uint64), release: make(chan struct{}),
	}
	w.open(t)
	t.Cleanup(w.shut)
	return w
}

// open makes the receiver listen, shut makes it go away with all connections.
func (w *webhook) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	w.server = &http.Server{Handler: w}
	go w.server.Serve(l)
}

func (w *webhook) shut() { w.server.Close() }

// behave changes the receiver's behaviour, also for requests that it is handling.
func (w *webhook) behave(mode string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.release)
	w.mode, w.release = mode, make(chan struct{})
}

func (w *webhook) ServeHTTP(res http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	id := req.Header.Get("Ce-Id")
	w.mu.Lock()
	w.attempts[id]++
	before, again := w.bodies[id]
	if sum := hash(body); req.Header.Get("Idempotency-Key") != id || again && before != sum {
		w.broken++
	} else {
		w.bodies[id] = sum
	}
	mode, release := w.mode, w.release
	if _, had := w.first[id]; mode == "good" && !had {
		w.first[id], w.order = time.Now(), append(w.order, id)
	}
	w.mu.Unlock()
	switch mode {
	case "hang":
		select {
		case <-release:
		case <-req.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case "500":
		http.Error(res, "out of order", http.StatusInternalServerError)
	case "early":
		res.Header().Set("Content-Length", "1000")
		io.WriteString(res, "the first bytes of")
		panic(http.ErrAbortHandler)
	}
}

// tried returns how many attempts there were.
func (w *webhook) tried() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.attempts {
		n += a
	}
	return n
}

func (w *webhook) taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.first)
}

// arrivals are when windows and results reached Kafka, by its clock.
type arrivals struct {
	mu      sync.Mutex
	windows map[string]time.Time // by ce_id
	results map[string]time.Time // by the ce_id of the window, which begins their own
	alerts  map[string]time.Time
}

func (p *plant) arrivals() *arrivals {
	a := &arrivals{windows: make(map[string]time.Time), results: make(map[string]time.Time), alerts: make(map[string]time.Time)}
	note := func(into map[string]time.Time) func(bus.Message) {
		return func(m bus.Message) {
			a.mu.Lock()
			defer a.mu.Unlock()
			into[strings.TrimSuffix(string(m.Header("ce_id")), "/"+monitor.DefaultGroup)] = m.Time
		}
	}
	p.watch(bus.TopicWindows, note(a.windows))
	p.watch(bus.TopicResults, note(a.results))
	p.watch(bus.TopicAlerts, note(a.alerts))
	return a
}

// behind returns, for the results of windows that came in a span of time, how many later windows
// were on Kafka when the result came, sorted.
func (a *arrivals) behind(from, to time.Time) (lags []int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var came []time.Time
	for _, at := range a.windows {
		came = append(came, at)
	}
	slices.SortFunc(came, time.Time.Compare)
	before := func(t time.Time) int {
		n, _ := slices.BinarySearchFunc(came, t, time.Time.Compare)
		return n
	}
	for id, at := range a.results {
		if window, ok := a.windows[id]; ok && !window.Before(from) && window.Before(to) {
			lags = append(lags, max(before(at)-before(window)-1, 0))
		}
	}
	slices.Sort(lags)
	return lags
}

// Row 11. One of two receivers of alerts hangs, fails, hangs up and is dead for a day's number of
// alerts. The rest of the pipeline must not notice.
func receiverDead(t *testing.T, r *record) {
	hang := time.Duration(r.n(60, 12)) * time.Second
	const speed, perTool = 20, 100
	tools := int((2*hang + time.Minute).Seconds()) * speed / perTool // before, and while it is in trouble
	tools += r.n(36, 6)                                              // while it is dead: two of three wear out, with an alert when raised and one when cleared
	p := newPlant(t, 2, tools, perTool, speed)
	bad, good := startWebhook(t), startWebhook(t)
	text, err := os.ReadFile(p.file("monitor.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.dir, "monitor.yaml", string(text)+fmt.Sprintf(`silence: 0s
alerts:
  routes:
    - {name: bad, timeout: 5s, webhook: {url: "http://%s/"}}
    - {name: good, timeout: 5s, webhook: {url: "http://%s/"}}
`, bad.addr, good.addr))
	run := func(name string) *process {
		mon := p.launch(name, "monitor", "run", "--wait", "60s", "--config", p.file("monitor.yaml"))
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			if strings.Count(p.log(name), "delivering alerts to") == 2 {
				return mon
			}
			if time.Now().After(deadline) {
				t.Fatalf("no routes\n%s", tail(p.log(name)))
			}
		}
	}
	mon := run("first.log")
	at, v := p.arrivals(), p.verdicts()
	ingester := p.ingest()
	v.alerts.until(2)
	calm := time.Now()
	time.Sleep(hang) // both receivers work, for comparison
	began := time.Now()
	rng := rand.New(rand.NewPCG(11, 11))
	for _, mode := range []string{"hang", "500", "early"} {
		had := bad.tried()
		bad.behave(mode)
		lasts := 10 * time.Second
		if mode == "hang" {
			lasts = hang
		}
		time.Sleep(lasts + moment(rng, time.Second))
		for deadline := time.Now().Add(patience); bad.tried() < had+2; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no attempt at a receiver that does %q", mode)
			}
		}
		bad.behave("good")
	}
	bad.shut()
	had := bad.taken()
	v.until(len(p.rows))
	ingester.wait(t)
	v.settle()
	v.alerts.settle()
	lags, well := at.behind(began, time.Now()), at.behind(calm, began)
	mon.kill() // waiting alerts are not in its memory
	p.evict()
	run("second.log")
	bad.open(t)
	all := v.alerts.count()
	queued := all - had
	back := time.Now()
	for bad.taken() < all || good.taken() < all {
		if time.Since(back) > patience {
			t.Errorf("%d and %d of %d alerts came\n%s", bad.taken(), good.taken(), all, tail(p.log("second.log")))
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	caught := time.Since(back)

	count := fmt.Sprintf("1 hang of %v, 1 time 500s, 1 time ended early, then dead for %d alerts", hang, queued)
	percentile := func(lags []int, q float64) int { return lags[min(int(q*float64(len(lags))), len(lags)-1)] }
	most := lags[len(lags)-1]
	r.measured(figure{
		What: "a receiver of alerts dead: windows on Kafka that the monitor has not judged, at most", Count: count, Goal: "≤ 2",
		Measured: fmt.Sprintf("%d; median %d, 99 %% ≤ %d; before, with both receivers well, %d; median %d, 99 %% ≤ %d",
			most, percentile(lags, 0.5), percentile(lags, 0.99), well[len(well)-1], percentile(well, 0.5), percentile(well, 0.99)),
		Note: fmt.Sprintf("Counted at each of %d results by Kafka's clock, and of %d before: later windows that were there when it came. Windows came at %d a second, so two are %d ms, "+
			"and any pause of the machine counts: what a receiver does to the monitor is the difference of the two.", len(lags), len(well), speed, 2000/speed),
	}, most <= 2)
	missing, disordered := 0, 0
	at.mu.Lock()
	slowest := time.Duration(0)
	for id, sent := range at.alerts {
		for _, w := range []*webhook{bad, good} {
			if _, ok := w.first[id]; !ok {
				missing++
			}
		}
		if when, ok := good.first[id]; ok {
			slowest = max(slowest, when.Sub(sent))
		}
	}
	for _, w := range []*webhook{bad, good} {
		for i := 1; i < len(w.order); i++ {
			if at.alerts[w.order[i]].Before(at.alerts[w.order[i-1]]) {
				disordered++
			}
		}
	}
	at.mu.Unlock()
	r.exact(figure{
		What: "a receiver of alerts dead: alerts that did not come later, to it or to the other / out of order", Count: count, Goal: "0 / 0",
		Measured: fmt.Sprintf("%d / %d of %d; all there %.1f s after the receiver was back", missing, disordered, all, caught.Seconds()),
		Note:     "While the receiver was dead the monitor was killed and another one started, which delivered the waiting alerts. They are the alerts of 8 machines in a day, with one alarm a shift each, raised and cleared.",
	}, missing+disordered == 0)
	bad.mu.Lock()
	attempts := 0
	for _, n := range bad.attempts {
		attempts += n
	}
	broken := bad.broken
	bad.mu.Unlock()
	r.exact(figure{
		What: "a receiver of alerts dead: attempts with another idempotency key or body than the one before", Count: fmt.Sprintf("%d attempts at %d alerts", attempts, all), Goal: "0",
		Measured: fmt.Sprint(broken),
	}, broken == 0 && attempts > all)
	r.measured(figure{
		What: "a receiver of alerts dead: longest way of an alert to the other receiver", Count: count, Goal: "≤ 1 s",
		Measured: fmt.Sprintf("%d ms", slowest.Milliseconds()), Note: "From Kafka's time of the alert to the receiver's, on one machine.",
	}, slowest <= time.Second)
	r.judged("a receiver of alerts dead", count, v, p.calm())
}
