package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/signal"
)

// Arrays of another length are left out, not read at the rate of the longest one, and the rate that a scalar says is named also if there is none.
func TestInitOtherLengths(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	for _, a := range []struct {
		name string
		n    int
	}{{"acc", 2000}, {"temp", 200}, {"fs", 1}} {
		w, err := z.Create(a.name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }\n", a.n)
		fmt.Fprintf(w, "\x93NUMPY\x01\x00%c\x00%s", len(head), head)
		x := slices.Repeat([]float32{100, 3, 7, 1, 5}, 400)
		binary.Write(w, binary.LittleEndian, x[:a.n])
	}
	z.Close()
	if err := os.WriteFile(dir.path("f.npz"), file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	const rate = "note      fs is 100: give --rate 100, if that is the samples a second\n"
	out, _, err := dir.trainer(t, "init --data f.npz")
	if err == nil || !strings.Contains(err.Error(), "nothing says how many samples a second channel acc has") || !strings.Contains(out, rate) {
		t.Errorf("%v\n%s", err, out)
	}
	out, _ = dir.initInto(t, ".", "--data f.npz --rate 100", `left out  "temp": it has 200 values and "acc" 2000, so it is of another rate`, "#   temp: it has 200 values", "")
	if !strings.Contains(out, rate) {
		t.Error(out)
	}
	layout, _, err := signal.LoadLayout(dir.path("layout.yaml"))
	if err != nil || len(layout.Channels()) != 1 || layout.Channels()[0].Name != "acc" {
		t.Errorf("%v, %v", layout, err)
	}
}
