//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Machines in mode edge are retrained from the features that their gateways sent. The model is the same as from features
// and windows, of which one gateway sends every second one.
func TestEdgeMachineIsRetrained(t *testing.T) {
	b, cfg := startServer(t, 2)
	defer b.Kill()
	dir := t.TempDir()
	machines := map[string]int{"acme/spore/bay2/line1/sampled": 2, "acme/spore/bay2/line1/edge": 0} // one window in so many is sent, too
	for name, sample := range machines {
		at := filepath.Base(name)
		run(t, "ingest", "run", "--config", write(t, dir, at+".yaml", fmt.Sprintf("machine: %s\nmode: edge\nedge: {sample: %d}\nkafka: {brokers: [%q]}\nspool: spool-%s\nsource: {kind: simulate, speed: 0, tools: 3, tool_life: 20s}\n",
			name, sample, b.Addr(), at)))
	}
	wear := "machine,tool,time,vb_um\n"
	for tool, end := range toolsOn(t, cfg) {
		wear += fmt.Sprintf("%s,%s,%s,420\n", tool[0], tool[1], end.Format(time.RFC3339))
	}
	config, labels := write(t, dir, "train.yaml", "reference: {windows: 4, mode: kind}\nnetwork: {hidden: [4], pretrain: {epochs: 2}, fine_tune: {epochs: 8}}\ncosts: {folds: 3}\nevaluate: {by_tool: \"off\", random_split: false}\n"), write(t, dir, "wear.csv", wear)
	fit := func(to string, more ...string) []model.DataSet {
		path := filepath.Join(dir, to)
		run(t, "trainer", append([]string{"fit", "--quiet", "--config", config, "--wear", labels, "--model", path, "--kafka", b.Addr()}, more...)...)
		m, err := model.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return m.Provenance.Data
	}
	bare := func(of string) []byte {
		m, err := model.Load(filepath.Join(dir, of))
		if err != nil {
			t.Fatal(err)
		}
		m.Provenance.Data = nil
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	auto, features := fit("auto.flank"), fit("features.flank", "--from", "features")
	if topics := auto[0].Topics(); len(topics) != 2 || topics[0].Windows+topics[1].Windows != auto[0].Windows || len(auto[0].Machines) != 2 {
		t.Errorf("trained on %s", auto[0])
	}
	if features[0].Name != bus.TopicFeatures || features[0].Windows != auto[0].Windows {
		t.Errorf("from features trained on %s, else on %s", features[0], auto[0])
	}
	if !bytes.Equal(bare("auto.flank"), bare("features.flank")) {
		t.Error("features give another model than windows")
	}
	out := run(t, "trainer", "labels", "check", "--quiet", "--config", config, "--wear", labels, "--kafka", b.Addr())
	if !strings.Contains(out, "acme/spore/bay2/line1/edge/") {
		t.Errorf("labels check:\n%s", out)
	}
}

// toolsOn returns when the last window of each tool of a machine ended, by the features on Kafka.
func toolsOn(t *testing.T, cfg bus.Config) map[[2]string]time.Time {
	t.Helper()
	form, err := window.NewForm(signal.GunDrill(), window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ends := make(map[[2]string]time.Time)
	var f window.Features
	for p := range 2 {
		err := bus.ReadRange(t.Context(), cfg, bus.TopicFeatures, p, bus.Range{}, func(msg bus.Message) error {
			err := envelope.OpenFeatures(form, &msg, &f)
			ends[[2]string{f.Machine, f.Tool}] = f.End()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(ends) != 6 {
		t.Fatalf("tools: %q", slices.Collect(maps.Keys(ends)))
	}
	return ends
}
