package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/model"
)

type modelsCommand struct {
	Ls      modelsLs      `cmd:"" help:"List the published models, the deployments, and the records that are refused." example:"trainer models ls --kafka kafka1:9092 --public-key flank.pub; trainer models ls --kafka kafka1:9092 -o json"`
	Show    modelsShow    `cmd:"" help:"Print what is known of a published model, or of a change." example:"trainer models show ecs-dbn-1f3a9c02d4e5 --kafka kafka1:9092"`
	History modelsHistory `cmd:"" help:"List who changed what, the newest first. The topic keeps the last 50 changes of each deployment." example:"trainer models history --for 'acme/spore/bay2/**' --kafka kafka1:9092"`
	Diff    modelsDiff    `cmd:"" help:"Compare two models: published ones by id, or files." example:"trainer models diff ecs-dbn-1f3a9c02d4e5 new.flank --kafka kafka1:9092"`
	Rm      modelsRm      `cmd:"" help:"Remove models that no deployment needs, or records that are refused." example:"trainer models rm ecs-dbn-1f3a9c02d4e5 --kafka kafka1:9092 --key flank.key --by anna"`
}

type modelsLs struct {
	topicFlags
	cli.Listing
}

// Run lists models and deployments.
func (f *modelsLs) Run(ctx context.Context, out cli.Output) error {
	ctx, t, err := f.read(ctx)
	if err != nil {
		return err
	}
	s, refused, err := t.Set(ctx)
	if err != nil {
		return because(ctx, err)
	}
	if f.IsJSON() {
		return cli.PrintJSON(out.Stdout, listPublished(t.Book(), s, refused))
	}
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model\tlayout\tsize\tpublished\tby\tsigned\tjudges")
	for _, m := range t.Book().Models() {
		if m.Problem != "" {
			fmt.Fprintf(w, "%s\tcannot be used: %s\n", plain.Text(m.ID), plain.Text(m.Problem))
			continue
		}
		fmt.Fprintf(w, "%s\t%s (%s)\t%s\t%s\t%s\t%s\t%s\n", m.ID, m.Layout.Fingerprint, plain.Text(m.Layout.Name), bus.FormatBytes(m.Size), clock(m.At), plain.Text(m.By),
			signedBy(m.SignedBy, m.Unproved), cmp.Or(strings.Join(judges(s, m.ID), ", "), "–"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out.Stdout)
	if len(s.Deployments()) == 0 {
		fmt.Fprintln(out.Stdout, "no deployments: no machine is judged by a published model")
		return f.rest(out, refused)
	}
	fmt.Fprintln(w, "for\tlayout\tchampion\tsince\tby\tchange\tshadows\talarm")
	for _, d := range s.Deployments() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain.Text(d.For.String()), plain.Text(d.Layout), d.Champion.ID(), clock(d.Since), plain.Text(d.By), d.Change, shadows(d, time.Now()), alarmOf(d))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.rest(out, refused)
}

// rest prints what is behind the tables.
func (f *modelsLs) rest(out cli.Output, refused []deploy.Refusal) error {
	if len(f.PublicKey) == 0 {
		fmt.Fprintln(out.Stdout, "\nSignatures were not checked: name the public keys of your monitors with --public-key to see what they see.")
	}
	if len(refused) > 0 {
		fmt.Fprintf(out.Stdout, "\n%d refused; what counted before goes on:\n", len(refused))
		for _, r := range refused {
			fmt.Fprintf(out.Stdout, "  %s\n    to remove it: trainer models rm %s\n", r, cli.Quote(plain.Text(r.Key)))
		}
	}
	return nil
}

// judges returns the deployments of a model.
func judges(s deploy.Set, id string) (all []string) {
	for _, d := range s.Deployments() {
		if d.Champion.ID() == id {
			all = append(all, d.For.String())
		}
		for _, h := range d.Shadows {
			if h.Model.ID() == id {
				all = append(all, d.For.String()+" (shadow)")
			}
		}
	}
	return all
}

// shadows lists the shadows of a deployment.
func shadows(d deploy.Deployment, now time.Time) string {
	var all []string
	for _, h := range d.Shadows {
		verb := "until"
		if !now.Before(h.Until) {
			verb = "over since"
		}
		all = append(all, fmt.Sprintf("%s %s %s", h.Model.ID(), verb, clock(h.Until)))
	}
	return cmp.Or(strings.Join(all, ", "), "–")
}

func alarmOf(d deploy.Deployment) string {
	if d.Alarm == nil {
		return alarmText(nil)
	}
	return alarmText(deploy.RecordOf(*d.Alarm))
}

type modelsShow struct {
	ID string `arg:"" help:"Id of a model, or number of a change, as 'ls' and 'history' print them."`
	topicFlags
}

// printChange prints the change that is named, and reports whether there is one.
func (f *modelsShow) printChange(all []deploy.RecordedChange, out cli.Output) bool {
	for _, c := range all {
		if c.ID == f.ID || strconv.FormatUint(c.Number, 10) == f.ID {
			printChange(out, c)
			fmt.Fprintf(out.Stdout, "action    %s by %s at %s\n", c.Action, plain.Text(c.By), clock(c.At))
			if c.Note != "" {
				fmt.Fprintf(out.Stdout, "note      %s\n", plain.Text(c.Note))
			}
			return true
		}
	}
	return false
}

// Run prints a model or a change.
func (f *modelsShow) Run(ctx context.Context, out cli.Output) error {
	ctx, t, err := f.read(ctx)
	if err != nil {
		return err
	}
	if f.printChange(t.Book().History(), out) {
		return nil
	}
	all := t.Book().Models()
	i := slices.IndexFunc(all, func(m deploy.PublishedModel) bool { return m.ID == f.ID })
	if i < 0 {
		return fmt.Errorf("%s is neither a published model nor a change: see 'trainer models ls' and 'trainer models history'", plain.Text(f.ID))
	}
	m, err := t.Model(ctx, f.ID)
	if err != nil {
		return because(ctx, err)
	}
	s, _, err := t.Set(ctx)
	if err != nil {
		return because(ctx, err)
	}
	p := all[i]
	fmt.Fprintf(out.Stdout, "published   %s by %s, %s, %s\n", clock(p.At), plain.Text(p.By), bus.FormatBytes(p.Size), signedBy(p.SignedBy, p.Unproved))
	if p.Note != "" {
		fmt.Fprintf(out.Stdout, "note        %s\n", plain.Text(p.Note))
	}
	printFacts(out, facts(m))
	for _, of := range judges(s, f.ID) {
		fmt.Fprintf(out.Stdout, "judges      %s\n", of)
	}
	return nil
}

// fact is something about a model that matters to a person; no lines if the model does not have it.
type fact struct {
	name  string
	lines []string
}

// text returns the fact on one line.
func (f fact) text() string { return strings.Join(f.lines, "; ") }

// printFacts prints facts, each line of them below the other.
func printFacts(out cli.Output, all []fact) {
	for _, f := range all {
		for i, line := range f.lines {
			fmt.Fprintf(out.Stdout, "%-11s %s\n", map[bool]string{true: f.name}[i == 0], line)
		}
	}
}

// facts returns what a person wants to know of a model, in the same order for all models.
func facts(m *model.Model) []fact {
	says := func(name, text string) fact {
		if text == "" {
			return fact{name: name}
		}
		return fact{name, []string{text}}
	}
	verdict, drift, labels := "", "", ""
	if v := card.HeadlineOf(m).Verdict; v != nil {
		verdict = v.Short()
	}
	scores := says("scores", "")
	if of, text := card.Scores(m); of != "" {
		scores.lines = []string{of, "of " + text}
	}
	reference := "off"
	if m.Reference.Mode != model.ReferenceOff {
		reference = fmt.Sprintf("%s, of a tool's first %d windows", m.Reference.Describe(), m.Reference.Windows)
	}
	if m.Drift != nil {
		drift = fmt.Sprintf("against the references of %d tools", m.Drift.Tools)
	}
	data := says("trained on", "")
	for _, d := range m.Provenance.Data {
		data.lines = append(data.lines, d.String())
	}
	named, more := m.Provenance.Tools()
	tools := strings.Join(named, ", ")
	if more > 0 {
		tools += fmt.Sprintf(" and %d more", more)
	}
	if m.Provenance.Labels != "" {
		labels = strings.TrimPrefix(model.LabelsFrom(m.Provenance.LabelsFrom)+", ", ", ") + fmt.Sprintf("SHA-256 %.16s…", m.Provenance.Labels)
	}
	unknown, wear := card.Notes(m)
	return slices.Concat([]fact{
		says("model", m.ID()),
		says("layout", fmt.Sprintf("%s, fingerprint %s, %d channels", m.Layout.Name(), m.Layout.Fingerprint(), len(m.Layout.Channels()))),
		says("windows", m.Window.Length.String()),
		says("features", fmt.Sprintf("%d of version %d", m.Columns(), m.Features.Version)),
		says("reference", reference),
		says("cutting", m.Cutting()),
		says("label", card.RuleOf(m).String()),
	}, decides(m), []fact{
		says("verdict", verdict),
		scores,
		says("unknown", strings.TrimPrefix(unknown, "unknown: ")),
		says("wear", strings.TrimLeft(strings.TrimPrefix(wear, "flank wear"), ": ")),
		says("drift", drift),
		data,
		says("tools", tools),
		says("labels", labels),
		says("by", fmt.Sprintf("%s, seed %d", m.Provenance.Program, m.Provenance.Seed)),
		says("parent", m.Provenance.Parent),
	})
}

// decides says what decides.
func decides(m *model.Model) []fact {
	if m.Classifier == nil {
		return []fact{{name: "network"}, {name: "costs"}, {name: "guard"}, {"first day", []string{card.FirstDayOf(m)}}}
	}
	return []fact{{"network", []string{card.Shape(m)}}, {"costs", []string{costsFact(m)}}, {"guard", []string{guardFact(m)}}, {name: "first day"}}
}

func costsFact(m *model.Model) string {
	var costs []string
	c, classes := m.Classifier.Costs(), m.ClassNames()
	for k, name := range classes {
		costs = append(costs, fmt.Sprintf("%.4f of %s", c[k], name))
	}
	if len(c) == 2 {
		costs = append(costs, fmt.Sprintf("%s from P(%s) > %.4f on", classes[1], classes[1], c.Threshold()))
	}
	return strings.Join(costs, ", ")
}

func guardFact(m *model.Model) string {
	g := m.Classifier.Guard()
	if g == nil {
		return "none: one sensor that reads wrong can turn the verdict"
	}
	return fmt.Sprintf("%d experts bound the network to %.3g log odds around their vote, of the sensors %s; %s", len(g.Experts()), g.Bound(), card.Listed(g.Sensors()),
		map[bool]string{true: "steps of their gains are taken out", false: "steps of their gains are not looked for"}[g.LooksForSteps()])
}

type modelsHistory struct {
	For string `placeholder:"GLOB" help:"Only changes of the deployments for exactly this glob."`
	topicFlags
	cli.Listing
}

// Run lists the changes.
func (f *modelsHistory) Run(ctx context.Context, out cli.Output) error {
	_, t, err := f.read(ctx)
	if err != nil {
		return err
	}
	changes := slices.DeleteFunc(t.Book().History(), func(c deploy.RecordedChange) bool { return f.For != "" && c.For != f.For })
	if f.IsJSON() {
		rows := []listedChange{}
		for _, c := range changes {
			rows = append(rows, listChange(c))
		}
		return cli.PrintJSON(out.Stdout, rows)
	}
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "change\tat\taction\tfor\tlayout\tchampion\tshadows\tby\tsigned\tnote")
	for _, c := range changes {
		var trials []string
		for _, s := range c.Shadows {
			trials = append(trials, fmt.Sprintf("%s until %s", s.Model, clock(s.Until)))
		}
		action := string(c.Action)
		if c.Now {
			action += " now"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, clock(c.At), action, plain.Text(c.For), plain.Text(c.Layout), cmp.Or(plain.Text(c.Champion), "–"), cmp.Or(strings.Join(trials, ", "), "–"), plain.Text(c.By),
			signedBy(c.SignedBy, c.Unproved), cmp.Or(plain.Text(c.Note), "–"))
	}
	return w.Flush()
}

