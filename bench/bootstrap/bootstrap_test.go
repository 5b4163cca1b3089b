package bootstrap

import "testing"

// Of five tools one has a fault. The draws with B times that tool have P(B ≥ 3) = 0.058 and
// P(B ≥ 4) = 0.0067, so the 97.5 % quantile of B is 3.
func TestTools(t *testing.T) {
	faults := func(times map[string]float64) []float64 { return []float64{times["a"], -times["a"]} }
	tools := []string{"b", "a", "c", "d", "e"}
	if got := Tools(tools, 2, faults); got[0] != (Interval{0, 3}) || got[1] != (Interval{-3, 0}) {
		t.Errorf("%v", got)
	}
	if tools[0] != "b" {
		t.Error("the caller's tools were sorted")
	}
	if got := Tools(tools[:4], 2, faults); len(got) != 2 || got[1].Low == got[1].Low {
		t.Errorf("four tools have the interval %v", got)
	}
	if got := Tools(tools, 1, func(times map[string]float64) []float64 {
		if times["a"] == 0 {
			return nil
		}
		return []float64{times["a"]}
	}); got[0].Low != 1 {
		t.Errorf("a draw without tool a was not passed over: %v", got)
	}
}

func TestWords(t *testing.T) {
	for _, tc := range [][2]string{
		{Interval{0.945, 0.984}.String(), "0.945–0.984"},
		{None.String(), "–"},
		{Interval{-0.011, -0.0001}.Signed(), "-0.011 to +0.000"},
		{None.Signed(), "–"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%q, want %q", tc[0], tc[1])
		}
	}
}
