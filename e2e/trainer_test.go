//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A training run is killed fifty times at random moments and started again. It keeps the states
// of half-trained networks after every epoch. At every moment the model's file is whole, and
// either the old or the new model. The new model equals, byte by byte, the model of a run that
// was not killed.
func TestTrainerResumes(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("tool,rms,power,temper,vb_max_um\n")
	for tool := range 6 {
		for s := range 80 {
			um := 5 * float64(s)
			fmt.Fprintf(&b, "T%d,%.3f,%.3f,%.3f,%v\n", tool, 1+um/200+0.05*rng.NormFloat64(), 5+um/100+0.2*rng.NormFloat64(), rng.Float64(), um)
		}
	}
	put(t, filepath.Join(dir, "t.csv"), b.String())
	put(t, filepath.Join(dir, "train.yaml"), "network:\n  hidden: [8]\n  pretrain: {epochs: 5}\n  fine_tune: {epochs: 12}\nevaluate: {by_tool: \"off\"}\n")
	fit := func(to string, more ...string) []string {
		return append([]string{"fit", "--config", filepath.Join(dir, "train.yaml"), "--table", filepath.Join(dir, "t.csv"), "--quiet", "--checkpoint-every", "0s", "--model", filepath.Join(dir, to)}, more...)
	}
	began := time.Now()
	run(t, "trainer", fit("want.flank")...)
	took := time.Since(began) // moments are drawn from the time that a whole run takes here
	want := read(t, filepath.Join(dir, "want.flank"))
	wantCard := read(t, filepath.Join(dir, "want.report.html"))
	old := bytes.Replace(want, []byte(`"seed"`), []byte(`"sead"`), 1) // any other bytes do
	path := filepath.Join(dir, "m.flank")

	const kills = 50
	whole, within := 0, 0
	put(t, path, string(old))
	for killed := 0; killed < kills; {
		p := start(t, "trainer", fit("m.flank")...)
		ended := make(chan error, 1)
		go func() { ended <- p.cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, &p.stderr)
			}
			if got := read(t, path); !bytes.Equal(got, want) {
				t.Fatalf("after %d kills the model differs from the model of a run that was not killed", killed)
			}
			card := read(t, filepath.Join(dir, "m.report.html"))
			if !bytes.Equal(card, wantCard) {
				t.Fatal("the model card differs from the card of a run that was not killed")
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "m.checkpoint")); len(left) > 0 {
				t.Fatalf("left %v behind", left)
			}
			whole++
			put(t, path, string(old))
		case <-time.After(time.Duration(rng.IntN(int(took)))):
			_ = p.cmd.Process.Kill()
			<-ended
			killed++
			if halfway(t, filepath.Join(dir, "m.checkpoint")) {
				within++
			}
			if got := read(t, path); !bytes.Equal(got, old) && !bytes.Equal(got, want) {
				t.Fatalf("kill %d left a model of %d bytes that is neither the old nor the new one", killed, len(got))
			}
		}
	}
	// The last run goes on to the end.
	run(t, "trainer", fit("m.flank")...)
	if got := read(t, path); !bytes.Equal(got, want) {
		t.Fatal("the model differs from the model of a run that was not killed")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left %v behind", left)
	}
	if within == 0 {
		t.Error("no kill left a network half-way trained: epochs are too short for the test to say anything")
	}
	t.Logf("%d kills, %d with networks half-way, %d whole runs between them, %v", kills, within, whole, time.Since(began).Round(time.Second))
}

// halfway reports whether the folder holds the state of a half-trained network: a file with an S
// behind its checksum.
func halfway(t *testing.T, dir string) bool {
	paths, err := filepath.Glob(filepath.Join(dir, "*.network"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if b := read(t, path); len(b) > 32 && b[32] == 'S' {
			return true
		}
	}
	return false
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
