package train

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/model"
)

// The table has every window of the tools in their order, as recorded: sizes are
// positive, which they are not relative to a reference.
func TestLessons(t *testing.T) {
	t.Parallel()
	job := Simulation{Machine: "local/site/area/line/drill", Seed: 1, Schedule: HistorySchedule}.Job(sim.Tools(1, 12*time.Second)[:2])
	job.Config.Reference.Mode = model.ReferenceOff
	x, lessons, _, err := Lessons(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if job.Config.Reference.Windows != historyReference {
		t.Errorf("reference of %d windows", job.Config.Reference.Windows)
	}
	if !slices.Equal(lessons.Y, x.Class) || !slices.Equal(lessons.Groups, x.Tool) || len(lessons.Views) > 0 {
		t.Errorf("the classifier takes %d rows of %d in %d ways", len(lessons.Y), x.Rows(), len(lessons.Views))
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
