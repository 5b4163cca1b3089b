package archive

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/labels"
)

var peers = flag.String("peers", "", "folder to write an archive and expected.json into, for bench/peers/features/archive.py")

// The archive that DuckDB and pandas read, and what the queries of docs/how-to/archive.md must find in it. Each tool cuts
// for 40 minutes on a day of its own; its wear grows by 5 µm a minute, and its alarm is raised in minute 30.
func TestForPeers(t *testing.T) {
	dir := *peers
	if dir == "" {
		dir = t.TempDir()
	}
	p := newPlant(t)
	monday := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	var msgs []bus.Message
	var weeks, wear, share, minutes, falses [][]any
	for _, machine := range []string{lathe, drill} {
		alarms, wrong := 0, 0
		for tool := range 10 {
			name, began := fmt.Sprintf("T%02d", tool), monday.AddDate(0, 0, tool)
			unknown := tool % 4
			for minute := range 40 {
				at := began.Add(time.Duration(minute) * time.Minute)
				um := float64(5 * minute)
				r := event.Result{ID: fmt.Sprintf("%s/7/%d/g", machine, tool*40+minute), Group: "g", Machine: machine, Tool: name, Start: at, End: at.Add(time.Minute), Verdict: event.Healthy, Wear: &event.Wear{WearUM: um}}
				if minute < unknown {
					r.Verdict = event.Unknown
				}
				m := envelope.Event(bus.TopicResults, r.ID, machine, event.ResultType, r.End, event.JSON(r))
				msgs = append(msgs, m, p.features(t, machine, at))
				if minute == 7 { // sent again
					msgs = append(msgs, m)
				}
			}
			states := []event.AlertState{event.Raised}
			alarms++
			if tool%3 == 0 {
				states, wrong = append(states, event.MarkedFalse), wrong+1
			}
			if tool == 4 {
				states = append(states, event.MarkedFalse, event.UnmarkedFalse)
			}
			for i, state := range states {
				at := began.Add(30*time.Minute + time.Duration(i)*time.Second)
				a := event.Alert{ID: fmt.Sprintf("%s/7/%d/%s", machine, tool, state), Machine: machine, Tool: name, State: state, Incident: machine + name, At: at, Since: at}
				msgs = append(msgs, envelope.Event(bus.TopicAlerts, a.ID, machine, event.AlertType, at, event.JSON(a)))
			}
			label := event.Label{Machine: machine, Tool: name, At: began.Add(40 * time.Minute), State: "worn", By: "anna", Given: began.Add(time.Hour)}
			label.ID = label.NewLabelID()
			msgs = append(msgs, labels.Message(label))
			wear, minutes = append(wear, []any{machine, name, 195}), append(minutes, []any{machine, name, 10})
			share = append(share, []any{machine, began.Format(dayForm), float64(unknown) / 40})
		}
		weeks = append(weeks, []any{machine, "2026-11-02", 7}, []any{machine, "2026-11-09", 3})
		falses = append(falses, []any{machine, alarms, wrong})
	}
	p.send(t, msgs...)
	r := run1(t, p.config(filepath.Join(dir, "archive")))
	if r.Rows["features"] != 800 || r.Rows["results"] != 820 || r.Rows["labels"] != 20 || r.Merged == 0 {
		t.Errorf("%+v", r)
	}
	text, err := json.Marshal(map[string]any{"queries": [][][]any{weeks, wear, falses, share, minutes}, "features": 800})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "expected.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}
