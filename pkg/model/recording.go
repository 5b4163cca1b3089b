package model

import "github.com/flank-tcm/flank/pkg/signal"

// recordingSection is the JSON of how the recordings were read that a model was trained
// on. Its keys are the keys of a layout's `recording`.
type recordingSection struct {
	Format     string                   `json:"format,omitempty"`
	Skip       int                      `json:"skip,omitempty"`
	Header     string                   `json:"header,omitempty"`
	Separator  string                   `json:"separator,omitempty"`
	Decimal    string                   `json:"decimal,omitempty"`
	Missing    []string                 `json:"missing,omitempty"`
	Time       string                   `json:"time,omitempty"`
	Date       string                   `json:"date,omitempty"`
	TimeFormat string                   `json:"time_format,omitempty"`
	TimeUnit   string                   `json:"time_unit,omitempty"`
	Machine    string                   `json:"machine,omitempty"`
	Tool       string                   `json:"tool,omitempty"`
	Hole       string                   `json:"hole,omitempty"`
	Speed      string                   `json:"speed,omitempty"`
	VBMean     string                   `json:"vb_mean_um,omitempty"`
	VBMax      string                   `json:"vb_max_um,omitempty"`
	VBMeanMM   string                   `json:"vb_mean_mm,omitempty"`
	VBMaxMM    string                   `json:"vb_max_mm,omitempty"`
	State      string                   `json:"state,omitempty"`
	Origins    map[string]originSection `json:"channels,omitempty"`
}

type originSection struct {
	From   string  `json:"from"`
	Gain   float64 `json:"gain"`
	Offset float64 `json:"offset,omitempty"`
}

// toRecordingSection returns the section of r, nil if r says nothing.
func toRecordingSection(r signal.Recording) *recordingSection {
	s := recordingSection{
		Format: r.Format, Skip: r.Skip, Header: r.Header, Separator: r.Separator, Decimal: r.Decimal, Missing: r.Missing, Time: r.Time, Date: r.Date, TimeFormat: r.TimeFormat, TimeUnit: r.TimeUnit, Machine: r.Machine,
		Tool: r.Tool, Hole: r.Hole, Speed: r.Speed, VBMean: r.VBMean, VBMax: r.VBMax, VBMeanMM: r.VBMeanMM, VBMaxMM: r.VBMaxMM, State: r.State,
	}
	if len(r.Origins)+len(r.Missing) == 0 && r.Format+r.Header+r.Separator+r.Decimal+r.TimeFormat+r.TimeUnit == "" && r.Skip == 0 && !r.HasColumns() {
		return nil
	}
	for name, o := range r.Origins {
		if s.Origins == nil {
			s.Origins = make(map[string]originSection)
		}
		s.Origins[name] = originSection(o)
	}
	return &s
}

// recording returns what the section says.
func (s *recordingSection) recording() signal.Recording {
	if s == nil {
		return signal.Recording{}
	}
	r := signal.Recording{
		Format: s.Format, Skip: s.Skip, Header: s.Header, Separator: s.Separator, Decimal: s.Decimal, Missing: s.Missing, Time: s.Time, Date: s.Date, TimeFormat: s.TimeFormat, TimeUnit: s.TimeUnit, Machine: s.Machine,
		Tool: s.Tool, Hole: s.Hole, Speed: s.Speed, VBMean: s.VBMean, VBMax: s.VBMax, VBMeanMM: s.VBMeanMM, VBMaxMM: s.VBMaxMM, State: s.State,
	}
	for name, o := range s.Origins {
		if r.Origins == nil {
			r.Origins = make(map[string]signal.Origin)
		}
		r.Origins[name] = signal.Origin(o)
	}
	return r
}
