package train

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
)

func labelRule(r wear.Rule) model.LabelRule {
	l := model.LabelRule{VBMaxUM: r.VBMaxUM, VBMeanUM: r.VBMeanUM, States: r.States, HealthyStates: r.HealthyStates}
	for _, c := range r.Classes {
		l.Classes = append(l.Classes, model.LabelClass(c))
	}
	return l
}

// classOf returns the class that a row of a table has by number or name; names
// are the names of the classes.
func classOf(number int, label string, names []string) (int, error) {
	if label != "" {
		for k, name := range names {
			if strings.EqualFold(name, label) {
				return k, nil
			}
		}
		if k, ok := (wear.Rule{}).StateClass(label); ok && (slices.Equal(names, wear.Rule{}.Names()) || names[1] == model.Different) { // worn is faulty
			return k, nil
		}
		return 0, fmt.Errorf("class %q is none of %s: name the classes of the table in train.yaml, the best first, as `label: {classes: [{name: healthy}, {name: worn}, {name: broken}]}`",
			label, strings.Join(names, ", "))
	}
	if number >= len(names) {
		return 0, fmt.Errorf("class %d: there are %d, %s: number them from 0, or name those that there are under `label: classes` in train.yaml", number, len(names), numbered(names))
	}
	return number, nil
}

// numbered lists classes with their numbers.
func numbered(names []string) string {
	words := make([]string, len(names))
	for k, name := range names {
		words[k] = fmt.Sprintf("%d %s", k, name)
	}
	return card.Listed(words)
}
