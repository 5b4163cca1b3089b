// Package deploy says which models judge which machines.
//
// A [Deployment] is a [Glob] of machines and a layout with the champion that judges them,
// shadows that judge the same windows without effect, and alarm settings. A [Set] is all
// deployments at a time: an immutable value. For a machine the deployment with the most
// specific glob counts.
//
// Deployments and models are records on the topic tcm.models.v1: a [Change] for each
// change of a deployment, and for each model its parts and a [Manifest]. They are signed. A
// [Book] holds the records and decides what counts; what does not is a [Refusal], and
// what counted before goes on. [Follow] reads the topic and hands over a [View] when
// something has changed. A [Writer] changes the topic.
package deploy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Deployment says what judges the machines that a glob names. The models are shared and
// must not be changed.
type Deployment struct {
	For      Glob
	Layout   string // fingerprint of the machines' layout
	Champion *model.Model
	Shadows  []Shadow
	Alarm    *alarm.Settings // nil: the monitor's own
	Now      bool            // swap to the champion at once, not at the next tool change
	Since    time.Time       // when the champion became champion; zero for a file
	Change   string          // id of the change that it is from; empty for a file
	By, Note string          // of the change
	Unsigned bool            // accepted although a signature of it or of its models could not be checked
}

// Shadow is a model that judges without effect on alarms.
type Shadow struct {
	Model *model.Model
	Until time.Time // when its trial ends
}

// Set is all deployments at a time. It is never changed. The zero Set has none.
type Set struct {
	deployments []Deployment // the most specific first
	print       string       // equal for equal Sets
}

// Resolve returns the deployment of a machine whose windows have the layout with that
// fingerprint: of those whose glob names the machine, the one with the most specific glob.
func (s Set) Resolve(machine, layout string) (Deployment, bool) {
	for _, d := range s.deployments {
		if d.Layout == layout && d.For.Match(machine) {
			return d, true
		}
	}
	return Deployment{}, false
}

// Deployments returns all deployments, the most specific first. The slice is the caller's.
func (s Set) Deployments() []Deployment { return slices.Clone(s.deployments) }

// Models returns every model that a deployment names, each once, in the order of their ids.
func (s Set) Models() []*model.Model {
	var models []*model.Model
	for _, d := range s.deployments {
		models = append(models, d.Champion)
		for _, h := range d.Shadows {
			models = append(models, h.Model)
		}
	}
	slices.SortFunc(models, func(a, b *model.Model) int { return cmp.Compare(a.ID(), b.ID()) })
	return slices.CompactFunc(models, func(a, b *model.Model) bool { return a.ID() == b.ID() })
}

// Equal reports whether both sets say the same of every machine.
func (s Set) Equal(other Set) bool { return s.print == other.print }

// newSet returns the set of deployments that do not tie.
func newSet(ds []Deployment) Set {
	slices.SortFunc(ds, func(a, b Deployment) int {
		return cmp.Or(-a.For.Compare(b.For), cmp.Compare(a.For.text, b.For.text), cmp.Compare(a.Layout, b.Layout))
	})
	s := Set{deployments: ds}
	for _, d := range ds {
		s.print += fmt.Sprintf("%s %s %s %s %t", d.For, d.Layout, d.Change, d.Champion.ID(), d.Unsigned)
		for _, h := range d.Shadows {
			s.print += " " + h.Model.ID()
		}
		if d.Alarm != nil {
			s.print += fmt.Sprintf(" %+v", *d.Alarm)
		}
		s.print += "\n"
	}
	return s
}

// OfFile returns the set in which one model judges every machine of its layout, under the
// alarm settings: what a monitor has whose configuration names a model file.
func OfFile(m *model.Model, a alarm.Settings) Set {
	return newSet([]Deployment{{For: mustGlob("**"), Layout: m.Layout.Fingerprint(), Champion: m, Alarm: &a}})
}

// checkWindows reports a model whose windows no topic takes.
func checkWindows(m *model.Model) error {
	codec, err := window.NewCodec(m.Layout, m.Window)
	if err != nil {
		return err
	}
	if size := codec.MaxSize(); size > bus.MaxMessage {
		return fmt.Errorf("a window of %v would be a message of %.1f MiB, and %d MiB is the most a topic takes: train it with shorter windows",
			m.Window.Length, float64(size)/(1<<20), bus.MaxMessage>>20)
	}
	return nil
}
