package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// listModels returns the models of tcm.models.v1 and of the file, and the deployments.
func (s *system) listModels(context.Context) (web.Deployed, error) {
	used, deployments := s.judging.Load().Models()
	published := s.models.get(s.readModels).facts
	all := web.Deployed{Models: slices.Clone(published), Deployments: deployments}
	for _, m := range used {
		i := slices.IndexFunc(all.Models, func(f web.ModelFacts) bool { return f.ID == m.ID() })
		if i < 0 {
			all.Models = append(all.Models, web.ModelFacts{ID: m.ID(), Title: m.String(), Layout: m.Layout.Name(), File: s.c.Model != ""})
			i = len(all.Models) - 1
		}
		all.Models[i].LimitUM = limitOf(m)
	}
	return all, nil
}

func limitOf(m *model.Model) *float64 {
	if um := monitor.LimitUM(m); um > 0 {
		return &um
	}
	return nil
}

// publishedModels are what tcm.models.v1 says of models.
type publishedModels struct {
	facts  []web.ModelFacts
	curves map[string][]byte // by id, as they were published
}

// readModels reads what tcm.models.v1 says of models.
func (s *system) readModels(ctx context.Context) (all publishedModels, err error) {
	published, err := s.judging.Load().Published(ctx)
	all.curves = make(map[string][]byte)
	for _, m := range published {
		if m.Curve != nil {
			all.curves[m.ID] = m.Curve
		}
		f := web.ModelFacts{ID: m.ID, Title: m.Title, Layout: m.Layout.Name, By: m.By, Note: m.Note, Key: m.SignedBy}
		if m.Problem != "" {
			f.Title = "cannot be used: " + m.Problem
		}
		if !m.At.IsZero() {
			at := m.At.UTC()
			f.At = &at
		}
		all.facts = append(all.facts, f)
	}
	return all, err
}

// model returns what is known of a model, nil if nothing is.
func (s *system) model(ctx context.Context, id string) (*web.ModelDetail, error) {
	all, err := s.listModels(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all.Models, func(f web.ModelFacts) bool { return f.ID == id })
	if i < 0 {
		return nil, nil
	}
	d := &web.ModelDetail{ModelFacts: all.Models[i]}
	for _, deployment := range all.Deployments {
		if deployment.Champion == id || slices.ContainsFunc(deployment.Shadows, func(s web.Shadow) bool { return s.Model == id }) {
			d.Deployments = append(d.Deployments, deployment)
		}
	}
	used, _ := s.judging.Load().Models()
	if i := slices.IndexFunc(used, func(m *model.Model) bool { return m.ID() == id }); i >= 0 {
		d.Features = used[i].Columns()
		for _, c := range used[i].Layout.Channels() {
			d.Channels = append(d.Channels, c.Name)
		}
		d.Card = cardOf(used[i])
	}
	d.DefaultAlarm = &web.AlarmRule{K: s.c.Alarm.K, N: s.c.Alarm.N, Threshold: cmp.Or(s.c.Alarm.Threshold, alarm.Default.Threshold)}
	if d.Curve = s.curve(id); d.Curve == nil {
		d.CurveCommand = s.curveCommand()
	}
	return d, nil
}

// curveFiles returns where the curve of a model may be: next to the model's file, and in the
// folder of the history.
func (s *system) curveFiles(id string) (all []string) {
	if s.c.Model != "" {
		all = append(all, alarm.CurveFile(config.ResolvePath(s.c.file, s.c.Model)))
	}
	if s.c.History.Dir != "" && id == filepath.Base(id) {
		all = append(all, filepath.Join(config.ResolvePath(s.c.file, s.c.History.Dir), id+".tune.json"))
	}
	return all
}

// curve returns the curve of a model, from a file here or as it was published; nil if there is none that
// can be used. One that is damaged keeps nothing else from the page: the command that makes it again is there.
func (s *system) curve(id string) *alarm.Curve {
	for _, path := range s.curveFiles(id) {
		if c, err := alarm.LoadCurve(path, id); c != nil && err == nil {
			return c
		}
	}
	if text := s.models.get(s.readModels).curves[id]; text != nil {
		if c, err := alarm.ParseCurve(text, id); err == nil {
			return c
		}
	}
	return nil
}

