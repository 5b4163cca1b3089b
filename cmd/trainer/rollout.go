package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

type keysCommand struct {
	New keysNewCommand `cmd:"" help:"Make a key: NAME.key signs and stays with you, NAME.pub goes to every monitor." more:"The two files have the name --out, with the endings .key and .pub." example:"trainer keys new --out plant"`
}

type keysNewCommand struct {
	cli.UsualDestination `set:"out=flank"`
}

// Run makes a key.
func (f *keysNewCommand) Run(out cli.Output) error {
	private, public := f.Out+".key", f.Out+".pub"
	key, err := credential.NewSigningKey(rand.Reader, private, public)
	if err != nil {
		return fmt.Errorf("--out %s: %w", f.Out, err)
	}
	fmt.Fprintf(out.Stdout, "key       %s\nprivate   %s: signs models and deployments; keep it, and keep it secret\npublic    %s: copy it to every monitor, and name it in monitor.yaml under models.keys\n",
		deploy.KeyID(key), private, public)
	return nil
}

// topicFlags say how to reach the topic of models, and whose records count.
type topicFlags struct {
	cli.Broker
	trustFlags
}

// trustFlags say whose records count.
type trustFlags struct {
	PublicKey []string `sep:"none" placeholder:"FILE" help:"Public key of someone whose models and deployments count; repeat it for several."`
}

// bus returns how to reach Kafka, and a context that ends when Kafka does not answer.
func (f topicFlags) bus(ctx context.Context) (context.Context, bus.Config, error) {
	cfg, err := f.Bus("flank-trainer")
	ctx, _ = cli.WithPatience(ctx, &cfg)
	return ctx, cfg, err
}

// read returns the topic as it is.
func (f topicFlags) read(ctx context.Context) (context.Context, *deploy.Topic, error) {
	ctx, cfg, err := f.bus(ctx)
	if err != nil {
		return ctx, nil, err
	}
	keys, err := deploy.LoadKeys(len(f.PublicKey) == 0, f.PublicKey...)
	if err != nil {
		return ctx, nil, fmt.Errorf("--public-key: %w", err)
	}
	t := deploy.NewTopic(cfg, keys)
	_, err = t.CatchUp(ctx)
	return ctx, t, because(ctx, err)
}

// because returns why the context has ended, if it has and that is why there is an error.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// writeFlags say who writes to the topic.
type writeFlags struct {
	topicFlags
	signFlags
}

// signFlags say how records are signed, and by whom.
type signFlags struct {
	Key      string `placeholder:"FILE" help:"Your private key, as 'trainer keys new' writes it. What it signs counts for every monitor that has its public key."`
	Unsigned bool   `help:"Write without a signature. Only monitors with --insecure-models accept that, and their pages say so."`
	cli.Person
	cli.Remark
}

// writer returns a writer to the topic.
func (f writeFlags) writer(ctx context.Context) (context.Context, *deploy.Writer, error) {
	if f.Unsigned == (f.Key != "") {
		return ctx, nil, errors.New("name your private key with --key (make one with 'trainer keys new'), or write --unsigned for monitors that run with --insecure-models")
	}
	ctx, cfg, err := f.bus(ctx)
	if err != nil {
		return ctx, nil, err
	}
	w := &deploy.Writer{Bus: cfg, By: f.By, Note: f.Note, Now: time.Now}
	if w.Keys, err = deploy.LoadKeys(f.Unsigned, f.PublicKey...); err != nil {
		return ctx, nil, fmt.Errorf("--public-key: %w", err)
	}
	if f.Key != "" {
		if w.Signer, err = deploy.LoadSigner(f.Key); err != nil {
			return ctx, nil, fmt.Errorf("--key: %w", err)
		}
	}
	return ctx, w, nil
}

// record puts what a person did to the topic of models on the topic of the audit.
func (f writeFlags) record(ctx context.Context, w *deploy.Writer, out cli.Output, action event.Action, model, object string, err error) {
	to := w.Bus
	to.OnRetry = nil // it ends the command's own context
	cli.AuditCommand(ctx, to, program, f.By, out.Stderr, event.Audit{Action: action, Model: model, Object: object}, because(ctx, err))
}

