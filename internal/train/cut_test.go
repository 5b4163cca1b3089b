package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Windows that are cut already are observed alike in any order, and by their samples or their features; also if windows
// overlap, or two gateways of a machine dated theirs alike, and where sensors are missing.
func TestWindowsThatAreCutComeInAnyOrder(t *testing.T) {
	j := drillJob(t, "", nil)
	j.Config.Window.Hop = 500 * time.Millisecond
	m, err := j.blank()
	if err != nil {
		t.Fatal(err)
	}
	form, err := m.Form()
	if err != nil {
		t.Fatal(err)
	}
	x := form.NewExtractor()
	var cut []*window.Features // with samples, and behind each without
	for epoch := range uint64(2) {
		d := newDrill(j.Layout, "m", "T1", drillStart, 2)
		d.unplugged = 3
		c, err := source.NewCutter(d, m.Window)
		if err != nil {
			t.Fatal(err)
		}
		for seq := uint64(0); ; seq++ {
			next, err := c.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || next.Window == nil {
				t.Fatalf("%+v, %v", next, err)
			}
			w, f := &window.Features{Window: *next.Window}, new(window.Features)
			w.Epoch, w.Seq = epoch, seq
			w.Samples, w.Quality = nil, slices.Clone(w.Quality)
			for _, channel := range next.Window.Samples {
				w.Samples = append(w.Samples, slices.Clone(channel))
			}
			x.Extract(&w.Window, f)
			cut = append(cut, w, f)
		}
	}
	observe := func(order, features []int) string {
		in := Input{Name: "cut", Cut: func(_ context.Context, _ *model.Model, _ func(int, int), visit func(*window.Features) error) (model.DataSet, error) {
			for _, i := range order {
				if err := visit(cut[2*i+features[i]]); err != nil {
					return model.DataSet{}, err
				}
			}
			return model.DataSet{Name: "topic", SHA256: "01"}, nil
		}}
		inputs := []Input{in}
		found, _, err := collect(t.Context(), m, inputs, 1, keepAll, func(int, int) {})
		if err != nil || inputs[0].Name != "topic" || inputs[0].SHA256 != "01" {
			t.Fatalf("%+v, %v", inputs[0], err)
		}
		return fmt.Sprintf("%x", reflect.ValueOf(found[0]))
	}
	order := make([]int, len(cut)/2)
	for i := range order {
		order[i] = i
	}
	want := observe(order, make([]int, len(order)))
	rapid.Check(t, func(r *rapid.T) {
		features := rapid.SliceOfN(rapid.IntRange(0, 1), len(order), len(order)).Draw(r, "features")
		if got := observe(rapid.Permutation(order).Draw(r, "order"), features); got != want {
			r.Fatal("other observations than of windows in their order")
		}
	})

	// Features that do not cover the model are an error, and no zeros.
	few, err := window.NewForm(m.Layout, m.Window, signal.FeatureSpec{Set: []string{"rms"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var f window.Features
	few.NewExtractor().Extract(&cut[0].Window, &f)
	in := Input{Cut: func(_ context.Context, _ *model.Model, _ func(int, int), visit func(*window.Features) error) (model.DataSet, error) {
		return model.DataSet{}, visit(&f)
	}}
	if _, _, err := collect(t.Context(), m, []Input{in}, 1, keepAll, func(int, int) {}); !errors.Is(err, model.ErrUnfit) {
		t.Errorf("other features: %v", err)
	}
}
