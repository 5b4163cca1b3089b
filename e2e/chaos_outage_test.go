//go:build e2e

package e2e

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	rawChannels = 12
	rawRate     = 20_000
)

// writeRaw writes a recording of so many seconds: 12 channels at 20 kHz in 32-bit floats. The
// first sample of each second is the number of the second.
func writeRaw(t *testing.T, path string, seconds int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", seconds*rawRate, rawChannels)
	head += strings.Repeat(" ", 127-10-len(head)) + "\n" // magic, version and length are 10 bytes
	w.WriteString("\x93NUMPY\x01\x00")
	w.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(head))))
	w.WriteString(head)
	rng := rand.New(rand.NewPCG(4, 4))
	second := make([]byte, 4*rawChannels*rawRate)
	for i := 0; i < len(second); i += 4 {
		binary.LittleEndian.PutUint32(second[i:], math.Float32bits(float32(rng.NormFloat64())))
	}
	for s := range seconds {
		binary.LittleEndian.PutUint32(second, math.Float32bits(float32(s)))
		w.Write(second)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// writeRawLayout writes the layout of writeRaw.
func writeRawLayout(t *testing.T, dir string) {
	var b strings.Builder
	b.WriteString("name: raw\nchannels:\n")
	for c := range rawChannels {
		fmt.Fprintf(&b, "  - {name: a%d, from: \"%d\", kind: vibration, unit: g, rate: %d}\n", c+1, c+1, rawRate)
	}
	write(t, dir, "raw.yaml", b.String())
}

// rawWindows follows the windows of a raw recording. The second in the samples of a window must
// agree with its seq.
func (p *plant) rawWindows(seconds int) *windowLedger {
	return p.follow(p.codec("raw.yaml"), seconds, func(w *window.Window) bool { return w.Samples[0][0] == float32(w.Seq) })
}

// spoolBytes returns the bytes of the segments in a spool.
func spoolBytes(dir string) (n int64) {
	segments, _ := filepath.Glob(filepath.Join(dir, "*.seg"))
	for _, s := range segments {
		if info, err := os.Stat(s); err == nil {
			n += info.Size()
		}
	}
	return n
}

// Row 4, first half. The broker is away for ten minutes of windows of 12 channels at 20 kHz.
func brokerAway(t *testing.T, r *record) {
	absorb := r.n(600, 40)
	seconds := absorb + absorb/10 + 20
	const speed, before = 20, 10
	p := newPlant(t, 1, 1, 10, 0)
	writeRawLayout(t, p.dir)
	writeRaw(t, p.file("day.npy"), seconds)
	write(t, p.dir, "ingest.yaml", fmt.Sprintf("machine: %s\nkafka: {brokers: [%q]}\nlayout: raw.yaml\nspool: spool\nsource: {kind: file, file: day.npy, speed: %d}\n", machine, p.b.Addr(), speed))
	sent := p.rawWindows(seconds)
	ingester := p.ingest()
	sent.until(before)
	p.b.Kill()
	had, down := sent.count(), time.Now()
	const size = 4 * rawChannels * rawRate
	for spoolBytes(p.file("spool")) < int64(had+absorb)*size {
		time.Sleep(10 * time.Millisecond)
		if time.Since(down) > 10*time.Minute {
			t.Fatalf("%d bytes in the spool after 10 minutes", spoolBytes(p.file("spool")))
		}
	}
	away := time.Since(down)
	p.b.Restart(t)
	began := time.Now()
	sent.until(had + absorb)
	drained := time.Since(began)
	ingester.wait(t)
	sent.until(seconds)
	perWindow := float64(spoolBytes(p.file("spool"))) / float64(seconds)
	r.delivered("broker away", fmt.Sprintf("%d windows of 1 s kept meanwhile", absorb), sent, seconds)
	r.Figures[0].Note = fmt.Sprintf("Compressed: windows of 1 s, %.0f kB each, came at %d a second, so that the ten minutes' worth was there when the broker had been away for %.0f s.", perWindow/1000, speed, away.Seconds())
	factor := float64(absorb) / drained.Seconds()
	r.measured(figure{
		What: "catching up, times as fast as one machine in real time", Count: fmt.Sprintf("%d windows, while %d a second more came", absorb, speed), Goal: "≥ 10×",
		Measured: fmt.Sprintf("%.0f× (%.1f s)", factor, drained.Seconds()), Note: "From the moment when the broker answered until the last of the windows kept was on its topic.",
	}, factor >= 10)
	holds := time.Duration(float64(8<<30) / perWindow * float64(time.Second))
	r.measured(figure{
		What: "what 8 GiB of spool hold of one machine", Count: "arithmetic on the spool's files", Goal: "≥ 2 h 25 min", Measured: holds.Round(time.Minute).String(),
	}, holds >= 145*time.Minute)
}

// through is a broker that programs reach through a proxy.
type through struct {
	server
	addr string
}

func (s through) Addr() string { return s.addr }

// Row 4, second half. Ingester and monitor reach the broker through a proxy. It resets
// connections, freezes them, and delays answers.
func networkBad(t *testing.T, r *record) {
	resets, freezes, slow := r.n(100, 8), r.n(6, 2), time.Duration(r.n(60, 12))*time.Second
	const speed = 40
	b, cfg := startServer(t, 2)
	proxy := startProxy(t, b.Addr())
	p := newPlantAt(t, through{b, proxy.addr}, cfg, r.n(60, 10), 300, speed)
	ingester := p.launch("ingest.log", "ingest", "run", "--config", p.file("ingest.yaml"))
	mon := p.launch("monitor.log", "monitor", "run", "--wait", "60s", "--config", p.file("monitor.yaml"))
	sent, v := p.windows(), p.verdicts()
	again := func() {
		sent.until(min(sent.count()+1, len(p.rows)))
		v.until(min(v.count()+1, len(p.rows)))
	}
	rng := rand.New(rand.NewPCG(44, 4))
	for range resets {
		again()
		time.Sleep(moment(rng, 400*time.Millisecond))
		proxy.reset()
	}
	longest := time.Duration(0)
	for i := range freezes {
		again()
		time.Sleep(moment(rng, time.Second))
		proxy.freeze()
		time.Sleep(12 * time.Second) // longer than a program waits for any answer
		proxy.pass(i%2 == 1)
		began := time.Now()
		again()
		longest = max(longest, time.Since(began))
	}
	proxy.slow(5 * time.Second)
	time.Sleep(slow)
	proxy.slow(0)
	again()
	under := sent.count()
	if err := mon.alive(); err != nil {
		t.Errorf("%v\n%s", err, tail(p.log("monitor.log")))
	}
	// On a slow machine the recording may already have ended; that is not a failure.
	if err := ingester.alive(); err != nil && !strings.Contains(p.log("ingest.log"), " 0 pending in the spool") {
		t.Errorf("%v\n%s", err, tail(p.log("ingest.log")))
	}
	p.speedUp(ingester)
	sent.until(len(p.rows))
	v.until(len(p.rows))
	count := fmt.Sprintf("%d resets, %d freezes of 12 s, 5 s of latency for %v", resets, freezes, slow)
	r.delivered("network resets, freezes, delays", count, sent, len(p.rows))
	r.judged("network resets, freezes, delays", count, v, p.calm())
	r.Figures[0].Note = fmt.Sprintf("Windows came at %d a second; %d were sent meanwhile, over %d connections. After half of the freezes what was held arrived late; after the others never, and the connections stayed open without anybody behind them. "+
		"The longest it took until windows were sent and judged again was %.1f s.", speed, under, proxy.made, longest.Seconds())
}

// Row 6. The broker loses the end of its log, as after a power cut; the ingester
// sends again what its spool still keeps.
func logCut(t *testing.T, r *record) {
	b, cfg := startServer(t, 2)
	a, ok := b.(apache)
	if !ok {
		r.skip("needs Apache Kafka's log files: set FLANK_KAFKA")
	}
	cuts := r.n(5, 1)
	const speed, cut = 60, 60 // windows of 1 s
	p := newPlantAt(t, a, cfg, r.n(120, 20), 300, speed)
	ingester := p.ingest()
	mon := p.launch("monitor.log", "monitor", "run", "--wait", "60s", "--config", p.file("monitor.yaml"))
	v := p.verdicts()
	partition := p.partition()
	said := func() int {
		log := p.log("monitor.log")
		return strings.Count(log, "is gone, going on at") + strings.Count(log, "has lost its newest messages")
	}
	lost := 0
	for n := range cuts {
		v.until(min(v.count()+5*cut, len(p.rows)))
		// The ingester stands still until the monitor has asked: a log that is as long again hides what was lost.
		ingester.signal(syscall.SIGSTOP)
		v.settle()
		a.b.Kill()
		gone, err := a.b.CutLog(bus.TopicWindows, partition, cut)
		if err != nil {
			t.Fatal(err)
		}
		lost += int(gone)
		a.b.Restart(t)
		await.Until(t, "the monitor says that the log was cut", func() bool { return said() > n })
		ingester.signal(syscall.SIGCONT)
		run(t, "ingest", "spool", "resend", "--since", "10m", "--config", p.file("ingest.yaml"))
	}
	p.speedUp(ingester)
	run(t, "ingest", "spool", "resend", "--since", "10m", "--config", p.file("ingest.yaml"))
	sent := p.windows() // from the beginning: messages from before the cuts do not count
	sent.reached(len(p.rows), patience)
	sent.settle()
	missing := sent.lost(len(p.rows))
	count := fmt.Sprintf("%d cuts of the last %d windows and a little more, %d in all", cuts, cut, lost)
	r.exact(figure{
		What: "log cut, then `ingest spool resend --since 10m`: windows missing", Count: count, Goal: "0",
		Measured: fmt.Sprintf("%d of %d", missing, len(p.rows)), Note: "A power cut is played: the broker is killed, and the log of the windows is cut where a batch begins.",
	}, missing == 0 && lost >= cuts*cut)
	v.reached(len(p.rows), patience)
	v.settle()
	r.exact(figure{
		What: "log cut: windows without a result / with two", Count: count, Goal: "0 / 0", Measured: fmt.Sprintf("%d / %d of %d; %d judged late", len(p.rows)-v.count(), v.twice, len(p.rows), v.late),
	}, v.count() == len(p.rows) && v.twice == 0)
	r.exact(figure{What: "log cut: said in the monitor's log", Count: fmt.Sprintf("%d cuts", cuts), Goal: "each", Measured: fmt.Sprintf("%d times", said())}, said() >= cuts)
	if said() < cuts {
		t.Logf("%s", tail(p.log("monitor.log")))
	}
	if err := mon.alive(); err != nil {
		t.Errorf("%v\n%s", err, tail(p.log("monitor.log")))
	}
}

// partition returns the partition of the plant's machine.
func (p *plant) partition() int {
	found := make(chan int, 1)
	w := p.watch(bus.TopicWindows, func(m bus.Message) {
		select {
		case found <- m.Partition:
		default:
		}
	})
	w.until(1)
	return <-found
}
