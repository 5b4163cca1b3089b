package classify

import (
	"math"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// chipped is a worn tool that goes from 0.9 limits to 2 at once, one that does not wear out, and one without
// a class: each of one column that is its place in the list.
func chipped() *Table {
	t := &Table{
		X: dbn.Matrix{Rows: 8, Cols: 1, Data: []float32{0, 1, 2, 3, 4, 5, 6, 7}},
		Y: []int{0, 0, 0, 1, 1, 0, 0, 0}, Groups: []string{"a", "a", "a", "a", "a", "b", "b", "b"},
		Ordered: true, Wear: []float64{0.1, 0.5, 0.9, 1.3, 2, 0.1, 0.2, 0.3},
	}
	t.Unlabelled = Unlabelled{X: dbn.Matrix{Rows: 8, Cols: 1, Data: []float32{10, 11, 12, 13, 14, 15, 16, 17}}, Groups: slices.Repeat([]string{"c"}, 8), After: slices.Repeat([]int{8}, 8)}
	return t
}

// What networks learn from with one worn tool: without the row at 2 limits; with rows 0.05 limits apart
// between 0.9 and 1.3, of which 0.95 alone is healthy; and with a quarter of the rows without a class.
func TestTaughtOfOneWornTool(t *testing.T) {
	taught := chipped().Taught(CostSettings{})
	if !taught.Few {
		t.Error("one worn tool is not few")
	}
	x, y, shift, err := taught.Rows([]int{0, 1, 2, 3, 4, 5, 6, 7})
	if err != nil {
		t.Fatal(err)
	}
	wantX := []float32{0, 1, 2, 3, 5, 6, 7, 2.125, 2.25, 2.375, 2.5, 2.625, 2.75, 2.875, 10, 11}
	wantY := []int{0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0}
	if !slices.Equal(y, wantY) {
		t.Errorf("classes %v\nwant    %v", y, wantY)
	}
	for i, v := range x.Data {
		if len(x.Data) != len(wantX) || math.Abs(float64(v-wantX[i])) > 1e-6 {
			t.Fatalf("rows %v\nwant %v", x.Data, wantX)
		}
	}
	// 2 of 8 rows are faulty, and 7 of the 16 that are learnt from.
	if want := math.Log(2.0/6) - math.Log(7.0/9); math.Abs(shift-want) > 1e-12 {
		t.Errorf("shift %v, want %v", shift, want)
	}
	if _, y, _, err = taught.Rows([]int{5, 6, 7}); err != nil || !slices.Equal(y, []int{0, 0, 0, 0, 0}) {
		t.Errorf("of the tool that does not wear out: %v %v", y, err)
	}
}

// With three worn tools nothing is left out; with seven no row is put between.
func TestTaughtOfMoreTools(t *testing.T) {
	for tools, want := range map[int]int{3: 3*2 + 3*11, 6: 6*2 + 6*11, 7: 7 * 2} {
		tb := &Table{Ordered: true}
		x := dbn.Matrix{Cols: 1}
		var all []int
		for k := range tools {
			for _, w := range []float64{0.9, 2} {
				x.Data, x.Rows = append(x.Data, float32(w)), x.Rows+1
				tb.Y, tb.Groups, tb.Wear = append(tb.Y, int(w)/2), append(tb.Groups, string(rune('a'+k))), append(tb.Wear, w)
				all = append(all, len(all))
			}
		}
		tb.X = x
		taught := tb.Taught(CostSettings{})
		got, _, _, err := taught.Rows(all)
		if err != nil || got.Rows != want || taught.Few {
			t.Errorf("%d worn tools: %d rows, few %t, %v; want %d", tools, got.Rows, taught.Few, err, want)
		}
	}
}

// Without tools, and where costs come from training rows, the rows are those given.
func TestTaughtWithoutRules(t *testing.T) {
	tb := chipped()
	tb.Unlabelled = Unlabelled{}
	plain := tb.Taught(CostSettings{Posteriors: Training})
	tb.Groups = nil
	for name, taught := range map[string]*Taught{"training posteriors": plain, "no tools": tb.Taught(CostSettings{})} {
		x, y, shift, err := taught.Rows([]int{1, 4})
		if err != nil || !slices.Equal(x.Data, []float32{1, 4}) || !slices.Equal(y, []int{0, 1}) || shift != 0 || taught.Few {
			t.Errorf("%s: %v %v %v %v", name, x.Data, y, shift, err)
		}
	}
}

// Weights are the weights of the network that FitTable keeps.
func TestWeighIsFits(t *testing.T) {
	tb := wearing(1, 40, []string{"a", "b", "c"}, []string{"d"})
	_, r := tableFitted(t, tb, quick())
	got, err := tb.Weigh(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, 4)
	for _, c := range r.Weights.Columns {
		want[c.Column] = c.Weight
	}
	if !slices.Equal(got, want) || want[0] == 0 || want[3] != 0 {
		t.Errorf("weights %v, of the network %v", got, want)
	}
	tb.Ordered = false
	if got, err = tb.Weigh(Settings{}); err != nil || !slices.Equal(got, []float64{1, 1, 1, 1}) {
		t.Errorf("without an order: %v %v", got, err)
	}
}
