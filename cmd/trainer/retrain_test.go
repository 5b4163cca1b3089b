package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/labels"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// The commands of docs/how-to/retrain.md lead from labels that people gave on the page, after the windows had gone, to a
// model that judges. The key and the first champion are there.
func TestRetrainPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/how-to/retrain.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := bench(t, "train.yaml", drillYAML)
	p := newPlant(t)
	form, err := window.NewForm(signal.GunDrill(), window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ends := make(map[string]time.Time)
	drilled(t, drill, sim.Tools(1, 20*time.Second)[:4], envelope.Gateway, func(_ uint64, _, msg bus.Message) {
		p.send(t, msg)
		var f window.Features
		if err := envelope.OpenFeatures(form, &msg, &f); err != nil {
			t.Fatal(err)
		}
		if f.Tool != "" {
			ends[f.Tool] = f.End()
		}
	})
	var given []event.Label
	for _, tool := range slices.Sorted(maps.Keys(ends)) {
		um, end := 340.0, ends[tool]
		l := event.Label{Machine: drill, Tool: tool, At: end, WearUM: &um, By: "kim", Given: end.Add(time.Minute)}
		l.ID = l.NewLabelID()
		given = append(given, l)
	}
	cfg := bus.Config{Brokers: []string{p.addr}, ClientID: "test"}
	do := func(args string) {
		t.Helper()
		if out, log, err := dir.trainer(t, args); err != nil {
			t.Fatalf("%s: %v\n%s%s", args, err, out, log)
		}
	}
	say := func(some []event.Label) {
		t.Helper()
		if err := labels.Write(t.Context(), cfg, some, func(int) {}); err != nil {
			t.Fatal(err)
		}
	}
	say(given[:3])
	do("keys new --out anna")
	do("fit --quiet --config train.yaml --labels floor --model old.flank --kafka " + p.addr)
	old, err := model.Load(dir.path("old.flank"))
	if err != nil {
		t.Fatal(err)
	}
	do("publish old.flank --key anna.key --kafka " + p.addr)
	do("promote " + old.ID() + " --for acme/spore/bay2/** --key anna.key --kafka " + p.addr)
	say(given[3:])
	run := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			args := strings.NewReplacer("kafka1:9092", p.addr, "'", "", `"labels of November"`, "November", "\n", "").Replace(strings.TrimPrefix(line, "trainer "))
			if m, err := model.Load(dir.path("new.flank")); err == nil {
				args = strings.ReplaceAll(args, "ecs-dbn-353a0f32e1e4", m.ID())
			}
			do(args)
			run++
		}
	}
	m, err := model.Load(dir.path("new.flank"))
	if err != nil {
		t.Fatal(err)
	}
	do("relabel --quiet --model old.flank --labels floor --from features --out again.flank --kafka " + p.addr)
	for _, path := range []string{"old.relabelled.flank", "again.flank"} { // published as any other
		m, err := model.Load(dir.path(path))
		if err != nil || m.Provenance.Parent != old.ID() {
			t.Fatalf("%s: %v, %+v", path, err, m)
		}
		if r := card.HeadlineOf(m).Relabelled; r.Rows.LateTools != 1 || r.Rows.Skipped+r.Rows.Changed+r.Rows.Judged != 0 {
			t.Errorf("%s: %+v", path, r.Rows)
		}
		do("publish " + path + " --key anna.key --kafka " + p.addr)
	}
	keys, err := deploy.LoadKeys(false, dir.path("anna.pub"))
	if err != nil {
		t.Fatal(err)
	}
	topic := deploy.NewTopic(cfg, keys)
	if _, err := topic.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	set, _, err := topic.Set(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := set.Resolve(drill, m.Layout.Fingerprint()); run > 10 || !ok || d.Champion.ID() != m.ID() || m.Provenance.LabelsFrom["floor"] != len(ends) {
		t.Errorf("after %d commands %+v judges, labels from %v", run, d, m.Provenance.LabelsFrom)
	}
}
