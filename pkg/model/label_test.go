package model

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// ofThree returns trained with the classes healthy, worn and broken: features
// that have grown little, by half, and to more than twice.
func ofThree(t testing.TB) *Model {
	m := trained(t)
	rng := rand.New(rand.NewPCG(5, 6))
	x := dbn.NewMatrix(120, m.Classifier.Columns())
	y := make([]int, x.Rows)
	for i := range x.Rows {
		y[i] = i % 3
		for j := range x.Cols {
			x.Row(i)[j] = float32(float64(y[i]) + 0.1*rng.NormFloat64())
		}
	}
	var err error
	m.Classifier, _, err = classify.Fit(context.Background(), x, y, nil, classify.Settings{
		Network: dbn.Settings{Hidden: []int{6}, Pretrain: dbn.PretrainSettings{Epochs: 3}, FineTune: dbn.FineTuneSettings{Epochs: 60}}, Seed: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Golden = nil
	s := m.Classifier.NewScorer()
	for i := range 6 {
		m.Golden = append(m.Golden, Golden{x.Row(i), slices.Clone(s.Posterior(x.Row(i)))})
	}
	m.Label = LabelRule{Classes: []LabelClass{{Name: "healthy"}, {Name: "worn", VBMaxUM: 150}, {Name: "broken", VBMaxUM: 300, States: []string{"broken"}}}}
	return m
}

// Every class but healthy is a fault of the tool, and the verdict says which.
func TestJudgeOfSeveralClasses(t *testing.T) {
	m := ofThree(t)
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = Decode(b); err != nil {
		t.Fatal(err)
	}
	if got := m.ClassNames(); !slices.Equal(got, []string{"healthy", "worn", "broken"}) {
		t.Errorf("classes %q", got)
	}
	j := m.NewJudge()
	var ref Reference
	for i, step := range []struct {
		grown   float32
		outcome Outcome
		class   string
	}{{1, Learning, ""}, {1, Learning, ""}, {1, Healthy, "healthy"}, {2, Faulty, "worn"}, {3, Faulty, "broken"}} {
		v := j.Judge(cutting(step.grown), &ref, nil)
		if v.Outcome != step.outcome || v.Class != step.class || v.Outcome == Faulty != (v.Score >= 0.5) {
			t.Errorf("window %d: %s, class %q, score %v; want %s, %q", i, v.Outcome, v.Class, v.Score, step.outcome, step.class)
		}
	}
}

// A file that names no classes is read as ever.
func TestClassesWithoutNames(t *testing.T) {
	m := trained(t)
	j := m.NewJudge()
	var ref Reference
	for range 2 {
		j.Judge(cutting(1), &ref, nil)
	}
	if v := j.Judge(cutting(2), &ref, nil); v.Outcome != Faulty || v.Class != "faulty" {
		t.Errorf("%s, class %q", v.Outcome, v.Class)
	}
	b, err := m.Encode()
	if err != nil || strings.Contains(string(b), `"classes"`) {
		t.Errorf("classes are written where there is nothing to say, %v", err)
	}
	m = ofThree(t)
	m.Label = LabelRule{VBMaxUM: 300}
	if b, err = m.Encode(); err != nil {
		t.Fatal(err)
	}
	if m, err = Decode(b); err != nil || !slices.Equal(m.ClassNames(), []string{"healthy", "faulty", "faulty 2"}) {
		t.Errorf("%q, %v", m.ClassNames(), err)
	}
}

func TestClassesThatCannotBe(t *testing.T) {
	for want, classes := range map[string][]LabelClass{
		"classifier of 3 classes, the label rule names 2":    {{Name: "healthy"}, {Name: "worn"}},
		`label: the first class is "new": must be "healthy"`: {{Name: "new"}, {Name: "worn"}, {Name: "broken"}},
		`label: two classes are named "worn"`:                {{Name: "healthy"}, {Name: "worn"}, {Name: "worn"}},
		`label: a class has no name`:                         {{Name: "healthy"}, {Name: ""}, {Name: "worn"}},
	} {
		m := ofThree(t)
		good, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		m.Label.Classes = classes
		if _, err := m.Encode(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		sections, err := readSections(good[16:], 3)
		if err != nil {
			t.Fatal(err)
		}
		var f manifest
		if err := json.Unmarshal(sections[sectionManifest], &f); err != nil {
			t.Fatal(err)
		}
		f.Label.Classes = classes
		if sections[sectionManifest], err = json.Marshal(f); err != nil {
			t.Fatal(err)
		}
		if _, err := fromSections(sections); !errors.Is(err, errFileDamaged) || !strings.Contains(err.Error(), want) {
			t.Errorf("read: %v, want %s", err, want)
		}
	}
}
