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
	"sync/atomic"

	"github.com/flank-tcm/flank/internal/atomicfile"
)

// Checkpoint is a folder that keeps trained networks until the model is whole.
// A run that was cut off, by whatever, goes on with those that are there and
// ends in the same bytes as one that was not. It is a classify.Keeper.
type Checkpoint struct {
	dir    string
	loaded atomic.Int64
}

// networkEnding is that of the files: SHA-256 of what follows, network.
const networkEnding = ".network"

// OpenCheckpoint returns the checkpoint in the folder, which need not be there,
// and removes files that a run was writing when it was cut off.
func OpenCheckpoint(dir string) (*Checkpoint, error) {
	if err := RemoveUnfinished(filepath.Join(dir, "*"+networkEnding)); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return &Checkpoint{dir: dir}, nil
}

// RemoveUnfinished removes what atomicfile.Write left of the files that pattern
// names when it was cut off.
func RemoveUnfinished(pattern string) error {
	dir, base := filepath.Split(pattern)
	left, err := filepath.Glob(filepath.Join(dir, "."+base+".*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if number := strings.TrimLeft(filepath.Ext(path), "."); number == "" || strings.Trim(number, "0123456789") != "" {
			continue // somebody else's
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Load implements classify.Keeper. A file that is damaged counts as not there.
func (c *Checkpoint) Load(name string) ([]byte, bool) {
	b, err := os.ReadFile(c.path(name))
	if err != nil || len(b) < sha256.Size {
		return nil, false
	}
	if sum := sha256.Sum256(b[sha256.Size:]); !bytes.Equal(sum[:], b[:sha256.Size]) {
		return nil, false
	}
	c.loaded.Add(1)
	return b[sha256.Size:], true
}

// Save implements classify.Keeper.
func (c *Checkpoint) Save(name string, data []byte) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return atomicfile.Write(c.path(name), append(sum[:], data...))
}

func (c *Checkpoint) path(name string) string { return filepath.Join(c.dir, name+networkEnding) }

// Resumed returns how many networks of an earlier run were used.
func (c *Checkpoint) Resumed() int { return int(c.loaded.Load()) }

// Remove removes the networks, and the folder if nothing else is in it.
func (c *Checkpoint) Remove() error {
	files, err := filepath.Glob(filepath.Join(c.dir, "*"+networkEnding))
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	os.Remove(c.dir) // not ours to remove if somebody keeps something there
	return nil
}
