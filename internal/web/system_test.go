package web

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
)

// The page of the system has the ledgers of the machines that lose the most, repeats aside.
func TestLedgersOfTheSystem(t *testing.T) {
	h := NewHub(Config{})
	add := func(name, reason string, samples uint64) {
		r := testResult(1)
		r.Machine, r.Ledger = name, &event.Ledger{InWindows: 100, Unused: []event.UnusedSamples{{Reason: reason, Samples: samples}}}
		h.Result(r)
	}
	add("repeats", "repeat", 900)
	add("little", "gap", 1)
	add("much", "counter", 50)
	var names []string
	for _, l := range h.server.systemNow(t.Context()).Ledgers {
		names = append(names, l.Machine)
	}
	if want := []string{"much", "little", "repeats"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for i := range 30 {
		add(fmt.Sprint(i), "gap", 2)
	}
	if got := h.server.systemNow(t.Context()).Ledgers; len(got) != mostNeedy || got[0].Machine != "much" {
		t.Errorf("%d ledgers, first %s", len(got), got[0].Machine)
	}
}
