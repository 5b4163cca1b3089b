package web

import "time"

// Deployed is the answer of /api/models.
type Deployed struct {
	Models      []ModelFacts `json:"models"`      // on tcm.models.v1 and of the file, the newest first
	Deployments []Deployment `json:"deployments"` // the most specific first
}

// ModelFacts are what a list shows of a model.
type ModelFacts struct {
	ID      string     `json:"id"`
	Title   string     `json:"title"`            // in a line, for people
	Layout  string     `json:"layout,omitempty"` // its name
	LimitUM *float64   `json:"limit_um,omitempty"`
	File    bool       `json:"file"`         // the program loaded it from a file
	At      *time.Time `json:"at,omitempty"` // when it was published
	By      string     `json:"by,omitempty"`
	Note    string     `json:"note,omitempty"`
	Key     string     `json:"key,omitempty"` // that signed it
}

// Deployment says what judges the machines that a glob names.
type Deployment struct {
	For      string     `json:"for"` // glob of machines
	Layout   string     `json:"layout"`
	Champion string     `json:"champion"`
	Shadows  []Shadow   `json:"shadows"`
	Alarm    *AlarmRule `json:"alarm,omitempty"`
	Unsigned bool       `json:"unsigned"`
	At       *time.Time `json:"at,omitempty"` // when it was changed last
	By       string     `json:"by,omitempty"`
	Note     string     `json:"note,omitempty"`
}

// Shadow is a model that judges without effect on alarms.
type Shadow struct {
	Model string     `json:"model"`
	Until *time.Time `json:"until,omitempty"`
}

// AlarmRule says when an alarm is raised.
type AlarmRule struct {
	K         int     `json:"k"`
	N         int     `json:"n"`
	Threshold float64 `json:"threshold"`
}

// ModelDetail is the answer of /api/models/{id}.
type ModelDetail struct {
	ModelFacts
	Features    int          `json:"features"` // that it judges by
	Channels    []string     `json:"channels"`
	Deployments []Deployment `json:"deployments"` // in which it judges or is a shadow
	Machines    []string     `json:"machines"`    // whose last result is of this model

	// UnknownRate is the share of windows that the model did not know, of those that it judged,
	// by hour: of at most 20 machines that it judges now, in the last 14 days at most, since it
	// was published. The hub fills it in, as it does Machines.
	UnknownRate UnknownRate `json:"unknown_rate"`
}

// UnknownRate has an element for each hour with windows, the oldest first.
type UnknownRate struct {
	T     []int64   `json:"t"` // Unix seconds
	Share []float64 `json:"share"`
}
