package train

import (
	"fmt"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/model"
)

// A data set names a thousand tools and counts the rest, and its times are of windows with a clock, in any order.
func TestDataSetOf(t *testing.T) {
	at := time.Date(2026, 11, 2, 6, 0, 0, 0, time.FixedZone("", 3600))
	os := []observed{{Observation: model.Observation{Tool: "Z", Start: time.Unix(7, 0)}, machine: "z"}}
	for i := range mostTools + 4 {
		os = append(os, observed{Observation: model.Observation{Tool: fmt.Sprintf("%04d", i/2), Start: at.Add(-time.Duration(i) * time.Second)}, machine: []string{"b", "a"}[i%2]})
	}
	d := dataSetOf(&Input{Name: "n", SHA256: "s", Offsets: []model.OffsetRange{{To: 1}}}, append(os, os...), 2*time.Second)
	if d.Name != "n" || d.SHA256 != "s" || len(d.Offsets) != 1 || d.Windows != 2*len(os) || d.MoreTools != 5 || len(d.Machines) != 2 || d.Machines[0].Machine != "a" || len(d.Machines[0].Tools)+len(d.Machines[1].Tools) != mostTools {
		t.Errorf("%s, %d more tools", d, d.MoreTools)
	}
	if want := at.Add(-1003 * time.Second).UTC(); d.From != want || d.To != at.Add(2*time.Second).UTC() {
		t.Errorf("from %v to %v, want from %v", d.From, d.To, want)
	}
}
