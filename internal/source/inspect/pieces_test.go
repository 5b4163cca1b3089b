package inspect

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Of a long recording the beginning and pieces are read, what was not read is never called free of gaps, and times and lengths are right for the whole.
func TestPieces(t *testing.T) {
	defer func(head, piece, layout int64) { headValues, pieceValues, layoutValues = head, piece, layout }(headValues, pieceValues, layoutValues)
	headValues, pieceValues, layoutValues = 90_000, 600, 90_000
	const rows = 100_000
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	var seconds, dates, bare strings.Builder
	seconds.WriteString("time,ax,n\n")
	dates.WriteString("made by a logger\nZeit;ax;n\n")
	bare.WriteString("ax,n\n")
	for i := range rows {
		ax := fmt.Sprint(i % 7)
		fmt.Fprintf(&seconds, "%.2f,%s,%d\n", float64(i)/100, ax, i)
		fmt.Fprintf(&dates, "%s;%s;%d\n", start.Add(time.Duration(i)*10*time.Millisecond).Format("02.01.2006 15:04:05,000"), ax, i)
		fmt.Fprintf(&bare, "%s,%d\n", ax, i)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(seconds.String())); err != nil {
		t.Fatal(err)
	}
	w.Close()
	layout, err := signal.NewLayout("l", []signal.Channel{{Name: "ax", Kind: signal.Vibration, Rate: 100}})
	if err != nil {
		t.Fatal(err)
	}
	columns := signal.Recording{Time: "time"}
	for name, tc := range map[string]struct {
		file, text string
		opt        Options
		pieces     int   // 2: several
		samples    int64 // 0: not known
		gaps       string
	}{
		"seconds":                 {"a.csv", seconds.String(), Options{}, 2, rows, "gaps      none in what was read"},
		"dates, after a preamble": {"a.csv", dates.String(), Options{}, 2, rows, "gaps      none in what was read"},
		"without times":           {"a.csv", bare.String(), Options{Rate: 100}, 2, -rows, "gaps      not known"},
		"packed":                  {"a.csv.gz", packed.String(), Options{}, 1, 0, "gaps      none in what was read"},
		"sound":                   {"a.wav", sound(rows), Options{}, 2, rows, "gaps      not known"},
		"with a layout":           {"a.csv", seconds.String(), Options{Layout: layout, Columns: columns}, 1, 0, "gaps      none in what was read"},
		"all":                     {"a.csv", seconds.String(), Options{All: true}, 0, rows, "gaps      none\n"},
		"all, with a layout":      {"a.csv", seconds.String(), Options{Layout: layout, Columns: columns, All: true}, 0, rows, "gaps      none\n"},
		"the beginning is all":    {"a.csv", "ax,n\n" + strings.Repeat("1,2\n", 45_030), Options{Rate: 100}, 0, 45_030, "gaps      not known"},
		"short":                   {"a.csv", seconds.String()[:10_000], Options{}, 0, 0, "gaps      none\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Inspect(t.Context(), write(t, tc.file, tc.text), tc.opt)
			if err != nil || s.Err != nil {
				t.Fatal(err, s)
			}
			c := s.Channels[len(s.Channels)-1]
			off := math.Abs(float64(c.Samples())/math.Abs(float64(tc.samples)) - 1)
			if tc.samples > 0 && off != 0 || tc.samples < 0 && off > 0.3 || tc.pieces > 0 && c.Count > 100_000 || min(s.Pieces, 2) != tc.pieces {
				t.Errorf("%d pieces, %d of %d samples; want %d, %d", s.Pieces, c.Count, c.Samples(), tc.pieces, tc.samples)
			}
			if tc.pieces > 1 && !strings.HasSuffix(tc.file, "wav") && c.Max != rows-1 {
				t.Errorf("the end was not read: %v", c.Max)
			}
			if bins := int64(len(c.Envelope.Min)) * c.Envelope.Width; tc.pieces > 1 && (bins < c.Samples()*9/10 || bins > c.Samples()*11/10+c.Envelope.Width) {
				t.Errorf("the picture has %d of %d samples", bins, c.Samples())
			}
			var out strings.Builder
			if err := s.Print(&out); err != nil || !strings.Contains(out.String(), tc.gaps) || strings.Contains(out.String(), "--all reads everything") != (tc.pieces > 0) {
				t.Errorf("%v:\n%s", err, &out)
			}
		})
	}
}

// sound returns a WAV file of two channels.
func sound(frames int) string {
	b := []byte("RIFF    WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x80\xbb\x00\x00\x00\xee\x02\x00\x04\x00\x10\x00data")
	b = binary.LittleEndian.AppendUint32(b, uint32(4*frames))
	for i := range frames {
		b = binary.LittleEndian.AppendUint32(b, uint32(i%7))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return string(b)
}

// What is wrong in a piece is named with the byte from which its lines count, and counts of what was skipped go on.
func TestPiecesNotes(t *testing.T) {
	defer func(head, piece, layout int64) { headValues, pieceValues, layoutValues = head, piece, layout }(headValues, pieceValues, layoutValues)
	headValues, pieceValues, layoutValues = 200, 20_000, 200
	text := "ax,ay\n" + strings.Repeat("1.00,Overload\n", 50) + strings.Repeat("1.00,2.00\n", 50_000)
	s, err := Inspect(t.Context(), write(t, "a.csv", text+"1.00,2x\n1,2\n"), Options{})
	if err != nil || s.Err == nil || !strings.Contains(s.Err.Error(), "from byte ") || !strings.Contains(s.Err.Error(), `"2x" is not a number`) {
		t.Errorf("%v, %v", err, s.Err)
	}
	s, err = Inspect(t.Context(), write(t, "a.csv", text), Options{})
	if err != nil || s.Err != nil || s.Channels[1].Missing != 50 || !strings.Contains(strings.Join(s.Notes, "; "), "taken as missing values: 50, the first is line 2") {
		t.Errorf("%v, %+v", err, s)
	}
}

// A file whose rows have far too many columns is refused.
func TestTooWide(t *testing.T) {
	row := strings.Repeat(",", maxWidth) + "\n"
	_, err := Inspect(t.Context(), write(t, "a.csv", strings.Repeat(row, 3)), Options{})
	if err == nil || !strings.Contains(err.Error(), "has 10001 columns, and a recording has at most 10000") {
		t.Error(err)
	}
}
