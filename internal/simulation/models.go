package simulation

import (
	"github.com/flank-tcm/flank/internal/machine/machinetest"
)

// NewModels makes small models of one value. They are safe for concurrent use.
func NewModels(t machinetest.TB) *Models {
	alike := machinetest.OneValue(t)
	alike.Provenance.Seed = 7
	other := machinetest.OneValue(t)
	other.Reference.Windows = 3
	for _, m := range []interface{ Encode() ([]byte, error) }{alike, other} {
		if _, err := m.Encode(); err != nil {
			t.Fatal(err)
		}
	}
	return &Models{Default: machinetest.OneValue(t), Alike: alike, Other: other}
}
