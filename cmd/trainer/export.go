package main

import (
	"cmp"
	"fmt"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/train/export"
	"github.com/flank-tcm/flank/pkg/model"
)

type exportCommand struct {
	Format string `arg:"" enum:"onnx,safetensors" help:"onnx: the classifier, encoding and costs included, for any ONNX runtime. safetensors: weights, encoding, costs and golden vectors, for NumPy, PyTorch and others."`
	cli.ModelFile
	besideModel
}

// besideModel names a file that is made of a model.
type besideModel struct {
	Out string `placeholder:"FILE" help:"Where to write (default: the model's name with another ending)."`
}

// exporters are the forms in which a model is exported.
var exporters = map[string]func(*model.Model) []byte{"onnx": export.ONNX, "safetensors": export.Safetensors}

// Run writes the model in another form.
func (f *exportCommand) Run(out cli.Output) error {
	m, err := model.Load(f.Model)
	if err != nil {
		return err
	}
	if err := m.CheckClassifier(); err != nil {
		return err
	}
	b := exporters[f.Format](m)
	path := cmp.Or(f.Out, nextTo(f.Model, "."+f.Format))
	if err := config.WriteFile(path, b); err != nil {
		return fmt.Errorf("--out %s: %w", path, err)
	}
	fmt.Fprintf(out.Stdout, "%s: %s of %d features, relative to the reference (%s) of the tool; %.1f kB\n", path, m.ID(), m.Classifier.Columns(), m.Reference.Describe(), float64(len(b))/1000)
	if m.ByWear != nil {
		fmt.Fprintf(out.Stdout, "note: %s decides by the estimated wear, cut at %.4g µm, and this is its classifier, which does not decide: use `monitor run` for its verdicts\n", m.ID(), m.ByWear.LimitUM)
	}
	return nil
}
