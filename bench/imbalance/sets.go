package imbalance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/bench/keel"
)

// LoadKEEL reads sets of the KEEL repository in dir, all if names is empty.
func LoadKEEL(dir string, names []string) ([]*Set, error) {
	all, err := keel.Names(dir)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = all
	}
	var sets []*Set
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%s holds no set %q: there are %s", dir, name, strings.Join(all, ", "))
		}
		s, err := keel.Load(dir, name)
		if err != nil {
			return nil, err
		}
		if len(s.Classes) != 2 {
			return nil, fmt.Errorf("%s has %d classes: the study is of two", name, len(s.Classes))
		}
		sets = append(sets, &Set{Name: s.Name, X: s.X, Y: s.Y, Folds: s.Folds})
	}
	return sets, nil
}
