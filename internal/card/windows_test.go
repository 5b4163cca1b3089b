package card

import "testing"

// The words for data where no window is fit for judging, which an auto gate and the
// usual faults make rare.
func TestNothingIsFit(t *testing.T) {
	counts := Tally{Windows: 10, SensorFault: 10}
	if got := counts.Words() + counts.Remedy(); got != "10 windows cut, 0 used, 10 with sensor faults: see to the sensors; empty cells and constant columns count as faults unless they are usual" {
		t.Error(got)
	}
	counts = Tally{Windows: 10, NotCutting: 10}
	if got := counts.Words() + counts.Remedy(); got != `10 windows cut, 0 used, 10 not cutting: record while the machine is cutting, or set `+"`gate: \"off\"`" {
		t.Error(got)
	}
}
