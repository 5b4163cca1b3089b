//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// Row 12. A monitor is suspended for longer than its session, and another takes over. When the
// first one wakes, it must neither judge a window again nor restore an old state. Then a single
// monitor is suspended for long.
func monitorPaused(t *testing.T, r *record) {
	pauses, alone := r.n(20, 2), time.Duration(r.n(300, 10))*time.Second
	const speed = 40
	p := newPlant(t, 2, r.n(80, 12), 300, speed)
	ingester := p.ingest()
	v := p.verdicts()
	run := func(name string) *process {
		return p.launch(name+".log", "monitor", "run", "--wait", "60s", "--config", p.file("monitor.yaml"))
	}
	monitors := [2]*process{run("a"), run("b")}
	rng := rand.New(rand.NewPCG(12, 12))
	for i := range pauses {
		v.until(min(v.count()+1, len(p.rows)))
		time.Sleep(moment(rng, time.Second))
		paused := monitors[i%2]
		paused.signal(syscall.SIGSTOP)
		time.Sleep(7*time.Second + moment(rng, 3*time.Second)) // a session is 6 s
		v.until(min(v.count()+1, len(p.rows)))                 // the other one judges
		paused.signal(syscall.SIGCONT)
	}
	monitors[1].kill()
	p.evict()
	v.until(min(v.count()+1, len(p.rows)))
	time.Sleep(2 * time.Second)
	before := monitors[0].status("VmHWM")
	monitors[0].signal(syscall.SIGSTOP)
	time.Sleep(alone)
	monitors[0].signal(syscall.SIGCONT)
	under := v.count()
	p.speedUp(ingester)
	v.until(len(p.rows))
	after := monitors[0].status("VmHWM")
	count := fmt.Sprintf("%d SIGSTOPs of 7-10 s in turns, 1 of %v alone", pauses, alone)
	r.judged("one of two monitors suspended, then one alone", count, v, p.calm())

	r.Figures[0].Note = fmt.Sprintf("Windows came at %d a second; %d were judged by the end of the last pause.", speed, under)
	r.measured(figure{
		What: "most memory of the monitor suspended alone, by the end", Count: "1", Goal: "≤ 300 MiB",
		Measured: fmt.Sprintf("%d MiB, before the pause %d MiB", after>>10, before>>10),
	}, after>>10 <= 300)
}
