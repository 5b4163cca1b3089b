package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/train"
)

// Exit codes of watch, in addition to 0 and 1.
const (
	codeDue    = 3
	codeUnsure = 4
)

type watchCommand struct {
	Once  bool `help:"Ask once. Exit code 0: no model is due, or a candidate is on trial. 3: one is due, or its candidate's trial is over. 4: none is known to be due, and not all could be read. 1: an error. Without --once it asks once a day until a signal comes."`
	Train bool `name:"run" help:"Train for models that are due, and put a candidate on trial that is not worse than the champion on tools that are new to both. It never promotes a champion. --model is where the candidate is written; --key signs it."`
	cli.Machines
	groupFlag
	cli.Listing
	fitCommand
	trustFlags
	signFlags
}

// Run asks whether models should be trained again.
func (f *watchCommand) Run(ctx context.Context, out cli.Output) error {
	if f.Once {
		return f.ask(ctx, out)
	}
	log := cli.Logger(out.Stderr, zerolog.InfoLevel)
	for {
		for _, at := range []*cli.Instant{&f.Since, &f.Until} {
			_ = at.UnmarshalText([]byte(at.Text)) // which counts back from now, and was read before
		}
		if err := f.ask(ctx, out); err != nil && ctx.Err() == nil {
			log.Warn().Err(err).Msgf("asks again in %v", day)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(day):
		}
	}
}

// asked is a champion, and whether it should be trained again.
type asked struct {
	For      string         `json:"for"`
	Layout   string         `json:"layout"`
	Champion string         `json:"champion"`
	Due      train.Due      `json:"answer"`
	Waits    []string       `json:"on_trial,omitempty"` // shadows of the deployment: a person decides first
	Reasons  []train.Reason `json:"reasons"`
	Notes    []string       `json:"notes,omitempty"`

	deployment deploy.Deployment
	over       bool        // no shadow of it is on trial any more
	fresh      train.Fresh // labelled tools that the champion has not learnt from
}

// answers is what watch prints for programs.
type answers struct {
	Models    []*asked   `json:"models"`
	Refused   int        `json:"refused_records"`
	Candidate *candidate `json:"candidate,omitempty"` // of --run
}

func (f *watchCommand) ask(ctx context.Context, out cli.Output) error {
	if f.Train { // before minutes of reading
		if _, _, err := f.writing().writer(ctx); err != nil {
			return err
		}
	}
	said, err := f.gather(ctx, out)
	if err != nil {
		return err
	}
	if !f.IsJSON() {
		said.print(out)
	}
	if f.Train {
		said.Candidate, err = f.retrain(ctx, out, said.Models)
	}
	if f.IsJSON() {
		err = errors.Join(err, cli.PrintJSON(out.Stdout, said))
	}
	if err != nil {
		return err
	}
	return said.exit()
}

// gather answers the question for the champions of the machines.
func (f *watchCommand) gather(ctx context.Context, out cli.Output) (said answers, err error) {
	c, err := f.configuration()
	if err != nil {
		return said, err
	}
	switch {
	case !c.Watch.Asks():
		return said, errors.New("all limits under `watch` in the configuration are 0, so that nothing is asked: set one of new_tools, drifting, unknown and false_alarms")
	case f.Train && c.Evaluate.ByTool == "off":
		return said, errors.New("--run compares verdicts on tools that were held out, and evaluate.by_tool is \"off\" in the configuration: set it to leave-one-out or 5-fold")
	}
	if f.Labels == labelsNone && f.Wear == "" && c.Wear == "" {
		f.Labels = labelsAll
	}
	glob, err := deploy.ParseGlob(f.For)
	if err != nil {
		return said, fmt.Errorf("--for %w", err)
	}
	ctx, topic, err := f.topic(ctx)
	if err != nil {
		return said, err
	}
	set, refused, err := topic.Set(ctx)
	if err != nil {
		return said, because(ctx, err)
	}
	w := newWatcher(set, glob, f.Group, c, time.Now())
	if err := w.read(ctx, f, topic.Book().Models(), out); err != nil {
		return said, err
	}
	return answers{Models: w.answers(), Refused: len(refused)}, nil
}

func (f *watchCommand) configuration() (train.Config, error) {
	if f.Config == "" {
		return train.DefaultConfig(), nil
	}
	return train.LoadConfig(f.Config)
}

// writing are the flags of who writes to the topic of models.
func (f *watchCommand) writing() writeFlags {
	return writeFlags{topicFlags{f.inputFlags.kafkaFlags.Broker, f.trustFlags}, f.signFlags}
}

// topic returns the topic of models as it is: for --run as 'trainer promote' will see it after the training, where the own key counts
// and, without --public-key, no other key.
func (f *watchCommand) topic(ctx context.Context) (context.Context, *deploy.Topic, error) {
	if f.Key == "" || !f.Train && len(f.PublicKey) == 0 {
		return f.writing().read(ctx)
	}
	ctx, w, err := f.writing().writer(ctx)
	if err != nil {
		return ctx, nil, err
	}
	t, err := w.Topic(ctx)
	return ctx, t, because(ctx, err)
}

// print says a line for each model, and what people should know.
func (a *answers) print(out cli.Output) {
	for _, m := range a.Models {
		words := map[train.Due]string{train.DueNow: "due", train.DueNot: "not due", train.DueUnsure: "not known"}[m.Due]
		if len(m.Waits) > 0 {
			words = "waits for a person: " + strings.Join(m.Waits, ", ")
		}
		var reasons []string
		for _, r := range m.Reasons {
			text := r.String()
			if r.Due {
				text = "DUE " + text
			}
			reasons = append(reasons, text)
		}
		fmt.Fprintf(out.Stdout, "%s  %s  %s: %s\n", plain.Text(m.For), m.Champion, words, plain.Text(strings.Join(reasons, "; ")))
		for _, n := range m.Notes {
			fmt.Fprintf(out.Stderr, "note: %s: %s\n", plain.Text(m.For), plain.Text(n))
		}
	}
	if len(a.Models) == 0 {
		fmt.Fprintln(out.Stdout, "no champion on Kafka judges these machines, so it is not known whether training is due: promote a model (docs/how-to/roll-out-a-model.md)")
	}
	if a.Refused > 0 {
		fmt.Fprintf(out.Stdout, "%d records of models are refused, and were not asked about: name with --public-key whose records count; 'trainer models ls' says why, and how to remove them\n", a.Refused)
	}
}

// exit returns the answer as an exit code; nil is no.
func (a *answers) exit() error {
	due, over, unsure := 0, 0, a.Refused
	if len(a.Models) == 0 {
		unsure++
	}
	for _, m := range a.Models {
		switch {
		case len(m.Waits) > 0: // a person decides first
			if m.Due == train.DueNow && m.over {
				over++
			}
		case m.Due == train.DueNow:
			due++
		case m.Due == train.DueUnsure:
			unsure++
		}
	}
	switch {
	case due > 0:
		return &cli.Exit{Code: codeDue, Err: fmt.Errorf("training is due for %d of %d models", due, len(a.Models))}
	case over > 0:
		return &cli.Exit{Code: codeDue, Err: fmt.Errorf("training is due for %d of %d models, whose candidates' trials are over: trainer shadow report says how they did; then trainer promote, or trainer retire --shadow", over, len(a.Models))}
	case unsure > 0:
		return &cli.Exit{Code: codeUnsure, Err: errors.New("no model is known to be due, and not all could be read that may say so: see above")}
	}
	return nil
}
