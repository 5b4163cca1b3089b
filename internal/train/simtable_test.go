package train

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The table has every window of the tools in their order, as recorded: sizes are
// positive, which they are not relative to a reference.
func TestSimulatorStudyTable(t *testing.T) {
	x, reference, err := SimulatorStudy{Seed: 1, Tools: 2, Life: 12 * time.Second, Workers: 1}.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if reference != historyReference {
		t.Errorf("reference of %d windows", reference)
	}
	if got := slices.Compact(slices.Clone(x.Tool)); !slices.Equal(got, []string{"T01", "T02"}) {
		t.Errorf("tools in the order %v", got)
	}
	if n := x.Rows(); n < 12 || n > 40 {
		t.Errorf("%d windows of two lives of about 12 s", n)
	}
	last := slices.Index(x.Tool, "T02") - 1
	if first := x.VBMaxUM[0]; !(first < x.VBMaxUM[last]) || x.Class[0] != 0 || x.Class[last] != 1 {
		t.Errorf("wear from %v to %v, classes %d to %d", first, x.VBMaxUM[last], x.Class[0], x.Class[last])
	}
	for j, name := range x.Columns {
		if strings.HasSuffix(name, ".rms") && !(x.Row(1).Features[j] > 0) {
			t.Errorf("%s is %v", name, x.Row(1).Features[j])
		}
	}
}
