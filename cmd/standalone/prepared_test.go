package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// The prepared model is of the history and the settings of today. Where FLANK_KERNEL asks for the kernels that every
// processor has, it is trained again, and must come out byte for byte.
func TestPreparedModel(t *testing.T) {
	job := drilledHistory("local/site/area/line/drill", "standalone")
	job.Log = zerolog.Nop()
	if os.Getenv("FLANK_KERNEL") == "go" {
		if kernel.Family() != "go" {
			t.Fatal(kernel.Err())
		}
		m, _, err := train.Run(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		file, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if golden.Update() {
			if err := os.WriteFile("prepared.flank", file, 0o600); err != nil {
				t.Fatal(err)
			}
			prepared = file
		}
		if !bytes.Equal(file, prepared) {
			t.Errorf("training gives %s: `make prepared-model` writes it", m.ID())
		}
	}
	m, err := model.Decode(prepared)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(&job.Config)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer // without the blanks of the file
	if err := json.Compact(&got, m.Provenance.Config); err != nil {
		t.Fatal(err)
	}
	if m.Layout.Match(signal.GunDrill()) != nil || m.Features.Version != signal.FeatureVersion || !bytes.Equal(got.Bytes(), settings) || len(prepared) > 1<<20 {
		t.Errorf("%d bytes, features of version %d, settings %s, want %s: `make prepared-model` writes the model again", len(prepared), m.Features.Version, &got, settings)
	}
	if !slices.EqualFunc(m.Provenance.Data, job.Inputs, func(d model.DataSet, in train.Input) bool { return d.Name == in.Name && d.SHA256 == in.SHA256 }) {
		t.Errorf("it learnt from %v: `make prepared-model` writes it again", m.Provenance.Data)
	}
}

// The first start puts the prepared model in the data directory, and the next one finds it there. --fresh trains one.
func TestGivenModel(t *testing.T) {
	p := plant{flags: flags{DataDir: t.TempDir()}, stderr: io.Discard}
	for start, newcomer := range []bool{true, false} {
		p.newcomer = false
		m, err := p.givenModel()
		if err != nil || m == nil || p.newcomer != newcomer {
			t.Fatalf("start %d: %v, %v", start, m, err)
		}
		if file, err := os.ReadFile(p.modelPath()); err != nil || !bytes.Equal(file, prepared) {
			t.Errorf("start %d: another model is kept: %v", start, err)
		}
	}
	p.Fresh = true
	if m, err := p.givenModel(); m != nil || err != nil || !p.newcomer {
		t.Errorf("--fresh: %v, %v", m, err)
	}
	if err := run(t.Context(), []string{"--fresh", "--model", "m.flank"}, io.Discard, io.Discard); err == nil {
		t.Error("--fresh with --model")
	}
}
