package window

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/pkg/signal"
)

// A reader that knows nothing of ours finds every sample, unit and rate.
func TestFileIsPlainArrow(t *testing.T) {
	l := signal.GunDrill()
	c := newCodec(t, l, DefaultSpec)
	var b bytes.Buffer
	f := c.NewFileWriter(&b, [2]string{"alert", "m/1/2/raised"}, [2]string{"at", "now"})
	ws := []*Window{example(l, DefaultSpec), example(l, DefaultSpec)}
	ws[1].Seq++
	ws[1].Start = ws[1].End()
	for _, w := range ws {
		if err := f.Write(w); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewFileReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	about := r.Schema().Metadata()
	if i := about.FindKey("alert"); i < 0 || about.Values()[i] != "m/1/2/raised" || about.Len() != 2 {
		t.Errorf("metadata %v", about)
	}
	if r.NumRecords() != 2 {
		t.Fatalf("%d records", r.NumRecords())
	}
	for i, w := range ws {
		rec, err := r.RecordAt(i)
		if err != nil {
			t.Fatal(err)
		}
		if got := rec.Column(colSeq).(*array.Uint64).Value(0); got != w.Seq {
			t.Errorf("record %d: seq %d, want %d", i, got, w.Seq)
		}
		for k, ch := range l.Channels() {
			field := r.Schema().Field(factColumns + k)
			if unit := field.Metadata.FindKey("unit"); field.Name != ch.Name || field.Metadata.Values()[unit] != ch.Unit {
				t.Errorf("column %d is %v", k, field)
			}
			x := rec.Column(factColumns + k).(*array.FixedSizeList).ListValues().(*array.Float32).Float32Values()
			if len(x) != len(w.Samples[k]) {
				t.Fatalf("%s: %d samples, want %d", ch.Name, len(x), len(w.Samples[k]))
			}
			for n := range x {
				if math.Float32bits(x[n]) != math.Float32bits(w.Samples[k][n]) {
					t.Fatalf("%s: sample %d is %v, want %v", ch.Name, n, x[n], w.Samples[k][n])
				}
			}
		}
	}
}

// full takes only so many bytes.
type full int

var errFull = errors.New("no space left on device")

func (f *full) Write(b []byte) (int, error) {
	if *f -= full(len(b)); *f < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestFileOnAFullDisk(t *testing.T) {
	l := signal.GunDrill()
	c := newCodec(t, l, DefaultSpec)
	for _, space := range []full{0, 100_000} {
		err := c.NewFileWriter(&space).Write(example(l, DefaultSpec))
		if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "window: file: ") {
			t.Errorf("%v", err)
		}
	}
}
