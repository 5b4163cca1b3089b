//go:build e2e

package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// mint makes messages of windows as an ingester sends them, and spoils them.
type mint struct {
	t     *testing.T
	codec *window.Codec
	rng   *rand.Rand
	win   window.Window
}

const mintEpoch = 0xfeed

func (p *plant) mint(machine string) *mint {
	m := &mint{t: p.t, codec: p.codec("layout.yaml"), rng: rand.New(rand.NewPCG(9, 9))}
	m.win = window.Window{
		Epoch: mintEpoch, Length: time.Second, Samples: [][]float32{{0}, {0}, {0}}, Quality: make([]signal.Quality, 3),
	}
	m.win.Machine, m.win.Tool = machine, "T1"
	return m
}

// good returns the message of window seq.
func (m *mint) good(seq uint64) bus.Message {
	w := &m.win
	w.Seq, w.Start = seq, time.Unix(1_700_000_000+int64(seq), 0).UTC()
	for c := range w.Samples {
		w.Samples[c][0] = float32(100 + m.rng.NormFloat64())
	}
	e, err := m.codec.Seal(w)
	if err != nil {
		m.t.Fatal(err)
	}
	msg := envelope.Window(e)
	msg.Headers = append(msg.Headers, bus.Header{Key: "origin", Value: strconv.AppendUint(nil, seq, 10)})
	return msg
}

// spoils are the ways to spoil a message. Where they change the value they correct the checksum,
// so that only the decoder can refuse it.
var spoils = []struct {
	name string
	do   func(rng *rand.Rand, m *bus.Message)
}{
	{"bits of the value, checksum as it was", func(rng *rand.Rand, m *bus.Message) { flip(rng, m.Value, 1+rng.IntN(8)) }},
	{"bits of the value", func(rng *rand.Rand, m *bus.Message) { flip(rng, m.Value, 1+rng.IntN(8)); reseal(m) }},
	{"bits of the first kilobyte, where lengths are", func(rng *rand.Rand, m *bus.Message) { flip(rng, m.Value[:1024], 1+rng.IntN(4)); reseal(m) }},
	{"a number replaced by an extreme one", func(rng *rand.Rand, m *bus.Message) {
		extremes := []uint64{0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1}
		v, at := extremes[rng.IntN(len(extremes))], rng.IntN(len(m.Value)/8-1)*8
		if rng.IntN(2) == 0 {
			binary.LittleEndian.PutUint32(m.Value[at+4*rng.IntN(2):], uint32(v))
		} else {
			binary.LittleEndian.PutUint64(m.Value[at:], v)
		}
		reseal(m)
	}},
	{"cut short", func(rng *rand.Rand, m *bus.Message) { m.Value = m.Value[:rng.IntN(len(m.Value))]; reseal(m) }},
	{"longer", func(rng *rand.Rand, m *bus.Message) {
		m.Value = append(m.Value, m.Value[:rng.IntN(len(m.Value))]...)
		reseal(m)
	}},
	{"a part moved", func(rng *rand.Rand, m *bus.Message) {
		n := len(m.Value)
		from, to, size := rng.IntN(n), rng.IntN(n), 1+rng.IntN(256)
		copy(m.Value[to:], slices.Clone(m.Value[from:min(n, from+size)]))
		reseal(m)
	}},
	{"noise", func(rng *rand.Rand, m *bus.Message) { m.Value = noise(rng, rng.IntN(4096)); reseal(m) }},
	{"nothing", func(_ *rand.Rand, m *bus.Message) { m.Value = nil }},
	{"a header missing", func(rng *rand.Rand, m *bus.Message) {
		i := rng.IntN(len(m.Headers) - 1) // not the origin
		m.Headers = slices.Delete(m.Headers, i, i+1)
	}},
	{"noise in a header", func(rng *rand.Rand, m *bus.Message) {
		m.Headers[rng.IntN(len(m.Headers)-1)].Value = append([]byte("x"), noise(rng, rng.IntN(64))...)
	}},
	{"another key", func(rng *rand.Rand, m *bus.Message) { m.Key = string(noise(rng, rng.IntN(64))) }},
	{"another layout, under a long key of its own", func(rng *rand.Rand, m *bus.Message) {
		m.Key = string(noise(rng, 1024))
		for i := range m.Headers {
			if m.Headers[i].Key == "layout" {
				m.Headers[i].Value = []byte("0123456789abcdef")
			}
		}
	}},
}