// change makes a change and prints what it did.
func (f writeFlags) change(ctx context.Context, out cli.Output, action event.Action, model, glob string, do func(context.Context, *deploy.Writer) (deploy.RecordedChange, error)) error {
	ctx, w, err := f.writer(ctx)
	if err != nil {
		return err
	}
	c, err := do(ctx, w)
	f.record(ctx, w, out, action, cmp.Or(model, c.Champion), glob, err)
	if err != nil {
		return because(ctx, err)
	}
	printChange(out, c)
	return nil
}

// signedBy says who signed something.
func signedBy(id string, unproved bool) string {
	switch {
	case id == "":
		return "not signed"
	case unproved:
		return "key " + id + ", not checked"
	}
	return "key " + id
}

type publishCommand struct {
	cli.ModelFile
	writeFlags
}

// Run puts a model on the topic.
func (f *publishCommand) Run(ctx context.Context, out cli.Output) error {
	m, err := model.Load(f.Model)
	if err != nil {
		return err
	}
	if err := deploy.Check(m); err != nil {
		return fmt.Errorf("%s: %w", f.Model, err)
	}
	file, err := os.ReadFile(f.Model)
	if err != nil {
		return err
	}
	ctx, w, err := f.writer(ctx)
	if err != nil {
		return err
	}
	curve, problem := f.curve(m.ID())
	mf, already, err := w.Publish(ctx, file)
	f.record(ctx, w, out, event.PublishModel, m.ID(), "", err)
	if err != nil {
		return because(ctx, err)
	}
	same := false
	if curve != nil {
		if same, err = w.PublishCurve(ctx, m.ID(), curve); err != nil {
			return because(ctx, err)
		}
	}
	if already {
		fmt.Fprintf(out.Stdout, "%s is published already, by %s at %s; nothing was written\n", mf.ID, plain.Text(mf.By), clock(mf.At))
	} else {
		fmt.Fprintf(out.Stdout, "published %s, %s\n", mf.ID, bus.FormatBytes(mf.Size))
	}
	fmt.Fprintf(out.Stdout, "layout    %s, fingerprint %s\n", plain.Text(mf.Layout.Name), mf.Layout.Fingerprint)
	if v := card.HeadlineOf(m).Verdict; v != nil {
		fmt.Fprintf(out.Stdout, "verdict   %s\n", v.Short())
	}
	switch {
	case problem != nil:
		fmt.Fprintf(out.Stderr, "note: the page of the model gets no curve of `trainer tune`: %s\n", plain.Text(problem.Error()))
	case same:
		fmt.Fprintln(out.Stdout, "curve     of trainer tune, published already")
	case curve != nil:
		fmt.Fprintln(out.Stdout, "curve     of trainer tune, for the page of the model")
	}
	noteFeatures(out.Stderr, m)
	fmt.Fprintf(out.Stdout, "It judges nothing yet. On trial next to the present model, or instead of it:\n  trainer promote %s --for 'acme/spore/bay2/**' --shadow 48h\n  trainer promote %s --for 'acme/spore/bay2/**'\n", mf.ID, mf.ID)
	return nil
}

// curve returns the curve that `trainer tune` has put next to the model's file, as it is published; nil if there
// is none of this model. A curve that cannot be used does not keep the model back.
func (f *publishCommand) curve(id string) ([]byte, error) {
	path := alarm.CurveFile(f.Model)
	c, err := alarm.LoadCurve(path, id)
	if c == nil || err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err == nil && len(text) > deploy.MaxCurve {
		return nil, fmt.Errorf("%s has %s, and at most %s are published: copy it to the folder history.dir of each monitor, as %s.tune.json", path, bus.FormatBytes(int64(len(text))), bus.FormatBytes(deploy.MaxCurve), id)
	}
	return text, err
}

// clock returns a time as lists show it.
func clock(t time.Time) string { return t.Local().Format(time.DateTime) }

// forFlags name a deployment.
type forFlags struct {
	For    string `required:"" placeholder:"GLOB" help:"Machines, as 'acme/spore/bay2/**': levels with slashes between them; * stands for any characters within a level, ** as the last level for all levels below. Of several globs that name a machine the most specific counts."`
	Layout string `placeholder:"FINGERPRINT" help:"Layout of the machines, where it is not clear without; 'trainer models ls' prints it."`
}

// swapFlag says when machines swap: the tag `set` gives the default, "now".
type swapFlag struct {
	Now bool `default:"${now}" negatable:"" help:"Swap at once, and judge the tool in the spindle as if the model had been there from its first window (default: ${default}). With --no-now each machine swaps at its next tool change."`
}

