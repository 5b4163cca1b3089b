package source

import (
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/table/csvfile"
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
		if name, unit, ok := csvfile.SplitUnit(column); name != want[0] || unit != want[1] || ok != (want[1] != "") {
			t.Errorf("%q is %q in %q, %v", column, name, unit, ok)
		}
	}
}

func TestUnitKey(t *testing.T) {
	for _, same := range [][]string{{"N·m", "Nm", "N m", "N*m"}, {"m/s²", "m/s^2", "m/s2"}, {"µm", "μm", "um", "micron"}, {"rpm", "rev/min", "1/min", "min-1", "U/min"}, {"s", "sec", "sec."}} {
		for _, u := range same {
			if csvfile.UnitKey(u) != csvfile.UnitKey(same[0]) {
				t.Errorf("%s is %q, %s is %q", u, csvfile.UnitKey(u), same[0], csvfile.UnitKey(same[0]))
			}
		}
	}
	for _, two := range [][2]string{{"mV", "MV"}, {"g", "m/s²"}, {"mm", "µm"}, {"N", "kN"}, {"s", "ms"}} {
		if csvfile.UnitKey(two[0]) == csvfile.UnitKey(two[1]) {
			t.Errorf("%s and %s are one unit", two[0], two[1])
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
		base, got, ok := csvfile.SplitUnit(names[1])
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
