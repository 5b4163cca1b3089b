//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
)

// ground is a plant that is attacked: a broker and a monitor that runs.
type ground struct {
	broker, dir     string
	results, alerts *reader
	configs         atomic.Int64 // that were written
}

// What a plant reads and hears besides frames goes to a running one, each row to a machine of its own: files, a spool of another, a control,
// a broker of MQTT, a disk.
func TestAttackOutside(t *testing.T) {
	if kafkatest.Version() != "" {
		t.Skip("the attack is on the embedded broker")
	}
	broker := start(t, "standalone", "--broker-only", "--broker", freeAddr(t), "--data-dir", filepath.Join(t.TempDir(), "data"))
	addr := broker.cmd.Args[3]
	awaitTCP(t, addr)
	g := &ground{broker: addr, dir: prepare(t, addr, 100)}
	start(t, "monitor", "run", "--config", filepath.Join(g.dir, "monitor.yaml"))
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "attack"}
	g.results, g.alerts = follow(t, cfg, bus.TopicResults), follow(t, cfg, bus.TopicAlerts)
	t.Run("all", func(t *testing.T) { // until its rows have ended
		for name, row := range map[string]func(*testing.T, *ground){
			"model file": smallModels, "folder": changingFolder, "copied spool": copiedSpool, "spool of another machine": othersSpool,
			"control": stuckControl, "death of a monitor": deadMonitor, "client ids": equalClientIDs, "sparkplug": edgeNodes, "full disk": fullDisk,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				row(t, g)
			})
		}
	})
}

// run starts a program of the plant with a configuration, whose log the test shows if it fails.
func (g *ground) run(t *testing.T, program, config string, args ...string) *process {
	t.Helper()
	if !strings.Contains(config, "kafka:") {
		config = fmt.Sprintf("kafka: {brokers: [%q]}\n", g.broker) + config
	}
	name := fmt.Sprintf("config%d.yaml", g.configs.Add(1))
	write(t, g.dir, name, config)
	if len(args) == 0 {
		args = []string{"run"}
	}
	p := start(t, program, append(args, "--config", filepath.Join(g.dir, name))...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v:\n%s", p.cmd.Args, &p.stderr)
		}
	})
	return p
}

// of returns the results of a machine by the monitor of the plant.
func (g *ground) of(t *testing.T, machine string) (all []event.Result) {
	t.Helper()
	for _, m := range onlyOf(g.results, machine).msgs {
		var r event.Result
		if err := json.Unmarshal(m.Value, &r); err != nil {
			t.Fatal(err)
		}
		if r.Group == monitor.DefaultGroup {
			all = append(all, r)
		}
	}
	return all
}

// judged waits until n windows of a machine have results.
func (g *ground) judged(t *testing.T, machine string, n int) {
	t.Helper()
	await.Right(t, func() string {
		if got := len(g.of(t, machine)); got != n {
			return fmt.Sprintf("%d results of %s, want %d", got, machine, n)
		}
		return ""
	})
}

// said waits until a program has logged a text n times.
func said(t *testing.T, p *process, text string, n int) {
	t.Helper()
	await.Right(t, func() string {
		if got := strings.Count(p.stderr.String(), text); got < n {
			return fmt.Sprintf("the log has %q %d times, want %d", text, got, n)
		}
		return ""
	})
}

// A model file that lies about its lengths is refused by name.
func smallModels(t *testing.T, g *ground) {
	head := func(sections uint32, rest ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32(append([]byte("FLANKMDL"), 1, 0, 0, 0), sections), rest...)
	}
	huge := append([]byte("\x08manifest"), bytes.Repeat([]byte{0xff}, 8)...)
	for i, b := range [][]byte{
		head(1, append([]byte{0xff}, bytes.Repeat([]byte{'0'}, 301)...)...), head(1<<32-1, 0xff), head(1<<32 - 1), head(1, 0xff), head(1, huge...),
		head(2, append(huge[:9:9], 255, 255, 255, 255, 255, 255, 255, 127)...), head(0), head(1, append(huge[:9:9], 2, 0, 0, 0, 0, 0, 0, 0, '{', '}')...),
	} {
		sum := sha256.Sum256(b)
		name := fmt.Sprintf("small%d.flank", i)
		write(t, g.dir, name, string(append(b, sum[:]...)))
		p := g.run(t, "monitor", fmt.Sprintf("model: %s\npage: \"\"\n", name), "check")
		err := p.cmd.Wait()
		if text := p.stdout.String() + p.stderr.String(); err == nil || strings.Contains(text, "goroutine ") || !strings.Contains(text, name) {
			t.Errorf("%s of %d bytes: %v\n%s", name, len(b)+32, err, text)
		}
	}
}

