package main

import (
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/model"
)

// A tool that was in before --since is left out, by name and number, of fit, features and evaluate, and labels check says why its windows count for
// nothing. Before, its line of wear began with 0 µm at the first window read, and its reference was taken of a worn tool.
func TestToolsCutOffAtTheFront(t *testing.T) {
	t.Parallel()
	broker, dir := onKafka(t)
	const wants = "acme/lathe/T1 (up to 20 missing)"
	kafka := " --wear wear.csv --kafka " + broker + " --since " + shift.Add(20*time.Second).Format(time.RFC3339)
	for name, tc := range map[string]struct {
		args  string
		wants []string
	}{
		"fit":      {"fit --config train.yaml --model cut.flank", []string{"90 windows cut", "left out: 10 of tools without their beginning"}},
		"features": {"features --config train.yaml --out cut.parquet", []string{"90 windows of 3 tools"}},
		"labels":   {"labels check --config train.yaml", []string{"the beginning of its tool was not read"}},
	} {
		out, log, err := dir.trainer(t, tc.args+kafka)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, text := range append(tc.wants, wants) {
			if !strings.Contains(out+log, text) {
				t.Errorf("%s: want %q\n%s%s", name, text, out, log)
			}
		}
	}
	m, err := model.Load(dir.path("cut.flank"))
	if err != nil {
		t.Fatal(err)
	}
	want := model.CutTool{Machine: "acme/lathe", Tool: "T1", Missing: 20}
	if cut := m.Provenance.Data[0].CutOff; len(cut) != 1 || cut[0] != want || !strings.Contains(m.Provenance.Data[0].String(), "1 tools without their beginning") {
		t.Errorf("lineage %+v", m.Provenance.Data)
	}
	out, log, err := dir.trainer(t, "evaluate --model cut.flank"+kafka)
	if err != nil || !strings.Contains(out+log, wants) {
		t.Errorf("evaluate: %v\n%s%s", err, out, log)
	}
	if _, _, err := dir.trainer(t, "fit --config train.yaml"+kafka+" --until "+shift.Add(30*time.Second).Format(time.RFC3339)); err == nil || !strings.Contains(err.Error(), "no window is left") {
		t.Errorf("nothing left: %v", err)
	}
}

// A tool that a person declared new at a monitor is another tool for training, though windows name no life: before, they were one.
func TestDeclaredNewAtTheMonitor(t *testing.T) {
	t.Parallel()
	broker, dir := onKafka(t)
	out, err := bus.NewProducer(bus.Config{Brokers: []string{broker}, ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	a := event.Alert{ID: "a", Machine: "acme/lathe", Tool: "T1", ToolLife: "c1", State: event.ToolIsNew, At: shift.Add(20 * time.Second)}
	if err := out.Send(t.Context(), []bus.Message{envelope.Event(bus.TopicAlerts, a.ID, a.Machine, event.AlertType, a.At, event.JSON(a))}); err != nil {
		t.Fatal(err)
	}
	said, log, err := dir.trainer(t, "features --config train.yaml --out cut.parquet --wear wear.csv --kafka "+broker)
	if err != nil || !strings.Contains(said+log, "120 windows of 5 tools") {
		t.Errorf("%v: %s%s", err, said, log)
	}
}