// curveCommand returns the command that makes the curve of a model, and puts it where curve
// looks: on every monitor, where models come from tcm.models.v1.
func (s *system) curveCommand() string {
	tune := "trainer tune --config " + s.c.file
	if s.c.Model != "" {
		return tune + ` --data DATA --budget "1 per 8h"`
	}
	broker := "HOST:PORT"
	if len(s.bus.Brokers) > 0 {
		broker = s.bus.Brokers[0]
	}
	return tune + ` --model MODEL.flank --data DATA --budget "1 per 8h" && trainer publish MODEL.flank --kafka ` + broker + " --key KEY"
}

// mostData and mostTools bound how many recordings and tools of its training the page of a model lists.
const mostData, mostTools = 50, 200

// cardOf returns what the file of a model says of its training.
func cardOf(m *model.Model) *web.ModelCard {
	h := card.HeadlineOf(m)
	c := &web.ModelCard{
		HeldOut: h.Pooled != nil, Split: h.Split, DataCount: len(m.Provenance.Data), Classes: m.ClassNames(), Label: card.RuleOf(m).String(),
		WindowSeconds: m.Window.Length.Seconds(), FeatureVersion: m.Features.Version, Program: m.Provenance.Program, Seed: m.Provenance.Seed,
	}
	if m.Reference.Mode != model.ReferenceOff {
		c.Reference = fmt.Sprintf("%s, of a tool's first %d windows", m.Reference.Describe(), m.Reference.Windows)
	}
	if m.Classifier != nil && m.Classes() == 2 {
		threshold := m.Classifier.Costs().Threshold()
		c.Threshold = &threshold
	}
	c.FirstDay = card.FirstDayOf(m)
	c.Data, c.Labels = dataOf(m.Provenance.Data), m.Provenance.Labels
	for _, d := range m.Provenance.Data {
		c.DataWindows += d.Windows
	}
	if s := cmp.Or(h.Pooled, h.OutOfFold); s != nil {
		c.Windows, c.Faulty = s.Rows, s.Positive
		c.GMean, c.Recall, c.Specificity = intervalOf(s.GMean), intervalOf(s.Recall), intervalOf(s.Specificity)
		if v := h.Interval; v != nil {
			c.Tools = v.Tools
			c.GMean, c.Recall, c.Specificity = intervalOf(s.GMean, v.GMean[:]...), intervalOf(s.Recall, v.Recall[:]...), intervalOf(s.Specificity, v.Specificity[:]...)
		}
	}
	if v := h.Verdict; v != nil {
		c.Verdict = levelOf(v.Level)
		for _, r := range v.Reasons {
			c.Reasons = append(c.Reasons, web.CardReason{About: r.About, Level: levelOf(r.Level), Because: r.Because, Do: r.Do})
		}
	}
	if h.Unknown != nil {
		c.Unknown = h.Unknown.Without
	}
	return c
}

// dataOf returns what the page of a model shows of its training data.
func dataOf(sets []model.DataSet) (all []web.CardData) {
	room := mostTools
	for _, d := range sets[:min(len(sets), mostData)] {
		shown := web.CardData{Name: d.Name, Windows: d.Windows, SHA256: d.SHA256, MoreTools: d.MoreTools}
		if !d.From.IsZero() {
			shown.From, shown.To = &d.From, &d.To
		}
		for _, m := range d.Machines {
			n := min(len(m.Tools), room)
			room, shown.MoreTools = room-n, shown.MoreTools+len(m.Tools)-n
			if n > 0 {
				shown.Machines = append(shown.Machines, web.CardMachine{Machine: m.Machine, Tools: m.Tools[:n]})
			}
		}
		for _, o := range d.Offsets {
			shown.Offsets = append(shown.Offsets, web.CardOffsets(o))
		}
		all = append(all, shown)
	}
	return all
}

// levelOf returns the word of a level for programs.
func levelOf(l card.Level) string {
	text, err := l.MarshalText()
	if err != nil {
		panic("monitor: level: " + err.Error())
	}
	return string(text)
}

// intervalOf returns a score and the two ends of its interval, if there is one; nil if the score is not known.
func intervalOf[F ~float64](f F, ends ...F) *web.CardInterval {
	all := [3]*float64{}
	for i, f := range append([]F{f}, ends...) {
		if v := float64(f); !math.IsNaN(v) && !math.IsInf(v, 0) {
			all[i] = &v
		}
	}
	if all[0] == nil {
		return nil
	}
	return &web.CardInterval{Value: *all[0], Low: all[1], High: all[2]}
}
