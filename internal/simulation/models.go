package simulation

import (
	"fmt"

	"github.com/flank-tcm/flank/internal/machine/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
)

// Models are what is deployed.
type Models struct {
	One []*model.Model // of one value: the first, one of the same features, one of other features, one with wear
	Two []*model.Model // of two values: the first, one of the same features, one of other features

	judges map[*model.Model]*judge // for the oracle
}

// judge is a model as the oracle uses it.
type judge struct {
	*model.Judge
	print string
}

// NewModels makes small models. They are not safe for concurrent use.
func NewModels(t machinetest.TB) *Models {
	m := &Models{
		One: []*model.Model{machinetest.OneValue(t), machinetest.OneValue(t), machinetest.OneValue(t), machinetest.WithWear(t)},
		Two: []*model.Model{machinetest.TwoValues(t), machinetest.TwoValues(t), machinetest.TwoValues(t)},
	}
	for _, of := range [][]*model.Model{m.One, m.Two} {
		of[1].Provenance.Seed = 7
		of[2].Reference.Windows = 3
		for _, changed := range of {
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
		j = &judge{Judge: of.NewJudge(), print: fmt.Sprint(of.Layout.Fingerprint(), of.Reference.Windows, of.Features.Version)} // no two differ in more than that
		m.judges[of] = j
	}
	return j
}

// layouts returns the fingerprints of all layouts.
func (m *Models) layouts() []string {
	return []string{m.One[0].Layout.Fingerprint(), m.Two[0].Layout.Fingerprint()}
}

// of returns the models of the layout of a model.
func (m *Models) of(id string) []*model.Model {
	for _, two := range m.Two {
		if two.ID() == id {
			return m.Two
		}
	}
	return m.One
}
