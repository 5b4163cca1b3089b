//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

var (
	idleTime       = flag.Duration("idle.time", 20*time.Second, "how long TestIdle watches a monitor at rest")
	idleRebalances = flag.Int("idle.rebalances", 2, "how often a second monitor joins and leaves")
	idleRestarts   = flag.Int("idle.restarts", 1, "how often the broker is killed and started again")
	idleReport     = flag.String("idle.report", "", "write the page to this file")
)

// Bounds on a monitor of 64 partitions on one broker, with one machine.
const (
	idleConnections = 60
	idleMemory      = 200 // MB
	idleProcessor   = 2.0 // % of a core; checked when idle.time is long enough to tell
	idleGrowth      = 2.0 // % of the memory in an hour
	idleSettle      = 8 * time.Second
	idleLong        = 5 * time.Minute
	idleOld         = 2 * time.Minute // for an older release
)

// idleRow is what a monitor took in one situation.
type idleRow struct {
	when        string
	took        time.Duration
	connections int     // to the broker, the most that there were
	memory      float64 // MB resident, at the end
	processor   float64 // % of a core
}

// TestIdle measures how many connections, how much memory and how much processor time a monitor of 64 partitions takes
// while one machine sends a window a second: at rest, after other monitors have joined and left, and after restarts of
// the broker. With the programs of an older release (FLANK_OLD) it measures these, too, for comparison.
func TestIdle(t *testing.T) {
	if kafkatest.Version() == "" {
		t.Skip("FLANK_KAFKA is not set: TestOneTransport of internal/bus counts connections to the embedded broker")
	}
	measured := commit() // now: the tree may change while this runs
	var tables []string
	if old := os.Getenv("FLANK_OLD"); old != "" && *idleReport != "" {
		rows, growth := measureIdle(t, old, min(*idleTime, idleOld), 2, 1)
		tables = append(tables, "## Release "+filepath.Base(old)+"\n\n"+idleTable(rows)+"\n"+growth.String()+"\n")
	}
	rows, growth := measureIdle(t, bin, *idleTime, *idleRebalances, *idleRestarts)
	tables = append(tables, "## This release\n\n"+idleTable(rows)+"\n"+growth.String()+"\n")
	for _, r := range rows {
		if r.connections > idleConnections {
			t.Errorf("%s: %d connections, want at most %d", r.when, r.connections, idleConnections)
		}
		if r.memory > idleMemory {
			t.Errorf("%s: %.0f MB, want at most %d", r.when, r.memory, idleMemory)
		}
	}
	if *idleTime >= idleLong {
		if p := rows[0].processor; p > idleProcessor {
			t.Errorf("%.1f %% of a core, want at most %v", p, idleProcessor)
		}
		if g := growth.hourly(); g > idleGrowth {
			t.Errorf("memory grows by %.1f %% an hour, want at most %v", g, idleGrowth)
		}
	}
	text := strings.Join(tables, "\n")
	t.Log("\n" + text)
	if *idleReport != "" {
		page := idleHead + fmt.Sprintf("\n%s Commit %s. Load %.1f at the end.\n\n", machineLine(), measured, load()) + text
		if err := os.WriteFile(*idleReport, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const idleHead = `# What a monitor at rest takes

A monitor of 64 partitions on one broker, with its page, while one machine sends a window a second: connections to the broker (the most
that there were), resident memory (at the end) and processor time.

` + "`make idle`" + ` wrote this page (an hour; ` + "`IDLE=15m`" + ` for less).
`

func idleTable(rows []idleRow) string {
	var b strings.Builder
	b.WriteString("| | for | connections | memory | processor |\n|---|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %v | %d | %.0f MB | %.1f %% |\n", r.when, r.took.Round(time.Second), r.connections, r.memory, r.processor)
	}
	return b.String()
}

// measureIdle runs monitors from a folder of programs.
func measureIdle(t *testing.T, programs string, span time.Duration, rebalances, restarts int) (rows []idleRow, growth memoryGrowth) {
	t.Helper()
	now := bin
	h := newRolling(t, 1)
	bin = programs
	defer func() { bin = now }()
	ctx, stop := context.WithCancel(context.Background())
	go h.send(ctx)
	m := h.startMonitor(0)
	m.ready()
	watch := func(when string, span time.Duration) {
		row, memory := m.watch(when, h.b.Addr(), span)
		rows, growth.samples = append(rows, row), memory
	}
	time.Sleep(idleSettle)
	watch("at rest", max(span/6, idleSettle))
	for i := range rebalances {
		second := h.startMonitor(1)
		second.ready()
		if i == 0 {
			watch("with a second monitor", idleSettle)
		}
		second.signal(syscall.SIGTERM)
		_ = second.cmd.Wait()
	}
	time.Sleep(idleSettle)
	watch(fmt.Sprintf("a second monitor has joined and left, %d times", rebalances), idleSettle)
	for range restarts {
		h.b.Kill()
		h.b.Restart(t)
		m.ready()
		time.Sleep(idleSettle)
	}
	m.ready()
	watch(fmt.Sprintf("the broker was killed and started again, %d times", restarts), idleSettle)
	watch("at rest again", span)
	stop()
	<-h.stopped
	h.settle()
	if sent, seen := len(h.sent[h.machines[0]]), len(h.seen); seen != sent || h.twice+h.odd > 0 {
		t.Errorf("%d results of %d windows, %d of them twice", seen, sent, h.twice)
	}
	m.signal(syscall.SIGTERM)
	_ = m.cmd.Wait()
	h.b.Kill()
	return rows, growth
}

// watch measures the monitor for a while.
func (m *hallMonitor) watch(when, broker string, span time.Duration) (row idleRow, memory []memorySample) {
	row = idleRow{when: when, took: span}
	began, used := time.Now(), m.processor()
	for time.Since(began) < span {
		time.Sleep(min(span-time.Since(began), 5*time.Second))
		row.connections = max(row.connections, m.connections(m.h.t, broker))
		row.memory = float64(m.status("VmRSS")) / 1e3
		memory = append(memory, memorySample{time.Now(), row.memory})
	}
	row.processor = 100 * (m.processor() - used) / time.Since(began).Seconds()
	return row, memory
}

type memorySample struct {
	at time.Time
	mb float64
}

// memoryGrowth is the memory of a monitor over a while.
type memoryGrowth struct{ samples []memorySample }

// thirds returns the median of the first and of the last third, and how far they are apart.
func (g memoryGrowth) thirds() (first, last float64, apart time.Duration) {
	n := len(g.samples) / 3
	if n == 0 {
		return 1, 1, time.Hour
	}
	median := func(s []memorySample) float64 {
		mb := make([]float64, len(s))
		for i := range s {
			mb[i] = s[i].mb
		}
		slices.Sort(mb)
		return mb[len(mb)/2]
	}
	a, b := g.samples[:n], g.samples[len(g.samples)-n:]
	return median(a), median(b), b[n/2].at.Sub(a[n/2].at)
}

// hourly returns by how many per cent memory grows in an hour, or in the time of the measurement if that is shorter
// than an hour.
func (g memoryGrowth) hourly() float64 {
	first, last, _ := g.thirds()
	return 100 * (last/first - 1)
}

func (g memoryGrowth) String() string {
	first, last, apart := g.thirds()
	return fmt.Sprintf("At rest again, memory goes from %.1f MB to %.1f MB (medians of the first and last third, %v apart): %+.1f %%.",
		first, last, apart.Round(time.Second), 100*(last/first-1))
}

// connections returns how many connections p has to a broker of loopback.
func (p *process) connections(t *testing.T, broker string) (n int) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d", p.cmd.Process.Pid)
	sockets := make(map[string]bool)
	files, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Error(err)
		return 0
	}
	for _, f := range files {
		if to, err := os.Readlink(proc + "/fd/" + f.Name()); err == nil {
			if inode, ok := strings.CutPrefix(to, "socket:["); ok {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	_, port, err := net.SplitHostPort(broker)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	remote := fmt.Sprintf(":%04X", number)
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(proc + "/net/" + table)
		if err != nil {
			continue // a machine without IPv6
		}
		for line := range bytes.Lines(text) {
			f := strings.Fields(string(line))
			const established = "01"
			if len(f) > 9 && strings.HasSuffix(f[2], remote) && f[3] == established && sockets[f[9]] {
				n++
			}
		}
	}
	return n
}
