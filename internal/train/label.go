package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/event"
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

// LabelMeasurements returns labels as training joins them to windows. An answer to an alarm counts where its tool has no other label. A state from a
// time until another one is two moments, between which it holds, so that it goes with moments.
func LabelMeasurements(floor, answers []event.Label) (ms []wear.Measurement) {
	type tool struct{ machine, name string }
	known, nan := make(map[tool]bool), math.NaN()
	add := func(l event.Label, source wear.Source) {
		m := wear.Measurement{
			Machine: l.Machine, Tool: wear.ToolOf(l.Tool, l.ToolLife), Hole: l.Hole, Time: l.At, End: l.Until, VBMeanUM: *cmp.Or(l.WearMeanUM, &nan), VBMaxUM: *cmp.Or(l.WearUM, &nan),
			State: l.State, Where: "label " + l.ID, Source: source,
		}
		if until := m; !l.Until.IsZero() && l.WearUM == nil && l.WearMeanUM == nil {
			until.Time, m.End, until.End = l.Until, time.Time{}, time.Time{}
			ms = append(ms, until)
		}
		ms = append(ms, m)
	}
	for _, l := range floor {
		if l.Revoked == nil {
			known[tool{l.Machine, wear.ToolOf(l.Tool, l.ToolLife)}] = true
			add(l, wear.Floor)
		}
	}
	for _, l := range answers {
		if !known[tool{l.Machine, wear.ToolOf(l.Tool, l.ToolLife)}] {
			add(l, wear.Alarms)
		}
	}
	return ms
}

// LabelOf returns the label that a row of a wear file says, without who says it. It reports a row that is of a recording, which no window on Kafka
// is of, or whose class is a number.
func LabelOf(m wear.Measurement, machine string) (event.Label, error) {
	l := event.Label{Machine: cmp.Or(m.Machine, machine), Tool: m.Tool, Hole: m.Hole, At: m.Time.UTC(), Until: m.End.UTC(), State: cmp.Or(m.State, m.Class), Note: m.Where}
	_, number := strconv.Atoi(m.Class)
	switch {
	case m.OfRecording():
		return l, fmt.Errorf("%s: the row is of a recording, or counts its seconds: name tool and hole, or write the time by RFC 3339", m.Where)
	case m.Class != "" && (number == nil || m.State != "" && m.State != m.Class):
		return l, fmt.Errorf("%s: class %q: write the name of the class as the state, and no other state", m.Where, m.Class)
	case l.Machine == "":
		return l, fmt.Errorf("%s: the row names no machine: name it with --machine, by its path", m.Where)
	}
	for _, f := range []struct {
		um float64
		to **float64
	}{{m.VBMaxUM, &l.WearUM}, {m.VBMeanUM, &l.WearMeanUM}} {
		if f.um == f.um {
			*f.to = &f.um
		}
	}
	return l, nil
}
