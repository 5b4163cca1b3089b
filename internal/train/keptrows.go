package train

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
)

// mostHeldRows is up to how many windows a model keeps what its costs were chosen on: a longer file is of no use to the
// monitors that read it too.
var mostHeldRows = 200_000 // tests lower it

// keptRows remembers which windows became rows, for a model to keep.
type keptRows struct {
	tools []model.HeldTool
	index map[heldTool]int
	last  int // index of the tool that was met last
	rows  []keptRow
}

type heldTool struct{ machine, tool, recording string }

// keptRow is a window that is judged.
type keptRow struct {
	tool  int
	hole  string
	start time.Time
	bare  bool // it has no label
}

// see notes a window, judged or not, of a group.
func (k *keptRows) see(o *observed, group string) {
	if k.index == nil {
		k.index = make(map[heldTool]int)
	}
	key := heldTool{o.machine, o.Tool, o.recording}
	at, known := k.index[key]
	if !known {
		at = len(k.tools)
		k.index[key] = at
		k.tools = append(k.tools, model.HeldTool{Machine: o.machine, Tool: o.Tool, Recording: o.recording, Group: group, Began: o.began.UTC(), First: o.Start.UTC(), Last: o.Start.UTC()})
	}
	k.last = at
	t := &k.tools[at]
	if o.Start.Before(t.First) {
		t.First = o.Start.UTC()
	}
	if o.Start.After(t.Last) {
		t.Last = o.Start.UTC()
	}
	t.CutOff = t.CutOff || o.cutOff
}

// add notes that the window that was seen last is a row.
func (k *keptRows) add(o *observed, bare bool) {
	if len(k.rows) <= mostHeldRows {
		k.rows = append(k.rows, keptRow{k.last, o.hole, o.Start.UTC(), bare})
	}
}

// keepHeldOut lets the model keep what its costs were chosen on, so that they can be chosen again.
func (t *rowTable) keepHeldOut(m *model.Model, fit *classify.Report, log zerolog.Logger) error {
	h := fit.HeldOut
	fit.HeldOut = nil // it is large, and not needed again
	switch n := len(t.kept.rows); {
	case h == nil || m.ByWear != nil:
		return nil
	case n > mostHeldRows || n != len(t.Class)+len(t.bare.group):
		log.Info().Msgf("the model does not keep what its costs were chosen on, as it is of more than %d windows: labels that come later take a whole fit", mostHeldRows)
		return nil
	}
	var bare, votes []float64 // of rows without a label
	if len(t.bare.group) > 0 {
		var err error
		if bare, votes, err = m.Classifier.JudgeUnlabelled(t.bare.rows(len(t.Columns)), h.Temperature); err != nil {
			return err
		}
	}
	k := m.Classifier.Classes()
	out := &model.HeldOut{ByTool: h.ByGroup, Folds: h.Folds, Classes: k, Votes: m.Classifier.Guard() != nil, Temperature: h.Temperature, Tools: t.kept.tools}
	for i := range out.Tools {
		out.Tools[i].Apart = classify.Together(t.together, out.Tools[i].Group)
	}
	with, without, early := 0, 0, h.Early
	for _, row := range t.kept.rows {
		r := model.HeldRow{Tool: row.tool, Hole: row.hole, Start: row.start, Was: -1, Class: -1}
		if row.bare {
			r.Fold = model.Judged
			if len(early) > 0 && early[0] == without {
				r.Fold, early = model.Taught, early[1:]
			}
			setHeld(&r, bare[without*k:(without+1)*k], votes, without)
			without++
		} else {
			r.Was, r.Class, r.Fold = t.Class[with], t.Class[with], h.Fold[with]
			setHeld(&r, h.Posterior[with*k:(with+1)*k], h.Vote, with)
			with++
		}
		out.Rows = append(out.Rows, r)
	}
	m.HeldOut = out.Encode()
	return nil
}

// setHeld sets the posterior and the vote, number i of the votes, of a row.
func setHeld(r *model.HeldRow, posterior, votes []float64, i int) {
	r.Posterior = make([]float32, len(posterior))
	for k, p := range posterior {
		r.Posterior[k] = float32(p)
	}
	if votes != nil {
		r.Vote = float32(votes[i])
	}
}