// alarmFlag gives settings of the alarm.
type alarmFlag struct {
	Alarm string `placeholder:"KEY=VALUE,…" help:"Alarm settings, as k=3,n=5,threshold=0.6; keys as in monitor.yaml."`
}

type promoteCommand struct {
	Model string `arg:"" help:"Id of a published model, as 'trainer models ls' prints it."`
	forFlags
	Shadow time.Duration `placeholder:"TIME" help:"Judge for so long as a shadow, as 48h: next to the champion, with no effect on alarms. The champion stays, and the shadow does not become champion by itself."`
	cli.Doubted
	swapFlag `set:"now=false"`
	alarmFlag
	writeFlags
}

// Run makes a model a champion or a shadow.
func (f *promoteCommand) Run(ctx context.Context, out cli.Output) error {
	p := deploy.Promotion{Model: f.Model, For: f.For, Layout: f.Layout, Shadow: f.Shadow, Now: f.Now, Anyway: f.Anyway}
	switch {
	case f.Shadow < 0:
		return fmt.Errorf("--shadow %v: must be positive, such as 48h; 'trainer retire --shadow' ends a trial", f.Shadow)
	case f.Shadow > 0 && f.Alarm != "":
		return errors.New("--alarm: a shadow has the champion's alarm settings, so that the two can be compared; leave it out")
	}
	if f.Alarm != "" {
		p.Alarm = func(now *alarm.Settings) (*alarm.Settings, error) { return parseAlarm(f.Alarm, now) }
	}
	ctx, w, err := f.writer(ctx)
	if err != nil {
		return err
	}
	c, m, suits, err := f.promote(ctx, w, p)
	f.record(ctx, w, out, event.PromoteModel, f.Model, f.object(), err)
	if err != nil {
		return because(ctx, err)
	}
	printChange(out, c)
	suits.notes(out.Stderr, m, f.For)
	if v := card.HeadlineOf(m).Verdict; v != nil {
		fmt.Fprintf(out.Stdout, "verdict   %s\n", v.Short())
	}
	t, err := w.Topic(ctx)
	if err != nil {
		return because(ctx, err)
	}
	s, _, err := t.Set(ctx)
	if err != nil {
		return because(ctx, err)
	}
	names := machinesNow(ctx, w.Bus, func(machine string) bool {
		d, ok := s.Resolve(machine, c.Layout)
		return ok && d.Change == c.ID
	})
	if len(names) > 0 {
		fmt.Fprintf(out.Stdout, "machines  %s\n", strings.Join(names, ", "))
	}
	return nil
}

// promote makes a change, unless the model could judge none of the machines. If they send what it
// takes, it does not matter that the champion before takes other windows.
func (f *promoteCommand) promote(ctx context.Context, w *deploy.Writer, p deploy.Promotion) (c deploy.RecordedChange, m *model.Model, s suits, err error) {
	t, err := w.Topic(ctx)
	if err != nil {
		return c, nil, s, err
	}
	if m, err = t.Model(ctx, p.Model); err != nil {
		return c, nil, s, fmt.Errorf("model %s: %w", plain.Text(p.Model), err)
	}
	if s, err = suitsFor(ctx, w.Bus, t, m, p.For); err != nil {
		return c, m, s, err
	}
	if err = s.refusal(m.ID()); err != nil && !p.Anyway {
		return c, m, s, err
	}
	p.Anyway = p.Anyway || s.all()
	c, err = w.Promote(ctx, p)
	return c, m, s, err
}

// object says for which machines the model is to judge, and how.
func (f *promoteCommand) object() string {
	if f.Shadow > 0 {
		return fmt.Sprintf("%s, as a shadow for %v", f.For, f.Shadow)
	}
	return f.For
}

