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
	"time"

	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Recording is a recorded file on disk and what has to be known to read it.
type Recording struct {
	Path    string
	Layout  *signal.Layout
	Columns signal.Recording // its format, and what is where in it
	Machine string           // where the file does not name it

	// Start says when the recording began if the file does not say it. Of several
	// recordings a Timeline says it before they are opened.
	Start signal.Start

	// Warn is called with what a person should know of the file, each time that it is
	// read; it may be nil.
	Warn func(text string)

	begin time.Time // the instant that times of the file count from; zero before it is placed
}

// Open returns a source of the recording, which the caller closes if it can be
// closed. Where the file names no tool, the tool is named after the file.
func (r Recording) Open() (Source, error) {
	if r.begin.IsZero() {
		if _, err := new(Timeline).Place(context.Background(), &r); err != nil {
			return nil, err
		}
	}
	src, err := r.openAt(r.begin)
	if err != nil || r.Columns.Tool != "" {
		return src, err
	}
	tool, err := plain.Name(r.Name())
	if err != nil {
		tool = r.Name()
	}
	return &named{Source: src, tool: tool}, nil
}

// openAt opens the recording with an origin of times. It leaves tools without a name.
func (r Recording) openAt(origin time.Time) (Source, error) {
	opt := tableOptions{Machine: r.Machine, Start: origin, Warn: r.Warn}
	f, err := formatOf(r.Path, r.Columns)
	if err != nil {
		return nil, err
	}
	if f.New == nil {
		return openTable(r.Path, r.Layout, r.Columns, opt)
	}
	file, err := f.Open(r.Path)
	if err != nil {
		return nil, err
	}
	if r.Warn != nil {
		for _, note := range file.Notes() {
			r.Warn(r.Path + ": " + note)
		}
	}
	src, err := openTracks(file, r.Path, r.Layout, r.Columns, opt)
	if err != nil {
		file.Close()
		return nil, err
	}
	return src, nil
}

// Name returns the name of the file without folder and ending.
func (r Recording) Name() string {
	base := unpackedName(filepath.Base(r.Path))
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
func (n *named) Close() error { return Close(n.Source) }
