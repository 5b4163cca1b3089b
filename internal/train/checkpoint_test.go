package train

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m.checkpoint")
	c, err := OpenCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Load("a"); ok {
		t.Error("a network that nobody kept")
	}
	if err := c.Save("a", []byte("weights")); err != nil {
		t.Fatal(err)
	}
	if b, ok := c.Load("a"); !ok || string(b) != "weights" || c.Resumed() != 1 {
		t.Errorf("%q, %v", b, ok)
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
	// What was being written goes, what is somebody else's stays.
	for _, name := range []string{".a.network.12345", ".a.network.swp", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = OpenCheckpoint(dir); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, name := range left {
		os.Remove(name)
	}
	if err := c.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("an empty folder is left")
	}
}
