package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/signal"
)

// layout returns a layout of vibration channels.
func layout(t testing.TB, rate float64, names ...string) *signal.Layout {
	t.Helper()
	var cs []signal.Channel
	for _, n := range names {
		cs = append(cs, signal.Channel{Name: n, Kind: signal.Vibration, Rate: rate})
	}
	l, err := signal.NewLayout("test", cs)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// numbered returns n lines that begin with multiples of a step.
func numbered(n int, rest string, step float64) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%v%s", float64(i)*step, rest)
	}
	return b.String()
}

var lathe = signal.Recording{Time: "time", Tool: "tool", Hole: "hole", VBMax: "VB"}

func TestTableGolden(t *testing.T) {
	// The layout's order is not the order of the columns.
	c, err := openTable("testdata/lathe.csv", layout(t, 10, "thrust", "ax"), lathe, tableOptions{Machine: "lathe", Session: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out strings.Builder
	for {
		b, err := c.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%+v session %d group %d first %d at %s\n", b.Context, b.Session, b.Group, b.First, b.Time.Format(time.RFC3339Nano))
		for i, x := range b.Samples {
			fmt.Fprintf(&out, "  %s %v\n", c.Layout().Channels()[i].Name, x)
		}
		fmt.Fprintf(&out, "  truth %+v\n", b.Truth)
	}
	fmt.Fprintf(&out, "%+v\n", c.Stats())
	golden.Check(t, "lathe.golden", out.String())
}

// A wear in mm is read in µm.
func TestTableWearInMM(t *testing.T) {
	rec := signal.Recording{VBMaxMM: "VB", VBMeanMM: "VBm"}
	c, err := newText(strings.NewReader("ax,VB,VBm\n1,0.57,0.285\n2,,\n"), "mm.csv", layout(t, 10, "ax"), rec, tableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Next(t.Context())
	if err != nil || len(b.Truth) != 2 {
		t.Fatal(b, err)
	}
	known := func(t Truth) bool { return t.VBMaxUM == t.VBMaxUM || t.VBMeanUM == t.VBMeanUM || t.State != "" }
	if first, second := b.Truth[0], b.Truth[1]; first.VBMaxUM != 570 || first.VBMeanUM != 285 || known(second) {
		t.Errorf("%+v", b.Truth)
	}
	if _, err := newText(strings.NewReader("ax,VB [µm],VBm\n1,0.57,0.285\n"), "mm.csv", layout(t, 10, "ax"), rec, tableOptions{}); err == nil || !strings.Contains(err.Error(), "`recording: vb_max_mm` is read in mm") {
		t.Errorf("a column in µm as one in mm: %v", err)
	}
	if _, _, err := signal.ReadLayout(strings.NewReader("name: x\nchannels: [{name: ax, kind: force, rate: 1}]\nrecording: {vb_max_um: a, vb_max_mm: b}\n"), "layout.yaml"); err == nil || !strings.Contains(err.Error(), "layout.yaml: `recording`: `vb_max_um` and `vb_max_mm` name the same wear") {
		t.Errorf("both units: %v", err)
	}
}

// TestTableErrors keeps every message in testdata/errors.golden, to be read as a
// person at the machine reads it.
func TestTableErrors(t *testing.T) {
	one := layout(t, 10, "ax", "ay")
	rec := signal.Recording{Time: "t", Tool: "tool"}
	inG, err := signal.NewLayout("g", []signal.Channel{{Name: "ax", Kind: signal.Vibration, Unit: "g", Rate: 10}, {Name: "ay", Kind: signal.Vibration, Unit: "g", Rate: 10}})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, text string
		layout     *signal.Layout
		rec        signal.Recording
	}{
		{"empty file", "", one, rec},
		{"only line ends", "\r\n\n", one, rec},
		{"no rows", "ax,ay\n", one, signal.Recording{}},
		{"missing channel, near names", "Ax,ay2,zz\n1,2,3\n", one, signal.Recording{}},
		{"missing channel, nothing near", "one,two\n1,2\n", one, signal.Recording{}},
		{"other separator", "ax~ay\n1~2\n", one, signal.Recording{}},
		{"missing recording column", "ax,ay,Tool\n1,2,3\n", one, signal.Recording{Tool: "tool"}},
		{"channel twice", "ax,ay,x,ax\n1,2,3,4\n", one, signal.Recording{}},
		{"header in no encoding", "ax,ay,T [\x81C]\n1,2,3\n", one, signal.Recording{}},
		{"header in UTF-16", "\xff\xfea\x00x\x00\n\x00", one, signal.Recording{}},
		{"line of words", "ax;ay;n\nhello;x;y\n1,5;2;3\n", one, signal.Recording{Header: "1"}},
		{"text in a number", "ax,ay\n1,2\n3,off\n", one, signal.Recording{}},
		{"decimal comma", "ax;ay\n1;2\n3;4,5\n", one, signal.Recording{Decimal: "point"}},
		{"decimal comma, or thousands", "ax;ay\n1;2\n3;4,500\n", one, signal.Recording{}},
		{"decimal comma among points", "ax;ay\n1.5;2\n3;4,5\n", one, signal.Recording{}},
		{"beyond all numbers", "ax,ay\n1,-1e999\n", one, signal.Recording{}},
		{"the only row is cut off", "ax,ay\n1,2", one, signal.Recording{}},
		{"too large for float32", "ax,ay\n1,1e39\n", one, signal.Recording{}},
		{"long cell is cut", "ax,ay\n1," + strings.Repeat("x", 100) + "\n", one, signal.Recording{}},
		{"too few cells", "ax,ay\n1,2\n3\n", one, signal.Recording{}},
		{"too many cells", "ax,ay\n1,2,3\n", one, signal.Recording{}},
		{"too few cells among rows", "ax,ay\n1,2\nhalf\n3,4\n", one, signal.Recording{}},
		{"another table", "ax,ay\n1,2\nax,az\n3,4\n", one, signal.Recording{}},
		{"stray quote", "ax,ay\n1,2\"\n", one, signal.Recording{}},
		{"open quote", "ax,ay\n1,2\n\"3,4\n5,6\n", one, signal.Recording{}},
		{"open quote in a large file", "ax,ay\n1,2\n\"" + strings.Repeat("3,4\n", maxRow/2), one, signal.Recording{}},
		{"row too long", strings.Repeat("x", 2*maxRow), one, signal.Recording{}},
		{"empty line in one column", "ax\n1\n\n2\n", layout(t, 1, "ax"), signal.Recording{}},
		{"bad UTF-8 in a tool", "t,tool,ax,ay\n0,\x81,1,2\n", one, rec},
		{"day or month", "t,ax,ay\n3/4/2026 06:00:00,1,2\n", one, signal.Recording{Time: "t"}},
		{"not as the layout says", "t,ax,ay\n3.4.2026 06:00:00,1,2\n", one, signal.Recording{Time: "t", TimeFormat: "M/D/YYYY hh:mm:ss"}},
		{"no time format", "t,ax,ay\n3,1,2\n", one, signal.Recording{Time: "t", TimeFormat: "%Y"}},
		{"no time unit", "t,ax,ay\n3,1,2\n", one, signal.Recording{Time: "t", TimeUnit: "days"}},
		{"no time", "t,tool,ax,ay\n,1,1,2\n0,1,1,2\n", one, rec},
		{"time in words", "t,tool,ax,ay\nnoon,1,1,2\n", one, rec},
		{"date only", "t,tool,ax,ay\n2026-01-31,1,1,2\n", one, rec},
		{"time of no century", "t,tool,ax,ay\n17698680000000000000000,1,1,2\n", one, rec},
		{"time goes back", "t,tool,ax,ay\n0.2,1,1,2\n0.1,1,1,2\n", one, rec},
		{"time stands still", "t,tool,ax,ay\n" + strings.Repeat("0.25,1,1,2\n", 5), one, rec},
		{"time goes back at a tool change", "t,tool,ax,ay\n2026-01-31T14:00:00Z,1,1,2\n2026-01-31T13:00:00Z,2,1,2\n", one, rec},
		{"Unix seconds go back at a tool change", "t,tool,ax,ay\n1769868000.2,1,1,2\n1769868000,2,1,2\n", one, rec},
		{"time starts again", "t,ax,ay\n5,1,2\n5.1,1,2\n5.2,1,2\n5.3,1,2\n5,1,2\n", one, signal.Recording{Time: "t"}},
		{"an hour back, with zones", "t,ax,ay\n2026-10-25T02:59:59.9Z,1,2\n2026-10-25T02:00:00Z,1,2\n", one, signal.Recording{Time: "t"}},
		{"local time goes back by minutes", "t,ax,ay\n2026-10-25 02:59:59.9,1,2\n2026-10-25 02:30:00,1,2\n", one, signal.Recording{Time: "t"}},
		{"milliseconds that say nothing", "t,ax,ay\n" + numbered(12, ",1,2\n", 100), one, signal.Recording{Time: "t"}},
		{"microseconds that say nothing", "t,ax,ay\n" + numbered(12, ",1,2\n", 100_000), one, signal.Recording{Time: "t"}},
		{"another unit", "ax [m/s²],ay\n1,2\n", inG, signal.Recording{}},
		{"another unit of `from`", "x (mV),ay\n1,2\n", inG, signal.Recording{Origins: map[string]signal.Origin{"ax": {From: "x", Gain: 1}}}},
		{"two units", "ax [g],ax [V],ay\n1,2,3\n", inG, signal.Recording{}},
		{"wear in mm", "ax,ay,VB (mm)\n1,2,0.1\n", one, signal.Recording{VBMax: "VB"}},
		{"wear in mm by its whole name", "ax,ay,VB (mm)\n1,2,0.1\n", one, signal.Recording{VBMax: "VB (mm)"}},
		{"two machines", "m,ax,ay\nA,1,2\nB,1,2\n", one, signal.Recording{Machine: "m"}},
		{"negative wear", "ax,ay,VB\n1,2,-1\n", one, signal.Recording{VBMean: "VB"}},
		{"text in wear", "ax,ay,VB\n1,2,new\n", one, signal.Recording{VBMax: "VB"}},
		{"text in speed", "ax,ay,n\n1,2,fast\n", one, signal.Recording{Speed: "n"}},
		{"no header", "1,2\n3,4\n", one, signal.Recording{}},
		{"no such column number", "1,2\n3,4\n", one, signal.Recording{Header: "none"}},
		{"no row without a header", "2016-05-26 21:15:16.881\n", one, signal.Recording{Header: "none"}},
		{"header that never ends", "a,b\nax,ay\n", one, signal.Recording{Header: "3"}},
		{"all is skipped", "ax,ay\n1,2\n", one, signal.Recording{Skip: 5}},
		{"error under skipped lines", "made by\nX\nax,ay\n1,off\n", one, signal.Recording{Skip: 2}},
		{"quote under skipped lines", "made by\nX\nax,ay\n1,2\"\n", one, signal.Recording{Skip: 2}},
		{"decimal point for a comma", "ax;ay\n1;4.50,5\n", one, signal.Recording{Decimal: "comma"}},
		{"too few words", "ax ay\n1 2\n3\n", one, signal.Recording{Separator: "blank"}},
		{"blank-separated row too long", "ax ay\n1 2\n3 " + strings.Repeat("4 ", maxRow), one, signal.Recording{Separator: "blank"}},
		{"header in words", "ax,ay\n1,2\n", one, signal.Recording{Header: "two"}},
		{"separator of two letters", "ax,ay\n1,2\n", one, signal.Recording{Separator: "::"}},
		{"decimal dash", "ax,ay\n1,2\n", one, signal.Recording{Decimal: "-"}},
		{"negative skip", "ax,ay\n1,2\n", one, signal.Recording{Skip: -1}},
		{"beyond the range when calibrated", "ax,ay\n1,1e30\n", one, signal.Recording{Origins: map[string]signal.Origin{"ay": {From: "ay", Gain: 1e30}}}},
		{"origin that is not there", "ax,az\n1,2\n", one, signal.Recording{Origins: map[string]signal.Origin{"ay": {From: "a2", Gain: 1}}}},
		{"two rates", "ch01\n1\n", signal.GunDrill(), signal.Recording{}},
	}
	var out strings.Builder
	for _, tc := range cases {
		c, err := newText(strings.NewReader(tc.text), "f.csv", tc.layout, tc.rec, tableOptions{})
		rows := 0
		for err == nil {
			var b *Block
			if b, err = c.Next(t.Context()); err == nil {
				rows += b.Len()
			} else if _, again := c.Next(t.Context()); again != err {
				t.Errorf("%s: the following call returns %v, want the same error", tc.name, again)
			}
		}
		if err == io.EOF {
			t.Errorf("%s: no error", tc.name)
		}
		fmt.Fprintf(&out, "# %s, after %d rows\n%v\n\n", tc.name, rows, err)
	}
	golden.Check(t, "errors.golden", out.String())

	if _, err := openTable("testdata/absent.csv", one, rec, tableOptions{}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "absent.csv") {
		t.Errorf("absent file: %v, want os.ErrNotExist with its name", err)
	}
}

func TestTableReadsWhatPeopleSave(t *testing.T) {
	for name, text := range map[string]string{
		"comma":                             "ax,ay\n1,2\n3,\n",
		"semicolon":                         "ax;ay\n1;2\n3;\n",
		"tab":                               "ax\tay\n1\t2\n3\t\n",
		"byte order mark":                   "\xef\xbb\xbfax,ay\n1,2\n3,NaN\n",
		"quoted after a mark":               "\xef\xbb\xbf\"ax\",\"ay\"\r\n\"1\",2\r\n3,NA\r\n",
		"blanks":                            " ax , ay \n 1,2 \n3 , \n",
		"separator in a name":               "ax;ay;\"a,b,c,d\"\n1;2;9\n3;;9\n",
		"no last line end":                  "ax,ay\n1,2\n3,nan\n5,0.",
		"header again":                      "ax,ay\n1,2\n AX ,ay\n3,null\nax,ay\n",
		"LabVIEW, with times":               "LabVIEW Measurement\t\nSeparator\tTab\nMulti_Headings\tYes\nX_Columns\tOne\n***End_of_Header***\t\n\t\nChannels\t2\t\t\nSamples\t2\t2\t\nDelta_X\t0.001\t0.001\t\n***End_of_Header***\t\t\t\nX_Value\tax\tay\tComment\n0.000\t1\t2\n0.001\t3\tNaN\n",
		"two files joined":                  "\xef\xbb\xbfax,ay\n1,2\n\xef\xbb\xbfax,ay,\n3,Err:502\n",
		"not a number of SCPI":              "ax,ay\n1,2\n3,9.91E+37\n",
		"words for missing":                 "ax,ay\n1,2\n3,#DIV/0!\n",
		"unnamed index column":              ",ax,ay\n0,1,2\n1,3,\n",
		"ignored text, and bad UTF-8 in it": "ax,ay,note\n1,2,\xff\n3,,x\n",
		"empty lines":                       "\n\nax,ay\n\n1,2\n\n3,\n\n",
		"bar":                               "ax|ay\n1|2\n3|\n",
		"UTF-16":                            "\xff\xfea\x00x\x00,\x00a\x00y\x00\n\x001\x00,\x002\x00\n\x003\x00,\x00\n\x00",
		"Windows-1252":                      "ax,ay,T [\xb0C]\n1,2,9\n3,,9\n",
		"lines before the header":           "Recorder X\nOperator: Kim, shift 2\n\nax,ay\n1,2\n3,\n",
		"key and value before the header":   "Rate,100\nDate,2026-11-02\nax,ay\n1,2\n3,\n",
		"comments before the header":        "# made by X\n# at 3\nax,ay\n1,2\n3,\n",
		"comments, the header too":          "# made by X\n# ax ay\n1 2\n3 NaN\n",
		"comment before the names":          "#ax,ay\n1,2\n3,\n",
		"comments among rows":               "ax,ay\n1,2\n# pause\n3,\n",
		"sep=":                              "sep=;\nax;ay\n1;2\n3;\n",
		"units":                             "ax,ay\ng,g\n1,2\n3,\n",
		"units in brackets":                 "ax,ay\n[g],[g]\n1,2\n3,\n",
		"a separator too many in rows":      "ax,ay\n1,2,\n3,,\n",
		"a separator too many":              "ax,ay,\n1,2,\n3,,\n",
		"an empty cell is missing":          "ax,ay,\n1,2\n3,\n",
		"a footer":                          "ax,ay\n1,2\n3,\nEnd of measurement\nsigned, Kim, 3\n",
		"preamble, units and footer":        "Logger;v2\nStart;02.11.2026\n\nax;ay;\nm/s²;m/s²;\n1,0;2,0;\n3;;\nEnd\n",
	} {
		c, b := firstBlock(t, name, text, layout(t, 1, "ax", "ay"), signal.Recording{}, tableOptions{})
		if b == nil {
			continue
		}
		if got := fmt.Sprint(b.Samples, b.Truth, c.Stats().Rows, c.Stats().Missing); got != "[[1 3] [2 NaN]] [] 2 1" {
			t.Errorf("%s: got %s", name, got)
		}
		if _, err := c.Next(t.Context()); err != io.EOF {
			t.Errorf("%s: after the last block %v, want io.EOF", name, err)
		}
	}
}

// firstBlock opens a table and returns it with its first block, which is nil after an error.
func firstBlock(t *testing.T, name, text string, l *signal.Layout, rec signal.Recording, opt tableOptions) (*tableSource, *Block) {
	t.Helper()
	c, err := newText(strings.NewReader(text), "f.csv", l, rec, opt)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil, nil
	}
	b, err := c.Next(t.Context())
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil, nil
	}
	return c, b
}

