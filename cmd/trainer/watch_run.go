package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// candidate is what --run did. The file next to the model keeps it, so that a run that is killed goes on, and labels that gave a
// worse model are not learnt from each day again.
type candidate struct {
	Labels   string         `json:"labels_sha256"` // of the labels, the configuration and the champions
	Model    string         `json:"model"`
	Contests []card.Contest `json:"champions"`
}

// retrain trains a candidate for the models that are due, and puts it on trial where it is not worse.
func (f *watchCommand) retrain(ctx context.Context, out cli.Output, all []*asked) (*candidate, error) {
	text := out
	if f.IsJSON() {
		text.Stdout = out.Stderr
	}
	log := cli.Logger(out.Stderr, zerolog.WarnLevel)
	due := slices.DeleteFunc(slices.Clone(all), func(m *asked) bool { return m.Due != train.DueNow || len(m.Waits) > 0 })
	if len(due) == 0 {
		fmt.Fprintln(text.Stdout, "nothing to train: no model is due, or a candidate waits for a person (trainer shadow report; then trainer promote, or trainer retire --shadow)")
		return nil, nil
	}
	d, err := f.load(log)
	if err != nil {
		return nil, err
	}
	if due = trainable(due, d, text.Stdout); len(due) == 0 {
		return nil, nil
	}
	c, err := f.candidate(ctx, text, due, d, log)
	if err != nil {
		return nil, err
	}
	return c, f.putOnTrial(ctx, text, d, due, c)
}

// trainable returns the champions of the configuration's layout that have labelled tools that they have not learnt from.
func trainable(due []*asked, d *dataset, w io.Writer) (some []*asked) {
	spec := window.Spec{Length: d.Config.Window.Length, Hop: d.Config.Window.Hop}
	for _, m := range due {
		switch layout, own := d.Layout.Fingerprint(), m.deployment.Champion.Window; {
		case m.Layout != layout:
			fmt.Fprintf(w, "%s: not trained: its layout is %s, and the configuration's is %s: run watch with the configuration of that layout too\n", plain.Text(m.For), m.Layout, layout)
		case own.Length != spec.Length || own.Step() != spec.Step():
			fmt.Fprintf(w, "%s: not trained: %s judges windows of %v every %v, and the configuration's are of %v every %v, so that no window is judged by both: set `window` as the champion has it, or train with fit and promote by hand\n", plain.Text(m.For), m.Champion, own.Length, own.Step(), spec.Length, spec.Step())
		case len(m.fresh) == 0:
			fmt.Fprintf(w, "%s: not trained: no labelled tool is new to %s, so that there is nothing to learn: label tools (docs/how-to/labels-from-the-floor.md)\n", plain.Text(m.For), m.Champion)
		default:
			some = append(some, m)
		}
	}
	return some
}

// candidate returns the model of these labels with its comparisons: the one that is there already, or a new one.
func (f *watchCommand) candidate(ctx context.Context, out cli.Output, due []*asked, d *dataset, log zerolog.Logger) (*candidate, error) {
	sum, err := f.sumOf(due, d)
	if err != nil {
		return nil, err
	}
	if c := f.before(sum); c != nil {
		fmt.Fprintf(out.Stdout, "the same labels, configuration and champions gave %s: it is not trained again\n", c.Model)
		return c, nil
	}
	report, err := f.train(ctx, out)
	if err != nil {
		return nil, err
	}
	c := &candidate{Labels: sum, Model: report.Model}
	for _, m := range due {
		contest, err := f.compare(ctx, out, m, report, log)
		if err != nil {
			return nil, err
		}
		contest.For = m.For
		c.Contests = append(c.Contests, *contest)
	}
	report.Against = c.Contests
	if err := report.Save(nextTo(f.Model, ".report"), config.WriteFile); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, err
	}
	return c, config.WriteFile(nextTo(f.Model, ".watch.json"), append(text, '\n'))
}

// before returns what an earlier run made of the same labels, if its file and its model are there; else nil.
func (f *watchCommand) before(sum string) *candidate {
	c := new(candidate)
	text, err := os.ReadFile(nextTo(f.Model, ".watch.json"))
	if err != nil || json.Unmarshal(text, c) != nil || c.Labels != sum {
		return nil
	}
	if m, err := model.Load(f.Model); err != nil || m.ID() != c.Model {
		return nil
	}
	return c
}