func flip(rng *rand.Rand, b []byte, bits int) {
	for range bits {
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
	}
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// reseal makes the checksum of m fit its value.
func reseal(m *bus.Message) {
	for i := range m.Headers {
		if m.Headers[i].Key == "crc32c" {
			m.Headers[i].Value = fmt.Appendf(nil, "%08x", crc32.Checksum(m.Value, crc32.MakeTable(crc32.Castagnoli)))
		}
	}
}

// spoil returns message seq, spoilt in a way drawn at random.
func (m *mint) spoil(seq uint64) bus.Message {
	msg := m.good(seq)
	msg.Value = slices.Clone(msg.Value)
	spoils[m.rng.IntN(len(spoils))].do(m.rng, &msg)
	return msg
}

// send sends the messages that next returns for the seqs from first up to end.
func (p *plant) send(first, end uint64, next func(seq uint64) bus.Message) {
	p.t.Helper()
	out, err := bus.NewProducer(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	var msgs []bus.Message
	for seq := first; seq < end; seq++ {
		msgs = append(msgs, next(seq))
		if len(msgs) == 2000 || seq == end-1 {
			if err := out.Send(context.Background(), msgs); err != nil {
				p.t.Fatal(err)
			}
			msgs = msgs[:0]
		}
	}
}

// tally is which messages of a mint were seen, by their origin.
type tally struct {
	results, letters []bool
	both             int // have a result and a letter
	again            int // letters that came again
	unexplained      int // letters without a reason
}

// tally reads the results and dead letters of n messages.
func (p *plant) tally(n int) (t tally) {
	p.t.Helper()
	t.results, t.letters = make([]bool, n), make([]bool, n)
	read := func(topic string, fn func(bus.Message)) {
		err := readTopic(context.Background(), p.cfg, topic, bus.FirstOffset, false, func(m bus.Message) error { fn(m); return nil })
		if err != nil {
			p.t.Fatal(err)
		}
	}
	read(bus.TopicResults, func(m bus.Message) {
		id := strings.TrimSuffix(string(m.Header("ce_id")), "/"+monitor.DefaultGroup)
		if seq, err := strconv.Atoi(id[strings.LastIndexByte(id, '/')+1:]); err == nil && seq < n {
			t.results[seq] = true
		}
	})
	read(bus.TopicDead, func(m bus.Message) {
		seq, err := strconv.Atoi(string(m.Header("original_origin")))
		if err != nil || seq >= n || len(m.Header("dead_reason")) == 0 {
			t.unexplained++
			return
		}
		if t.letters[seq] {
			t.again++
		}
		t.letters[seq] = true
		if t.results[seq] {
			t.both++
		}
	})
	return t
}

func count(set []bool) (n int) {
	for _, v := range set {
		if v {
			n++
		}
	}
	return n
}

// Row 9. A monitor is fed with spoilt messages, and a good one after each thousand.
func mutants(t *testing.T, r *record) {
	n := r.n(1_000_000, 20_000)
	p := newPlant(t, 2, 1, 10, 0)
	mon := p.launch("monitor.log", "monitor", "run", "--config", p.file("monitor.yaml"))
	ids, results := p.watchCount(bus.TopicDead), p.watch(bus.TopicResults, func(bus.Message) {})
	m := p.mint(machine)
	p.send(0, uint64(n), func(seq uint64) bus.Message {
		if seq%1000 == 999 {
			return m.good(seq)
		}
		return m.spoil(seq)
	})
	// A monitor on a busy machine may lose its session and be silent for longer than
	// a session and a rebalance take.
	for last, since := -1, time.Now(); time.Since(since) < time.Minute; time.Sleep(time.Second) {
		now := ids() + results.count()
		if now != last {
			last, since = now, time.Now()
		}
		if now >= n && time.Since(since) > 5*time.Second {
			break
		}
	}
	exits := 0
	if err := mon.alive(); err != nil {
		exits++
		t.Errorf("%v\n%s", err, tail(p.log("monitor.log")))
	}
	most := mon.status("VmHWM") >> 10
	mon.kill()
	got := p.tally(n)
	unaccounted, good := 0, 0
	for seq := range n {
		if !got.results[seq] && !got.letters[seq] {
			unaccounted++
		}
		if seq%1000 == 999 && got.results[seq] {
			good++
		}
	}
	log, _ := os.Stat(p.file("monitor.log"))
	where := fmt.Sprintf("%d messages spoilt in %d ways", n-n/1000, len(spoils))
	r.exact(figure{What: "spoilt messages: exits of the monitor", Count: where, Goal: "0", Measured: fmt.Sprint(exits)}, exits == 0)
	r.exact(figure{
		What: "spoilt messages: without a dead letter or a result / with both", Count: where, Goal: "0 / 0",
		Measured: fmt.Sprintf("%d / %d; %d letters, each with its reason, %d repeated; %d are valid windows all the same", unaccounted, got.both, count(got.letters), got.again, count(got.results)-good),
		Note: fmt.Sprintf("Valid all the same is what was spoilt where it does not matter: padding of Arrow, samples under a checksum made to fit, attributes of CloudEvents that the monitor does not read. "+
			"The log of the run has %d MiB.", log.Size()>>20),
	}, unaccounted+got.both+got.unexplained == 0)
	r.exact(figure{What: "good windows between them that were judged", Count: fmt.Sprint(n / 1000), Goal: "all", Measured: fmt.Sprint(good)}, good == n/1000)
	r.exact(figure{What: "most memory of the monitor", Count: where, Goal: "≤ 512 MiB", Measured: fmt.Sprintf("%d MiB", most)}, most <= 512)
}

// tail returns the end of a log.
func tail(log string) string { return log[max(0, len(log)-2000):] }

// watchCount follows a topic and returns how many messages came so far.
func (p *plant) watchCount(topic string) func() int {
	l := p.watch(topic, func(bus.Message) {})
	return func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.messages
	}
}

// Row 10. Rounds of equally many good windows, alternately with and without one spoilt message in
// a hundred.
func poison(t *testing.T, r *record) {
	rounds, n := r.n(7, 1), uint64(r.n(60_000, 5_000))
	p := newPlant(t, 2, 1, 10, 0)
	v := p.watch(bus.TopicResults, func(bus.Message) {})
	m := p.mint(machine)
	seq, good := uint64(0), 0
	spoilt := map[uint64]bool{}
	// judge sends n good windows, one in every of them followed by a spoilt one, and
	// returns how long the monitor takes for them by the clock and on the processor.
	judge := func(every uint64) (clock, processor float64) {
		end := seq + n
		if every > 0 {
			end += n / every
		}
		p.send(seq, end, func(seq uint64) bus.Message {
			if every > 0 && seq%(every+1) == every {
				spoilt[seq] = true
				return m.spoilFor(seq)
			}
			good++
			return m.good(seq)
		})
		seq = end
		mon := p.launch("monitor.log", "monitor", "run", "--config", p.file("monitor.yaml"))
		v.until(good - int(n) + 1)
		began, used := time.Now(), mon.processor()
		v.until(good)
		clock, processor = time.Since(began).Seconds(), mon.processor()-used
		time.Sleep(100 * time.Millisecond)
		mon.kill()
		p.evict()
		return clock, processor
	}
	judge(0) // warm up the disk and the broker
	var clocks, processors []float64
	for range rounds {
		plainClock, plainProcessor := judge(0)
		clock, processor := judge(100)
		clocks, processors = append(clocks, clock/plainClock), append(processors, processor/plainProcessor)
		t.Logf("plain %.2f s (%.2f s of the processor), poisoned %.2f s (%.2f s)", plainClock, plainProcessor, clock, processor)
	}
	got := p.tally(int(seq))
	letters, wrong := count(got.letters), 0
	for seq := range got.letters {
		if got.letters[seq] != spoilt[uint64(seq)] {
			wrong++
		}
	}
	where := fmt.Sprintf("%d windows with and without, %d rounds", n, rounds)
	r.exact(figure{
		What: "1 % poison: dead letters missing or too many", Count: fmt.Sprintf("%d spoilt messages", len(spoilt)), Goal: "0",
		Measured: fmt.Sprintf("%d; %d letters, %d repeated", wrong, letters, got.again),
	}, wrong == 0)
	r.measured(figure{
		What: "1 % poison: throughput of good windows by the clock, of that without", Count: where, Goal: "≥ 95 %", Measured: fmt.Sprintf("%.1f %%", 100/median(clocks)),
		Note: "Median of the rounds, which take turns. By the clock other programs on the machine weigh in.",
	}, 1/median(clocks) >= 0.95)
	r.measured(figure{What: "1 % poison: the same by processor time of the monitor", Count: where, Goal: "≥ 95 %", Measured: fmt.Sprintf("%.1f %%", 100/median(processors))}, 1/median(processors) >= 0.95)
}

// spoilFor spoils message seq in a way that never leaves a valid window.
func (m *mint) spoilFor(seq uint64) bus.Message {
	msg := m.good(seq)
	msg.Value = slices.Clone(msg.Value)
	flip(m.rng, msg.Value, 1)
	return msg
}
