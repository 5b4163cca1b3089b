package train

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/flank-tcm/flank/internal/config"
)

// checkpoint is a folder that keeps networks until the model is complete: networks that
// are trained, and recent states of networks in training. A run
// that was cut off goes on with what is there and ends in the same
// bytes as one that was not. It is a classify.Checkpoints.
type checkpoint struct {
	dir   string
	every time.Duration
	now   func() time.Time

	mu     sync.Mutex
	loaded int
	used   map[string]bool // files of this run
}

// networkEnding is how the names of the files end. A file holds SHA-256 of what follows, network or state.
const networkEnding = ".network"

// OpenCheckpoint returns the checkpoint in the folder, which need not be there,
// and removes files that a run was writing when it was cut off. By the clock
// now, the state of a training is kept after the first epoch that ends when
// every has passed since the last time.
func OpenCheckpoint(dir string, every time.Duration, now func() time.Time) (*checkpoint, error) {
	if err := RemoveUnfinished(filepath.Join(dir, "*"+networkEnding)); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return &checkpoint{dir: dir, every: every, now: now, used: make(map[string]bool)}, nil
}

// RemoveUnfinished removes what config.WriteFile left of the files that pattern
// names when it was cut off.
func RemoveUnfinished(pattern string) error {
	dir, base := filepath.Split(pattern)
	left, err := filepath.Glob(filepath.Join(dir, "."+base+".*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if number := strings.TrimLeft(filepath.Ext(path), "."); number == "" || strings.Trim(number, "0123456789") != "" {
			continue // not ours
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Load implements classify.Checkpoints. A file that is damaged counts as not there.
func (c *checkpoint) Load(name string) ([]byte, bool) {
	b, err := os.ReadFile(c.path(name))
	if err != nil || len(b) < sha256.Size {
		return nil, false
	}
	if sum := sha256.Sum256(b[sha256.Size:]); !bytes.Equal(sum[:], b[:sha256.Size]) {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.used[c.path(name)] { // otherwise this run trained it, for another fold or mode
		c.loaded++
	}
	c.used[c.path(name)] = true
	return b[sha256.Size:], true
}

// Save implements classify.Checkpoints.
func (c *checkpoint) Save(name string, data []byte) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	c.mu.Lock()
	c.used[c.path(name)] = true
	c.mu.Unlock()
	sum := sha256.Sum256(data)
	return config.WriteFile(c.path(name), append(sum[:], data...))
}

// Watch implements classify.Checkpoints.
func (c *checkpoint) Watch() func() bool {
	last := c.now()
	return func() bool {
		now := c.now()
		if now.Sub(last) < c.every {
			return false
		}
		last = now
		return true
	}
}

func (c *checkpoint) path(name string) string { return filepath.Join(c.dir, name+networkEnding) }

// Resumed returns how many networks of an earlier run were used, trained or in
// training.
func (c *checkpoint) Resumed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loaded
}

// Remove removes the networks, and the folder if nothing else is in it. It
// returns how many of them this run had no use for: networks of other data or
// settings, which a network is known by, or damaged ones.
func (c *checkpoint) Remove() (unused int, err error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "*"+networkEnding))
	if err != nil {
		return 0, fmt.Errorf("checkpoint: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range files {
		if !c.used[f] {
			unused++
		}
		if err := os.Remove(f); err != nil {
			return unused, fmt.Errorf("checkpoint: %w", err)
		}
	}
	os.Remove(c.dir) // fails, and may, if something else is in it
	return unused, nil
}
