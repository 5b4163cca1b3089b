package simulation

import (
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Models are what is deployed.
type Models struct {
	One []*model.Model // of one value
	Two []*model.Model // of two values: the first, one of the same features, one of other features

	full   *model.Model            // its features are the ones of all models of one value, but for the longer windows
	long   *model.Model            // of windows of two seconds
	judges map[*model.Model]*judge // for the oracle
}

// judge is a model as the oracle uses it.
type judge struct {
	*model.Judge
	print  string
	covers map[*window.Form]bool
}

// NewModels makes small models. They are not safe for concurrent use.
func NewModels(t machinetest.TB) *Models {
	m := &Models{
		One: []*model.Model{machinetest.OneValue(t), machinetest.OneValue(t), machinetest.OneValue(t), machinetest.WithWear(t), machinetest.OneValue(t), machinetest.Unsure(t), machinetest.Cycling(t)},
		Two: []*model.Model{machinetest.TwoValues(t), machinetest.TwoValues(t), machinetest.TwoValues(t)},
	}
	machinetest.MakeSets(t, m.One[5], 0.5, 0.2) // windows of worn tools are ambiguous
	m.long, m.full = m.One[4], m.One[6]
	m.long.Window.Length = 2 * time.Second
	for _, of := range [][]*model.Model{m.One, m.Two} {
		of[1].Provenance.Seed = 7
		of[2].Reference.Windows = 3
		for _, changed := range of {
			machinetest.MeasureDrift(changed)
			if _, err := changed.Encode(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

// judge returns a model for the oracle.
func (m *Models) judge(of *model.Model) *judge {
	j := m.judges[of]
	if j == nil {
		if m.judges == nil {
			m.judges = make(map[*model.Model]*judge)
		}
		j = &judge{
			Judge: of.NewJudge(), covers: make(map[*window.Form]bool),
			print: fmt.Sprint(of.Layout.Fingerprint(), of.Window, of.Reference.Windows, of.Features.Version, of.Cycle != nil), // no two differ in more than that
		}
		m.judges[of] = j
	}
	return j
}

// takes reports whether a model can judge features of a form.
func (j *judge) takes(m *model.Model, form *window.Form) bool {
	yes, known := j.covers[form]
	if !known {
		yes = m.Covers(form) == nil
		j.covers[form] = yes
	}
	return yes
}

// layouts returns the fingerprints of all layouts.
func (m *Models) layouts() []string {
	return []string{m.One[0].Layout.Fingerprint(), m.Two[0].Layout.Fingerprint()}
}
