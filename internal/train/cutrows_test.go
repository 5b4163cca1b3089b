package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// forceForm is of one force sensor.
func forceForm(t *testing.T) *window.Form {
	t.Helper()
	l, err := signal.NewLayout("force", []signal.Channel{{Name: "force", Kind: signal.Force, Rate: 20, Unit: "N"}})
	if err != nil {
		t.Fatal(err)
	}
	form, err := window.NewForm(l, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return form
}

// cutWindow returns window i of so many of a machine, which have four tools.
func cutWindow(form *window.Form, machine string, i, of int) *window.Features {
	w := &window.Features{Form: form, Level: float64(100 + i%7)}
	w.Context = signal.Context{Machine: machine, Tool: fmt.Sprintf("T%d", 4*i/of), Hole: fmt.Sprintf("H%d", i*20/of)}
	w.Epoch, w.Seq, w.Start, w.Length, w.Quality = 7, uint64(i), time.Unix(1.8e9+int64(i), 0).UTC(), time.Second, []signal.Quality{signal.Quality(i % 3)}
	for k := range form.Names() {
		w.Values = append(w.Values, float32((i*31+k*17)%101))
	}
	for k := range form.Frames() {
		w.Frames = append(w.Frames, float32((i+k)%11))
	}
	return w
}

// largeJob learns from n windows, which are read in the order that places says. Read is called once all were read.
func largeJob(t *testing.T, form *window.Form, n int, place func(i int) int, read func()) Job {
	j := Job{Config: DefaultConfig(), Layout: form.Layout(), Scratch: t.TempDir(), Log: zerolog.Nop()}
	j.Config.Label.VBMaxUM = 200
	for tool := range 4 {
		j.Wear = append(j.Wear, wear.Measurement{Machine: "m", Tool: fmt.Sprintf("T%d", tool), VBMaxUM: 300})
	}
	j.Inputs = []Input{{Name: "archive", Large: true, Windows: n, Cut: func(_ context.Context, _ *model.Model, _ func(int, int), visit func(*window.Features) error) (model.DataSet, error) {
		for i := range n {
			if err := visit(cutWindow(form, "m", place(i), n)); err != nil {
				return model.DataSet{}, err
			}
		}
		read()
		return model.DataSet{Name: "archive"}, nil
	}}}
	j.prepare()
	return j
}

// Of a window of a large archive some bytes stay in memory: where it is while windows are read, its class and tool while a model learns.
func TestLargeArchiveBytes(t *testing.T) {
	defer func(most int) { mostHeldRows = most }(mostHeldRows)
	mostHeldRows = 100
	form := forceForm(t)
	inUse := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	measure := func(n int) (reading, learning float64) {
		before := inUse()
		j := largeJob(t, form, n, func(i int) int { return i }, func() { reading = inUse() - before })
		rows, m, _, err := j.rows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer rows.close()
		learning = inUse() - before
		runtime.KeepAlive(rows)
		runtime.KeepAlive(m)
		if got := rows.Rows(); got < n*9/10 {
			t.Errorf("%d of %d windows became rows", got, n)
		}
		return reading, learning
	}
	const few, many = 4_000, 24_000
	reading, learning := measure(few)
	more, also := measure(many)
	for what, bytes := range map[string]float64{"while windows are read": (more - reading) / (many - few), "while a model learns": (also - learning) / (many - few)} {
		if t.Logf("%s: %.1f bytes a window", what, bytes); bytes > 40 {
			t.Errorf("%s: %.1f bytes a window, want 40 at most", what, bytes)
		}
	}
}

// Windows on disk are the windows in memory, in the same order and without the same ones, however they come.
func TestCutRows(t *testing.T) {
	form := forceForm(t)
	var all []*window.Features
	for _, machine := range []string{"b", "a/2", "a"} {
		for i := range 400 {
			all = append(all, cutWindow(form, machine, i, 400))
		}
	}
	for _, w := range all[900:1000] { // again, after its recording was played again
		again := *w
		again.Epoch, again.Seq = 3, w.Seq+5
		all = append(all, &again)
	}
	for i := range 30 { // with another hop
		w := *cutWindow(form, "c", i, 400)
		w.Start = time.Unix(1.8e9, 0).UTC().Add(time.Duration(i) * 500 * time.Millisecond)
		all = append(all, &w)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	read := func(_ context.Context, _ *model.Model, _ func(int, int), visit func(*window.Features) error) (model.DataSet, error) {
		for _, w := range all {
			lent := *w
			if err := visit(&lent); err != nil {
				return model.DataSet{}, err
			}
		}
		return model.DataSet{Name: "archive", SHA256: "sum", CutOff: []model.CutTool{{Machine: "b", Tool: "T1", Missing: 9}}}, nil
	}
	for name, tc := range map[string]struct {
		mode   model.Mode
		learns bool
		want   int
	}{
		"learning":            {model.ReferenceKind, true, 1100},
		"without a reference": {model.ReferenceOff, true, 1200},
		"labels alone":        {model.ReferenceKind, false, 1200},
	} {
		c := DefaultConfig()
		c.Reference.Mode = tc.mode
		j := Job{Config: c, Layout: form.Layout()}
		m, err := j.blank()
		if err != nil {
			t.Fatal(err)
		}
		var judge *model.Judge
		if tc.learns {
			judge = m.NewJudge()
		}
		var found []observed
		near, far := Input{Name: "archive", Cut: read}, Input{Name: "archive", Cut: read, Large: true}
		if err := near.readCut(t.Context(), m, judge, (*inMemory)(&found), func(int, int) {}, keepAll); err != nil {
			t.Fatal(err)
		}
		rows := newCutRows(t.TempDir(), 0)
		if err := far.readCut(t.Context(), m, judge, rows, func(int, int) {}, keepAll); err != nil {
			t.Fatal(err)
		}
		n := 0
		for o, err := range windowsOf([]Input{{cut: rows}}, nil, true) {
			if err != nil {
				t.Fatal(err)
			}
			if n < len(found) && fmt.Sprintf("%+v", *o) != fmt.Sprintf("%+v", found[n]) {
				t.Fatalf("%s: window %d\n%+v, in memory\n%+v", name, n, *o, found[n])
			}
			n++
		}
		if n != len(found) || n != tc.want || !reflect.DeepEqual(near.LeftOut, far.LeftOut) || near.SHA256 != far.SHA256 {
			t.Errorf("%s: %d windows, %+v; in memory %d, %+v; want %d", name, n, far.LeftOut, len(found), near.LeftOut, tc.want)
		}
		closeCut([]Input{{cut: rows}})
	}
}

// A sample of more windows than fit is stretches of them that follow each other, spread from the first to the last.
func TestCutSample(t *testing.T) {
	form := forceForm(t)
	const n = 3 * stretchRows
	j := largeJob(t, form, n, func(i int) int { return (i + n/2) % n }, func() {})
	m, err := j.blank()
	if err != nil {
		t.Fatal(err)
	}
	rows := newCutRows(j.Scratch, 0)
	if err := j.Inputs[0].readCut(t.Context(), m, m.NewJudge(), rows, func(int, int) {}, keepAll); err != nil {
		t.Fatal(err)
	}
	j.Inputs[0].cut = rows
	defer closeCut(j.Inputs)
	for most, want := range map[int][]int{sampleBytes: {0, n}, 2 * stretchRows * 450: {0, stretchRows, n - stretchRows, n}, 1: {0, stretchRows}} {
		found, err := rows.sample(most)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, os := range found {
			first := int(os[0].Start.Unix() - 1.8e9)
			got = append(got, first, first+len(os))
			for i, o := range os {
				if o.Start.Unix()-1.8e9 != int64(first+i) || len(o.Frames) != form.Frames() || o.Features != nil {
					t.Fatalf("window %d of a stretch: %+v", i, o)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d bytes: from and to %d, want %d", most, got, want)
		}
	}
}
