package model_test

import (
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
)

func TestCheckDeployable(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*model.Model)
		want   string
	}{
		"proved":                  {func(*model.Model) {}, ""},
		"features of the newest":  {func(m *model.Model) { m.Features.Version = 0 }, ""},
		"no golden vectors":       {func(m *model.Model) { m.Golden = nil }, "no golden vectors, so"},
		"no golden ones of wear":  {func(m *model.Model) { m.Wear = machinetest.WithWear(t).Wear }, "no golden vectors of wear"},
		"features of old":         {func(m *model.Model) { m.Features.Version = 1 }, "version 1: this program computes version 2: train the model again"},
		"features that are to be": {func(m *model.Model) { m.Features.Version = 3 }, "version 3"},
	} {
		m := machinetest.OneValue(t)
		deploytest.Prove(t, m, 1)
		tc.change(m)
		if err := m.CheckDeployable(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