// printChange says what a change did.
func printChange(out cli.Output, c deploy.RecordedChange) {
	fmt.Fprintf(out.Stdout, "change    %s for %s, layout %s, %s\n", c.ID, c.For, c.Layout, signedBy(c.SignedBy, c.Unproved))
	if c.Action == deploy.Retired {
		fmt.Fprintln(out.Stdout, "retired   no model judges these machines, unless a less specific glob names them too")
		return
	}
	when := "each machine swaps at its next tool change"
	switch {
	case !c.Since.Equal(c.At):
		when = "unchanged since " + clock(c.Since)
	case c.Now:
		when = "each machine swaps at once"
	}
	fmt.Fprintf(out.Stdout, "champion  %s (%s)\n", c.Champion, when)
	for _, s := range c.Shadows {
		fmt.Fprintf(out.Stdout, "shadow    %s until %s\n", s.Model, clock(s.Until))
	}
	fmt.Fprintf(out.Stdout, "alarm     %s\n", alarmText(c.Alarm))
	if len(c.Previous) > 0 {
		fmt.Fprintf(out.Stdout, "before    %s; trainer rollback --for %s brings it back\n", c.Previous[0].Champion, cli.Quote(c.For))
	}
}

// alarmText says alarm settings in words.
func alarmText(r *deploy.AlarmRecord) string {
	s := r.Settings()
	if s == nil {
		return "as each monitor is configured"
	}
	text := fmt.Sprintf("%d of %d, over at %d", s.K, s.N, s.Clear)
	if s.OnHold > 0 {
		text += fmt.Sprintf(", on_hold %v", s.OnHold)
	}
	if s.OffHold > 0 {
		text += fmt.Sprintf(", off_hold %v", s.OffHold)
	}
	if s.Latch {
		text += ", latched"
	}
	if s.Threshold != 0 {
		text += fmt.Sprintf(", threshold %v", s.Threshold)
	}
	return text
}

// parseAlarm returns settings with some of them changed; from nil, the default ones: what monitors are configured to is not known here.
func parseAlarm(text string, now *alarm.Settings) (*alarm.Settings, error) {
	if text == "monitor" {
		return nil, nil
	}
	s := *cmp.Or(now, &alarm.Default)
	keys := flag.NewFlagSet("alarm", flag.ContinueOnError)
	keys.IntVar(&s.K, "k", s.K, "")
	keys.IntVar(&s.N, "n", s.N, "")
	keys.IntVar(&s.Clear, "clear", s.Clear, "")
	keys.DurationVar(&s.OnHold, "on_hold", s.OnHold, "")
	keys.DurationVar(&s.OffHold, "off_hold", s.OffHold, "")
	keys.BoolVar(&s.Latch, "latch", s.Latch, "")
	keys.DurationVar(&s.MaxShelf, "max_shelf", s.MaxShelf, "")
	keys.DurationVar(&s.ReAlarm, "re_alarm", s.ReAlarm, "")
	keys.Float64Var(&s.Threshold, "threshold", s.Threshold, "")
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		switch {
		case !ok:
			return nil, fmt.Errorf("--alarm %s: write KEY=VALUE with commas between them, as k=3,n=5", pair)
		case keys.Lookup(key) == nil:
			return nil, fmt.Errorf("--alarm %s: want one of k, n, clear, on_hold, off_hold, latch, max_shelf, re_alarm, threshold", pair)
		}
		if err := keys.Set(key, value); err != nil {
			return nil, fmt.Errorf("--alarm %s: %q is not a value of %s: write a number, a time such as 30s, or true or false", pair, value, key)
		}
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("--alarm %s: %w", text, err)
	}
	return &s, nil
}

type rollbackCommand struct {
	forFlags
	swapFlag `set:"now=true"`
	writeFlags
}

// Run brings the champion before back.
func (f *rollbackCommand) Run(ctx context.Context, out cli.Output) error {
	var note func()
	err := f.change(ctx, out, event.RollbackTo, "", f.For, func(ctx context.Context, w *deploy.Writer) (deploy.RecordedChange, error) {
		c, err := w.Rollback(ctx, f.For, f.Layout, f.Now)
		if err == nil {
			note = func() { noteSuits(ctx, out, w, c) }
		}
		return c, err
	})
	if note != nil {
		note()
	}
	return err
}

type retireCommand struct {
	forFlags
	Shadow string `placeholder:"MODEL" help:"End only the trial of this shadow; the champion stays."`
	writeFlags
}

// Run ends a deployment or the trial of a shadow.
func (f *retireCommand) Run(ctx context.Context, out cli.Output) error {
	return f.change(ctx, out, event.RetireModel, f.Shadow, f.For, func(ctx context.Context, w *deploy.Writer) (deploy.RecordedChange, error) {
		return w.Retire(ctx, f.For, f.Layout, f.Shadow)
	})
}
