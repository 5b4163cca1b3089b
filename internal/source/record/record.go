// Package record writes recordings: the blocks of a source as files that other
// programs, and package source, read.
//
// A recording is a folder. Each tool has one file for each rate of the layout,
// named after both, such as T01-20000hz.csv, and each rate has a layout file,
// layout-20000hz.yaml, which says what the columns of such a table are. It leaves
// the machine to whoever reads: a gateway names its own.
package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Format is a format of files.
type Format string

// The formats. Tables hold a row for each sample, with the columns that Columns
// names before and behind the channels. WAV holds the channels alone, as floats;
// samples that are missing between two blocks are NaN there.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
	WAV     Format = "wav"
)

// Formats lists them.
var Formats = []Format{CSV, Parquet, WAV}

// The columns of a table beside the channels.
var (
	before = []string{"time", "machine", "tool", "hole", "spindle_rpm"}
	behind = []string{"vb_mean_um", "vb_max_um", "state", "phase"}
)

// file is a file that is being written.
type file interface {
	// write appends the samples of b, which follow those before or leave a gap.
	write(b *source.Block) error
	// close completes the file.
	close() error
}

// Writer writes a recording.
type Writer struct {
	dir    string
	layout *signal.Layout
	format Format
	open   []struct {
		file
		session int64
	} // by group
	names []string
}

// NewWriter returns a Writer of blocks of the given layout to a folder, which it
// makes if it is not there. It returns an error if the folder cannot be written
// or holds files already.
func NewWriter(dir string, layout *signal.Layout, format Format) (*Writer, error) {
	if !slices.Contains(Formats, format) {
		return nil, fmt.Errorf("record: format %q is not one of %v", format, Formats)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if len(there) > 0 {
		return nil, fmt.Errorf("record: %s holds %s already: name an empty folder", dir, there[0].Name())
	}
	w := &Writer{dir: dir, layout: layout, format: format}
	for g := range layout.Groups() {
		w.open = append(w.open, struct {
			file
			session int64
		}{})
		if err := w.writeLayout(g); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Write appends a block to the file of its tool and rate. A new session begins
// the file of the next tool.
func (w *Writer) Write(b *source.Block) error {
	o := &w.open[b.Group]
	if o.file != nil && o.session != b.Session {
		err := o.close()
		if o.file = nil; err != nil {
			return err
		}
	}
	if o.file == nil {
		f, err := w.create(b)
		if err != nil {
			return err
		}
		o.file, o.session = f, b.Session
	}
	return o.write(b)
}

func (w *Writer) create(b *source.Block) (file, error) {
	group := w.layout.Groups()[b.Group]
	tool := b.Tool
	if tool == "" || strings.ContainsAny(tool, `/\:`) {
		return nil, fmt.Errorf("record: tool %q: its name is to be part of a file's", b.Tool)
	}
	name := fmt.Sprintf("%s-%s.%s", tool, rate(group), w.format)
	if slices.Contains(w.names, name) {
		return nil, fmt.Errorf("record: tool %s is recorded already: names of tools must differ", tool)
	}
	w.names = append(w.names, name)
	var channels []signal.Channel
	for _, c := range group.Channels {
		channels = append(channels, w.layout.Channels()[c])
	}
	out, err := os.Create(filepath.Join(w.dir, name))
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	switch w.format {
	case WAV:
		return newWAV(out, len(channels), group.Rate)
	case Parquet:
		return newParquet(out, channels), nil
	default:
		return newCSV(out, channels)
	}
}

// Close completes all files.
func (w *Writer) Close() error {
	var err error
	for i := range w.open {
		if w.open[i].file != nil {
			err = errors.Join(err, w.open[i].close())
			w.open[i].file = nil
		}
	}
	return err
}

// Files returns the names of the files written so far, in the order in which
// they were begun, layouts not counted.
func (w *Writer) Files() []string { return w.names }

func rate(g signal.Group) string { return fmt.Sprintf("%ghz", g.Rate) }

// writeLayout writes the layout of a table of one rate.
func (w *Writer) writeLayout(g int) error {
	group := w.layout.Groups()[g]
	var b strings.Builder
	fmt.Fprintf(&b, "# The channels of %s at %v Hz.\nname: %q\nchannels:\n", w.layout.Name(), group.Rate, w.layout.Name()+" "+rate(group))
	for _, i := range group.Channels {
		c := w.layout.Channels()[i]
		fmt.Fprintf(&b, "  - {name: %q, kind: %s, unit: %q, rate: %v, range: %v, sensor: %q}\n", c.Name, c.Kind, c.Unit, c.Rate, c.Range, c.Sensor)
	}
	if w.format != WAV {
		b.WriteString("recording: {time: time, tool: tool, hole: hole, speed: spindle_rpm, vb_mean_um: vb_mean_um, vb_max_um: vb_max_um, state: state}\n")
	}
	if err := os.WriteFile(filepath.Join(w.dir, "layout-"+rate(group)+".yaml"), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
