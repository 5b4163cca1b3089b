package inspect

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// arrays returns an NPZ file of arrays, by name and how many values each has.
func arrays(t *testing.T, names string) string {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	words := strings.Fields(names)
	for i := 0; i < len(words); i += 2 {
		var n int
		fmt.Sscan(words[i+1], &n)
		w, err := z.Create(words[i] + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }\n", n)
		fmt.Fprintf(w, "\x93NUMPY\x01\x00%c\x00%s", len(head), head)
		x := make([]float32, n)
		for k := range x {
			x[k] = float32(k * 7 % 13)
		}
		binary.Write(w, binary.LittleEndian, x)
	}
	z.Close()
	return out.String()
}

// Arrays of other lengths than the longest one are of another rate, and inspect says so. A few missing values are none.
func TestOtherLengths(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"equal":       {arrays(t, "ax 400 ay 400"), "ax 100, ay 100"},
		"a few less":  {arrays(t, "ax 400 ay 399"), "ax 100, ay 100"},
		"a tenth":     {arrays(t, "temp 40 ax 400"), `temp 0 it has 40 values and "ax" 400, so it is of another rate, which nothing says: name it in the layout with its ` + "`rate`, ax 100"},
		"a fraction":  {arrays(t, "ax 400 b 250"), `ax 100, b 0 it has 250 values and "ax" 400, so it is of another rate, which nothing says: name it in the layout with its ` + "`rate`"},
		"a table":     {"ax,ay\n1,2\n2,1\n", "ax 100, ay 100"},
		"with a rate": {sound(400), "1 48000, 2 48000"},
	} {
		s, err := Inspect(t.Context(), write(t, "f.x", tc.file), Options{Rate: 100})
		if err != nil || s.Err != nil {
			t.Errorf("%s: %v, %v", name, err, s)
			continue
		}
		var got []string
		for _, c := range s.Channels {
			got = append(got, strings.TrimSpace(fmt.Sprint(c.Name, " ", c.Rate, " ", c.Other)))
		}
		var out strings.Builder
		if err := s.Print(&out); err != nil || strings.Join(got, ", ") != tc.want || strings.Contains(out.String(), "another rate") != strings.Contains(tc.want, "another") {
			t.Errorf("%s: %q, %v\n%s", name, got, err, &out)
		}
	}
}
