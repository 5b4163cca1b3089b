package table

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestTextRows(t *testing.T) {
	r := NewTextReader(strings.NewReader("a;b\n\n\"1\n2\";x\n3;\n"), "t.csv")
	r.Separator, r.Skipped = ';', 10
	var got strings.Builder
	for err := r.Header(); err != io.EOF; err = r.Next() {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%d %q\n", r.Line, r.Row)
	}
	if want := "11 [\"a\" \"b\"]\n13 [\"1\\n2\" \"x\"]\n15 [\"3\" \"\"]\n"; got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

func TestTextErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a,b\n1\n":     "t.csv:2: cells in the row: 1, in the header: 2",
		"a,b\n1,\"2\n": "t.csv:2: a quote (\") at byte 6 of line 2 does not belong there or is never closed",
		"a,b\n1,2\"\n": "t.csv:2: a quote (\") at byte 4 of line 2",
	} {
		r := NewTextReader(strings.NewReader(text), "t.csv")
		if err := r.Header(); err != nil {
			t.Fatal(err)
		}
		if err := r.Next(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if err := NewTextReader(strings.NewReader(""), "t.csv").Header(); err != io.EOF {
		t.Errorf("an empty file: %v", err)
	}
	// Without a header rows have as many cells as they like.
	r := NewTextReader(strings.NewReader("1,2\n3\n"), "t.csv")
	for range 2 {
		if err := r.Next(); err != nil {
			t.Error(err)
		}
	}
}

func TestParseCell(t *testing.T) {
	for cell, want := range map[string]float64{"": math.NaN(), "1.5": 1.5, "-2e3": -2000} {
		if v, ok := ParseNumber(cell, 64); !ok || v != want && v == v {
			t.Errorf("%q is %v, %v", cell, v, ok)
		}
	}
	for _, cell := range []string{"NaN", "Inf", "1e39", "x", " 1"} {
		if v, ok := ParseNumber(cell, 32); ok {
			t.Errorf("%q is %v", cell, v)
		}
	}
	if at, ok := ParseTime("2026-01-31T14:05:09+01:00"); !ok || at != time.Date(2026, 1, 31, 13, 5, 9, 0, time.UTC) {
		t.Errorf("%v, %v", at, ok)
	}
	for _, cell := range []string{"", "14:05", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00"} {
		if at, ok := ParseTime(cell); ok {
			t.Errorf("%q is %v", cell, at)
		}
	}
}