// compare compares the candidate with a champion on the rows that the candidate was scored on.
func (f *watchCommand) compare(ctx context.Context, out cli.Output, m *asked, report *card.Report, log zerolog.Logger) (*card.Contest, error) {
	d, err := f.load(log) // what is on Kafka now: more than the candidate saw is left out
	if err != nil {
		return nil, err
	}
	e := train.Exam{Model: m.deployment.Champion, Inputs: d.Inputs, Wear: d.Wear, Join: d.Config.Join, Log: log}
	p := f.Progress(out.Stderr)
	defer p.Close()
	e.Progress = p.Report
	c, err := e.Compare(ctx, report, m.fresh)
	if err != nil {
		return nil, fmt.Errorf("comparing with %s, the champion of %s: %w", m.Champion, m.For, err)
	}
	return c, nil
}

// putOnTrial publishes the candidate and makes it a shadow, where it is not worse and was not on trial before.
func (f *watchCommand) putOnTrial(ctx context.Context, out cli.Output, d *dataset, due []*asked, c *candidate) error {
	for _, m := range due {
		i := slices.IndexFunc(c.Contests, func(x card.Contest) bool { return x.For == m.For })
		contest := &c.Contests[i]
		fmt.Fprintf(out.Stdout, "%s: %s and champion %s, on the same windows\n%s\n", plain.Text(m.For), c.Model, m.Champion, contest.String())
		if contest.Worse() {
			fmt.Fprintf(out.Stdout, "%s is not published: it is worse than the champion, or nothing shows that it is not; label more tools\n", c.Model)
			continue
		}
		was, err := f.wasOnTrial(ctx, m, c.Model)
		if err != nil {
			return err
		}
		if was {
			fmt.Fprintf(out.Stdout, "%s was on trial, and no label is new since: promote it, or label more tools\n", c.Model)
			continue
		}
		write := f.writing()
		write.Note = cmp.Or(write.Note, fmt.Sprintf("trainer watch: %d tools labelled since; G-mean %.3f on them, champion %.3f", len(m.fresh), contest.Fresh.Candidate.GMean, contest.Fresh.Champion.GMean))
		err = (&publishCommand{cli.ModelFile{Model: f.Model}, write}).Run(ctx, out)
		if err == nil {
			err = (&promoteCommand{Model: c.Model, forFlags: forFlags{m.For, m.Layout}, Shadow: d.Config.Watch.Shadow, writeFlags: write}).Run(ctx, out)
		}
		if err != nil {
			return err
		}
		m.Waits = append(m.Waits, c.Model+" is on trial from now on")
	}
	return nil
}

// wasOnTrial reports whether a candidate was a shadow of a deployment before, and a person ended that. It is an error if someone has
// changed the deployment during the training.
func (f *watchCommand) wasOnTrial(ctx context.Context, m *asked, id string) (bool, error) {
	_, topic, err := f.topic(ctx)
	if err != nil {
		return false, err
	}
	all := slices.DeleteFunc(topic.Book().History(), func(c deploy.RecordedChange) bool { return c.For != m.For || c.Layout != m.Layout })
	if len(all) == 0 || all[0].ID != m.deployment.Change {
		return false, fmt.Errorf("%s was changed during the training: nothing is published; ask again", m.For)
	}
	return slices.ContainsFunc(all, func(c deploy.RecordedChange) bool {
		return slices.ContainsFunc(c.Shadows, func(s deploy.Trial) bool { return s.Model == id })
	}), nil
}

// sumOf returns the checksum of what a candidate follows from, but for the windows that Kafka and files have.
func (f *watchCommand) sumOf(due []*asked, d *dataset) (string, error) {
	h := sha256.New()
	settings, err := json.Marshal(&d.Config)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "%s\n%+v\n", settings, d.Wear)
	fmt.Fprintf(h, "%q %q %q %q %q %q %q %q %q %q %v\n", f.Source, f.Since.Text, f.Until.Text, f.Data, f.Table, f.More, f.Ignore, f.Keep, f.Layout, cmp.Or(f.Machine, noMachine), f.Start)
	for _, m := range due {
		fmt.Fprintf(h, "%s %s %s\n", m.For, m.Layout, m.Champion)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
