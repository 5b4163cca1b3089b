//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// attackMemory is the largest resident set that a program of the plant may reach under attack.
const attackMemory = 1 << 30

// Everything that someone on the network could send goes to a running plant: to its broker, its
// topics, its page and its feed. Every good window gets one result, no program ends or takes
// more memory than its bound, and the page answers afterwards. Batches that Apache Kafka refuses are left out: the
// embedded broker is on loopback, for trying out, and takes them.
func TestAttack(t *testing.T) {
	if kafkatest.Version() != "" {
		t.Skip("the attack is on the embedded broker")
	}
	page := freeAddr(t)
	feed := freeAddr(t)
	broker := start(t, "standalone", "--broker-only", "--broker", freeAddr(t), "--data-dir", filepath.Join(t.TempDir(), "data"))
	addr := broker.cmd.Args[3]
	awaitTCP(t, addr)
	dir := prepare(t, addr, 100)
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "attack"}
	write(t, dir, "monitor.yaml", fmt.Sprintf("kafka: {brokers: [%q]}\nmodel: m.flank\npage: {listen: %q}\npage_token: {file: token}\n", addr, page))
	write(t, dir, "token", "0123456789abcdef0123456789abcdef\n")
	write(t, dir, "feed.yaml", fmt.Sprintf("machine: acme/spore/bay2/line1/live\nkafka: {brokers: [%q]}\nlayout: layout.yaml\nspool: live\nsource: {kind: tcp, listen: %q, timeout: 1s}\n", addr, feed))
	monitor := start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	live := start(t, "ingest", "run", "--config", filepath.Join(dir, "feed.yaml"))
	awaitTCP(t, page)
	awaitTCP(t, feed)
	results := follow(t, cfg, bus.TopicResults)
	ingest := start(t, "ingest", "run", "--config", filepath.Join(dir, "ingest.yaml"))

	ctx, stop := context.WithTimeout(t.Context(), 25*time.Second)
	defer stop()
	a := &attacker{t: t, broker: addr, page: page, feed: feed, sent: make(map[string]int), refused: make(map[string]int)}
	before := len(onlyOf(results, machine).msgs)
	var all sync.WaitGroup
	for _, f := range []func(context.Context){a.events, a.deletions, a.lengths, a.connections, a.web, a.frames} {
		all.Go(func() { f(ctx) })
	}
	all.Wait()
	during := len(onlyOf(results, machine).msgs)
	ingest.wait(t)
	for deadline := time.Now().Add(patience); len(onlyOf(results, machine).msgs) < windows; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d windows have a result\n%s", len(onlyOf(results, machine).msgs), windows, &monitor.stderr)
		}
	}
	checkResults(t, onlyOf(results, machine), windows)
	await.Right(t, func() string { // on a busy machine the monitor may still wait for an answer of its broker
		res, err := http.Get("http://" + page + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusOK {
			return fmt.Sprintf("the page after the attack: %s: %s", res.Status, text)
		}
		return ""
	})
	table := fmt.Sprintf("%-34s %9s %9s\n", "what was sent", "sent", "refused")
	for _, what := range slices.Sorted(maps.Keys(a.sent)) {
		table += fmt.Sprintf("%-34s %9d %9d\n", what, a.sent[what], a.refused[what])
	}
	table += fmt.Sprintf("%-34s %9d %9d %9d\n", "windows judged by its start, end, now", before, during, windows)
	for _, p := range []struct {
		name string
		*process
	}{{"broker", broker}, {"monitor", monitor}, {"live feed", live}} {
		n := peak(t, p.process)
		table += fmt.Sprintf("%-34s %9d of %d MiB\n", p.name+", at its peak", n>>20, attackMemory>>20)
		if n > attackMemory {
			t.Errorf("%s: %d MiB at its peak, want at most %d", p.name, n>>20, attackMemory>>20)
		}
	}
	t.Log("\n" + table)
}

// onlyOf returns the messages of a machine.
func onlyOf(r *reader, machine string) *reader {
	of := &reader{}
	for _, m := range r.all() {
		if m.Key == machine {
			of.msgs = append(of.msgs, m)
		}
	}
	return of
}