// A folder whose files grow, are replaced and removed, next to other files: each row of each recording is judged once.
func changingFolder(t *testing.T, g *ground) {
	const of = "acme/spore/bay2/line1/folder"
	in := filepath.Join(g.dir, "in")
	if err := os.MkdirAll(filepath.Join(in, "day2"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, g.dir, "in/note.txt", "no recording")
	p := g.run(t, "ingest", fmt.Sprintf("machine: %s\nlayout: layout.yaml\nspool: folder\nsource: {kind: folder, folder: in, pattern: \"*.csv\", settle: 100ms, speed: 0}\n", of))
	table := func(value string, rows int) string {
		return "force,power,noise,tool,VB\n" + strings.Repeat(value+",1,1,T7,9\n", rows)
	}
	sent, all := 0, 0
	for _, step := range []struct {
		text string // empty: it is removed
		rows int    // to be judged
		says string
		by   string // how it comes: over the old one, or by rename
	}{
		{table("1", 10), 10, "1 files that", ""},
		{table("1", 15), 5, "has grown", ""},
		{table("1", 15) + "2,1,1,T7,9\n2,", 1, "has grown", ""},
		{table("2", 10), 10, "another recording", "rename"},
		{table("3", 10), 10, "another recording", ""}, // of the same length
		{"", 0, "", ""},
		{table("4", 12), 12, "another recording", ""}, // the name is used again
		{table("4", 5) + "force,power,noise,tool,VB\n" + table("4", 5)[26:] + "#DIV/0!,1,1,T7,9\n", 11, "another recording", "rename"},
	} {
		file, to := filepath.Join(in, "shift.csv"), "in/shift.csv"
		if step.text == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if step.by == "rename" {
			to = "in/shift.csv.tmp"
		}
		if path := write(t, g.dir, to, step.text); path != file {
			if err := os.Rename(path, file); err != nil {
				t.Fatal(err)
			}
		}
		sent, all = sent+1, all+step.rows
		g.judged(t, of, all)
		said(t, p, step.says, 1)
		said(t, p, `"recording sent"`, sent)
	}
	said(t, p, "1 subfolders, such as", 1)
}

// fed is a gateway of one machine with a feed.
type fed struct {
	*process
	conn    net.Conn
	metrics string
	next    int64
	rows    int           // of a frame; 0: ten
	later   time.Duration // than its counter says
}

// feed starts a gateway of one machine that listens for frames.
func (g *ground) feed(t *testing.T, machine, spool, more string) *fed {
	t.Helper()
	f := &fed{metrics: freeAddr(t)}
	at := freeAddr(t)
	f.process = g.run(t, "ingest", fmt.Sprintf("machine: %s\nlayout: layout.yaml\nspool: %s\nmetrics: %q\nsource: {kind: tcp, listen: %q, timeout: 1m}\n%s", machine, spool, f.metrics, at, more))
	f.conn = dialFeed(t, at)
	t.Cleanup(func() { f.conn.Close() })
	return f
}

// send sends the next frame of a session that began ten minutes ago.
func (f *fed) send(t *testing.T, session int64, tool string) {
	t.Helper()
	if _, err := f.conn.Write(lie{session: session, first: f.next, later: f.later, tool: tool, rows: f.rows}.bytes(attackBegun)); err != nil {
		t.Fatal(err)
	}
	f.next += int64(cmp.Or(f.rows, 10))
}

// delivered waits until the gateway has cut n windows, and until none waits.
func (f *fed) delivered(t *testing.T, n int) {
	t.Helper()
	await.Right(t, func() string {
		cut, wait := scrape(t, f.metrics, "tcm_windows_cut_total"), scrape(t, f.metrics, "tcm_windows_pending")
		if cut != float64(n) || wait != 0 {
			return fmt.Sprintf("%v windows of %d are cut, %v wait", cut, n, wait)
		}
		return ""
	})
}

// ahead sends ten rows of two days ahead, of which there is an advisory.
func (f *fed) ahead(t *testing.T) {
	t.Helper()
	f.later = 48 * time.Hour
	f.send(t, 1, "T7")
}

var attackBegun = time.Now().Add(-10 * time.Minute)

// advised waits until there is an advisory of a kind on a machine that says a text.
func (g *ground) advised(t *testing.T, machine string, kind event.AdvisoryKind, text string) {
	t.Helper()
	await.Right(t, func() string {
		for _, m := range onlyOf(g.alerts, machine).msgs {
			var a event.Advisory
			if json.Unmarshal(m.Value, &a) == nil && a.Kind == kind && a.State == event.Raised && strings.Contains(a.Text, text) {
				return ""
			}
		}
		return fmt.Sprintf("no advisory %s with %q on %s", kind, text, machine)
	})
}

// copySpool copies the spool of a gateway that runs, which may replace a file meanwhile.
func (g *ground) copySpool(t *testing.T, from, to string) {
	t.Helper()
	await.Right(t, func() string {
		err := os.RemoveAll(filepath.Join(g.dir, to))
		if err == nil {
			err = os.CopyFS(filepath.Join(g.dir, to), os.DirFS(filepath.Join(g.dir, from)))
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// A spool is copied to another host, and both gateways go on: two epochs, and an advisory. So do two gateways of one host.
func copiedSpool(t *testing.T, g *ground) {
	for name, host := range map[string]string{"of_a_host": "another/01234567", "of_this_host": ""} {
		of := "acme/spore/bay2/line1/copied_" + name
		first := g.feed(t, of, "first-"+name, "")
		first.send(t, 1, "T7")
		g.judged(t, of, 10)
		g.copySpool(t, "first-"+name, "second-"+name)
		if host != "" {
			write(t, g.dir, "second-"+name+"/owner.json", fmt.Sprintf(`{"machine":%q,"host":%q}`, of, host))
		}
		second := g.feed(t, of, "second-"+name, "")
		second.next, second.later = 10, 400*time.Millisecond
		for i := range 4 { // in turn, so that each comes after the other on the topic
			second.send(t, 2, "T8")
			second.delivered(t, 10*i+10)
			first.send(t, 1, "T7")
			first.delivered(t, 10*i+20)
		}
		g.advised(t, of, event.RivalAdvisory, "TWO INGESTERS")
		if host == "" {
			continue // their windows have the same seqs
		}
		said(t, second.process, "another host had this spool", 1)
		g.judged(t, of, 90)
		epochs := map[string]bool{}
		for _, r := range g.of(t, of) {
			epochs[r.Epoch+r.Tool] = true
		}
		if len(epochs) != 2 {
			t.Errorf("epochs and tools %v", epochs)
		}
	}
}

// A spool that windows of a machine wait in is refused to another one, which has it once they are sent.
func othersSpool(t *testing.T, g *ground) {
	const one, other = "acme/spore/bay2/line1/one", "acme/spore/bay2/line1/other"
	f := g.feed(t, one, "shared", "spool_only: true\n")
	f.send(t, 1, "T7")
	await.Right(t, func() string {
		if n := scrape(t, f.metrics, "tcm_windows_pending"); n != 10 {
			return fmt.Sprintf("%v windows wait", n)
		}
		return ""
	})
	f.interrupt(t)
	config := fmt.Sprintf("machine: %s\nlayout: layout.yaml\nspool: shared\nsource: {kind: tcp, listen: %q}\n", other, freeAddr(t))
	p := g.run(t, "ingest", config)
	if err := p.cmd.Wait(); err == nil || !strings.Contains(p.stderr.String(), "give this one a folder of its own") {
		t.Errorf("%v\n%s", err, &p.stderr)
	}
	f = g.feed(t, one, "shared", "")
	g.judged(t, one, 10)
	f.delivered(t, 0)
	f.interrupt(t)
	f = g.feed(t, other, "shared", "")
	f.send(t, 1, "T7")
	g.judged(t, other, 10)
	said(t, f.process, "another machine had this spool", 1)
	if n := len(g.of(t, one)); n != 10 {
		t.Errorf("%d results of %s", n, one)
	}
}

// A control whose page stands still, and one that hangs, are failed readings. The tool stays, and windows go on.
func stuckControl(t *testing.T, g *ground) {
	const of = "acme/spore/bay2/line1/control"
	var mode atomic.Value
	mode.Store("fresh")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		created := time.Now().UTC().Format(time.RFC3339Nano)
		switch mode.Load() {
		case "still":
			created = "2026-11-26T06:00:00Z"
		case "hangs":
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, `<MTConnectStreams><Header creationTime=%q/><Streams><DeviceStream name="M"><ComponentStream component="Path" componentId="p1"><Events>`+
			`<ToolNumber dataItemId="tn" timestamp=%q sequence="3">T7</ToolNumber></Events></ComponentStream></DeviceStream></Streams></MTConnectStreams>`, created, created)
	}))
	defer server.Close()
	f := g.feed(t, of, "control", fmt.Sprintf("context: {mtconnect: {url: %q}, tool: ToolNumber, interval: 100ms, timeout: 400ms}\n", server.URL))
	said(t, f.process, `T7`, 1)
	windows := 0
	for _, now := range []string{"fresh", "still", "fresh", "hangs", "fresh"} {
		mode.Store(now)
		stale := 1.0
		if now == "fresh" {
			stale = 0
		}
		await.Right(t, func() string {
			if got := scrape(t, f.metrics, "tcm_context_stale"); got != stale {
				return fmt.Sprintf("tcm_context_stale is %v of a page that %s", got, now)
			}
			return ""
		})
		f.send(t, 1, "")
		windows += 10
		g.judged(t, of, windows)
	}
	for _, r := range g.of(t, of) {
		if r.Tool != "T7" {
			t.Fatalf("%+v", r)
		}
	}
	if n := scrape(t, f.metrics, "tcm_context_failures_total"); n < 2 {
		t.Errorf("%v failures", n)
	}
}

// published are the payloads of topics of a broker of MQTT, in order.
type published struct {
	mu       sync.Mutex
	topics   []string
	payloads [][]byte
}

func listen(t *testing.T, s *mqtttest.Broker, filter string) *published {
	h := &published{}
	s.Subscribe(t, filter, func(topic string, payload []byte, _ bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.topics, h.payloads = append(h.topics, topic), append(h.payloads, slices.Clone(payload))
	})
	return h
}

// of returns the payloads of a topic.
func (h *published) of(topic string) (all [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, of := range h.topics {
		if of == topic {
			all = append(all, h.payloads[i])
		}
	}
	return all
}

// has waits until a topic has a payload with a text.
func (h *published) has(t *testing.T, topic, text string) {
	t.Helper()
	await.Right(t, func() string {
		all := h.of(topic)
		if len(all) == 0 || !bytes.Contains(all[len(all)-1], []byte(text)) {
			return fmt.Sprintf("%s has %q, want one with %s at last", topic, all, text)
		}
		return ""
	})
}

// monitor starts a monitor of a group of its own with a route to a broker of MQTT.
func (g *ground) monitor(t *testing.T, group, route string) *process {
	return g.run(t, "monitor", fmt.Sprintf("group: %s\nmodel: m.flank\npage: \"\"\nsilence: 0s\nalerts: {routes: [{name: hmi, mqtt: %s}]}\n", group, route))
}

// The state that a monitor retained is not to be believed once it has died, and its status says so.
func deadMonitor(t *testing.T, g *ground) {
	const of = "acme/spore/bay2/line1/dies"
	s := mqtttest.Start(t, mqtttest.Options{})
	g.feed(t, of, "dies", "").ahead(t)
	state, status := "flank/"+of+"/alarm", "flank/_monitor/mortal/status"
	all := listen(t, s, "flank/#")
	p := g.monitor(t, "mortal", fmt.Sprintf("{broker: %q, client_id: mortal}", s.URL))
	all.has(t, status, `"online"`)
	all.has(t, state, `"monitor":"mortal"`)
	all.has(t, state, `"sent":`)
	p.kill()
	all.has(t, status, `"offline"`)
	hmi := listen(t, s, "flank/#") // that is switched on now
	hmi.has(t, status, `"offline"`)
	hmi.has(t, state, `"monitor":"mortal"`)
	g.monitor(t, "mortal", fmt.Sprintf("{broker: %q, client_id: heir}", s.URL))
	hmi.has(t, "flank/_monitor/heir/status", `"online"`)
	hmi.has(t, state, `"monitor":"heir"`)
}

// Two monitors and two gateways with one client id each say so once, and back off.
func equalClientIDs(t *testing.T, g *ground) {
	s := mqtttest.Start(t, mqtttest.Options{})
	var two []*process
	for _, name := range []string{"twin1", "twin22"} {
		two = append(two, g.monitor(t, name, fmt.Sprintf("{broker: %q, client_id: twin}", s.URL)))
	}
	for _, name := range []string{"left", "right1"} {
		two = append(two, g.run(t, "ingest", fmt.Sprintf("machine: acme/spore/bay2/line1/twins\nlayout: layout.yaml\nspool: %s\nsource: {kind: mqtt}\nmqtt: {broker: %q}\n", name, s.URL)))
	}
	for _, p := range two {
		said(t, p, "another program connects to the MQTT broker with the client id", 1)
	}
	for _, p := range two {
		if n := strings.Count(p.stderr.String(), "does not last"); n != 1 {
			t.Errorf("%v: it says %d times that the connection does not last", p.cmd.Args, n)
		}
	}
}

// bdSeq returns the number of a birth or a death of Sparkplug.
func bdSeq(payload []byte) uint64 {
	_, rest, _ := bytes.Cut(payload, []byte("bdSeq\x18")) // the name, then time, type and value with a key each
	_, n := binary.Uvarint(rest)
	v, _ := binary.Uvarint(bytes.TrimPrefix(rest[max(n, 0):], []byte("\x20\x04\x58")))
	return v
}

// An edge node of Sparkplug is born once in each life of a monitor, however many partitions it has. Each life and its death have a
// number of their own.
func edgeNodes(t *testing.T, g *ground) {
	s := mqtttest.Start(t, mqtttest.Options{})
	all := listen(t, s, "spBv1.0/#")
	var devices []string
	for i := range 6 { // of other partitions
		of := fmt.Sprintf("acme/spore/bay2/line1/edge%d", i)
		devices = append(devices, "spBv1.0/flank/DBIRTH/hall1/"+strings.ReplaceAll(of, "/", "."))
		g.feed(t, of, fmt.Sprint("edge", i), "").ahead(t)
	}
	births, deaths := "spBv1.0/flank/NBIRTH/hall1", "spBv1.0/flank/NDEATH/hall1"
	for life := range 2 {
		p := g.monitor(t, "hall1", fmt.Sprintf("{broker: %q, sparkplug: {edge: hall1}}", s.URL))
		for _, d := range devices {
			await.Right(t, func() string {
				if n := len(all.of(d)); n != life+1 {
					return fmt.Sprintf("%d births of %s in %d lives", n, d, life+1)
				}
				return ""
			})
		}
		p.kill()
		await.Right(t, func() string {
			if b, d := len(all.of(births)), len(all.of(deaths)); b != life+1 || d != life+1 {
				return fmt.Sprintf("%d births and %d deaths of the node in %d lives", b, d, life+1)
			}
			return ""
		})
		if b, d := bdSeq(all.of(births)[life]), bdSeq(all.of(deaths)[life]); b != d {
			t.Errorf("life %d has bdSeq %d at its birth and %d at its death", life, b, d)
		}
	}
	if first, second := bdSeq(all.of(births)[0]), bdSeq(all.of(births)[1]); first == second {
		t.Errorf("two lives have bdSeq %d", first)
	}
}

// A full disk while the broker is away: acquisition goes on, and what the spool gives up is counted exactly.
func fullDisk(t *testing.T, g *ground) {
	const of = "acme/spore/bay2/line1/full"
	disk := filepath.Join(g.dir, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m", "flank", disk).CombinedOutput(); err != nil {
		t.Skip("a small disk is mounted by root: " + strings.TrimSpace(string(text)))
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() })
	f := g.feed(t, of, "disk/spool", "spool_mib: 0\nspool_sync: 64\nkafka: {brokers: [\"127.0.0.1:1\"]}\n")
	dropped := func() float64 { return max(scrape(t, f.metrics, "tcm_windows_dropped_total"), 0) }
	var most, before float64
	for begun := time.Now(); dropped() < 700; { // it goes on after it was full
		f.rows = 200
		f.send(t, 1, "T7")
		await.Right(t, func() string {
			if n := scrape(t, f.metrics, "tcm_windows_cut_total"); n != float64(f.next) {
				return fmt.Sprintf("%v windows of %d are cut", n, f.next)
			}
			return ""
		})
		n := dropped()
		most, before = max(most, n-before), n
		if time.Since(begun) > patience {
			t.Fatalf("%v windows of %d dropped", n, f.next)
		}
	}
	was := int(dropped())
	f.interrupt(t)
	f.conn.Close()
	g.feed(t, of, "disk/spool", "")
	g.judged(t, of, int(f.next)-was)
	if kept := int(f.next) - was; int(most) > kept/3 {
		t.Errorf("%v windows were dropped at once, with %d kept in the end", most, kept)
	}
}
