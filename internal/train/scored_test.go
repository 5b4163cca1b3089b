package train

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/pkg/alarm"
)

// Windows that the model was trained on are scored by networks that have not seen
// their tools: the networks of the training report, to the last bit. Others are scored
// by the model itself.
func TestScore(t *testing.T) {
	t.Parallel()
	j := latheJob(t)
	m, r := latheModel(t)
	e := Exam{Model: m, Inputs: latheJob(t).Inputs, Join: j.Config.Join, Alarm: alarm.Default}
	s, err := Score(t.Context(), e, false)
	if err != nil {
		t.Fatal(err)
	}
	if s.Networks != 5 || s.Seen != e.Inputs[0].Name || !slices.Equal(s.Score, r.Held.Score) || !slices.Equal(s.Tool, r.Held.Group) || !slices.Equal(s.Class, r.Held.Class) {
		t.Errorf("%d networks, seen %q, %d scores; the report has %d", s.Networks, s.Seen, len(s.Score), len(r.Held.Score))
	}
	unknown := 0
	for _, d := range r.Unknown.Tools {
		unknown += d.UnknownHealthy + d.UnknownFaulty
	}
	doubted := 0
	for _, u := range s.Unknown {
		if u != "" {
			doubted++
		}
	}
	if counts := m.Novelty.Counts(); doubted != unknown || unknown == 0 || !slices.Contains(counts, false) {
		t.Errorf("%d windows are unknown, %d in the report; of the features count %v", doubted, unknown, counts)
	}
	e.Inputs = []Input{latheInput(t, j.Layout, "new", "lathe", latheCSV([]life{{"N", 40, 350}}))}
	if s, err = Score(t.Context(), e, false); err != nil || s.Networks != 0 || s.Seen != "" || len(s.Score) == 0 || len(s.Score) != len(s.Class) || len(s.Score) != len(s.Tool) {
		t.Errorf("of a new tool: %+v, %v", s, err)
	}
	if _, err := Score(t.Context(), e, true); !errors.Is(err, errData) || !strings.Contains(err.Error(), "tool N alone") {
		t.Errorf("one tool held out: %v", err)
	}
	bare := *m
	bare.Provenance.Config = nil
	e.Model = &bare
	if _, err := Score(t.Context(), e, true); err == nil || !strings.Contains(err.Error(), "does not say how it was trained") {
		t.Errorf("a model without configuration: %v", err)
	}
}