type modelsDiff struct {
	Models []string `arg:"" name:"model" help:"Two models: ids of published ones, or files."`
	topicFlags
}

// Run compares two models.
func (f *modelsDiff) Run(ctx context.Context, out cli.Output) error {
	if len(f.Models) != 2 {
		return fmt.Errorf("%d models: name two to compare", len(f.Models))
	}
	var (
		topic  *deploy.Topic
		alarms [2]string
		all    [2][]fact
		models [2]*model.Model
	)
	for i, name := range f.Models {
		m, err := model.Load(name)
		if errors.Is(err, fs.ErrNotExist) {
			if topic == nil {
				if ctx, topic, err = f.read(ctx); err != nil {
					return fmt.Errorf("%s is not a file, so it must be published: %w", name, err)
				}
			}
			if m, err = topic.Model(ctx, name); err != nil {
				return fmt.Errorf("%s: %w", name, because(ctx, err))
			}
			s, _, err := topic.Set(ctx)
			if err != nil {
				return because(ctx, err)
			}
			alarms[i] = alarmsOf(s, name)
		} else if err != nil {
			return err
		}
		models[i], all[i] = m, facts(m)
	}
	w := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
	same := []string{}
	for i, a := range append(all[0], fact{"alarm", []string{alarms[0]}}) {
		b := append(all[1], fact{"alarm", []string{alarms[1]}})[i]
		switch {
		case a.name == "tools": // below
		case a.text() != b.text():
			fmt.Fprintf(w, "%s\t%s\n\t%s\n", a.name, cmp.Or(plain.Text(a.text()), "–"), cmp.Or(plain.Text(b.text()), "–"))
		case a.text() != "":
			same = append(same, a.name)
		}
	}
	onlyIn(w, "only in", models[0].NewJudge().FeatureNames(), models[1].NewJudge().FeatureNames())
	tools, _ := models[0].Provenance.Tools()
	others, _ := models[1].Provenance.Tools()
	if len(tools) > 0 && len(others) > 0 { // models of older releases do not say
		onlyIn(w, "tools only in", tools, others)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(same) > 0 {
		fmt.Fprintf(out.Stdout, "the same: %s\n", strings.Join(same, ", "))
	}
	return nil
}

// onlyIn prints which names one model has and the other one has not.
func onlyIn(w io.Writer, what string, a, b []string) {
	less := func(all, of []string) string { return plain.Text(card.Some(without(all, of))) }
	if only, other := less(a, b), less(b, a); only+other != "" {
		fmt.Fprintf(w, "%s\t%s\n\t%s\n", what, cmp.Or(only, "–"), cmp.Or(other, "–"))
	}
}

// alarmsOf says under which alarm settings a model is champion.
func alarmsOf(s deploy.Set, id string) string {
	var all []string
	for _, d := range s.Deployments() {
		if d.Champion.ID() == id {
			all = append(all, fmt.Sprintf("%s: %s", d.For, alarmOf(d)))
		}
	}
	return strings.Join(all, "; ")
}

type modelsRm struct {
	ID []string `arg:"" help:"Id of a model, or the key of a refused record, as 'ls' prints it."`
	writeFlags
}

// Run removes models and refused records.
func (f *modelsRm) Run(ctx context.Context, out cli.Output) error {
	ctx, w, err := f.writer(ctx)
	if err != nil {
		return err
	}
	for _, id := range f.ID {
		err := w.RemoveAny(ctx, id)
		f.record(ctx, w, out, event.RemoveModel, id, "", err)
		if err != nil {
			return because(ctx, err)
		}
		fmt.Fprintf(out.Stdout, "removed %s\n", id)
	}
	return nil
}
