package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/train"
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
		return printJSON(out.Stdout, inspection(m))
	}
	fmt.Fprintf(out.Stdout, "%s\n", m)
	if info, err := os.Stat(f.Model); err == nil {
		fmt.Fprintf(out.Stdout, "file        %s, %.1f kB\n", f.Model, float64(info.Size())/1000)
	}
	fmt.Fprintf(out.Stdout, "layout      %s, fingerprint %s\n", m.Layout.Name(), m.Layout.Fingerprint())
	fmt.Fprintf(out.Stdout, "label       %s\n", train.RuleOf(m))
	fmt.Fprintf(out.Stdout, "cutting     %s\n", m.Cutting())
	fmt.Fprintf(out.Stdout, "network     %s\n", card.Shape(m))
	c, classes := m.Classifier.Costs(), m.ClassNames()
	for k, name := range classes {
		fmt.Fprintf(out.Stdout, "%s%.4f of %s", map[bool]string{true: "costs       ", false: ", "}[k == 0], c[k], name)
	}
	if len(c) == 2 {
		fmt.Fprintf(out.Stdout, ": %s from P(%s) > %.4f on", classes[1], classes[1], c.Threshold())
	}
	fmt.Fprintln(out.Stdout)
	if g := m.Classifier.Guard(); g != nil {
		fmt.Fprintf(out.Stdout, "guard       %d experts bound the network to %.3g log odds around their vote, of the sensors %s; %s\n", len(g.Experts()), g.Bound(), card.Listed(g.Sensors()),
			map[bool]string{true: "steps of their gains are taken out", false: "steps of their gains are not looked for"}[g.LooksForSteps()])
	} else {
		fmt.Fprintln(out.Stdout, "guard       none: one sensor that reads wrong can turn the verdict")
	}
	for _, d := range m.Provenance.Data {
		fmt.Fprintf(out.Stdout, "trained on  %s, %d windows, SHA-256 %.16s…\n", d.Name, d.Windows, d.SHA256)
	}
	fmt.Fprintf(out.Stdout, "seed        %d, by %s\n", m.Provenance.Seed, m.Provenance.Program)
	if v := card.HeadlineOf(m).Verdict; v != nil {
		fmt.Fprintf(out.Stdout, "verdict     %s\n", v.Short())
	}
	if scores, of := card.Scores(m); scores != "" {
		fmt.Fprintf(out.Stdout, "scores      %s\n            of %s\n", scores, of)
	}
	unknown, wear := card.Notes(m)
	if unknown != "" {
		fmt.Fprintf(out.Stdout, "unknown     %s\n", strings.TrimPrefix(unknown, "unknown: "))
	}
	if wear != "" {
		fmt.Fprintf(out.Stdout, "wear        %s\n", strings.TrimLeft(strings.TrimPrefix(wear, "flank wear"), ": "))
	}
	if d := m.Drift; d != nil {
		fmt.Fprintf(out.Stdout, "drift       against the references of %d tools\n", d.Tools)
	}
	fmt.Fprintf(out.Stdout, "checks      checksum and %d golden vectors hold\n", len(m.Golden)+len(m.GoldenWear))
	return nil
}

// inspection returns the facts of a model for programs.
func inspection(m *model.Model) any {
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
		Layers      []int               `json:"layers"`
		Costs       []float64           `json:"costs"`
		Provenance  model.Provenance    `json:"provenance"`
		Scores      json.RawMessage     `json:"scores,omitempty"`
	}{
		m.ID(), m.Layout.Name(), m.Layout.Fingerprint(), m.Window.Length.String(), m.NewJudge().FeatureNames(), m.Reference, m.Cycle, m.Gate, m.Label, m.ClassNames(),
		m.Classifier.Network().Layers(), m.Classifier.Costs(), m.Provenance, m.Scores,
	}
}

func printJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
