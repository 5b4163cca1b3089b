// Package labels reads and writes the labels of people about tools, on the topic tcm.labels.v1, and finds
// those that cannot both be right.
package labels

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
)

// maxRecord is the longest record that is read, in bytes.
const maxRecord = 64 << 10

// Message returns the message of a label.
func Message(l event.Label) bus.Message {
	m := envelope.Event(bus.TopicLabels, l.ID, l.Machine, event.LabelType, l.Given, event.JSON(l))
	m.Key = l.Key()
	return m
}

// Write puts labels on the topic, which [event.Label.Check] has found to be right, and says after each batch how many are there. An
// error says how many are kept.
func Write(ctx context.Context, cfg bus.Config, all []event.Label, progress func(done int)) error {
	out, err := bus.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer out.Close()
	done := 0
	for part := range slices.Chunk(all, writeBatch) {
		msgs := make([]bus.Message, len(part))
		for i, l := range part {
			msgs[i] = Message(l)
		}
		if err := out.Send(ctx, msgs); err != nil {
			if done > 0 {
				return fmt.Errorf("%d of %d labels are kept, and maybe some more; give them again, which changes nothing of those: %w", done, len(all), err)
			}
			return err
		}
		done += len(part)
		progress(done)
	}
	return nil
}

// writeBatch is how many labels Write sends at once.
const writeBatch = 1000

// Read returns the labels on the topic, also revoked ones, by machine, tool and time. It returns how many messages are
// not labels.
func Read(ctx context.Context, cfg bus.Config) (all []event.Label, skipped int, err error) {
	last := make(map[string]event.Label)
	err = bus.ReadTopic(ctx, cfg, bus.TopicLabels, bus.FirstOffset, false, func(m bus.Message) error {
		var l event.Label
		if string(m.Header("ce_type")) != event.LabelType || len(m.Value) > maxRecord || json.Unmarshal(m.Value, &l) != nil || l.Check() != nil || m.Key != l.Key() {
			skipped++
			return nil
		}
		last[l.ID] = l
		return nil
	})
	for _, l := range last {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b event.Label) int { return strings.Compare(a.Key(), b.Key()) })
	return all, skipped, err
}

// Count returns those that were not revoked.
func Count(all []event.Label) []event.Label {
	return slices.DeleteFunc(slices.Clone(all), func(l event.Label) bool { return l.Revoked != nil })
}

// near is how close to each other two moments are about the same time.
const near = time.Minute

// contradiction says in words with which of the labels a new one cannot be right: a tool has two states at about the same time, or
// its wear falls. A label of the same key is corrected, which only its author does without a question. It is empty if there is none.
func (known Classes) contradiction(all []event.Label, l event.Label) string {
	for i := range all {
		o := &all[i]
		if o.Revoked != nil || o.Machine != l.Machine || o.Tool != l.Tool || o.ToolLife != l.ToolLife || o.ID == l.ID && (o.By == l.By || o.Known() == l.Known()) {
			continue
		}
		if why := known.conflict(*o, l); why != "" {
			return fmt.Sprintf("label %s, %s by %s%s, says otherwise: %s", o.ID, o.Known(), o.By, when(*o), why)
		}
	}
	return ""
}

func when(l event.Label) string {
	switch {
	case !l.At.IsZero():
		return " at " + l.At.UTC().Format(time.RFC3339)
	case l.Hole != "":
		return " after hole " + l.Hole
	}
	return ""
}

// conflict says why two labels of one tool cannot both be right.
func (known Classes) conflict(a, b event.Label) string {
	if a.ID == b.ID {
		return fmt.Sprintf("%s would take its place", b.Known())
	}
	if a.At.IsZero() != b.At.IsZero() {
		return "one of them has a time, the other only a hole or none, and training joins labels of a tool in one way"
	}
	if b.At.Before(a.At) {
		a, b = b, a
	}
	together := a.At.IsZero() && a.Hole == b.Hole || !a.At.IsZero() && b.At.Sub(later(a.At, a.Until)) < near
	first, has := known(a.State)
	second, also := known(b.State)
	switch {
	case has && also && first > second && !a.At.IsZero():
		return fmt.Sprintf("a tool that is %s is not %s later: if it was ground again, declare it new", a.State, b.State)
	case together && has && also && first != second:
		return fmt.Sprintf("it is %s and %s at about the same time", a.State, b.State)
	case !a.At.IsZero() && (falls(a.WearUM, b.WearUM) || falls(a.WearMeanUM, b.WearMeanUM)):
		return fmt.Sprintf("wear falls from %s to %s: if the tool was ground again, declare it new", a.Known(), b.Known())
	}
	return ""
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func falls(a, b *float64) bool { return a != nil && b != nil && *b < *a }

// Seen are the tools of each machine that monitors remember, with the life of each.
type Seen map[string]map[string]string

// Classes returns the class of a state, the best first, and whether it has one.
type Classes func(state string) (class int, known bool)

// Doubts returns why a new label may be a mistake, in words: it names what no monitor has seen, or contradicts a label.
func (known Classes) Doubts(all []event.Label, seen Seen, l event.Label) (why []string) {
	tools := seen[l.Machine]
	life, remembered := tools[l.Tool]
	has := "life " + life
	if life == "" {
		has = "no life"
	}
	switch {
	case tools == nil:
		why = append(why, fmt.Sprintf("no monitor has seen machine %s; monitors know %s", l.Machine, named(slices.Sorted(maps.Keys(seen)))))
	case !remembered:
		why = append(why, fmt.Sprintf("no monitor remembers tool %s of %s; it has %s", l.Tool, l.Machine, named(slices.Sorted(maps.Keys(tools)))))
	case l.ToolLife != "" && l.ToolLife != life && l.Incident == "": // a page knows whose alarm it was
		why = append(why, fmt.Sprintf("the tool that monitors saw last under the name %s has %s, not %s: training finds windows of %s only if results name it", l.Tool, has, l.ToolLife, l.ToolLife))
	}
	if c := known.contradiction(all, l); c != "" {
		why = append(why, c)
	}
	if um := l.WearUM; um != nil && *um > 0 && *um < leastUM {
		why = append(why, fmt.Sprintf("%.3g µm is less than anyone can measure: is it in mm?", *um))
	}
	if _, has := known(l.State); !has && l.State != "" {
		why = append(why, fmt.Sprintf("state %.40q says neither worn nor healthy: training takes it only if its configuration says what it means", l.State))
	}
	if last := later(l.At, l.Until); last.Sub(l.Given) > near {
		why = append(why, fmt.Sprintf("%s is in the future", last.UTC().Format(time.RFC3339)))
	}
	return why
}

// leastUM is less wear than a microscope shows.
const leastUM = 3

// named lists some names.
func named(names []string) string {
	const most = 5
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