// awaitTCP waits until something listens.
func awaitTCP(t *testing.T, addr string) {
	t.Helper()
	await.Until(t, addr+" answers", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

type attacker struct {
	t                  *testing.T
	broker, page, feed string

	mu            sync.Mutex
	sent, refused map[string]int // by what it is
}

// count notes that something was sent, and whether it was refused.
func (a *attacker) count(what string, refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sent[what]++; refused {
		a.refused[what]++
	}
}

// events are well-formed messages whose contents are hostile.
func (a *attacker) events(ctx context.Context) {
	p, err := bus.NewProducer(bus.Config{Brokers: []string{a.broker}, ClientID: "attacker"})
	if err != nil {
		a.t.Error(err)
		return
	}
	defer p.Close()
	evil := "T\x1b[2J\n<script>\u202e" + strings.Repeat("x", 300)
	now := time.Now().UTC()
	command := event.Command{ID: event.NewCommandID(), Machine: machine, Action: event.Suppress, By: evil, Note: evil, Issued: now}
	headers := func(pairs ...string) (all []bus.Header) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, bus.Header{Key: pairs[i], Value: []byte(pairs[i+1])})
		}
		return all
	}
	var msgs []bus.Message
	for _, value := range [][]byte{nil, []byte("{"), bytes.Repeat([]byte("["), 1<<20), []byte(`{"machine":1e999}`), bytes.Repeat([]byte{0xff}, 1<<16), event.JSON(command)} {
		for _, topic := range []string{bus.TopicWindows, bus.TopicCommands, bus.TopicAlerts, bus.TopicFeatures, bus.TopicState, bus.TopicModels, bus.TopicDead} {
			for _, typ := range []string{event.CommandType, event.AlertType, event.AdvisoryType, event.WindowType, evil} {
				msgs = append(msgs, bus.Message{Topic: topic, Key: evil, Value: value, Headers: headers("ce_type", typ, "ce_id", evil, "ce_time", evil, "seq", "18446744073709551615", "epoch", evil)})
			}
		}
	}
	for ctx.Err() == nil {
		for _, m := range msgs {
			err := p.Send(ctx, []bus.Message{m}) // a refusal is as good
			if ctx.Err() == nil {
				a.count("hostile messages", err != nil)
			}
		}
		pause(ctx, time.Second)
	}
}

// deletions ask the broker to forget records, at places that there are and that there are not. Windows
// are left alone behind their beginning: a broker without logins lets anyone delete them.
func (a *attacker) deletions(ctx context.Context) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(a.broker))
	if err != nil {
		a.t.Error(err)
		return
	}
	defer cl.Close()
	for ctx.Err() == nil {
		for topic, offsets := range map[string][]int64{
			bus.TopicWindows: {0, math.MaxInt64, -2, math.MinInt64}, bus.TopicDead: {-1, 0, 1, math.MaxInt64}, bus.TopicCommands: {-1, math.MaxInt64}, "no.such.topic": {-1, 0},
		} {
			for _, offset := range offsets {
				for _, partition := range []int32{0, -1, math.MaxInt32} {
					req := kmsg.NewPtrDeleteRecordsRequest()
					req.TimeoutMillis = 1000
					part := kmsg.NewDeleteRecordsRequestTopicPartition()
					part.Partition, part.Offset = partition, offset
					req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{part}}}
					one, cancel := context.WithTimeout(ctx, 2*time.Second)
					res, err := req.RequestWith(one, cl)
					cancel()
					if ctx.Err() == nil {
						a.count("deletions of records", err != nil || res.Topics[0].Partitions[0].ErrorCode != 0)
					}
				}
			}
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// lengths announces what never comes.
func (a *attacker) lengths(ctx context.Context) {
	for _, n := range []uint32{1<<32 - 1, 1 << 31, 1<<31 - 1, 256 << 20, 100 << 20, 32 << 20} { // held open until the end
		for _, addr := range []string{a.broker, a.feed} {
			if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
				defer c.Close()
				_, err = c.Write(binary.BigEndian.AppendUint32(nil, n))
				a.count("lengths, held open", err != nil)
			}
		}
	}
	for ctx.Err() == nil {
		for _, n := range []uint32{1<<32 - 1, 1 << 31, 1<<31 - 1, 100 << 20, 32 << 20, 1 << 20, 0, 7} {
			for _, key := range []uint16{0, 1, 3, 11, 19, 999, 0xffff} {
				b := binary.BigEndian.AppendUint32(nil, n)
				b = binary.BigEndian.AppendUint16(b, key)
				a.send(ctx, "lengths", a.broker, append(b, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff))
			}
		}
		a.send(ctx, "HTTP at the broker", a.broker, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	}
}

