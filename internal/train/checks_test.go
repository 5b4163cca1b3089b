package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
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
	r := &Evaluation{tools: rows.tools(), score: score}
	r.alarms(alarm.Settings{K: 2, N: 3}, m, rows)
	want := []ToolAlarm{{"caught", 8, 6, 8}, {"missed", 8, 6, 0}, {"early", 8, 6, 3}, {"never", 8, 0, 4}}
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
		r := &Evaluation{tools: rows.tools(), score: score}
		r.alarms(alarm.Settings{K: 2, N: 3, Threshold: threshold}, m, rows)
		var got [4]int
		for i, tool := range r.Alarms.Tools {
			got[i] = tool.Alarm
		}
		if got != want || r.Alarms.Threshold != threshold {
			t.Errorf("threshold %v: alarms in windows %v, want %v; said to be %v", threshold, got, want, r.Alarms.Threshold)
		}
	}
}

// Every threshold within the plateau is within 0.01 of the best G-mean, the
// best is that of the exact sweep, and the landscape never exceeds it.
func TestLandscapeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(4, 60).Draw(t, "rows")
		p, y := make([]float64, n), make([]int, n)
		posterior := make([]float64, 0, 2*n)
		for i := range p {
			p[i] = float64(rapid.IntRange(1, 99).Draw(t, "p")) / 100
			y[i] = i % 2
			posterior = append(posterior, 1-p[i], p[i])
		}
		l := newLandscape(p, positives(y))
		_, r, err := classify.ChooseCosts(t.Context(), posterior, y, 2, classify.CostSettings{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Choices {
			if c.GMean > l.Best+1e-12 || c.Name == "exact" && c.GMean < l.Best-1e-12 {
				t.Fatalf("%s has a G-mean of %v, the landscape's best is %v", c.Name, c.GMean, l.Best)
			}
		}
		if most := slices.Max(l.GMean); most > l.Best+1e-12 {
			t.Fatalf("the landscape reaches %v beyond its best, %v", most, l.Best)
		}
		for i, at := range l.Threshold {
			if at >= l.Within[0] && at < l.Within[1] && l.GMean[i] < l.Best-0.01-1e-12 {
				t.Fatalf("threshold %v within %v: %v, best %v", at, l.Within, l.GMean[i], l.Best)
			}
		}
	})
}
