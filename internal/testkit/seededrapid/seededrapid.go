// Package seededrapid makes property tests draw the same values in every run, so
// that no test depends on luck. Tests import it for that alone. To look for more,
// ask for other draws: `go test -rapid.seed=7 -rapid.checks=20000`; with
// -rapid.seed=0 they are new each time. RAPID_SHRINKTIME bounds how long a failure is made smaller, for runs that
// only count failures.
package seededrapid

import (
	"cmp"
	"flag"
	"os"

	_ "pgregory.net/rapid" // whose flag it is
)

func init() {
	for name, value := range map[string]string{"rapid.seed": "20261102", "rapid.shrinktime": cmp.Or(os.Getenv("RAPID_SHRINKTIME"), "30s")} {
		if err := flag.Set(name, value); err != nil {
			panic("seededrapid: " + err.Error())
		}
	}
}
