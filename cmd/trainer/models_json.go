package main

import (
	"time"

	"github.com/flank-tcm/flank/internal/deploy"
)

// published is what `models ls` prints for programs.
type published struct {
	Models      []listedModel      `json:"models"`
	Deployments []listedDeployment `json:"deployments"`
	Refused     []listedRefusal    `json:"refused"`
}

type listedModel struct {
	deploy.Manifest
	listedSignature
	Judges  []string `json:"judges"` // globs of machines
	Problem string   `json:"problem,omitempty"`
}

// listedSignature is who signed a record. Checked is false if no public key was there to check it.
type listedSignature struct {
	Key     string `json:"signed_by"` // id of the key; empty: not signed
	Checked bool   `json:"signature_checked"`
}

type listedDeployment struct {
	For      string              `json:"for"`
	Layout   string              `json:"layout"`
	Champion string              `json:"champion"`
	Since    time.Time           `json:"since,omitzero"`
	Change   string              `json:"change"`
	By       string              `json:"by"`
	Note     string              `json:"note,omitempty"`
	Shadows  []listedShadow      `json:"shadows"`
	Alarm    *deploy.AlarmRecord `json:"alarm,omitempty"` // nil: as the monitor is configured
}

type listedShadow struct {
	Model string    `json:"model"`
	Until time.Time `json:"until"`
}

type listedRefusal struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

type listedChange struct {
	ID string `json:"id"`
	deploy.Change
	listedSignature
}

func listPublished(b *deploy.Book, s deploy.Set, refused []deploy.Refusal) published {
	all := published{Models: []listedModel{}, Deployments: []listedDeployment{}, Refused: []listedRefusal{}}
	for _, m := range b.Models() {
		all.Models = append(all.Models, listedModel{m.Manifest, listedSignature{m.SignedBy, m.SignedBy != "" && !m.Unproved}, append([]string{}, judges(s, m.ID)...), m.Problem})
	}
	for _, d := range s.Deployments() {
		row := listedDeployment{For: d.For.String(), Layout: d.Layout, Champion: d.Champion.ID(), Since: d.Since, Change: d.Change, By: d.By, Note: d.Note, Shadows: []listedShadow{}}
		for _, h := range d.Shadows {
			row.Shadows = append(row.Shadows, listedShadow{h.Model.ID(), h.Until})
		}
		if d.Alarm != nil {
			row.Alarm = deploy.RecordOf(*d.Alarm)
		}
		all.Deployments = append(all.Deployments, row)
	}
	for _, r := range refused {
		all.Refused = append(all.Refused, listedRefusal{r.Key, r.String()})
	}
	return all
}

func listChange(c deploy.RecordedChange) listedChange {
	return listedChange{c.ID, c.Change, listedSignature{c.SignedBy, c.SignedBy != "" && !c.Unproved}}
}
