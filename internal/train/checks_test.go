package train

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
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
		"1 of 4 features have no value in any window and say nothing: c; check that their sensors record, or leave them out of the layout or the table",
		"1 of 4 features have the same value in all windows and say nothing: b; check their sensors, or leave",
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

// A state that contradicts the wear is counted and named with its line, on the console, the card and in `trainer labels check`.
func TestWearContradictsState(t *testing.T) {
	for state, want := range map[string]string{
		"healthy": `the first by wear.csv:3: the state is "healthy", but the wear is 420 µm, which the rule`,
		"worn":    "",
		"broken":  "",
	} {
		j := latheJob(t)
		j.Wear = nil
		for k, l := range lives {
			m := wear.Measurement{Tool: l.tool, VBMeanUM: math.NaN(), VBMaxUM: 40, State: "new", Where: fmt.Sprint("wear.csv:", k+2)}
			if k == 1 {
				m.VBMaxUM, m.State = 420, state
			}
			j.Wear = append(j.Wear, m)
		}
		labels, err := j.Labels(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		j.prepare()
		_, _, counts := mustRows(t, j)
		for where, got := range map[string]string{"labels": strings.Join(labels.Warnings, "\n"), "card": strings.Join(counts.Warnings(), "\n")} {
			if !strings.Contains(got, want) || strings.Contains(got, "contradicts") != (want != "") {
				t.Errorf("%s, %s: %q, want %q", state, where, got, want)
			}
		}
	}
}
