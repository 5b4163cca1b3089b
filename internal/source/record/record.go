// Package record writes recordings: the blocks of a source as files that other
// programs, and package source, read.
//
// A recording is a folder. As tables each tool has one file for each rate of the
// layout, named after both, such as T01-20000hz.csv, and each rate has a layout
// file, layout-20000hz.yaml. As TDMS a tool has one file with the channels of all
// rates, T01.tdms, and layout.yaml is the layout of them all. A
// layout file says where its channels are found in such a file. It does not
// name the machine: the reader does, such as a gateway its own.
//
// Files are written as the blocks come, in memory that depends on the layout and
// the length of a block only.
package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Format is a format of files.
type Format string

// The formats.
//
// CSV and Parquet are tables of one rate: a row for each sample, with the time,
// the tool and its wear in columns next to the channels.
//
// tdms holds the channels of all rates, by name, as floats of 32 bits, and each
// hole as a group, with the time at which it began. Samples that are missing
// between two blocks are NaN.
const (
	csvFormat     Format = "csv"
	parquetFormat Format = "parquet"
	tdms          Format = "tdms"
)

// formats lists them.
var formats = []Format{csvFormat, parquetFormat, tdms}

// The columns of a table next to the channels.
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
	open   []opened // by group, or one for all
	names  []string
}

// opened is the file of a session; nil before the first one.
type opened struct {
	file
	session int64
}

// wrong says whose error it is; nil is none.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("record: %w", err)
}

// NewWriter returns a Writer of blocks of the given layout to a folder, which it
// makes if it is not there. It returns an error if the folder cannot be written
// or holds files already.
func NewWriter(dir string, layout *signal.Layout, format Format) (*Writer, error) {
	if !slices.Contains(formats, format) {
		return nil, fmt.Errorf("record: format %q is not one of %v", format, formats)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, wrong(err)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return nil, wrong(err)
	}
	if len(there) > 0 {
		return nil, fmt.Errorf("record: %s holds %s already: name an empty folder", dir, there[0].Name())
	}
	w := &Writer{dir: dir, layout: layout, format: format}
	if format == tdms {
		w.open = make([]opened, 1)
		return w, w.writeLayout(layout.Name(), "layout.yaml", layout.Channels())
	}
	for g, group := range layout.Groups() {
		w.open = append(w.open, opened{})
		if err := w.writeLayout(layout.Name()+" "+rate(group), "layout-"+rate(group)+".yaml", w.channels(g)); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// channels returns the channels of a group.
func (w *Writer) channels(group int) []signal.Channel {
	var cs []signal.Channel
	for _, i := range w.layout.Groups()[group].Channels {
		cs = append(cs, w.layout.Channels()[i])
	}
	return cs
}

// Write appends a block to the file of its tool and rate. A new session begins
// the file of the next tool.
func (w *Writer) Write(b *source.Block) error {
	o := &w.open[0]
	if w.format != tdms {
		o = &w.open[b.Group]
	}
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
	if w.format == tdms {
		name = fmt.Sprintf("%s.%s", tool, w.format)
	}
	if slices.Contains(w.names, name) {
		return nil, fmt.Errorf("record: tool %s is recorded already: names of tools must differ", tool)
	}
	w.names = append(w.names, name)
	out, err := os.Create(filepath.Join(w.dir, name))
	if err != nil {
		return nil, wrong(err)
	}
	switch w.format {
	case tdms:
		return newTDMS(out, w), nil
	case parquetFormat:
		return newParquet(out, w.channels(b.Group)), nil
	default:
		return newCSV(out, w.channels(b.Group)), nil
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

// writeLayout writes the layout of the channels of a file.
func (w *Writer) writeLayout(name, file string, channels []signal.Channel) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# The channels of %s as the recordings in this folder have them.\nname: %q\nchannels:\n", w.layout.Name(), name)
	for _, c := range channels {
		fmt.Fprintf(&b, "  - {name: %q, kind: %s, unit: %q, rate: %v, range: %v, sensor: %q}\n", c.Name, c.Kind, c.Unit, c.Rate, c.Range, c.Sensor)
	}
	if w.format != tdms {
		b.WriteString("recording: {time: time, tool: tool, hole: hole, speed: spindle_rpm, vb_mean_um: vb_mean_um, vb_max_um: vb_max_um, state: state}\n")
	}
	return wrong(os.WriteFile(filepath.Join(w.dir, file), []byte(b.String()), 0o644))
}

// line counts the samples of one rate in a file that has no place for a gap.
type line struct {
	first   int64 // counter of the first sample
	samples int64 // so far
	begun   bool
}

// add counts the samples of b, and returns how many are missing before them.
func (l *line) add(b *source.Block) (missing int64, err error) {
	if !l.begun {
		*l = line{first: b.First, begun: true}
	}
	if missing = b.First - l.first - l.samples; missing < 0 {
		return 0, fmt.Errorf("sample %d comes after sample %d", b.First, l.first+l.samples-1)
	}
	l.samples += missing + int64(b.Len())
	return missing, nil
}

// missingSample stands for a sample that is not there.
var missingSample = math.Float32bits(float32(math.NaN()))
