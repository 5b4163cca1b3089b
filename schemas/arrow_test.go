package schemas

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// An Arrow library alone opens a sealed window, as a reader in another language would. The
// window agrees with window.arrow.md.
func TestWindowIsAsDocumented(t *testing.T) {
	layout, err := signal.NewLayout("test", []signal.Channel{
		{Name: "ch01", Kind: signal.Vibration, Unit: "m/s²", Rate: 2000, Range: 490.5, Sensor: "acc1-x"},
		{Name: "seq", Kind: signal.Force, Rate: 100}, // a name that a fact has, too
	})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	w := window.Window{
		Context: signal.Context{Machine: "acme/usk25", Tool: "T07", SpindleSpeed: 1800},
		Epoch:   0xa1, Seq: 7, Start: time.Unix(1, 5).UTC(), Length: time.Second, Session: 3, First: 14_000,
		Samples: [][]float32{make([]float32, 2000), make([]float32, 100)}, Quality: []signal.Quality{0, signal.Flatline},
	}
	w.Samples[0][1999] = 0.25
	e, err := codec.Seal(&w)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(bytes.NewReader(e.Value))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatalf("no record batch: %v", r.Err())
	}
	rec := r.Record()
	if rec.NumRows() != 1 || r.Schema().HasMetadata() {
		t.Errorf("%d rows, schema metadata %v", rec.NumRows(), r.Schema().Metadata())
	}

	text, err := os.ReadFile("window.arrow.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range r.Schema().Fields()[:r.Schema().NumFields()-2] {
		got = append(got, f.Name+" "+spell(f.Type))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]*[^| ]) \\| [^|]*\\|$").FindAllSubmatch(text, -1) {
		if typ := string(m[2]); !regexp.MustCompile(`^\d+$`).MatchString(typ) {
			want = append(want, fmt.Sprintf("%s %s", m[1], strings.ReplaceAll(typ, "[channels]", "[2]")))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("facts are\n%q, documented are\n%q", got, want)
	}
	for i, c := range layout.Channels() {
		f := r.Schema().Field(len(want) + i)
		if f.Name != c.Name || spell(f.Type) != fmt.Sprintf("fixed_size_list<float32>[%d]", len(w.Samples[i])) || f.Nullable {
			t.Errorf("channel %s is the column %v", c.Name, f)
		}
		number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
		md := arrow.NewMetadata([]string{"kind", "unit", "rate", "range", "sensor"},
			[]string{string(c.Kind), c.Unit, number(c.Rate), number(c.Range), c.Sensor})
		if !f.Metadata.Equal(md) {
			t.Errorf("channel %s: metadata %v, want %v", c.Name, f.Metadata, md)
		}
		x := rec.Column(len(want) + i).(*array.FixedSizeList).ListValues().(*array.Float32).Float32Values()
		if !slices.Equal(x, w.Samples[i]) {
			t.Errorf("channel %s: samples differ", c.Name)
		}
	}
	for _, m := range regexp.MustCompile("\\| `([a-z_]+)` \\| (\\d+) \\|").FindAllSubmatch(text, -1) {
		value, _ := strconv.Atoi(string(m[2]))
		if name := signal.Quality(value).String(); name != string(m[1]) {
			t.Errorf("flag %d is documented as %s, the code says %s", value, m[1], name)
		}
	}
}

// spell returns the type as the documentation does.
func spell(t arrow.DataType) string {
	if l, ok := t.(*arrow.FixedSizeListType); ok {
		return fmt.Sprintf("fixed_size_list<%s>[%d]", l.Elem(), l.Len())
	}
	return t.String()
}
