package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Recording is a recorded file on disk and what has to be known to read it.
type Recording struct {
	Path    string
	Layout  *signal.Layout
	Columns signal.Recording // of a table: which columns are no channels
	Machine string           // where the file does not name it
}

// Open returns a source of the recording, which the caller closes. Where the
// file names no tool, the tool is named after the file.
func (r Recording) Open() (Source, error) {
	csv, err := OpenTable(r.Path, r.Layout, r.Columns, Options{Machine: r.Machine})
	if err != nil {
		return nil, err
	}
	if r.Columns.Tool != "" {
		return csv, nil
	}
	return &named{Source: csv, tool: r.Name()}, nil
}

// Name returns the name of the file without folder and ending.
func (r Recording) Name() string {
	base := filepath.Base(r.Path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// SHA256 returns the checksum of the file in hexadecimal digits.
func (r Recording) SHA256() (string, error) {
	f, err := os.Open(r.Path)
	if err != nil {
		return "", fmt.Errorf("recording: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("recording: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// named is a source whose blocks name a tool.
type named struct {
	Source
	tool string
}

func (n *named) Next(ctx context.Context) (*Block, error) {
	b, err := n.Source.Next(ctx)
	if err == nil {
		b.Tool = n.tool
	}
	return b, err
}

// Close closes the source if it can be closed.
func (n *named) Close() error {
	if c, ok := n.Source.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