// TestTableNotes reads tables with what loggers and spreadsheets leave behind. Rows are
// the values of ax, and notes say once what was left out, and where the first is.
func TestTableNotes(t *testing.T) {
	two := signal.Recording{Header: "2", Separator: "semicolon", Decimal: "comma"}
	at := signal.Recording{Time: "t"}
	for name, tc := range map[string]struct {
		text  string
		rec   signal.Recording
		want  string
		notes []string
	}{
		"header again":        {"ax,n\n1,a\nax,n\n2,a\nax,n\n", signal.Recording{}, "[1 2]", []string{"skipped: 2, the first is line 3"}},
		"two lines again":     {"ax;n\nm/s²;\n1,5;a\nax;n\nm/s²;\n2;a\n", two, "", []string{"skipped: 2, the first is line 4"}},
		"numbers as a header": {"1,2\n1,2\n", signal.Recording{Origins: map[string]signal.Origin{"ax": {From: "1", Gain: 1}}}, "[1]", nil},
		"words": {
			"ax\n1\n#DIV/0!\n#N/A\n#VALUE!\n#¡NUM!\nNaN\nnan\nNAN\n-nan\n-nan(ind)\n1.#QNAN\n-1.#IND\n1.#INF00\nInf\n-inf\n-\n--\nn/a\nN/A\nnull\nNULL\nBad\nNo Data\nOVERLOAD\n\"\"\n2\n",
			signal.Recording{}, "[1" + strings.Repeat(" NaN", 24) + " 2]", []string{`missing values: 20, the first is line 3, column "ax": "#DIV/0!"`},
		},
		"comma and words":      {"ax;n\n1,5;a\n1,#QNAN;a\n", signal.Recording{Decimal: "comma"}, "[1.5 NaN]", []string{"missing values: 1"}},
		"cut in a number":      {"ax\n1\n2.", signal.Recording{}, "[1]", []string{`the last line, "2.", has no line end`}},
		"cut in blanks":        {"ax\n1\n  ", signal.Recording{}, "[1]", nil},
		"zeros at the end":     {"ax\n1\n\x00\x00\x00", signal.Recording{}, "[1]", []string{"has no line end"}},
		"a second 60":          {"t,ax\n2026-01-31 14:05:59,1\n2026-01-31 14:05:60,2\n2026-01-31 14:06:01,3\n", at, "[1 2 3]", nil},
		"a leap second":        {"t,ax\n2016-12-31T23:59:59Z,1\n2016-12-31T23:59:60Z,2\n2017-01-01T00:00:00Z,3\n2017-01-01T00:00:01Z,4\n", at, "[1 2 3 4]", []string{"follows a leap second"}},
		"lines before it":      {"Recorder X\nby Kim\nax\n1\n", signal.Recording{Header: "1"}, "[1]", []string{"2 lines before it skipped"}},
		"an encoding":          {"ax,T [\xb0C]\n1,2\n", signal.Recording{}, "[1]", []string{"taken for Windows-1252"}},
		"arrival in second 60": {"2026-01-31 14:05:60\nax\n1\n", signal.Recording{}, "[1]", nil},
	} {
		var notes []string
		rate, names := 100.0, []string{"ax"}
		if tc.rec.Time != "" {
			rate = 1
		}
		if tc.want == "" {
			names, tc.want = []string{"ax [m/s²]"}, "[1.5 2]"
		}
		c, b := firstBlock(t, name, tc.text, layout(t, rate, names...), tc.rec, tableOptions{Warn: func(s string) { notes = append(notes, s) }})
		if b == nil {
			continue
		}
		if got := fmt.Sprint(b.Samples[0]); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
		for range 2 {
			if _, err := c.Next(t.Context()); err != io.EOF {
				t.Errorf("%s: after the last block %v, want io.EOF", name, err)
			}
		}
		if len(notes) != len(tc.notes) || len(notes) > 0 && !strings.Contains(notes[0], tc.notes[0]) {
			t.Errorf("%s: notes %q, want %q", name, notes, tc.notes)
		}
	}
}

