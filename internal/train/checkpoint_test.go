package train

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m.checkpoint")
	at := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	c, err := OpenCheckpoint(dir, 30*time.Second, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Load("a"); ok {
		t.Error("loaded a network that was never kept")
	}
	if err := c.Save("a", []byte("weights")); err != nil {
		t.Fatal(err)
	}
	if b, ok := c.Load("a"); !ok || string(b) != "weights" || c.Resumed() != 0 {
		t.Errorf("%q, %v, of an earlier run: %d", b, ok, c.Resumed())
	}
	later, err := OpenCheckpoint(dir, 30*time.Second, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if b, ok := later.Load("a"); !ok || string(b) != "weights" || later.Resumed() != 1 {
			t.Errorf("the next run: %q, %v, of an earlier run: %d", b, ok, later.Resumed())
		}
	}
	// States are due when the time has come, for each training by itself.
	first := c.Watch()
	at = at.Add(29 * time.Second)
	second := c.Watch()
	if first() || second() {
		t.Error("a state is due after 29 s")
	}
	at = at.Add(time.Second)
	if !first() || second() || first() {
		t.Error("after 30 s the state of the first training is due, once")
	}
	at = at.Add(29 * time.Second)
	if first() || !second() {
		t.Error("after 59 s the state of the second training is due")
	}
	path := filepath.Join(dir, "a.network")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole { // every way in which it can be cut off
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Load("a"); ok {
			t.Fatalf("a file cut off after %d of %d bytes was read", n, len(whole))
		}
	}
	// What was being written goes, what belongs to another program stays.
	for _, name := range []string{".a.network.12345", ".a.network.swp", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = OpenCheckpoint(dir, time.Minute, time.Now); err != nil {
		t.Fatal(err)
	}
	if err := c.Save("b", []byte("more weights")); err != nil {
		t.Fatal(err)
	}
	if unused, err := c.Remove(); err != nil || unused != 1 {
		t.Fatalf("%d networks of an earlier run were of no use, %v", unused, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, name := range left {
		os.Remove(name)
	}
	if _, err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("an empty folder is left")
	}
}
