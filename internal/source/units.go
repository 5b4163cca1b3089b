package source

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

var signs = regexp.MustCompile(`[^\p{L}\p{N}]+`)

// PlainName returns the name of a column without its unit, case and signs, for comparison.
func PlainName(column string) string {
	name, _, _ := table.SplitUnit(column)
	return signs.ReplaceAllString(strings.ToLower(name), "")
}

// FindName returns the position of a name among the names of a file. It is the same
// name, or else the only one that becomes it without a unit in brackets: "a" is "a [g]".
// It is -1 if there is none, or if several become it.
func FindName(name string, names []string) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	found := withUnit(name, names)
	if len(found) != 1 {
		return -1
	}
	return found[0]
}

// withUnit returns the positions of the names that become name without their unit.
func withUnit(name string, names []string) (found []int) {
	for i, n := range names {
		if base, _, ok := table.SplitUnit(n); ok && base == name {
			found = append(found, i)
		}
	}
	return found
}

// findTracks returns the tracks that a layout's `from` names, at most one of each group.
// It is the name or the path of a track, see FindName.
func findTracks(from string, infos []track.Info) (found []int) {
	groups := make(map[string]bool)
	for i, info := range infos {
		if info.Name == from || info.Path() == from {
			found = append(found, i)
		}
	}
	if len(found) > 0 {
		return found
	}
	for i, info := range infos {
		name, _, ok := table.SplitUnit(info.Name)
		path, _, _ := table.SplitUnit(info.Path())
		if !ok || name != from && path != from {
			continue
		}
		if groups[info.Group] {
			return nil // which of them is meant?
		}
		groups[info.Group] = true
		found = append(found, i)
	}
	return found
}

// checkUnit reports a column whose name ends in another unit than the channel has that is
// read from it as it is.
func checkUnit(ch signal.Channel, o signal.Origin, column string) error {
	name, unit, ok := table.SplitUnit(column)
	if !ok || name != o.From || ch.Unit == "" || o.Gain != 1 || o.Offset != 0 || table.UnitKey(unit) == table.UnitKey(ch.Unit) {
		return nil
	}
	return fmt.Errorf("column %q is in %s, but the layout says %s for channel %q: correct `unit`, or write `from: %q` with the `gain` that makes %s of %s",
		column, unit, ch.Unit, ch.Name, column, ch.Unit, unit)
}

// warnOfUnits warns of columns, one for each channel, that end in a unit where the layout has none: another recording may be in another unit.
func warnOfUnits(path string, layout *signal.Layout, rec signal.Recording, columns []string, warn func(text string)) {
	var stated []string
	for i, ch := range layout.Channels() {
		o := rec.Origin(ch.Name)
		if name, _, ok := table.SplitUnit(columns[i]); ok && name == o.From && ch.Unit == "" && o.Gain == 1 && o.Offset == 0 {
			stated = append(stated, columns[i])
		}
	}
	if len(stated) > 0 && warn != nil {
		warn(fmt.Sprintf("%s: columns state a unit, and the layout none: %s: check that all recordings are in it, and write it as `unit` of the channel, so that others are refused", path, listed(stated, 3)))
	}
}

// factUnits are the units that columns of facts are read in.
var factUnits = map[string]string{"vb_mean_um": "µm", "vb_max_um": "µm", "vb_mean_mm": "mm", "vb_max_mm": "mm", "speed": "rev/min"}

// checkFactUnit reports a column of facts whose name ends in another unit than the one
// that it is read in.
func checkFactUnit(key, column string) error {
	_, unit, ok := table.SplitUnit(column)
	want := factUnits[key]
	if !ok || want == "" || table.UnitKey(want) == table.UnitKey(unit) {
		return nil
	}
	return fmt.Errorf("column %q is in %s, but `recording: %s` is read in %s: convert it, and correct its name", column, unit, key, want)
}
