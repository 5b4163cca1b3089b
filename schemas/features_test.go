package schemas

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// An Arrow library alone opens sealed features, which agree with features.arrow.md.
func TestFeaturesAreAsDocumented(t *testing.T) {
	layout, err := signal.NewLayout("test", []signal.Channel{
		{Name: "ch01", Kind: signal.Vibration, Unit: "m/s²", Rate: 2000},
		{Name: "thrust", Kind: signal.Force, Unit: "N", Rate: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	form, err := window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := window.Window{
		Context: signal.Context{Machine: "acme/usk25", Tool: "T07", ToolLife: "life-1", SpindleSpeed: 1800},
		Epoch:   0xa1, Seq: 7, Start: time.Unix(1, 5).UTC(), Length: time.Second, Session: 3, First: 14_000,
		Samples: [][]float32{make([]float32, 2000), make([]float32, 100)}, Quality: []signal.Quality{0, signal.Flatline},
	}
	for i := range w.Samples[0] {
		w.Samples[0][i] = float32(i%7) - 3
	}
	for i := range w.Samples[1] {
		w.Samples[1][i] = -20
	}
	var x window.Features
	form.NewExtractor().Extract(&w, &x)
	e, err := form.Seal(&x)
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
	text, err := os.ReadFile("features.arrow.md")
	if err != nil {
		t.Fatal(err)
	}
	lengths := strings.NewReplacer("[channels]", "[2]", "[names]", fmt.Sprintf("[%d]", len(form.Names())), "[measures]", fmt.Sprintf("[%d]", len(x.Frames)))
	var got, want []string
	for _, f := range r.Schema().Fields() {
		got = append(got, f.Name+" "+spell(f.Type))
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]*[^| ]) \\| [^|]*\\|$").FindAllSubmatch(text, -1) {
		want = append(want, lengths.Replace(fmt.Sprintf("%s %s", m[1], m[2])))
	}
	if !slices.Equal(got, want) {
		t.Errorf("columns are\n%q, documented are\n%q", got, want)
	}
	if rec.NumRows() != 1 || r.Schema().HasMetadata() {
		t.Errorf("%d rows, schema metadata %v", rec.NumRows(), r.Schema().Metadata())
	}
	md := r.Schema().Field(slices.Index(got, fmt.Sprintf("features fixed_size_list<float32>[%d]", len(x.Values)))).Metadata
	if fmt.Sprint(md.ToMap()) != fmt.Sprint(map[string]string{"version": "2", "layout": layout.Fingerprint(), "fingerprint": form.Fingerprint()}) {
		t.Errorf("metadata %v", md)
	}
	for _, key := range md.Keys() {
		if !bytes.Contains(text, []byte("| `"+key+"` |")) {
			t.Errorf("features.arrow.md does not have the key %s", key)
		}
	}
	// Mean of the force, and standard deviation of the vibration, for each of ten frames.
	frames := rec.Column(int(rec.NumCols()) - 1).(*array.FixedSizeList).ListValues().(*array.Float32).Float32Values()
	if level := rec.Column(12).(*array.Float64).Value(0); level != 20 || len(frames) != 20 || frames[0] != -20 || frames[1] < 1.9 || frames[1] > 2.1 {
		t.Errorf("level %v, frames %v", level, frames)
	}
}
