package monitor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

const (
	upgradedLine  = "acme/line1/"
	upgradedLathe = "acme/spore/bay2/line1/lathe"
)

// openFrozen opens a copy of a plant in testdata.
func openFrozen(t *testing.T, release string) (p *plant, clock func(*Monitor)) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", release))); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(filepath.Join(dir, "model"))
	if err != nil {
		t.Fatal(err)
	}
	p = &plant{t: t, dir: filepath.Join(dir, "broker"), model: m}
	p.open()
	text, err := os.ReadFile(filepath.Join(dir, "made"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	ahead := time.Since(made) - time.Minute
	return p, func(m *Monitor) { m.now = func() time.Time { return time.Now().Add(-ahead) } }
}

// ingestUpgraded runs this release's ingester on the old spool, with two more windows.
func (p *plant) ingestUpgraded() {
	p.t.Helper()
	r := source.Recording{Path: filepath.Join(p.t.TempDir(), "live.csv"), Layout: p.model.Layout, Machine: upgradedLathe}
	if err := os.WriteFile(r.Path, []byte("force\n10\n10\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	src, err := r.Open()
	if err != nil {
		p.t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{Source: src, Window: window.DefaultSpec, SpoolDir: filepath.Join(p.dir, "..", "spool"), Bus: p.bus, Log: zerolog.New(&p.log)})
	if err != nil {
		p.t.Fatal(err)
	}
	defer g.Close()
	if err := g.Run(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// perWindow returns how many results each window has, under any id.
func (p *plant) perWindow() map[string]int {
	n := map[string]int{}
	for _, r := range p.results() {
		n[fmt.Sprintf("%s/%s/%d", r.Machine, r.Epoch, r.Seq)]++
	}
	return n
}

// ofMachine returns windows of a machine of the old plant.
func ofMachine(name string, ws ...*window.Window) []*window.Window {
	for _, w := range ws {
		w.Machine = upgradedLine + name
	}
	return ws
}

// While a member of the older release is in the group a monitor is not ready, and says
// which member keeps it out. Then it takes over by itself.
func TestOlderReleaseKeepsMonitorOut(t *testing.T) {
	t.Parallel()
	p := newPlant(t, 1)
	cfg := p.bus
	cfg.ClientID = "older"
	older, err := bus.NewGroup(cfg, DefaultGroup, bus.TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	joined := make(chan struct{}, 10)
	older.OnGeneration = func(int) { joined <- struct{}{} }
	go func() {
		_ = older.Run(ctx, func(ctx context.Context, _ *bus.Partition) error { <-ctx.Done(); return ctx.Err() })
	}()
	<-joined
	m := p.monitor()
	ready := func(want string) {
		t.Helper()
		await.Right(t, func() string {
			err := m.Ready()
			if strings.Contains(fmt.Sprint(err), want) {
				return ""
			}
			return fmt.Sprintf("Ready: %v, want %s", err, want)
		})
	}
	p.send(p.messages(at(0, "T1", false))...)
	ready("group tcm-monitor has members of another release, and Kafka lets this program in when they have left: stop them (older at ")
	if n := len(p.results()); n > 0 {
		t.Errorf("%d results of a monitor that was kept out", n)
	}
	stop()
	p.untilResults(1)
	ready("<nil>")
}