// In a column of text, words that loggers write in place of a number may be values.
func TestMissingText(t *testing.T) {
	for cell, want := range map[string]bool{"": true, "#N/A": true, "-": true, "#DIV/0!": true, "null": true, "#12": false, "#1A": false, "bad": false, "none": false, "-1": false, "Inf": false} {
		if table.IsMissing(cell) != want {
			t.Errorf("%q is missing: %v", cell, !want)
		}
	}
}

// Whole lines pass in pieces of any size, and nothing behind the last line end.
func TestWholeLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab\n]*`).Draw(t, "text")
		got, err := io.ReadAll(&wholeLines{r: iotest.OneByteReader(strings.NewReader(text))})
		half, err2 := io.ReadAll(iotest.OneByteReader(&wholeLines{r: iotest.HalfReader(strings.NewReader(text))}))
		want := text[:strings.LastIndexByte(text, '\n')+1]
		if err != nil || err2 != nil || string(got) != want || string(half) != want {
			t.Fatalf("%q and %q of %q: %v, %v", got, half, text, err, err2)
		}
	})
}

// TestTableDialects reads the same two rows however they are written.
func TestTableDialects(t *testing.T) {
	byNumber := map[string]signal.Origin{"ax": {From: "1", Gain: 1}, "ay": {From: "2", Gain: 1}}
	for name, tc := range map[string]struct {
		text string
		rec  signal.Recording
	}{
		"decimal comma":              {"ax;ay\n1,5;2\n3;\n", signal.Recording{Decimal: "comma"}},
		"decimal comma, found":       {"ax;ay\n1,5;2\n3;\n", signal.Recording{}},
		"decimal comma, found, tab":  {"ax\tay\tx\n1,500\t2,000\t0,1\n3\tNaN\t1\n", signal.Recording{}},
		"units":                      {"ax [g];ay (m/s^2)\n1,5;2\n3;\n", signal.Recording{}},
		"units, and the name itself": {"ax [g],ay,ay [V]\n1.5,2,9\n3,,9\n", signal.Recording{}},
		"decimal comma, one column":  {"ax ay\n1,5 2\n3 NaN\n", signal.Recording{Decimal: "comma"}},
		"decimal comma with a point": {"ax;ay\n1.5;2\n3;\n", signal.Recording{Decimal: "comma"}},
		"blanks and tabs":            {"  ax \t ay \n\n 1.5   2 \n3\tNaN \r\n", signal.Recording{Separator: "blank"}},
		"a bar":                      {"ax|ay\n1.5|2\n3|\n", signal.Recording{Separator: "|"}},
		"no header":                  {"1.5,2\n3,\n", signal.Recording{Header: "none", Origins: byNumber}},
		"no header, blanks":          {"1.5 2 \n3 NaN \n", signal.Recording{Header: "none", Origins: byNumber}},
		"no header, mark":            {"\xef\xbb\xbf1.5\t2\n3\t\n", signal.Recording{Header: "none", Origins: byNumber}},
		"lines before the header":    {"Recorder X\n; \"open\nax,ay\n1.5,2\n3,\n", signal.Recording{Skip: 2}},
		"arrival times": {
			"2016-05-26 21:15:16.881\n2016-05-26 21:15:16.963\n1.5 2 \n2016-05-26 21:15:17\n3 NaN\n2016-05-26 21:15:18.5\n",
			signal.Recording{Header: "none", Origins: byNumber},
		},
		"arrival times among commas": {"ax,ay\n2016-05-26 21:15:16.881\n1.5,2\n2016-05-26T21:15:17Z\n3,\n", signal.Recording{}},
		"two lines of header": {
			"Sensor 1,,Sensor 2\n\"a\nx\",ay,ax\n1.5,2,9\n3,,9\n",
			signal.Recording{Header: "2", Origins: map[string]signal.Origin{"ax": {From: "Sensor 1 a x", Gain: 1}, "ay": {From: "Sensor 1 ay", Gain: 1}}},
		},
		"names and units": {
			"ax,ay,t\n[g],[g],\n1.5,2,9\n3,,9\n",
			signal.Recording{Header: "2", Origins: map[string]signal.Origin{"ax": {From: "ax [g]", Gain: 1}, "ay": {From: "ay [g]", Gain: 1}}},
		},
		"calibration": {"x,y\n1,12\n2.5,\n", signal.Recording{Origins: map[string]signal.Origin{"ax": {From: "x", Gain: 1, Offset: 0.5}, "ay": {From: "y", Gain: 0.25, Offset: -1}}}},
	} {
		c, b := firstBlock(t, name, tc.text, layout(t, 1, "ax", "ay"), tc.rec, tableOptions{})
		if b == nil {
			continue
		}
		if got := fmt.Sprint(b.Samples, c.Stats().Rows, c.Stats().Missing); got != "[[1.5 3] [2 NaN]] 2 1" {
			t.Errorf("%s: got %s", name, got)
		}
		if strings.HasPrefix(name, "arrival") && !b.Time.Equal(time.Date(2016, 5, 26, 21, 15, 16, 881e6, time.UTC)) {
			t.Errorf("%s: starts at %v, want the first arrival", name, b.Time)
		}
		if _, err := c.Next(t.Context()); err != io.EOF {
			t.Errorf("%s: after the last block %v, want io.EOF", name, err)
		}
	}
}

// TestTableTimes pins when rows count as consecutive and what numbers mean.
func TestTableTimes(t *testing.T) {
	start := time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		times []string
		first []int64 // counter of each row
		at    string  // time of the first row
	}{
		"seconds from the start":     {[]string{"0", "0.1", "0.2"}, []int64{0, 1, 2}, "2026-01-31T14:00:00Z"},
		"seconds from any start":     {[]string{"5.5", "5.6"}, []int64{0, 1}, "2026-01-31T14:00:05.5Z"},
		"before the start":           {[]string{"-0.1", "0"}, []int64{0, 1}, "2026-01-31T13:59:59.9Z"},
		"Unix seconds":               {[]string{"1769868000.25", "1769868000.35"}, []int64{0, 1}, "2026-01-31T14:00:00.25Z"},
		"RFC 3339 in another zone":   {[]string{"2026-01-31T15:00:00+01:00", "2026-01-31T15:00:00.1+01:00"}, []int64{0, 1}, "2026-01-31T14:00:00Z"},
		"jitter up to half a sample": {[]string{"0", "0.149", "0.2", "0.31"}, []int64{0, 1, 2, 3}, "2026-01-31T14:00:00Z"},
		"one sample lost":            {[]string{"0", "0.2", "0.3"}, []int64{0, 2, 3}, "2026-01-31T14:00:00Z"},
		"jitter of nearly a sample":  {[]string{"0.04", "0.07", "0.23", "0.27", "0.44", "0.47"}, []int64{0, 1, 2, 3, 4, 5}, "2026-01-31T14:00:00.04Z"},
		"jitter, one sample lost":    {[]string{"0.02", "0.09", "0.22", "0.29", "0.42", "0.6", "0.72"}, []int64{0, 1, 2, 3, 4, 6, 7}, "2026-01-31T14:00:00.02Z"},
		"late by more than 0.9":      {[]string{"0", "0.191", "0.3"}, []int64{0, 2, 3}, "2026-01-31T14:00:00Z"},
		"milliseconds since 1970":    {[]string{"1769868000250", "1769868000350"}, []int64{0, 1}, "2026-01-31T14:00:00.25Z"},
		"nanoseconds since 1970":     {[]string{"1769868000250000000", "1769868000350000000"}, []int64{0, 1}, "2026-01-31T14:00:00.25Z"},
		"LabVIEW":                    {[]string{"3852712800.25", "3852712800.35"}, []int64{0, 1}, "2026-01-31T14:00:00.25Z"},
		"German":                     {[]string{"31.01.2026 14:00:00.250", "31.01.2026 14:00:00.350"}, []int64{0, 1}, "2026-01-31T14:00:00.25Z"},
		"American":                   {[]string{"1/31/2026 2:00:00.250 PM", "1/31/2026 2:00:00.350 PM"}, []int64{0, 1}, "2026-01-31T14:00:00.25Z"},
		"day first":                  {[]string{"31/1/2026 14:00:00.250", "31/1/2026 14:00:00.350"}, []int64{0, 1}, "2026-01-31T14:00:00.25Z"},
		"named month":                {[]string{"31-Jan-2026 14:00:00.25", "31-Jan-2026 14:00:00.35"}, []int64{0, 1}, "2026-01-31T14:00:00.25Z"},
		"time of the day":            {[]string{"00:00:05.5", "00:00:05.6"}, []int64{0, 1}, "2026-01-31T14:00:05.5Z"},
		"an hour lost":               {[]string{"0", "3600"}, []int64{0, 36000}, "2026-01-31T14:00:00Z"},
		"a slow clock is not a gap":  {[]string{"0", "0.14", "0.28", "0.42"}, []int64{0, 1, 2, 3}, "2026-01-31T14:00:00Z"},
	} {
		text := "t,ax\n" + strings.Join(tc.times, ",1\n") + ",1\n"
		c, err := newText(strings.NewReader(text), "f.csv", layout(t, 10, "ax"), signal.Recording{Time: "t"}, tableOptions{Start: start})
		if err != nil {
			t.Fatal(err)
		}
		var first []int64
		for {
			b, err := c.Next(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if first == nil {
				if got := b.Time.UTC().Format(time.RFC3339Nano); got != tc.at {
					t.Errorf("%s: starts at %s, want %s", name, got, tc.at)
				}
			}
			for i := range b.Len() {
				first = append(first, b.First+int64(i))
			}
		}
		if fmt.Sprint(first) != fmt.Sprint(tc.first) {
			t.Errorf("%s: counters %v, want %v", name, first, tc.first)
		}
	}
}

// A column of seconds that starts again with each tool goes on behind the tool before; a
// unit behind the name of the column counts; no gap comes of either.
func TestTableTimeUnits(t *testing.T) {
	for name, text := range map[string]string{
		"seconds":                     "t,ax,tool\n7,1,A\n7.1,1,A\n0,1,B\n0.1,1,B\n",
		"seconds, goes on by itself":  "t,ax,tool\n7,1,A\n7.1,1,A\n7.2,1,B\n7.3,1,B\n",
		"seconds, with their unit":    "t [s],ax,tool\n7,1,A\n7.1,1,A\n7.1,1,B\n7.2,1,B\n",
		"milliseconds":                "t (ms),ax,tool\n7000,1,A\n7100,1,A\n0,1,B\n100,1,B\n",
		"microseconds":                "t [µs],ax,tool\n7e6,1,A\n71e5,1,A\n5e6,1,B\n51e5,1,B\n",
		"minutes":                     "t [min];ax;tool\n0,11666666666666666;1;A\n0,118333333333333333;1;A\n0;1;B\n0,0016666666666666666;1;B\n",
		"three tools, none goes back": "t,ax,tool\n7,1,A\n7.1,1,A\n7.2,1,B\n0,1,C\n",
	} {
		c, err := newText(strings.NewReader(text), "f.csv", layout(t, 10, "ax"), signal.Recording{Time: "t", Tool: "tool"}, tableOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		row, session, counter := 0, int64(0), int64(0)
		for {
			b, err := c.Next(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if b.Session != session {
				session, counter = b.Session, 0
			}
			if b.First != counter {
				t.Errorf("%s: row %d has counter %d, want %d", name, row, b.First, counter)
			}
			if at, want := b.Time.Sub(time.Unix(7, 0)), time.Duration(row)*100*time.Millisecond; (at - want).Abs() > time.Microsecond {
				t.Errorf("%s: row %d is at %v, want %v", name, row, at, want)
			}
			row, counter = row+b.Len(), counter+int64(b.Len())
		}
		if row != 4 {
			t.Errorf("%s: %d rows", name, row)
		}
	}
}

// An hour that local time leaves out is named, and stays a gap. Other hours are gaps only.
func TestDaylightSavingBegins(t *testing.T) {
	for text, warned := range map[string]bool{
		"t,ax\n2026-03-29 01:59:59.9,1\n2026-03-29 03:00:00,1\n":   true,
		"t,ax\n2026-03-08 01:59:59.9,1\n2026-03-08 03:00:00.5,1\n": true,
		"t,ax\n2026-03-29T01:59:59.9Z,1\n2026-03-29T03:00:00Z,1\n": false,
		"t,ax\n2026-03-29 01:40:00,1\n2026-03-29 02:40:00.1,1\n":   false,
		"t,ax\n2026-03-29 01:59:59.9,1\n2026-03-29 03:20:00,1\n":   false,
	} {
		var warnings []string
		c, err := newText(strings.NewReader(text), "f.csv", layout(t, 10, "ax"), signal.Recording{Time: "t"}, tableOptions{Warn: func(text string) { warnings = append(warnings, text) }})
		if err != nil {
			t.Fatal(err)
		}
		first := []int64{}
		for b, err := c.Next(t.Context()); err != io.EOF; b, err = c.Next(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			first = append(first, b.First)
		}
		if len(first) != 2 || first[1] < 36_000 {
			t.Errorf("%q: blocks at %v", text, first)
		}
		if got := len(warnings) == 1 && strings.Contains(warnings[0], "f.csv:3: column \"t\"") && strings.Contains(warnings[0], "daylight saving time began"); got != warned || len(warnings) > 1 {
			t.Errorf("%q: warnings %q", text, warnings)
		}
	}
}

// When local time repeats an hour, all later times are taken an hour later. So there is no gap, and a warning says it. A second jump of an hour is read in the same way.
func TestDaylightSavingEnds(t *testing.T) {
	for text, warnings := range map[string]int{
		"t,ax\n2026-10-25 02:59:59.9,1\n2026-10-25 02:00:00,1\n2026-10-25 02:00:00.1,1\n":                                                    1,
		"t,ax\n" + strings.Repeat("2026-10-25 02:59:59,1\n", 10) + strings.Repeat("2026-10-25 02:00:00,1\n", 10) + "2026-10-25 02:00:01,1\n": 1,
		"t,ax\n2026-10-25 02:59:59.9,1\n2026-10-25 02:00:00,1\n2026-10-25 01:00:00.1,1\n":                                                    2,
	} {
		var warned []string
		c, err := newText(strings.NewReader(text), "f.csv", layout(t, 10, "ax"), signal.Recording{Time: "t"}, tableOptions{Warn: func(text string) { warned = append(warned, text) }})
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Next(t.Context())
		if err != nil || b.Len() != strings.Count(text, "\n")-1 {
			t.Errorf("%q: %d rows, %v", text, b.Len(), err)
		}
		if len(warned) != warnings || !strings.Contains(warned[0], "count an hour more") {
			t.Errorf("%q: %q", text, warned)
		}
	}
}

// TestTableBlocks reads more rows than a block holds, whose tool changes within
// a block and whose time is counted.
func TestTableBlocks(t *testing.T) {
	var text strings.Builder
	text.WriteString("tool,hole,n,ax,s\n")
	for i := range 700 {
		fmt.Fprintf(&text, "T%d,%d,%d,%d,worn\n", i/300, i/350, 100*(i/650), i)
	}
	start := time.Date(2026, 1, 31, 14, 0, 0, 0, time.UTC)
	c, err := newText(strings.NewReader(text.String()), "f.csv", layout(t, 1000, "ax"),
		signal.Recording{Tool: "tool", Hole: "hole", Speed: "n", State: "s"}, tableOptions{Machine: "m", Session: 40, Start: start})
	if err != nil {
		t.Fatal(err)
	}
	row := 0
	var lens []int
	for {
		b, err := c.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		want := signal.Context{Machine: "m", Tool: fmt.Sprintf("T%d", row/300), Hole: fmt.Sprint(row / 350), SpindleSpeed: float64(100 * (row / 650))}
		if b.Context != want {
			t.Errorf("row %d: context %+v, want %+v", row, b.Context, want)
		}
		if b.Session != int64(40+row/300) || b.First != int64(row%300) {
			t.Errorf("row %d: session %d, first %d", row, b.Session, b.First)
		}
		if want := start.Add(time.Duration(row) * time.Millisecond); !b.Time.Equal(want) {
			t.Errorf("row %d: time %v, want %v", row, b.Time, want)
		}
		if len(b.Truth) != b.Len() {
			t.Errorf("row %d: %d truths for %d samples", row, len(b.Truth), b.Len())
		}
		for i, v := range b.Samples[0] {
			if v != float32(row+i) {
				t.Fatalf("row %d: sample %d is %v", row, i, v)
			}
			if tr := b.Truth[i]; tr.State != "worn" || !math.IsNaN(tr.VBMaxUM) || !math.IsNaN(tr.VBMeanUM) {
				t.Fatalf("row %d: truth %+v", row, tr)
			}
		}
		lens = append(lens, b.Len())
		row += b.Len()
	}
	if got := fmt.Sprint(lens); got != "[256 44 50 250 50 50]" {
		t.Errorf("blocks of %s rows", got)
	}
}

// Blocks of a slow table are short in time: what is delivered as a live sensor would
// must not come once in minutes.
func TestTableOfASlowSensor(t *testing.T) {
	for rate, want := range map[float64]string{1: "[10 10 5]", 2.5: "[25]", 0.05: "[1 1 1"} {
		c, err := newText(strings.NewReader("ax\n"+strings.Repeat("1\n", 25)), "f.csv", layout(t, rate, "ax"), signal.Recording{}, tableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var lens []int
		for {
			b, err := c.Next(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			lens = append(lens, b.Len())
		}
		if got := fmt.Sprint(lens); !strings.HasPrefix(got, want) {
			t.Errorf("%v Hz: blocks of %s rows, want %s", rate, got, want)
		}
	}
}

func TestTableStopsWithItsContext(t *testing.T) {
	c, err := newText(strings.NewReader("ax\n1\n"), "f.csv", layout(t, 1, "ax"), signal.Recording{}, tableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Next(ctx); err != ctx.Err() {
		t.Errorf("Next returns %v, want %v", err, ctx.Err())
	}
	if b, err := c.Next(t.Context()); err != nil || b.Len() != 1 {
		t.Errorf("a cancelled call took rows with it: %v", err)
	}
}

// TestTableAllocations checks that reading allocates one string a row, so that a
// table of any length passes in constant memory.
func TestTableAllocations(t *testing.T) {
	text := "tool,s,a,b,c\n" + strings.Repeat("T1,worn,1.5,-2.25e3,0.001\n", 100*blockRows)
	c, err := newText(strings.NewReader(text), "f.csv", layout(t, 1, "a", "b", "c"), signal.Recording{Tool: "tool", State: "s"}, tableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	per := testing.AllocsPerRun(50, func() {
		if _, err := c.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	// encoding/csv makes one string of each row; nothing else allocates.
	if per > blockRows+2 {
		t.Errorf("%v allocations for a block of %d rows", per, blockRows)
	}
}

// FuzzDialect reads any text in any dialect.
func FuzzDialect(f *testing.F) {
	f.Add([]byte("2016-05-26 21:15:16.881\n1 2 \n3 4\n"), "none", "", "", 0)
	f.Add([]byte("a;b\nx;y\n1,5;2\n"), "2", "semicolon", "comma", 0)
	f.Add([]byte("made by\n1|2\n"), "1", "|", "point", 1)
	l := layout(f, 10, "1", "2")
	f.Fuzz(func(t *testing.T, text []byte, header, separator, decimal string, skip int) {
		dialect{}.sniff(text, false)
		c, err := newText(bytes.NewReader(text), "f.txt", l, signal.Recording{Header: header, Separator: separator, Decimal: decimal, Skip: skip}, tableOptions{})
		for rows := 0; err == nil; {
			var b *Block
			if b, err = c.Next(t.Context()); err == nil {
				if rows += b.Len(); b.Len() == 0 || rows > len(text) {
					t.Fatalf("%d rows of %d bytes", rows, len(text))
				}
			}
		}
		if msg := err.Error(); err != io.EOF && !strings.HasPrefix(msg, "source: f.txt") {
			t.Fatalf("error does not name the file: %v", err)
		}
	})
}

func FuzzTable(f *testing.F) {
	lathe, err := os.ReadFile("testdata/lathe.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(lathe)
	f.Add([]byte("time,tool,hole,VB,ax,thrust\n1e9,1,2,3,4,5\n1e9,1,2,3,4,5\n"))
	f.Add([]byte("\xef\xbb\xbftime,tool,hole,VB,ax,thrust\n-1e8,a,,,\"4\n"))
	l := layout(f, 10, "ax", "thrust")
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := newText(bytes.NewReader(text), "f.csv", l, signal.Recording{Time: "time", Tool: "tool", Hole: "hole", VBMax: "VB"}, tableOptions{})
		if err != nil {
			return
		}
		var rows, end int64
		var session int64
		var at time.Time
		for {
			b, err := c.Next(t.Context())
			if err != nil {
				if _, again := c.Next(t.Context()); again != err {
					t.Fatalf("first %v, then %v", err, again)
				}
				break
			}
			n := b.Len()
			if n == 0 || n > blockRows || len(b.Truth) != n || len(b.Samples) != 2 || len(b.Samples[1]) != n {
				t.Fatalf("block of %d rows, %d truths", n, len(b.Truth))
			}
			if rows > 0 && !b.Time.After(at) {
				t.Fatalf("time %v after %v", b.Time, at)
			}
			if b.Session == session && b.First < end {
				t.Fatalf("counter %d after %d", b.First, end)
			}
			for _, x := range b.Samples {
				for _, v := range x {
					if math.IsInf(float64(v), 0) {
						t.Fatal("infinite sample")
					}
				}
			}
			session, end, at = b.Session, b.First+int64(n), b.Time
			rows += int64(n)
		}
		if rows > c.Stats().Rows || rows > int64(len(text)) {
			t.Fatalf("%d rows of %d bytes, stats %+v", rows, len(text), c.Stats())
		}
	})
}

// Rows whose tool is a word for a missing name are counted, with the first line.
func TestRowsWithoutATool(t *testing.T) {
	for text, want := range map[string]string{
		"tool,ax\nT1,1\n-,2\nN/A,3\nT2,4\n": `f.csv:3: column "tool": "-" is a word for what is missing: name the tool`,
		"tool,ax\nT1,1\n,2\nT2,4\n":         "", // no tool is in
	} {
		var said []string
		c, err := newText(strings.NewReader(text), "f.csv", layout(t, 10, "ax"), signal.Recording{Tool: "tool"}, tableOptions{Warn: func(text string) { said = append(said, text) }})
		for err == nil {
			_, err = c.Next(t.Context())
		}
		all := strings.Join(said, "\n")
		if err != io.EOF || (want == "") != (all == "") || !strings.Contains(all, want) || want != "" && !strings.Contains(all, "of a tool that is named after the file: 2, the first") {
			t.Errorf("%q: %q, %v, want %q", text, all, err, want)
		}
	}
}
