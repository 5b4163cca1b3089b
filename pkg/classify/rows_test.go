package classify

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// diskRows hides that rows are in memory.
type diskRows struct {
	m     dbn.Matrix
	reads *atomic.Int64
	last  int64 // read that succeeds; 0: all do
}

var errDisk = errors.New("disk is gone")

func onDiskRows(m dbn.Matrix) diskRows { return diskRows{m: m, reads: new(atomic.Int64)} }

func (f diskRows) Shape() (rows, cols int) { return f.m.Shape() }

func (f diskRows) ReadRows(dst []float32, from int) error {
	if n := f.reads.Add(1); f.last > 0 && n > f.last {
		return errDisk
	}
	if len(dst)%f.m.Cols != 0 || from+len(dst)/f.m.Cols > f.m.Rows {
		panic("rows that do not exist are read")
	}
	return f.m.ReadRows(dst, from)
}

// Views of rows that are read hold what copies of those in memory hold.
func TestViewsOfRows(t *testing.T) {
	x, _ := clusters(1, 3, 1, 200, 100)
	x.Row(7)[1] = float32(math.NaN())
	encoder, err := FitEncoder(x, Bins, 4)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfNDistinct(rapid.IntRange(0, x.Rows-1), 1, x.Rows, rapid.ID).Draw(t, "rows")
		slices.Sort(rows)
		in := encoder.liveInputs(rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.5, 1}), x.Cols, x.Cols).Draw(t, "weights"))
		want := in.of(part(x, setOf(rows))).(dbn.Matrix)
		view := in.of(part(onDiskRows(x), setOf(rows)))
		if r, c := view.Shape(); r != want.Rows || c != want.Cols {
			t.Fatalf("%d×%d, want %d×%d", r, c, want.Rows, want.Cols)
		}
		from := rapid.IntRange(0, len(rows)-1).Draw(t, "from")
		n := rapid.IntRange(1, len(rows)-from).Draw(t, "n")
		got := make([]float32, n*want.Cols)
		if err := view.ReadRows(got, from); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want.Data[from*want.Cols:(from+n)*want.Cols]) {
			t.Fatal("another part")
		}
	})
}

// Many rows go through in chunks, and an encoder sees some of all parts.
func TestManyRows(t *testing.T) {
	m := dbn.NewMatrix(encoderRows+5000, 1)
	for i := range m.Data {
		m.Data[i] = float32(i)
	}
	m.Data[20_000] = float32(math.NaN())
	next := 0
	err := eachChunk(onDiskRows(m), func(from int, c dbn.Matrix) error {
		if from != next || c.Row(0)[0] != float32(from) && from != 20_000 {
			t.Errorf("chunk of row %d at %d begins with %v", from, next, c.Row(0)[0])
		}
		next += c.Rows
		return nil
	})
	if err != nil || next != m.Rows {
		t.Errorf("%d rows, %v", next, err)
	}
	for _, x := range []dbn.Rows{m, onDiskRows(m)} {
		if n, err := missing(x); n != 1 || err != nil {
			t.Errorf("%d values missing, %v", n, err)
		}
	}
	m.Data[20_000] = 20_000
	some, err := typical(onDiskRows(m))
	if err != nil || some.x.Rows != encoderRows {
		t.Fatal(some.x.Rows, err)
	}
	if first, last := some.x.Data[0], some.x.Data[encoderRows-1]; first != 0 || last != float32(m.Rows-1) {
		t.Errorf("from row %v to row %v", first, last)
	}
	if !slices.IsSortedFunc(some.x.Data, func(a, b float32) int { return int(a - b) }) {
		t.Error("not in order")
	}
}

// Rows that are read make as good a classifier as those in memory, the same with
// any number of workers.
func TestFitRowsThatAreRead(t *testing.T) {
	x, y := clusters(3, 4, 1.5, 400, 60)
	groups := tools(x.Rows, 8)
	s := quick()
	_, inMemory := fitted(t, x, y, groups, s)
	var first []byte
	for _, workers := range []int{1, 4} {
		s.Workers = workers
		c, r, err := Fit(t.Context(), onDiskRows(x), y, groups, s)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(float64(r.Held.GMean-inMemory.Held.GMean)) > 0.03 || r.Rows != x.Rows || r.Columns != 4 {
			t.Errorf("G-mean %v of %d rows of %d, in memory %v", r.Held.GMean, r.Rows, r.Columns, inMemory.Held.GMean)
		}
		b, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !slices.Equal(first, b) {
			t.Errorf("%d workers make another classifier", workers)
		}
	}
	v, err := crossValidate(t.Context(), onDiskRows(x), y, groups, s, LeaveOneGroupOut(groups))
	if err != nil {
		t.Fatal(err)
	}
	if v.Pooled.GMean < 0.9 || len(v.Groups) != 8 {
		t.Errorf("held out: %+v", v.Pooled)
	}
}

func TestFitRowsThatCannotBeRead(t *testing.T) {
	x, y := clusters(3, 4, 1.5, 400, 60)
	s := quick()
	s.Workers = 1
	whole := onDiskRows(x)
	if _, _, err := Fit(t.Context(), whole, y, nil, s); err != nil {
		t.Fatal(err)
	}
	all := whole.reads.Load()
	s.EarlyStop = true // which reads a little more
	if c, _, err := Fit(t.Context(), onDiskRows(x), y, nil, s); err != nil || c.Columns() != x.Cols {
		t.Fatal(err)
	}
	s.EarlyStop = false
	for _, last := range []int64{1, 2, 500, all / 2, all - 1} {
		f := onDiskRows(x)
		f.last = last
		if _, _, err := Fit(t.Context(), f, y, nil, s); !errors.Is(err, errDisk) {
			t.Errorf("after %d of %d reads: %v", last, all, err)
		}
	}
	bad := dbn.Matrix{Rows: x.Rows, Cols: x.Cols, Data: slices.Clone(x.Data)}
	bad.Row(33)[2] = float32(math.Inf(1))
	if _, _, err := Fit(t.Context(), onDiskRows(bad), y, nil, s); !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "row 33, feature 2") {
		t.Errorf("an infinity: %v", err)
	}
}
