package gateway

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/pkg/window"
)

// A live source whose spool comes from another host delivers what waits in it, and goes on
// in an epoch of its own. Another machine may not have the spool before all is delivered.
func TestSpoolOfAnother(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	of := func(machine, host string) func(*Config) {
		return func(c *Config) { c.Machine, c.Host = machine, host }
	}
	run := func(rec string, from int, how ...func(*Config)) uint64 {
		t.Helper()
		g := p.gateway(p.record(rec+".csv", from, 3), append(how, live)...)
		defer g.Close()
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return g.spool.Epoch()
	}
	first := run("one", 100, of("a", "h1"), func(c *Config) { c.SpoolOnly = true })
	src, err := p.record("two.csv", 100, 3).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer src.(io.Closer).Close()
	cfg := Config{Source: src, Window: window.DefaultSpec, SpoolDir: p.spool, Bus: p.bus, Machine: "b", Host: "h1"}
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), `of machine "a" wait`) {
		t.Errorf("another machine: %v", err)
	}
	if err := os.Remove(filepath.Join(p.spool, "owner.json")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	p.gateway(p.record("nothing.csv", 100, 3), of("a", "h1"), live, func(c *Config) { c.Log = zerolog.New(&log) }).Close()
	if !strings.Contains(log.String(), "owner.json in the spool is missing or damaged: the windows that wait there are taken for this machine's") {
		t.Errorf("a spool that does not say whose it is: %s", &log)
	}
	second := run("three", 300, of("a", "h2"))
	if again := run("four", 400, of("a", "h2")); second == first || again != second {
		t.Errorf("epochs %x, %x and %x", first, second, again)
	}
	want := windows(0, 300, 3)
	for seq, v := range windows(3, 400, 3) {
		want[seq] = v
	}
	p.check(epochs{first: windows(0, 100, 3), second: want})
	if last := run("five", 500, of("b", "h2")); last == second {
		t.Error("another machine goes on in the epoch of the one before")
	}
}
