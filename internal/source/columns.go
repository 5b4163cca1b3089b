package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/pkg/signal"
)

// findColumns finds the cells of the channels and of what rec names, and notes
// the columns that neither names.
func (t *tableSource) findColumns(rec signal.Recording) error {
	header := t.rows.names()
	used := make([]bool, len(header))
	find := func(what, name string) (int, error) {
		i := FindName(name, header)
		if i < 0 {
			return 0, fmt.Errorf("source: %s: no column %q, which the layout names as %s: %s", t.name, name, what, t.remedy(name, rec))
		}
		if j := slices.Index(header[i+1:], header[i]); j >= 0 {
			return 0, fmt.Errorf("source: %s: columns %d and %d are both named %q, %s of the layout: rename or remove one", t.name, i+1, i+1+j+1, header[i], what)
		}
		used[i] = true
		return i, nil
	}
	var names []string
	for _, ch := range t.layout.Channels() {
		origin := rec.Origin(ch.Name)
		what := "a channel"
		if origin.From != ch.Name {
			what = fmt.Sprintf("`from` of channel %q", ch.Name)
		}
		i, err := find(what, origin.From)
		if err != nil {
			return err
		}
		if err := checkUnit(ch, origin, header[i]); err != nil {
			return fmt.Errorf("source: %s: %w", t.name, err)
		}
		names = append(names, header[i])
		t.columns = append(t.columns, tableColumn{i, calibration{origin.Gain, origin.Offset, missingOf(rec.Missing)}})
	}
	warnOfUnits(t.name, t.layout, rec, names, t.opt.Warn)
	for _, f := range []factColumn{
		{"time", rec.Time, &t.rec.time},
		{"date", rec.Date, &t.rec.date},
		{"machine", rec.Machine, &t.rec.machine},
		{"tool", rec.Tool, &t.rec.tool},
		{"hole", rec.Hole, &t.rec.hole},
		{"speed", rec.Speed, &t.rec.speed},
		wearColumn("vb_mean", rec.VBMean, rec.VBMeanMM, &t.rec.vbMean),
		wearColumn("vb_max", rec.VBMax, rec.VBMaxMM, &t.rec.vbMax),
		{"state", rec.State, &t.rec.state},
	} {
		*f.to = -1
		if f.name == "" {
			continue
		}
		i, err := find("`recording: "+f.key+"`", f.name)
		if err != nil {
			return err
		}
		if err := checkFactUnit(f.key, header[i]); err != nil {
			return fmt.Errorf("source: %s: %w", t.name, err)
		}
		*f.to = i
	}
	t.rec.vbMeanMM, t.rec.vbMaxMM = rec.VBMeanMM != "", rec.VBMaxMM != ""
	for i, name := range header {
		if !used[i] {
			t.stats.Ignored = append(t.stats.Ignored, name)
		}
	}
	return nil
}

// factColumn is a column that a key of `recording` names.
type factColumn struct {
	key, name string
	to        *int
}

// wearColumn returns the column of a wear, which a layout names by its key in µm or in mm.
func wearColumn(key, um, mm string, to *int) factColumn {
	if mm != "" {
		return factColumn{key + "_mm", mm, to}
	}
	return factColumn{key + "_um", um, to}
}

// remedy says what to do about a column that is not in the header.
func (t *tableSource) remedy(name string, rec signal.Recording) string {
	header := t.rows.names()
	if rec.Header == "none" {
		return fmt.Sprintf("without a header columns are numbered from 1 to %d: set `from` of the channel to its number", len(header))
	}
	if allNumbers(header) && !isNumber(name) {
		return "the first line holds numbers and no names: set `header: none` under the layout's `recording` and `from` of each channel to the number of its column, 1 and up"
	}
	if len(header) == 1 {
		return fmt.Sprintf("the header is one name, %.60q: separate columns by comma, semicolon or tab, or set `separator` under the layout's `recording`", header[0])
	}
	var several []string
	for _, i := range withUnit(name, header) {
		several = append(several, header[i])
	}
	if len(several) > 1 {
		return fmt.Sprintf("it may be %s: set `from` of the channel to one of them", someOf(several))
	}
	if near := nearest(name, header); len(near) > 0 {
		return "correct the layout or the header; the nearest names there are " + strings.Join(near, ", ")
	}
	return fmt.Sprintf("the header has %s, the layout %s: correct one of them, or give the file that belongs to this layout", listed(header, 2), listed(layoutNames(t.layout, rec), 2))
}

// layoutNames returns the names under which a layout looks for its channels.
func layoutNames(l *signal.Layout, rec signal.Recording) (names []string) {
	for _, ch := range l.Channels() {
		names = append(names, rec.Origin(ch.Name).From)
	}
	return names
}

// nearest returns up to three names that are like name, quoted, the most like
// it first: at most every third letter differs, without regard to case.
func nearest(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var cs []candidate
	want := []rune(strings.ToLower(name))
	if len(want) > 64 {
		return nil
	}
	for _, n := range names {
		have := []rune(strings.ToLower(n))
		if len(have) == 0 || len(have) > 2*len(want) {
			continue
		}
		if d := distance(want, have); 3*d <= max(len(want), 3) {
			cs = append(cs, candidate{n, d})
		}
	}
	slices.SortStableFunc(cs, func(a, b candidate) int { return a.distance - b.distance })
	var near []string
	for _, c := range cs[:min(3, len(cs))] {
		near = append(near, fmt.Sprintf("%q", c.name))
	}
	return near
}

// distance returns the Levenshtein distance: how many letters must be put in,
// taken out or replaced to make b of a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			d := diagonal
			if x != y {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
