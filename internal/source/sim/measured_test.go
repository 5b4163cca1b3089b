package sim

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/recorded"
)

// shares are the times, in units of a tool's time to 300 µm, at which curves are
// compared, and measuredMedian what the median of the measured tools has there.
var (
	shares         = []float64{0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.1}
	measuredMedian = []float64{51, 97, 164, 224, 260, 300, 337}
)

// The curve of the mean tool, and the median of many drawn, follow the measured
// median.
func TestCurveOfMedian(t *testing.T) {
	middle := curve{runIn: 60, knee: 50}
	for i, v := range shares {
		if got := middle.flank(v); math.Abs(got-measuredMedian[i]) > 11 {
			t.Errorf("mean tool: %.1f µm at %v of its time to 300 µm, measured %v", got, v, measuredMedian[i])
		}
		var drawn []float64
		for seed := range uint64(500) {
			c := newCurve(Worn, rand.New(rand.NewPCG(seed, 5)))
			drawn = append(drawn, c.flank(v))
		}
		if got := medianOf(drawn); math.Abs(got-measuredMedian[i]) > 11 {
			t.Errorf("median of 500 tools: %.1f µm at %v of their time to 300 µm, measured %v", got, v, measuredMedian[i])
		}
	}
}

// The calibration, from the measured curves:
//
//	FLANK_DATA=… go test -v -run TestRecordedMeasuredTools ./internal/source/sim
func TestRecordedMeasuredTools(t *testing.T) {
	root := recorded.Folder(t)
	tools := slices.Concat(readUCB(t, filepath.Join(root, "wear-curves", "ucb_milling_vb.csv")), readQIT(t, filepath.Join(root, "wear-curves", "qit_cemc_tool_wear.csv")))
	at := make([][]float64, len(shares))
	used := 0
	for _, w := range tools {
		limit, ok := w.reaches(LimitUM)
		if !ok {
			continue
		}
		used++
		for i, v := range shares {
			if um, ok := w.at(v * limit); ok {
				at[i] = append(at[i], um)
			}
		}
	}
	if used != 19 {
		t.Errorf("%d tools reach %d µm, 19 did", used, LimitUM)
	}
	var median []float64
	for i, v := range shares {
		median = append(median, medianOf(at[i]))
		slices.Sort(at[i])
		t.Logf("at %.2f of the time to %d µm: median %.0f µm, middle half %.0f to %.0f, %d tools", v, LimitUM, median[i], at[i][len(at[i])/4], at[i][len(at[i])*3/4], len(at[i]))
		if math.Abs(median[i]-measuredMedian[i]) > 1 {
			t.Errorf("the median at %v is %.1f µm, not %v", v, median[i], measuredMedian[i])
		}
	}
	// The fit: A and C in steps of 5 µm.
	best, runIn, knee := math.Inf(1), 0., 0.
	for a := 0.; a <= 120; a += 5 {
		for c := 0.; c <= 120; c += 5 {
			fit := curve{runIn: a, knee: c}
			var sum float64
			for i, v := range shares {
				sum += (fit.flank(v) - median[i]) * (fit.flank(v) - median[i])
			}
			if sum < best {
				best, runIn, knee = sum, a, c
			}
		}
	}
	t.Logf("best fit: A = %v µm, C = %v µm, off by %.1f µm RMS", runIn, knee, math.Sqrt(best/float64(len(shares))))
	if runIn != 60 || knee != 50 {
		t.Errorf("best fit: A = %v µm and C = %v µm, the simulator has 60 and 50", runIn, knee)
	}
}

// measured is the wear of one tool over its time of cutting, in any unit.
type measured struct{ time, um []float64 }

// add appends a measurement; a tool begins without wear.
func (m *measured) add(time, um float64) {
	if len(m.time) == 0 && time > 0 {
		m.time, m.um = append(m.time, 0), append(m.um, 0)
	}
	m.time, m.um = append(m.time, time), append(m.um, um)
}

// reaches returns when the wear first is um.
func (m *measured) reaches(um float64) (time float64, ok bool) {
	for i := 1; i < len(m.um); i++ {
		if m.um[i] >= um {
			share := (um - m.um[i-1]) / (m.um[i] - m.um[i-1])
			return m.time[i-1] + share*(m.time[i]-m.time[i-1]), true
		}
	}
	return 0, false
}

// at returns the wear at a time, linear between measurements.
func (m *measured) at(time float64) (um float64, ok bool) {
	for i := 1; i < len(m.time); i++ {
		if time <= m.time[i] {
			return m.um[i-1] + (time-m.time[i-1])/(m.time[i]-m.time[i-1])*(m.um[i]-m.um[i-1]), true
		}
	}
	return 0, false
}

func readUCB(t *testing.T, path string) (tools []measured) {
	last := ""
	for _, row := range rows(t, path)[1:] {
		if row[0] != last {
			tools, last = append(tools, measured{}), row[0]
		}
		if row[2] != "" {
			tools[len(tools)-1].add(number(t, row[3]), 1000*number(t, row[2]))
		}
	}
	return tools
}

// readQIT reads the maximum flank wear of the four side edges, by cycle.
func readQIT(t *testing.T, path string) []measured {
	tools := make([]measured, 4)
	for _, row := range rows(t, path) {
		cycle, err := strconv.ParseFloat(strings.TrimSpace(row[0]), 64)
		if err != nil {
			continue // header
		}
		for e := range tools {
			if cell := strings.TrimSpace(row[1+3*e]); cell != "" {
				tools[e].add(cycle, 1000*number(t, cell))
			}
		}
	}
	return tools
}

func rows(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	var all [][]string
	for {
		row, err := r.Read()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", path, err))
		}
		all = append(all, row)
	}
}

func number(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func medianOf(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
