package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

type inspectCommand struct {
	cli.ModelFile
	cli.Listing
}

// Run prints what is in a model file.
func (f *inspectCommand) Run(out cli.Output) error {
	m, err := model.Load(f.Model)
	if err != nil {
		return err
	}
	if f.IsJSON() {
		return cli.PrintJSON(out.Stdout, inspection(m))
	}
	fmt.Fprintf(out.Stdout, "%s\n", m)
	if info, err := os.Stat(f.Model); err == nil {
		fmt.Fprintf(out.Stdout, "file        %s, %.1f kB\n", f.Model, float64(info.Size())/1000)
	}
	printFacts(out, facts(m)[1:])
	fmt.Fprintf(out.Stdout, "checks      checksum and %d golden vectors hold\n", len(m.Golden)+len(m.GoldenWear))
	return nil
}

// inspection returns the facts of a model for programs.
func inspection(m *model.Model) any {
	var layers []int
	var costs []float64
	if m.Classifier != nil {
		layers, costs = m.Classifier.Network().Layers(), m.Classifier.Costs()
	}
	return struct {
		ID          string              `json:"id"`
		Layout      string              `json:"layout"`
		Fingerprint string              `json:"fingerprint"`
		Window      string              `json:"window"`
		Features    []string            `json:"features"`
		Reference   model.ReferenceSpec `json:"reference"`
		Cycle       *cycle.Model        `json:"cycle,omitempty"`
		Gate        *model.Gate         `json:"gate,omitempty"`
		Label       model.LabelRule     `json:"label"`
		Classes     []string            `json:"classes"`
		Layers      []int               `json:"layers,omitempty"`
		Costs       []float64           `json:"costs,omitempty"`
		FirstDay    *model.FirstDay     `json:"first_day,omitempty"`
		Provenance  model.Provenance    `json:"provenance"`
		Scores      json.RawMessage     `json:"scores,omitempty"`
	}{
		m.ID(), m.Layout.Name(), m.Layout.Fingerprint(), m.Window.Length.String(), m.NewJudge().FeatureNames(), m.Reference, m.Cycle, m.Gate, m.Label, m.ClassNames(),
		layers, costs, m.FirstDay, m.Provenance, m.Scores,
	}
}
