package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/event/labels"
)

// remember lets a monitor's group remember a tool of a machine.
func (p *plant) remember(t *testing.T, machine, tool, life string) {
	t.Helper()
	key := event.StateKey{Group: "tcm-monitor", Machine: machine, Part: event.ToolState, Tool: tool}
	field := "life"
	if strings.HasPrefix(life, "c") { // of a command
		field = "declared"
	}
	p.send(t, bus.Message{Topic: bus.TopicState, Key: key.String(), Value: event.JSON(map[string]string{"tool": tool, field: life})})
}

// Labels are given, listed, corrected and revoked; what may be a mistake is refused without --anyway; and the audit has it all.
func TestLabelsOnKafka(t *testing.T) {
	t.Parallel()
	dir := bench(t, "wear.csv", "tool,hole,vb_mm,state\nT8,H1,0.1,\nT8,H2,0.2,worn\n")
	p := newPlant(t)
	p.remember(t, "acme/usk25", "T8", "2026")
	p.remember(t, "acme/usk26", "U1", "c77")
	p.send(t, bus.Message{Topic: bus.TopicLabels, Key: "x", Value: []byte("{}")})
	add := "labels add --by kim --machine acme/usk25 --tool T8 --kafka " + p.addr + " "
	var id string
	for _, tc := range []struct{ args, says, fails string }{
		{add + "--wear 0,34mm --at 2026-11-02T06:00:00Z --method microscope", "340 µm", ""},
		{add + "--wear 350um --at 2026-11-02T06:00:00Z", "350 µm", ""}, // a correction
		{add + "--wear 340um --at 2026-11-02T06:00:00Z --by lee", "", "350 µm by kim at 2026-11-02T06:00:00Z, says otherwise: 340 µm would take its place"},
		{add + "--state worn --at 2026-11-02T07:00:00Z", "worn", ""},
		{add + "--wear 100um --at 2026-11-02T08:00:00Z", "", "wear falls from 350 µm to 100 µm"},
		{add + "--state healthy --at 2026-11-02T07:00:30Z", "", "a tool that is worn is not healthy later"},
		{add + "--state healthy --at 2026-11-02T06:59:30Z --anyway", "healthy", ""},
		{add + "--state worn --at 2026-11-02T06:59:31Z", "", "it is healthy and worn at about the same time"},
		{add + "--wear 0.34", "", "say the unit, as in 0.34 mm or 340 µm"},
		{add + "--wear 340mm", "", "expected 0 to 10 mm"},
		{add + "--wear 0.34um --at 2026-11-02T05:00:00Z", "", "is it in mm?"},
		{add, "", "say how worn the tool was"},
		{"labels add --tool T8 --state worn --kafka " + p.addr, "", "--machine is missing: name the machine by its path"},
		{add + "--state worn --tool T9", "", "no monitor remembers tool T9 of acme/usk25; it has T8"},
		{add + "--state worn --machine acme/drill", "", "no monitor has seen machine acme/drill; monitors know acme/usk25, acme/usk26"},
		{add + "--state worn --machine acme/drill --anyway", "acme/drill", ""},
		{add + "--state worn --machine acme/usk26 --tool U1", "c77", ""},
		{"labels import wear.csv --kafka " + p.addr, "", "wear.csv:2: the row names no machine"},
		{"labels import wear.csv --by kim --machine acme/usk25 --kafka " + p.addr, "200 µm, worn", ""},
		{"labels import wear.csv --by kim --machine acme/usk25 --kafka " + p.addr, "200 µm, worn", ""},
		{"labels revoke L-222222222222 --reason x --kafka " + p.addr, "", "is not a label"},
		{"labels revoke ID --by lee --reason another --kafka " + p.addr, "revoked by lee: another", ""},
		{"labels revoke ID --by lee --reason again --kafka " + p.addr, "", "was revoked by lee before: another"},
	} {
		out, _, err := dir.trainer(t, strings.Replace(tc.args, "ID", id, 1))
		if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) || !strings.Contains(out, tc.says) {
			t.Fatalf("%s: %v, want %q; want %q in\n%s", tc.args, err, tc.fails, tc.says, out)
		}
		if strings.Contains(out, "350 µm") {
			id = strings.Fields(strings.SplitN(out, "\n", 2)[1])[0]
		}
	}
	for args, want := range map[string]int{"": 6, "--all": 7, "--machine acme/usk25": 4, "--machine usk25": 4, "--machine k25": 0} {
		out, stderr, err := dir.trainer(t, "labels ls -o json --kafka "+p.addr+" "+args)
		var all []event.Label
		if err != nil || json.Unmarshal([]byte(out), &all) != nil || len(all) != want || !strings.Contains(stderr, "1 messages of tcm.labels.v1 are not labels") {
			t.Fatalf("%s: %v, %d labels, want %d: %s%s", args, err, len(all), want, out, stderr)
		}
		for _, l := range all {
			if l.Machine == "acme/usk25" && l.Hole == "" && l.ToolLife != "2026" {
				t.Errorf("%+v is not of the tool that monitors saw last", l)
			}
		}
	}
	if _, stderr, _ := dir.trainer(t, "labels check --config train.yaml --data tools.csv --labels floor --kafka "+p.addr); !strings.Contains(stderr, "left out messages of tcm.labels.v1 that are not labels") {
		t.Errorf("a training says nothing of messages that are not labels: %s", stderr)
	}
	var done []string
	cfg := bus.Config{Brokers: []string{p.addr}, ClientID: "test"}
	if _, err := audit.Read(t.Context(), cfg, shift, func(a event.Audit) error {
		done = append(done, string(a.Action)+" "+a.Actor.Name+" "+a.Object)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(done, "; "); len(done) != 9 || !strings.HasPrefix(got, "add_label kim T8: 340 µm; ") || !strings.HasSuffix(got, "add_label kim 2 labels; revoke_label lee "+id) {
		t.Errorf("the audit has %s", got)
	}
	if all, _, err := labels.Read(t.Context(), cfg); err != nil || len(labels.Count(all)) != 6 {
		t.Errorf("%d labels, %v", len(all), err)
	}
}

// Import refuses a file that training could not join, or that has nothing: before, a person learnt of it weeks later.
func TestLabelsImportChecks(t *testing.T) {
	t.Parallel()
	dir := bench(t, "floor.csv", "tool,hole,vb_mm,state\n")
	p := newPlant(t)
	for name, tc := range map[string]struct{ rows, want string }{
		"a header alone":         {"tool,hole,vb_mm,state\n", "floor.csv: no row says how worn a tool was: write a row"},
		"intervals that overlap": {"tool,from,to,vb_um\nT8,2026-11-02T06:00:00Z,2026-11-02T07:00:00Z,100\nT9,2026-11-02T06:00:00Z,2026-11-02T07:00:00Z,100\nT8,2026-11-02T06:30:00Z,2026-11-02T08:00:00Z,120\n", "floor.csv:4"},
		"a hole and a time":      {"tool,hole,time,vb_um\nT8,,2026-11-02T06:00:00Z,100\nT8,H2,,120\n", "floor.csv:3"},
		"rows of no wear":        {"tool,hole,vb_mm,state\nT8,H1,,\n", "floor.csv: no row says"},
	} {
		if err := os.WriteFile(dir.path("floor.csv"), []byte(tc.rows), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := dir.trainer(t, "labels import floor.csv --anyway --machine acme/usk25 --kafka "+p.addr); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// An import of many labels shows how far it is, unless that is not wanted, and finds contradictions within the file.
func TestLabelsImportOfMany(t *testing.T) {
	t.Parallel()
	dir := bench(t, "floor.csv", "")
	p := newPlant(t)
	text := "tool,time,vb_um\n"
	for i := range 600 {
		text += fmt.Sprintf("T%d,%s,%d\n", i/2, shift.Add(time.Duration(i%2)*time.Hour).Format(time.RFC3339), 300-100*(i%2*(i/2)/299))
	}
	if err := os.WriteFile(dir.path("floor.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := "labels import floor.csv --machine acme/usk25 --kafka " + p.addr
	if _, _, err := dir.trainer(t, args); err == nil || !strings.Contains(err.Error(), "wear falls from 300 µm to 200 µm") {
		t.Errorf("%v", err)
	}
	for flag, want := range map[string]bool{"": true, " --quiet": false} {
		out, log, err := dir.trainer(t, args+" --anyway"+flag)
		if shown := strings.Contains(log, "looking for mistakes: 100%") && strings.Contains(log, "keeping labels: 100%"); err != nil || shown != want || strings.Count(out, "\n") != 601 {
			t.Errorf("%s: %v\n%s", flag, err, log)
		}
	}
}
