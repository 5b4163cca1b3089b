package kernel

import (
	"fmt"
	"os"
	"strings"
)

// variable is the environment variable that forces a family.
const variable = "FLANK_KERNEL"

var active, selectErr = selectFamily(os.Getenv(variable), families())

// Family returns the name of the family in use: "avx512", "avx2" or "go".
func Family() string { return active.name }

// Err returns an error if the environment variable FLANK_KERNEL names a family
// that this program or this processor does not have. The best family is then in
// use, as if the variable were not set. Programs report it when they start.
func Err() error { return selectErr }

// selectFamily returns the family of the given name, or the first if name is
// empty or not among them.
func selectFamily(name string, all []*family) (*family, error) {
	if name == "" {
		return all[0], nil
	}
	var names []string
	for _, f := range all {
		if f.name == name {
			return f, nil
		}
		names = append(names, f.name)
	}
	return all[0], fmt.Errorf("kernel: %s=%q: this program on this processor has %s: set one of them, or unset it to choose the first",
		variable, name, strings.Join(names, ", "))
}
