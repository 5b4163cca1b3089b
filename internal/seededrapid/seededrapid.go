// Package seededrapid makes property tests draw the same values in every run, so
// that no test depends on luck. Tests import it for that alone. To look for more,
// ask for other draws: `go test -rapid.seed=7 -rapid.checks=20000`; with
// -rapid.seed=0 they are new each time.
package seededrapid

import (
	"flag"

	_ "pgregory.net/rapid" // whose flag it is
)

func init() {
	if err := flag.Set("rapid.seed", "20261102"); err != nil {
		panic("seededrapid: " + err.Error())
	}
}
