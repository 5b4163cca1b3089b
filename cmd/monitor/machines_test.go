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
	"github.com/flank-tcm/flank/internal/testkit/await"
)

// A machine is renamed while no monitor runs: the monitor that starts retires it, and its memory is in the file that the command named.
func TestRenameAgain(t *testing.T) {
	cfg, out, command, config := plantOf(t, "")
	t.Setenv("TMPDIR", t.TempDir())
	stop := startMonitor(t, config)
	l := layout(t, "force")
	for seq, v := range []float32{10, 10, 20, 20} {
		if err := out.Send(t.Context(), []bus.Message{windowMessage(t, l, uint64(seq), v)}); err != nil {
			t.Fatal(err)
		}
	}
	id := awaitAlert(t, cfg, event.Raised).Incident
	stop()
	defer func(was time.Duration) { answerWait = was }(answerWait)
	answerWait = time.Millisecond // none answers
	const lathe, turner = "acme/spore/bay2/line1/lathe", "acme/spore/bay2/line2/turner"
	_, err := command("machines rename lathe " + turner)
	if err == nil {
		t.Fatal("renamed without a monitor")
	}
	again := regexp.MustCompile(`machines rename` + regexp.QuoteMeta(config) + ` (` + lathe + ` ` + turner + ` --records \S+)\n?$`).FindStringSubmatch(err.Error())
	if again == nil {
		t.Fatal(err)
	}
	answerWait = 10 * time.Second
	defer startMonitor(t, config)()
	await.Until(t, "it has carried the retirement out", func() bool {
		records, err := history.RecordsOf(t.Context(), cfg, lathe)
		if err != nil {
			t.Fatal(err)
		}
		return len(records) == 0
	})
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

// The machine stays as it is if its new name is another group's or none that an ingester can have, and while its ingester runs.
func TestRenameRefused(t *testing.T) {
	cfg, out, command := onShift(t, "")
	if err := out.Send(t.Context(), []bus.Message{windowMessage(t, layout(t, "force"), 0, 10)}); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the machine is known", func() bool {
		all, err := history.RecordsOf(t.Context(), cfg, "acme/spore/bay2/line1/lathe")
		return err != nil || len(all) > 0
	})
	const taken = "acme/spore/bay2/line1/new"
	if err := out.Send(t.Context(), []bus.Message{{Topic: bus.TopicState, Key: "centre\x1f" + taken, Route: taken, Value: []byte(`{"version":3,"machine":"` + taken + `"}`)}}); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{
		taken: "windows of " + taken + " came before (to group centre)", "new": "windows of " + taken + " came before (to group centre)",
		"Turner": `"acme/spore/bay2/line1/Turner": write enterprise/site/area/line/machine in a-z, 0-9, - and _`, "acme/turner": "write enterprise/site/area/line/machine",
	} {
		if _, err := command("machines rename lathe " + to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", to, err)
		}
	}
	t.Cleanup(func() { quietFor = 0 })
	quietFor = time.Hour
	if _, err := command("machines rename lathe turner"); err == nil || !strings.Contains(err.Error(), "its ingester still runs: stop it first") {
		t.Error(err)
	}
	quietFor = 0
	if got, err := command("machines ls"); err != nil || !strings.Contains(got, "lathe") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := command("show lathe"); err == nil || !strings.Contains(err.Error(), "lathe never had an alarm") {
		t.Error(err)
	}
	if got, err := command("machines rename lathe turner"); err != nil || strings.Contains(got, "retired") || !strings.Contains(got, "is acme/spore/bay2/line1/turner now") {
		t.Errorf("%q, %v", got, err)
	}
}
