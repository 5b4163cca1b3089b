package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

func signalOf(group, name string, rate float64) track.Info {
	return track.Info{Group: group, Name: name, Rate: rate}
}

func TestSplitUnit(t *testing.T) {
	for column, want := range map[string][2]string{
		"a [g]": {"a", "g"}, "Fx (N)": {"Fx", "N"}, " a[m/s²] ": {"a", "m/s²"}, "F (feed) [N]": {"F (feed)", "N"}, "x[:,1] [g]": {"x[:,1]", "g"},
		"a": {"a", ""}, "[g]": {"[g]", ""}, "a []": {"a []", ""}, "a [g] left": {"a [g] left", ""}, "a [g)": {"a [g)", ""}, "a ((N))": {"a ((N))", ""},
	} {
		if name, unit, ok := table.SplitUnit(column); name != want[0] || unit != want[1] || ok != (want[1] != "") {
			t.Errorf("%q is %q in %q, %v", column, name, unit, ok)
		}
	}
}

func TestUnitKey(t *testing.T) {
	for _, same := range [][]string{{"N·m", "Nm", "N m", "N*m"}, {"m/s²", "m/s^2", "m/s2"}, {"µm", "μm", "um", "micron"}, {"rpm", "rev/min", "1/min", "min-1", "U/min"}, {"s", "sec", "sec."}} {
		for _, u := range same {
			if table.UnitKey(u) != table.UnitKey(same[0]) {
				t.Errorf("%s is %q, %s is %q", u, table.UnitKey(u), same[0], table.UnitKey(same[0]))
			}
		}
	}
	for _, two := range [][2]string{{"mV", "MV"}, {"g", "m/s²"}, {"mm", "µm"}, {"N", "kN"}, {"s", "ms"}} {
		if table.UnitKey(two[0]) == table.UnitKey(two[1]) {
			t.Errorf("%s and %s are one unit", two[0], two[1])
		}
	}
}

// Columns that state a unit where the layout has none are named once for each file, in tables and other formats.
func TestUnitsThatTheLayoutLacks(t *testing.T) {
	const says = `f.csv: columns state a unit, and the layout none: "ax [mg]"%s: check that all recordings are in it, and write it as ` + "`unit` of the channel, so that others are refused"
	for name, tc := range map[string]struct {
		header string
		unit   string // of the layout
		from   signal.Origin
		want   string
	}{
		"none":            {"ax,ay", "", signal.Origin{From: "ax", Gain: 1}, ""},
		"one":             {"ax [mg],ay", "", signal.Origin{From: "ax", Gain: 1}, fmt.Sprintf(says, "")},
		"both":            {"ax [mg],ay (N)", "", signal.Origin{From: "ax", Gain: 1}, fmt.Sprintf(says, `, "ay (N)"`)},
		"in the layout":   {"ax [mg],ay [mg]", "mg", signal.Origin{From: "ax", Gain: 1}, ""},
		"with a gain":     {"ax [mg],ay", "", signal.Origin{From: "ax", Gain: 0.001}, ""},
		"the name has it": {"ax [mg],ay", "", signal.Origin{From: "ax [mg]", Gain: 1}, ""},
	} {
		l, err := signal.NewLayout("l", []signal.Channel{{Name: "ax", Kind: signal.Vibration, Rate: 1000, Unit: tc.unit}, {Name: "ay", Kind: signal.Vibration, Rate: 1000, Unit: tc.unit}})
		if err != nil {
			t.Fatal(err)
		}
		var m memory
		for _, column := range strings.Split(tc.header, ",") {
			m.add(track.Info{Name: column}, 1, 2)
		}
		rec := signal.Recording{Origins: map[string]signal.Origin{"ax": tc.from}}
		var said []string
		opt := tableOptions{Warn: func(text string) { said = append(said, text) }}
		if _, err := newText(strings.NewReader(tc.header+"\n1,2\n"), "f.csv", l, rec, opt); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := openTracks(&m, "f.csv", l, rec, opt); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := strings.Trim(tc.want+"\n"+tc.want, "\n")
		if got := strings.Join(said, "\n"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestFindTracks(t *testing.T) {
	infos := []track.Info{{Group: "H1", Name: "a [g]"}, {Group: "H1", Name: "F (N)"}, {Group: "H2", Name: "a [g]"}, {Group: "H2", Name: "F (kN)"}, {Group: "H2", Name: "F [N]"}, {Name: "b [V]"}, {Name: "b"}}
	for from, want := range map[string]string{"a": "0 2", "a [g]": "0 2", "H2/a": "2", "F": "", "H1/F": "1", "b": "6", "b [V]": "5", "c": ""} {
		var got []string
		for _, i := range findTracks(from, infos) {
			got = append(got, string(rune('0'+i)))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q is %v, want %q", from, got, want)
		}
	}
}

// A name is found with any unit behind it, unless the name itself is there.
func FuzzFindName(f *testing.F) {
	f.Add("a", "g")
	f.Add("F (feed)", "N")
	f.Fuzz(func(t *testing.T, name, unit string) {
		names := []string{"time", name + " [" + unit + "]", "other [" + unit + "]"}
		base, got, ok := table.SplitUnit(names[1])
		if ok && (base == "" || got == "" || strings.TrimSpace(got) != got) {
			t.Fatalf("%q is %q in %q", names[1], base, got)
		}
		if ok && base != "time" && base != "other" && FindName(base, names) != 1 {
			t.Fatalf("%q is not %q", names[1], base)
		}
		if i := FindName(name, append(names, name)); name != "time" && (i < 1 || names[:3][min(i, 2)] != name && i != 3) {
			t.Fatalf("%q is found at %d", name, i)
		}
		if err := checkUnit(signal.Channel{Name: base, Unit: got}, signal.Origin{From: base, Gain: 1}, names[1]); err != nil {
			t.Fatalf("its own unit: %v", err)
		}
	})
}
