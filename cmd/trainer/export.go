package main

import (
	"fmt"
	"io"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config/atomicfile"
	"github.com/flank-tcm/flank/internal/train/export"
	"github.com/flank-tcm/flank/pkg/model"
)

type exportCommand struct {
	ONNX        onnxCommand        `cmd:"" name:"onnx" help:"Write the classifier as an ONNX model, encoding and costs included, for any ONNX runtime." example:"trainer export onnx turning.flank --out turning.onnx"`
	Safetensors safetensorsCommand `cmd:"" name:"safetensors" help:"Write weights, encoding, costs and golden vectors as safetensors, for NumPy, PyTorch and others." example:"trainer export safetensors turning.flank"`
}

type onnxCommand struct{ exportFlags }

// Run writes a model as ONNX.
func (f *onnxCommand) Run(out cli.Output) error {
	return f.export("onnx", export.ONNX, out.Stdout)
}

type safetensorsCommand struct{ exportFlags }

// Run writes a model as safetensors.
func (f *safetensorsCommand) Run(out cli.Output) error {
	return f.export("safetensors", export.Safetensors, out.Stdout)
}

type exportFlags struct {
	cli.ModelFile
	Output string `name:"out" placeholder:"FILE" help:"Where to write (default: the model's name with another ending)."`
}

// export writes the model with write, to a file with the given ending.
func (f *exportFlags) export(ending string, write func(*model.Model) ([]byte, error), stdout io.Writer) error {
	m, err := model.Load(f.Model)
	if err != nil {
		return err
	}
	if err := m.CheckClassifier(); err != nil {
		return err
	}
	b, err := write(m)
	if err != nil {
		return err
	}
	path := f.Output
	if path == "" {
		path = nextTo(f.Model, "."+ending)
	}
	if err := atomicfile.Write(path, b); err != nil {
		return fmt.Errorf("--out %s: %w", path, err)
	}
	fmt.Fprintf(stdout, "%s: %s of %d features, relative to the reference (%s) of the tool; %.1f kB\n", path, m.ID(), m.Classifier.Columns(), m.Reference.Describe(), float64(len(b))/1000)
	if m.ByWear != nil {
		fmt.Fprintf(stdout, "note: %s decides by the estimated wear, cut at %.4g µm, and this is its classifier, which does not decide: use `monitor run` for its verdicts\n", m.ID(), m.ByWear.LimitUM)
	}
	return nil
}
