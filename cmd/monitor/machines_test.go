package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
)

// A machine is renamed while no monitor runs: the monitor that starts retires it, and its memory is in the file that the command named.
func TestRenameAgain(t *testing.T) {
	cfg, out, command := plantOf(t, "")
	t.Setenv("TMPDIR", t.TempDir())
	stop := startMonitor(t)
	l := layout(t, "force")
	for seq, v := range []float32{10, 10, 20, 20} {
		if err := out.Send(t.Context(), []bus.Message{windowMessage(t, l, uint64(seq), v)}); err != nil {
			t.Fatal(err)
		}
	}
	id := awaitAlert(t, cfg, event.Raised).Incident
	stop()
	defer func(was time.Duration) { answerWait = was }(answerWait)
	answerWait = time.Second
	const lathe, turner = "acme/spore/bay2/line1/lathe", "acme/spore/bay2/line2/turner"
	_, err := command("machines rename lathe " + turner)
	if err == nil {
		t.Fatal("renamed without a monitor")
	}
	again := regexp.MustCompile(`machines rename --config monitor.yaml (` + lathe + ` ` + turner + ` --records \S+)\n?$`).FindStringSubmatch(err.Error())
	if again == nil {
		t.Fatal(err)
	}
	answerWait = 10 * time.Second
	defer startMonitor(t)()
	for kept := true; kept; { // until it has carried the retirement out
		records, err := history.RecordsOf(t.Context(), cfg, lathe)
		if kept = len(records) > 0; err != nil {
			t.Fatal(err)
		}
	}
	if got, err := command("machines rename " + strings.Replace(again[1], "lathe", "other", 1)); err == nil || !strings.Contains(err.Error(), "not a file of") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := command("machines rename " + again[1]); err != nil || !strings.Contains(got, "renamed from "+lathe) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := command("ls"); err != nil || !strings.Contains(got, turner) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := command("machines rename turner " + lathe); err != nil {
		t.Error(err)
	}
	if got, err := command("mark-false " + id); err != nil || !strings.Contains(got, "lathe tool T1") {
		t.Errorf("%q, %v", got, err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Another group has judged windows of the new name: nothing is sent.
func TestRenameToATakenName(t *testing.T) {
	cfg, out, command := onShift(t, "")
	if err := out.Send(t.Context(), []bus.Message{windowMessage(t, layout(t, "force"), 0, 10)}); err != nil {
		t.Fatal(err)
	}
	for {
		if all, err := history.RecordsOf(t.Context(), cfg, "acme/spore/bay2/line1/lathe"); err != nil || len(all) > 0 {
			break
		}
	}
	if err := out.Send(t.Context(), []bus.Message{{Topic: bus.TopicState, Key: "centre\x1facme/new", Route: "acme/new", Value: []byte(`{"version":3,"machine":"acme/new"}`)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := command("machines rename lathe acme/new"); err == nil || !strings.Contains(err.Error(), "windows of acme/new came before (to group centre)") {
		t.Error(err)
	}
	if got, err := command("machines ls"); err != nil || !strings.Contains(got, "lathe") {
		t.Errorf("%q, %v", got, err)
	}
}