// connections are many, and trickle.
func (a *attacker) connections(ctx context.Context) {
	var all []net.Conn
	for ctx.Err() == nil {
		for _, addr := range []string{a.broker, a.page, a.feed} {
			if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
				all = append(all, c)
				a.count("connections that trickle", false)
			} else if ctx.Err() == nil {
				a.count("connections that trickle", true)
			}
		}
		for _, c := range all {
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			_, _ = c.Write([]byte{0})
		}
		if len(all) > 900 {
			for _, c := range all {
				c.Close()
			}
			all = nil
		}
		pause(ctx, 20*time.Millisecond)
	}
	for _, c := range all {
		c.Close()
	}
}

// web sends requests to the page that are wrong, too large, or of a stranger.
func (a *attacker) web(ctx context.Context) {
	client := &http.Client{Timeout: 2 * time.Second}
	for n := 0; ctx.Err() == nil; n++ {
		for _, path := range []string{"/", "/api/commands", "/api/evidence/..%2f..%2fetc%2fpasswd", "/evidence/%00.arrow", "/api/machines/" + strings.Repeat("x", 5000), "/api/login"} {
			for _, method := range []string{"GET", "POST", "DELETE"} {
				req, err := http.NewRequestWithContext(ctx, method, "http://"+a.page+path, io.LimitReader(strings.NewReader(strings.Repeat("[", 2<<20)), 2<<20))
				if err != nil {
					continue
				}
				req.Header.Set("Authorization", "Bearer wrong-"+strconv.Itoa(n))
				req.Header.Set("X-Evil", strings.Repeat("x", 20_000))
				if n%2 == 0 {
					req.Host = "evil.example"
				}
				res, err := client.Do(req)
				if ctx.Err() == nil {
					a.count("requests to the page", err != nil || res.StatusCode/100 != 2)
				}
				if err == nil {
					if method != "GET" && res.StatusCode/100 == 2 {
						a.t.Errorf("%s %s by a stranger: %s", method, path, res.Status)
					}
					_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
					res.Body.Close()
				}
			}
		}
		a.send(ctx, "half a request to the page", a.page, []byte("GET / HTTP/1.1\r\nHost: "+a.page+"\r\nX-A: "))
		pause(ctx, 200*time.Millisecond)
	}
}

// frames are not frames.
func (a *attacker) frames(ctx context.Context) {
	for ctx.Err() == nil {
		for _, p := range []string{"", "{", `{"session":1,"first":0,"time_ns":1,"tool":"T\u001b[2J","channels":{"force":[1]}}`, strings.Repeat("[", 1<<20), "\xff\xff\xff\xff\xff\xff\xff\x7f"} {
			b := binary.LittleEndian.AppendUint32(nil, uint32(len(p)))
			b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(p)))
			a.send(ctx, "frames", a.feed, append(b, p...))
		}
		for _, n := range []uint32{1<<32 - 1, 16 << 20} {
			a.send(ctx, "frames", a.feed, binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n), 0))
		}
	}
}

// send opens a connection, sends bytes, and reads a little of the answer. A connection that cannot be
// opened counts as refused.
func (a *attacker) send(ctx context.Context, what, addr string, b []byte) {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if ctx.Err() == nil {
		a.count(what, err != nil)
	}
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
	_, _ = c.Write(b)
	_, _ = c.Read(make([]byte, 512))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// peak returns the largest resident set of a process that runs.
func peak(t *testing.T, p *process) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("%v: it has ended: %v\n%s", p.cmd.Args, err, &p.stderr)
	}
	_, rest, ok := strings.Cut(string(text), "VmHWM:")
	if !ok {
		t.Fatalf("%v has ended\n%s", p.cmd.Args, &p.stderr)
	}
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
