package card

import (
	"fmt"
	"strings"
)

// Tally counts windows by what became of them.
type Tally struct {
	Windows     int `json:"windows"`            // cut from the recordings
	Gaps        int `json:"gaps"`               // spans that no window covers
	NotCutting  int `json:"not_cutting"`        // left out: the machine was not cutting
	SensorFault int `json:"sensor_fault"`       // left out: too many channels cannot be trusted
	Learning    int `json:"learning"`           // left out: they make the tool's reference
	Unlabelled  int `json:"unlabelled"`         // in no score: nothing is known of the wear; networks learn from them without a label
	Missing     int `json:"missing"`            // feature values that are missing and are imputed
	Used        int `json:"used"`               // rows with a label, that are learnt from and scored
	Presumed    int `json:"presumed,omitempty"` // of them those without a label that were taken for healthy, as no worn tool was seen

	Unused []string `json:"unused_tools,omitempty"`     // none of whose windows is fit for judging: nothing is learnt from them
	Bare   []string `json:"unlabelled_tools,omitempty"` // that have windows fit for judging, all of them without a label
	Join   string   `json:"join,omitempty"`             // what the join of measurements to windows says, in words

	LabelsFrom map[string]int `json:"labels_from,omitempty"` // see model.Provenance

	States string `json:"states,omitempty"` // which states of tools became which class, with the windows of each, in words

	Mismatches []string `json:"mismatches,omitempty"` // names and times that should agree in wear file and recordings

	Contradictions string `json:"contradictions,omitempty"` // of wear and state, in words

	// Short are tools, with their windows of cutting, all of which make a reference, which takes ReferenceWindows; Fitting would fit most tools, 0: no
	// number does. ReferenceFit says in words why references are not of as many windows as by default.
	Short                     []string `json:"short_tools,omitempty"`
	ReferenceWindows, Fitting int      `json:"-"`
	ReferenceFit              string   `json:"-"`

	LeftOut []LeftOut `json:"left_out,omitempty"` // before anything was learnt; not among Windows

	UsedTools string `json:"-"` // whose reference was not taken on a new and healthy tool, in words
}

// LeftOut says which windows were left out, and why.
type LeftOut struct {
	Windows int    `json:"windows"` // 0: it is only a warning
	Because string `json:"because,omitempty"`
	Warning string `json:"warning"` // with names and the remedy
}

// Losses says in words what was left out.
func (t Tally) Losses() (ws []string) {
	for _, l := range t.LeftOut {
		ws = append(ws, l.Warning)
	}
	return ws
}

// Words says what became of the windows, leaving out what did not occur.
func (t Tally) Words() string {
	s := fmt.Sprintf("%d windows cut, %d used", t.Windows, t.Used)
	for _, left := range []struct {
		n    int
		what string
	}{
		{t.Learning, "make the references of their tools"}, {t.NotCutting, "not cutting"},
		{t.SensorFault, "with sensor faults"}, {t.Unlabelled, "without label"}, {t.Presumed, "of those used without label and taken for healthy"},
	} {
		if left.n > 0 {
			s += fmt.Sprintf(", %d %s", left.n, left.what)
		}
	}
	for _, l := range t.LeftOut {
		if l.Windows > 0 {
			s += fmt.Sprintf("; left out: %d %s", l.Windows, l.Because)
		}
	}
	return s
}

// Remedy says, where nothing is used, what to do about it.
func (t Tally) Remedy() string {
	switch {
	case t.Join != "" && t.Unlabelled > 0 && len(t.Mismatches) > 0:
		return fmt.Sprintf(" (%s): %s; `trainer labels check` shows both sides", t.Join, strings.Join(t.Mismatches, "; "))
	case t.Join != "" && t.Unlabelled > 0:
		return fmt.Sprintf(" (%s): check that the wear file names machines, tools and holes as the recordings do, that its times are theirs, and the rule under `label`; `trainer labels check` shows both sides", t.Join)
	case t.Unlabelled > 0:
		return ": name the column of the label under `recording` in the layout (vb_max_um, vb_mean_um or state), fill in class or vb_max_um of a table, or give a wear file, and check the rule under `label`"
	case len(t.Short) > 0:
		return ": " + t.short()
	case t.SensorFault > 0:
		return ": see to the sensors; empty cells and constant columns count as faults unless they are usual"
	}
	return ": record while the machine is cutting, or set `gate: \"off\"`"
}

// short says why nothing is learnt from tools that are too short for a reference, and what to do.
func (t Tally) short() string {
	s := fmt.Sprintf("a reference takes %d windows of cutting, and these tools have no more, so that none of theirs is judged: %s: record tools for longer, or ", t.ReferenceWindows, Some(t.Short))
	if t.Fitting == 0 || t.Fitting >= t.ReferenceWindows {
		return s + "leave these out"
	}
	return s + fmt.Sprintf("set `reference.windows` to %d, which fits most tools", t.Fitting)
}

// Warnings says in words what a person should know before trusting a score.
func (t Tally) Warnings() []string {
	ws := t.Losses()
	if t.ReferenceFit != "" {
		ws = append(ws, t.ReferenceFit)
	}
	if len(t.Unused) > len(t.Short) {
		ws = append(ws, "nothing is learnt from these tools, none of whose windows is fit for judging: "+strings.Join(t.Unused, ", "))
	}
	if len(t.Short) > 0 {
		ws = append(ws, t.short())
	}
	if len(t.Bare) > 0 {
		ws = append(ws, "no window of these tools has a label: their windows are in no score, but networks learn from them: "+strings.Join(t.Bare, ", "))
	}
	ws = append(ws, t.Mismatches...)
	if t.Contradictions != "" {
		ws = append(ws, t.Contradictions)
	}
	if t.UsedTools != "" {
		ws = append(ws, t.UsedTools)
	}
	return ws
}
