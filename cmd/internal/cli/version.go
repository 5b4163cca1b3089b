package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// The linker sets these in a release (scripts/release.sh).
var version, commit string

// Version returns the name and version of the program's module.
func Version() string {
	built := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		built = info.Main.Version
	}
	return "flank " + cmp.Or(version, built)
}

// builtFrom returns the commit that the program was built from, or "unknown".
func builtFrom() string {
	from := commit
	if info, ok := debug.ReadBuildInfo(); ok && from == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				from = s.Value
			}
		}
	}
	return cmp.Or(from, "unknown")
}

// versionFlag prints what the program is and ends it.
type versionFlag bool

// BeforeReset is called by kong where the flag is given, before anything is required.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	fmt.Fprintf(app.Stdout, "%s (%s), commit %s, %s %s/%s\n", app.Model.Name, Version(), builtFrom(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	app.Exit(0)
	return nil
}
