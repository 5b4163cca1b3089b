package card

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// madeUp returns rows of five tools that wear out, one that never does, and
// scores that know it well enough.
func madeUp() HeldOut {
	rng := rand.New(rand.NewPCG(7, 8))
	var h HeldOut
	for tool := range 6 {
		n := 70 + 12*tool
		for i := range n {
			worn := tool != 3 && i > n*3/4
			wear := float64(i) / float64(n)
			if tool == 3 {
				wear /= 2
			}
			p := 1 / (1 + math.Exp(-(12*(wear-0.77) + 0.8*rng.NormFloat64())))
			p = math.Round(p*1e6) / 1e6 // the same on every CPU
			h.Class = append(h.Class, map[bool]int{true: 1}[worn])
			h.Faulty = append(h.Faulty, p)
			h.Score = append(h.Score, math.Round(1e6*p*0.6/(p*0.6+(1-p)*0.4))/1e6)
			h.Group = append(h.Group, fmt.Sprintf("T%02d", tool+1))
		}
	}
	return h
}

// The plots are kept as golden files, which a browser shows; all are sound XML
// with a title and a description.
func TestDrawings(t *testing.T) {
	r := fixedReport(t)
	r.Held = madeUp()
	r.Landscape = NewLandscape(r.Held.Faulty, Positives(r.Held.Class))
	r.Fit.Costs.Kept = 0.41
	curve := func(from, to float64) []float64 {
		y := make([]float64, 50)
		for i := range y {
			y[i] = math.Round(1e6*(to+(from-to)*math.Exp(-float64(i)/12))) / 1e6
		}
		return y
	}
	r.Fit.History = &dbn.History{Loss: curve(0.7, 0.02), Pretrain: []dbn.LayerHistory{{ReconstructionError: curve(0.9, 0.3)}, {ReconstructionError: curve(0.5, 0.11)}}}
	ds := r.drawings()
	var names []string
	for _, d := range ds {
		names = append(names, d.name)
		golden.Check(t, filepath.Join("card", d.name+".svg"), string(d.svg))
		elements := make(map[string]int)
		for dec := xml.NewDecoder(bytes.NewReader(d.svg)); ; {
			tok, err := dec.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", d.name, err)
			}
			if e, ok := tok.(xml.StartElement); ok {
				elements[e.Name.Local]++
			}
		}
		if elements["title"] != 1 || elements["desc"] != 1 || elements["path"]+elements["circle"] == 0 || strings.Contains(string(d.svg), "NaN") {
			t.Errorf("%s: %v", d.name, elements)
		}
	}
	want := []string{"roc", "precision-recall", "calibration", "costs", "fine-tuning", "pre-training", "tools", "lives", "stability"}
	if !slices.Equal(names, want) {
		t.Errorf("drawings %v, want %v", names, want)
	}
	card, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		if !bytes.Contains(card, d.svg) {
			t.Errorf("the card does not show %s", d.name)
		}
	}
}

// Without faulty rows, tools or curves the drawings that need them are missing.
func TestDrawingsThatCannotBe(t *testing.T) {
	r := fixedReport(t)
	r.Held = HeldOut{Class: []int{0, 0}, Faulty: []float64{0.1, 0.2}, Score: []float64{0.1, 0.2}, Group: []string{"a", "a"}}
	r.Pooled, r.Landscape, r.Fit.Weights, r.Fit.History = nil, nil, &classify.Weights{Off: "why"}, &dbn.History{Loss: []float64{1}}
	if ds := r.drawings(); len(ds) != 0 {
		t.Errorf("%d drawings", len(ds))
	}
	if text, err := r.HTML(); err != nil || bytes.Contains(text, []byte("<svg")) {
		t.Error("the card shows drawings that are not there")
	}
}

// Curves of very many rows have few points, the ends among them, and leave out
// no more than a thousandth of a class.
func TestCurvesOfManyRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	var h HeldOut
	for i := range 5 * drawnWhole {
		class := i % 50 / 49
		h.Class = append(h.Class, class)
		h.Faulty = append(h.Faulty, min(max(0.5+0.2*float64(class)+0.3*rng.NormFloat64(), 0), 1))
	}
	positive := Positives(h.Class)
	points, all := h.points(positive)
	end := points[len(points)-1]
	if len(points) > 2*drawnSteps+2 || !math.IsInf(points[0].Threshold, 1) || end.TP != all.faulty || end.FP != all.healthy {
		t.Errorf("%d points, from %v to %v of %v", len(points), points[0], end, all)
	}
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		if tp, fp := b.TP-a.TP, b.FP-a.FP; b.Threshold > 0 && b.Threshold < 1 && (tp > all.faulty/drawnSteps+1 || fp > all.healthy/drawnSteps+1) {
			t.Fatalf("%d faulty and %d healthy rows between points %v and %v", tp, fp, a, b)
		}
	}
	few := HeldOut{Class: h.Class[:drawnWhole], Faulty: h.Faulty[:drawnWhole]}
	if points, _ := few.points(Positives(few.Class)); len(points) != len(score.OperatingPoints(few.Faulty, Positives(few.Class))) {
		t.Errorf("%d points of few rows", len(points))
	}
}

func TestHeldOutDecisionsAreThoseOfTheScores(t *testing.T) {
	h := HeldOut{Class: []int{0, 0, 1, 1}, Score: []float64{0.1, 0.5, 0.49, 0.9}}
	if m := h.decided(); m[0][1] != 1 || m[1][0] != 1 || m[1][1] != 1 {
		t.Errorf("%v", m)
	}
	c := classify.CostVector{0.75, 0} // decides for the second class above 0.2
	if c.Score([]float64{0.7, 0.3}) < 0.5 || c.Score([]float64{0.9, 0.1}) >= 0.5 {
		t.Error("scores do not follow costs")
	}
}

// A drawing of some tools alone says so.
func TestDrawingsOfManyTools(t *testing.T) {
	r := fixedReport(t)
	r.Tools = nil
	var groups []classify.GroupScores
	first := &FirstDay{Sensor: "F_c", Limit: 2}
	for i := range mostDots + 1 {
		name := fmt.Sprintf("T%d", i+1)
		groups = append(groups, classify.GroupScores{Group: name, Summary: *r.Pooled})
		first.Lives = append(first.Lives, FirstDayLife{Tool: name, Levels: []float64{0.1, 0.2}})
	}
	r.SetByTool(&classify.Validation{Pooled: *r.Pooled, Groups: groups}, "leave-one-out", len(groups))
	for want, svg := range map[string]string{
		"Each tool while it was held out: the first 60 of 61 tools":           string(r.dots()),
		"F_c as a factor of a tool's first windows: the first 24 of 61 lives": string(first.plot().SVG()),
	} {
		if !strings.Contains(html.UnescapeString(svg), ">"+want+"<") {
			t.Errorf("no title %q", want)
		}
	}
}
