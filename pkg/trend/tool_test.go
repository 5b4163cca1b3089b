package trend

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// plain takes the root of the wear as its only feature, without error.
func plain(median int) *Model {
	return &Model{
		Center: []float64{10, 0}, Scale: []float64{10, 1}, Weights: []float64{10, 0}, Bias: 10,
		Median: median, Low: -1, High: 2, MostUM: 900, Distance: 100, LimitUM: 300,
	}
}

func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(*Model){
		"weights missing":   func(m *Model) { m.Weights = m.Weights[:1] },
		"even median":       func(m *Model) { m.Median = 4 },
		"median too long":   func(m *Model) { m.Median = mostMedian + 2 },
		"interval reversed": func(m *Model) { m.Low = 3 },
		"NaN in bounds":     func(m *Model) { m.Low = math.NaN() },
		"scale of zero":     func(m *Model) { m.Scale[0] = 0 },
		"infinite weight":   func(m *Model) { m.Weights[1] = math.Inf(1) },
		"negative limit":    func(m *Model) { m.LimitUM = -1 },
	} {
		m := plain(3)
		if err := m.Check(1); err != nil {
			t.Fatal(err)
		}
		if spoil(m); m.Check(1) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What is published never falls, holds its own interval, and does not depend on
// a restart after any window.
func TestNeverFallsAndOutlivesARestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := plain(rapid.SampledFrom([]int{1, 3, 9}).Draw(t, "median"))
		roots := rapid.SliceOfN(rapid.Float64Range(-3, 35), 1, 200).Draw(t, "roots")
		perHole := rapid.IntRange(0, 4).Draw(t, "windows of a hole")
		restart := rapid.IntRange(0, len(roots)-1).Draw(t, "restart")
		var tool, other Tool
		last := Estimate{}
		for i, root := range roots {
			hole := ""
			if perHole > 0 {
				hole = strconv.Itoa(i / perHole)
			}
			x := []float32{float32(root)}
			e := tool.Observe(m, x, nil, hole)
			if i == restart {
				text, err := json.Marshal(&other)
				if err != nil {
					t.Fatal(err)
				}
				other = Tool{}
				if err := json.Unmarshal(text, &other); err != nil {
					t.Fatal(err)
				}
				if err := other.Check(); err != nil {
					t.Fatal(err)
				}
			}
			if f := other.Observe(m, x, nil, hole); f.Known() != e.Known() {
				t.Fatalf("window %d after a restart: %+v, without: %+v", i, f, e)
			} else if f.Known() {
				for _, p := range [][2]float64{{e.UM, f.UM}, {e.Left, f.Left}, {e.LowLeft, f.LowLeft}, {e.HighLeft, f.HighLeft}} {
					if math.Float64bits(p[0]) != math.Float64bits(p[1]) {
						t.Fatalf("window %d after a restart: %+v, without: %+v", i, f, e)
					}
				}
			}
			if !e.Known() {
				if root*root <= m.MostUM {
					t.Fatalf("window %d: root %v is unknown", i, root)
				}
				continue
			}
			if e.UM < last.UM || e.LowUM < last.LowUM || e.HighUM < last.HighUM {
				t.Fatalf("window %d: %+v after %+v", i, e, last)
			}
			if e.LowUM > e.UM || e.UM > e.HighUM {
				t.Fatalf("window %d: %+v", i, e)
			}
			if e.Left == e.Left && !(0 <= e.LowLeft && e.LowLeft <= e.Left && !(e.HighLeft < e.Left)) {
				t.Fatalf("window %d: %+v", i, e)
			}
			last = e
		}
		if err := tool.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// A tool that wears by 10 µm a hole has 30 holes.
func TestHolesLeft(t *testing.T) {
	m := plain(1)
	var tool Tool
	for hole := 1; hole <= 31; hole++ {
		var e Estimate
		for range 7 {
			e = tool.Observe(m, []float32{float32(math.Sqrt(10 * float64(hole)))}, nil, strconv.Itoa(hole))
		}
		switch left := float64(30 - hole); {
		case left <= 0:
			if e.Left != 0 {
				t.Errorf("hole %d: %v left at the limit", hole, e.Left)
			}
		case hole < 15: // further than it has cut
			if e.Left == e.Left {
				t.Errorf("hole %d: %v left, want unknown", hole, e.Left)
			}
		case math.Abs(e.Left-left) > 1e-3 || !e.Holes:
			t.Errorf("hole %d: %v left, want %v", hole, e.Left, left)
		case !(e.LowLeft < left):
			t.Errorf("hole %d: interval from %v", hole, e.LowLeft)
		}
	}
}

func TestUnknown(t *testing.T) {
	m := plain(1)
	var tool Tool
	tool.Observe(m, []float32{12}, nil, "")
	before, _ := json.Marshal(&tool)
	for name, x := range map[string]float32{"beyond the wear learnt from": 31, "infinite": float32(math.Inf(1))} {
		if e := tool.Observe(m, []float32{x}, nil, ""); e.Known() || e.Left == e.Left {
			t.Errorf("%s: %+v", name, e)
		}
	}
	tool.Windows -= 2
	if after, _ := json.Marshal(&tool); string(after) != string(before) {
		t.Errorf("unknown windows moved %s to %s", before, after)
	}
	m.Distance = 0.1
	if _, known := m.Root([]float32{25}, nil); known {
		t.Error("a window unlike all others is known")
	}
	if root, known := m.Root([]float32{float32(math.NaN())}, nil); !known || root != 10 {
		t.Errorf("a missing feature: root %v, %v; want its mean", root, known)
	}
}

func TestChangeTool(t *testing.T) {
	tool := Tool{Name: "A", Root: 4, Windows: 7, Recent: []float64{4}, Points: []point{{1, 4}}}
	same := tool
	if tool.ChangeTool("A"); !reflect.DeepEqual(tool, same) {
		t.Errorf("the same tool: %+v", tool)
	}
	if tool.ChangeTool("B"); tool.Name != "B" || tool.Root != 0 || tool.Windows != 0 || len(tool.Recent)+len(tool.Points) != 0 {
		t.Errorf("another tool: %+v", tool)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	m := plain(31)
	var tool Tool
	x := []float32{3}
	for range 200 {
		tool.Observe(m, x, nil, "")
	}
	if n := testing.AllocsPerRun(500, func() { x[0] += 0.01; tool.Observe(m, x, nil, "") }); n != 0 {
		t.Errorf("%v allocations for each window", n)
	}
}

// Of a tool that the model knows every other window of, all points stand at even counts: more than one in two go, and what is
// remembered outlives a restart. Points that change, change their number, by which monitors know that they have to be kept.
func TestPointsOfEvenWindows(t *testing.T) {
	for _, first := range []int{0, 1, 5} { // that many windows are known before
		m := plain(1)
		var tool Tool
		for i := range 2000 {
			root := math.Sqrt(float64(i) / 10)
			if i >= first && i%2 == 0 {
				root = 1000 // beyond the wear that was learnt from
			}
			before := slices.Clone(tool.Points)
			tool.Observe(m, []float32{float32(root)}, nil, "")
			if err := tool.Check(); err != nil {
				t.Fatalf("window %d: %v: %d points at a stride of %d", i+1, err, len(tool.Points), tool.Stride)
			}
			if len(before) == len(tool.Points) && !slices.Equal(before, tool.Points) {
				t.Errorf("window %d: %d points as before, and others", i+1, len(before))
			}
		}
		if len(tool.Points) < leastPoints {
			t.Errorf("%d points are left", len(tool.Points))
		}
	}
}
