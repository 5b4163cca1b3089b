package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/source/columnar"
	"github.com/flank-tcm/flank/internal/source/mat5"
	"github.com/flank-tcm/flank/internal/source/npy"
	"github.com/flank-tcm/flank/internal/source/tdms"
	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/source/uff"
	"github.com/flank-tcm/flank/internal/source/wav"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

// text is the format of tables of text. It is what a file is that is nothing else.
var text = track.Format{Name: "text", Endings: []string{".csv", ".tsv", ".txt", ".asc", ".dat", ".lvm", ""}}

// formats are the formats of recorded files. A new one is a package and a line
// here.
var formats = []track.Format{text, tdms.Format, mat5.Format, wav.Format, npy.Format, uff.Format, lvm, columnar.ParquetFormat, columnar.ArrowFormat}

// formatNames returns the names of the formats that can be read.
func formatNames() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return names
}

// formatOf returns the format that rec names, or else the one that the ending of
// path says, or else the one that its first bytes say. Anything else is text.
func formatOf(path string, rec signal.Recording) (track.Format, error) {
	if rec.Format != "" {
		i := slices.IndexFunc(formats, func(f track.Format) bool { return f.Name == rec.Format })
		if i < 0 {
			return text, fmt.Errorf("source: %s: `recording: format`: %q: write one of %s", path, rec.Format, strings.Join(formatNames(), ", "))
		}
		return formats[i], nil
	}
	ending := strings.ToLower(filepath.Ext(unpackedName(path)))
	if ending == ".tdms_index" {
		return text, fmt.Errorf("source: %s: is the index of a recording and holds no samples: give the .tdms file of the same name", path)
	}
	if i := slices.IndexFunc(formats, func(f track.Format) bool { return slices.Contains(f.Endings, ending) && f.Name != "text" }); i >= 0 {
		return formats[i], nil
	}
	head, err := firstBytes(path)
	if err != nil {
		return text, err
	}
	for _, f := range formats {
		if f.Magic != "" && bytes.HasPrefix(head, []byte(f.Magic)) || f.Like != nil && f.Like.Match(head) {
			return f, nil
		}
	}
	if what, remedy := table.ForeignFile(head); what != "" {
		return text, fmt.Errorf("source: %s: is %s, which cannot be read: %s", path, what, remedy)
	}
	if !table.IsText(head) {
		return text, fmt.Errorf("source: %s: is not text, and neither its ending nor its first bytes say what it is: formats are %s; set `format` under the layout's `recording`", path, strings.Join(formatNames(), ", "))
	}
	return text, nil
}

// unpackedName returns the path without the ending that says that the file is packed.
func unpackedName(path string) string {
	if ext := filepath.Ext(path); strings.EqualFold(ext, ".gz") {
		return strings.TrimSuffix(path, ext)
	}
	return path
}

// firstBytes returns what a file begins with, unpacked.
func firstBytes(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("source: %w: check the path", err)
	}
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	defer f.Close()
	r, _, err := table.Unpacked(f)
	if err != nil {
		return nil, fmt.Errorf("source: %s: %w", path, err)
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("source: %s: %w", path, err)
	}
	return head[:n], nil
}

// OpenTracks opens the recording at path for a look at what is in it, which
// needs no layout. The dialect of a table of text is what rec says, or else what
// its first rows look like.
func OpenTracks(path string, rec signal.Recording) (track.File, error) {
	f, err := formatOf(path, rec)
	if err != nil {
		return nil, err
	}
	if f.New == nil {
		return openText(path, rec)
	}
	return f.Open(path)
}

// openTracks returns a source of the channels of a recording that is not text.
func openTracks(file track.File, path string, layout *signal.Layout, rec signal.Recording, opt tableOptions) (Source, error) {
	if !rec.HasColumns() {
		return newWaves(file, path, layout, rec, opt)
	}
	if err := checkTable(path, layout); err != nil {
		return nil, err
	}
	rows := &trackRows{file: file, name: path, infos: file.Tracks(), header: TrackNames(file.Tracks())}
	t, err := newTable(rows, path, layout, rec, opt)
	if err == nil {
		err = checkLengths(path, rows.infos, rows.tracks, opt.Warn)
	}
	if err != nil {
		return nil, err
	}
	t.file = file
	return t, nil
}
