package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// rowsOf makes rows of features by lines of "group class value value …".
func rowsOf(columns []string, lines ...string) rowTable {
	t := rowTable{Table: table.New(columns), classes: []string{"healthy", "faulty"}}
	for _, line := range lines {
		cells := strings.Fields(line)
		r := table.Row{Tool: cells[0], VBMaxUM: math.NaN()}
		fmt.Sscan(cells[1], &r.Class)
		for _, c := range cells[2:] {
			v := float32(math.NaN())
			if c != "-" {
				fmt.Sscan(c, &v)
			}
			r.Features = append(r.Features, v)
		}
		t.Append(r)
		t.group = append(t.group, cells[0])
	}
	return t
}

func TestChecksInWords(t *testing.T) {
	rows := rowsOf([]string{"a", "b", "c", "d"},
		"T1 0 1 5 - 2",
		"T1 0 2 5 - 3",
		"T2 1 2 5 - 3", // a copy of T1's, with the other label
		"T2 1 4 5 - 1e16",
		"T2 0 5 5 - -")
	if got, want := rows.balance(), "5 windows of 2 tools: 3 healthy, 2 faulty, 1 to 1.5 healthy; 1 tools have some"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got := strings.Join(append(rows.columnWarnings(), rows.copyWarnings()...), "\n")
	for _, want := range []string{
		"1 of 4 features have no value in any window and say nothing: c",
		"1 of 4 features have the same value in all windows and say nothing: b",
		"1 of 4 features have values of 1e+15 and more", "leave such cells empty: d",
		"1 windows are exact copies of windows of another tool (first: T1 and T2)",
		"1 windows are exact copies of others with the other label (first: of T1 and T2)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if fine := rowsOf([]string{"a", "b"}, "T1 0 1 2", "T2 1 2 3"); len(fine.columnWarnings())+len(fine.copyWarnings()) > 0 {
		t.Error("rows that are fine are warned of")
	}
}

// Alarms of tools that wear out, wear out unseen, ring early and ring for
// nothing.
func TestAlarms(t *testing.T) {
	m := &model.Model{Window: window.DefaultSpec}
	var lines []string
	var score []float64
	life := func(tool, classes, decisions string) {
		for i, c := range classes {
			lines = append(lines, fmt.Sprintf("%s %c 1 2", tool, c))
			score = append(score, float64(decisions[i]-'0')/10)
		}
	}
	life("caught", "00000111", "00000059")
	life("missed", "00000111", "00000044")
	life("early", "00000111", "08500777")
	life("never", "00000000", "00650000")
	rows := rowsOf([]string{"a", "b"}, lines...)
	r := &examined{Evaluation: &card.Evaluation{Tools: rows.tools()}, score: score}
	r.alarms(alarm.Settings{K: 2, N: 3}, m, rows)
	want := []card.ToolAlarm{{Tool: "caught", Judged: 8, Worn: 6, Alarm: 8}, {Tool: "missed", Judged: 8, Worn: 6, Alarm: 0}, {Tool: "early", Judged: 8, Worn: 6, Alarm: 3}, {Tool: "never", Judged: 8, Worn: 0, Alarm: 4}}
	a := r.Alarms
	if !slices.Equal(a.Tools, want) || a.Worn != 3 || a.Caught != 1 || a.Early != 2 || a.MedianDelay != 2 {
		t.Errorf("%+v", a)
	}
	if perHour := float64(a.EarlyPerHour); math.Abs(perHour-2/(23./3600)) > 1e-9 {
		t.Errorf("%v early alarms per hour", perHour)
	}
	for threshold, want := range map[float64][4]int{ // the first alarm of each tool
		0.4: {8, 8, 3, 4}, 0.5: {8, 0, 3, 4}, 0.6: {0, 0, 7, 0}, 1: {},
	} {
		r := &examined{Evaluation: &card.Evaluation{Tools: rows.tools()}, score: score}
		r.alarms(alarm.Settings{K: 2, N: 3, Threshold: threshold}, m, rows)
		var got [4]int
		for i, tool := range r.Alarms.Tools {
			got[i] = tool.Alarm
		}
		if got != want || r.Alarms.Threshold != threshold {
			t.Errorf("threshold %v: alarms in windows %v, want %v; the report has %v", threshold, got, want, r.Alarms.Threshold)
		}
	}
}
