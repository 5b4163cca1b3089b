//go:build e2e

package e2e

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
	"github.com/flank-tcm/flank/schemas"
)

// lie is a frame of ten rows, which are 30 samples and ten windows, unless it says otherwise.
type lie struct {
	session, first int64
	later          time.Duration // than its counter says
	tool, rest     string        // in place of rows, if it is not empty
	rows           int           // 0: ten
}

// good are frames of ten rows from a counter on.
func good(session, first, n int64, later time.Duration) (all []lie) {
	for i := range n {
		all = append(all, lie{session: session, first: first + 10*i, later: later})
	}
	return all
}

// slow are frames of ten rows whose clock says that a row takes two seconds.
func slow(n int64) (all []lie) {
	for i := range n {
		all = append(all, lie{session: 1, first: 10 * i, later: time.Duration(10*i) * time.Second})
	}
	return all
}

// Senders that lie go to a running gateway, each to a machine of its own. No good sample is lost, every other one is counted with its reason,
// and where too many are lost, the gateway is not ready and the monitor has an advisory with the reason.
func TestAttackLedger(t *testing.T) {
	if kafkatest.Version() != "" {
		t.Skip("the attack is on the embedded broker")
	}
	const minute = time.Minute
	rows := []struct {
		name    string
		frames  []lie
		windows uint64            // 0: any
		unused  map[string]uint64 // samples by reason
		flag    string            // that windows have; empty: any
		advised string            // what the advisory on losses or sensors names; empty: there is none
	}{
		{"counter_jump", slices.Concat(good(1, 0, 3, 0), []lie{{session: 1, first: 2000, later: -1970 * time.Second}}, good(1, 30, 3, 0)), 60, map[string]uint64{"counter": 30}, "", ""},
		{"restart", slices.Concat(good(1, 0, 3, 0), good(1, 0, 5, 3*minute)), 80, nil, "", ""},
		{"two_senders", slices.Concat(good(1, 0, 1, 0), good(2, 0, 1, minute), good(1, 10, 1, 0), good(2, 10, 3, minute), good(1, 20, 2, 0)), 50, map[string]uint64{"other_sender": 90}, "", "other sender"},
		{"repeats", slices.Concat(good(1, 0, 4, 0), good(1, 0, 4, 0)), 40, map[string]uint64{"repeat": 120}, "", ""},
		{"hole", slices.Concat(good(1, 0, 2, 0), good(1, 50, 2, 0)), 20, nil, "", ""},
		{"no_tool", []lie{{session: 1, tool: "0"}, {session: 1, first: 10, tool: "00"}, {session: 1, first: 20, tool: "T7"}}, 30, nil, "", ""},
		{"seconds", []lie{{session: 1, rest: fmt.Sprintf(`"time_ns":%d,"channels":{"force":[1],"power":[1],"noise":[1]}`, time.Now().Unix())}}, 0, map[string]uint64{"date": 3}, "", ""},
		{"a_column_less", []lie{{session: 1, rest: fmt.Sprintf(`"time_ns":%d,"channels":{"force":[1],"power":[1]}`, time.Now().UnixNano())}}, 0, nil, "", ""},
		{"of_1970", []lie{{session: 1, rest: fmt.Sprintf(`"time_ns":%d,"channels":{"force":[1],"power":[1],"noise":[1]}`, time.Hour)}}, 0, map[string]uint64{"date": 3}, "", ""},
		{"two_days_ahead", good(1, 0, 3, 48*time.Hour), 30, nil, "clock_off", "clock_off"},
		{"two_days_behind", good(1, 0, 3, -48*time.Hour), 30, nil, "clock_off", "clock_off"},
		{"half_the_rate", slow(6), 60, nil, "rate_error", "0.5 samples a second come where the layout says 1"},
	}
	const header, row = "force,power,noise,tool,VB\n", "1,1,1,T7,9\n"
	files := []struct {
		name, layout, text string
		windows            int
	}{ // as loggers write them; the last line was cut
		{"dirty", "layout.yaml", header + strings.Repeat(row, 10) + header + strings.Repeat(row, 5) + "1,#DIV/0!,1,T7,9\n" + strings.Repeat(row, 4) + "1,1", 20},
		{"cut_number", "layout.yaml", header + strings.Repeat(row, 10) + "1,1,1,T7,9000000", 10},
		{"missing", "layout.yaml", header + strings.Repeat(row, 5) + "#N/A,1.#QNAN,,T7,9\n" + strings.Repeat(row, 5), 11},
		{"second_60", "timed.yaml", "t," + header + "2026-11-02 06:00:58,1,1,1,T7,9\n2026-11-02 06:00:59,1,1,1,T7,9\n2026-11-02 06:00:60,1,1,1,T7,9\n2026-11-02 06:01:01,1,1,1,T7,9\n", 4},
	}
	broker := start(t, "standalone", "--broker-only", "--broker", freeAddr(t), "--data-dir", filepath.Join(t.TempDir(), "data"))
	addr, metrics := broker.cmd.Args[3], freeAddr(t)
	awaitTCP(t, addr)
	dir := prepare(t, addr, 100)
	config := fmt.Sprintf("kafka: {brokers: [%q]}\nmetrics: %q\nmachines:\n", addr, metrics)
	feeds := map[string]string{}
	for _, r := range rows {
		feeds[r.name] = freeAddr(t)
		config += fmt.Sprintf("  - machine: acme/spore/bay2/line1/%s\n    layout: layout.yaml\n    spool: spool-%s\n    source: {kind: tcp, listen: %q, timeout: 1m}\n", r.name, r.name, feeds[r.name])
	}
	write(t, dir, "timed.yaml", "name: small\nchannels:\n  - {names: [force, power, noise], kind: feature, rate: 1}\nrecording: {time: t, tool: tool, vb_max_um: VB}\n")
	for _, f := range files {
		write(t, dir, f.name+".csv", f.text)
		config += fmt.Sprintf("  - machine: acme/spore/bay2/line1/%s\n    layout: %s\n    spool: spool-%s\n    source: {kind: file, file: %s.csv, speed: 0}\n", f.name, f.layout, f.name, f.name)
	}
	write(t, dir, "feeds.yaml", config)
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "attack"}
	start(t, "monitor", "run", "--config", filepath.Join(dir, "monitor.yaml"))
	gateway := start(t, "ingest", "run", "--config", filepath.Join(dir, "feeds.yaml"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the gateway:\n%s", &gateway.stderr)
		}
	})
	results, alerts := follow(t, cfg, bus.TopicResults), follow(t, cfg, bus.TopicAlerts)
	begun := time.Now().Add(-10 * time.Minute)
	for _, r := range rows {
		conn := dialFeed(t, feeds[r.name])
		defer conn.Close()
		for _, f := range r.frames {
			if _, err := conn.Write(f.bytes(begun)); err != nil {
				t.Fatalf("%s: %v", r.name, err)
			}
		}
	}
	type ledger struct {
		Received  uint64            `json:"received"`
		InWindows uint64            `json:"in_windows"`
		Open      uint64            `json:"not_yet_cut"`
		Unused    map[string]uint64 `json:"unused"`
		Flags     map[string]uint64 `json:"-"` // windows
	}
	ledgers := func() map[string]ledger {
		var health struct {
			Machines map[string]struct {
				Samples ledger            `json:"samples"`
				Flags   map[string]uint64 `json:"flags"`
			} `json:"machines"`
		}
		if res, err := http.Get("http://" + metrics + "/healthz"); err == nil {
			defer res.Body.Close()
			_ = json.NewDecoder(res.Body).Decode(&health)
		}
		all := map[string]ledger{}
		for name, m := range health.Machines {
			m.Samples.Flags = m.Flags
			all[name] = m.Samples
		}
		return all
	}
	advised := func(name string) (text string) {
		for _, m := range alerts.all() {
			var a event.Advisory
			if string(m.Header("ce_type")) == event.AdvisoryType && json.Unmarshal(m.Value, &a) == nil && a.Machine == name && a.State == event.Raised &&
				(a.Kind == event.LossAdvisory || a.Kind == event.SensorAdvisory && a.Severity == "warning") {
				if err := schemas.Validate(schemas.Advisory, m.Value); err != nil {
					t.Error(err)
				}
				text = a.Text
			}
		}
		return text
	}
	unready := false // it was, for the reason that is to be seen
	wrong := func() (what []string) {
		now := ledgers()
		if res, err := http.Get("http://" + metrics + "/readyz"); err == nil {
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			unready = unready || res.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(text), "other_sender 30 s")
		}
		if !unready {
			what = append(what, "the gateway is ready")
		}
		for _, r := range rows {
			name := "acme/spore/bay2/line1/" + r.name
			l := now[name]
			sum := l.InWindows + l.Open
			for _, n := range l.Unused {
				sum += n
			}
			judged := len(onlyOf(results, name).msgs)
			switch {
			case l.Received != sum, l.InWindows != 3*r.windows, judged != int(r.windows), r.flag != "" && l.Flags[r.flag] == 0, (advised(name) == "") != (r.advised == ""), !strings.Contains(advised(name), r.advised):
				what = append(what, fmt.Sprintf("%s: %+v, %d results, advisory %q", r.name, l, judged, advised(name)))
			}
			for reason, n := range r.unused {
				if l.Unused[reason] != n {
					what = append(what, fmt.Sprintf("%s: %d samples of reason %s, want %d", r.name, l.Unused[reason], reason, n))
				}
			}
		}
		for _, f := range files {
			name := "acme/spore/bay2/line1/" + f.name
			if l, judged := now[name], len(onlyOf(results, name).msgs); l.InWindows != uint64(3*f.windows) || l.Received != l.InWindows || judged != f.windows {
				what = append(what, fmt.Sprintf("%s: %+v, %d results", f.name, l, judged))
			}
		}
		return what
	}
	for deadline := time.Now().Add(patience); len(wrong()) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(strings.Join(wrong(), "\n"))
		}
	}
	for _, m := range results.all() {
		var r event.Result
		if json.Unmarshal(m.Value, &r) == nil && r.Tool != "" && r.Tool != "T7" {
			t.Errorf("tool %q in a result of %s", r.Tool, r.Machine)
		}
	}
	if log := gateway.stderr.String(); !strings.Contains(log, "it looks like seconds") || !strings.Contains(log, `noise`) {
		t.Error("the log does not name the unit and the column")
	}
}

// dialFeed connects once something listens: a connection to try would be the first sender.
func dialFeed(t *testing.T, addr string) net.Conn {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// bytes returns the frame as it goes over TCP. The first counter is of a time.
func (f lie) bytes(begun time.Time) []byte {
	text := fmt.Sprintf(`{"session":%d,"first":%d,%s}`, f.session, f.first, f.rest)
	if f.rest == "" {
		at := begun.Add(f.later + time.Duration(f.first)*time.Second)
		row := strings.TrimSuffix(strings.Repeat("1,", cmp.Or(f.rows, 10)), ",")
		text = fmt.Sprintf(`{"session":%d,"first":%d,"time_ns":%d,"tool":%q,"channels":{"force":[%s],"power":[%s],"noise":[%s]}}`, f.session, f.first, at.UnixNano(), f.tool, row, row, row)
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	return append(binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(text))), text...)
}
