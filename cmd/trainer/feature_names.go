package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

type featureNamesCommand struct {
	Layout string `arg:"" optional:"" help:"Layout file; without one the gun drill's."`
	windowFlag
}

// Run prints the names of the features that messages of tcm.features.v1 have of a layout, in
// their order, and the fingerprint by which readers know these messages.
func (f *featureNamesCommand) Run(out cli.Output) error {
	f.Window = cmp.Or(f.Window, time.Second)
	layout := signal.GunDrill()
	if f.Layout != "" {
		var err error
		if layout, _, err = signal.LoadLayout(f.Layout); err != nil {
			return err
		}
	}
	form, err := window.NewForm(layout, window.Spec{Length: f.Window}, signal.FeatureSpec{}, nil)
	if err != nil {
		return fmt.Errorf("--window %v: %w", f.Window, err)
	}
	fmt.Fprintf(out.Stderr, "%d features of windows of %v, header features: %s\n", len(form.Names()), f.Window, form.Fingerprint())
	_, err = fmt.Fprintln(out.Stdout, strings.Join(form.Names(), "\n"))
	return err
}
