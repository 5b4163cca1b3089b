package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/labels"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const drill = "acme/spore/bay2/line1/usk25"

// codeOf returns the exit code of an error.
func codeOf(err error) int {
	var own *cli.Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return own.Code
	}
	return 1
}

// measured gives labels of 340 µm at the ends of tools.
func measured(t *testing.T, cfg bus.Config, given time.Time, ends map[string]time.Time, tools ...string) {
	t.Helper()
	var all []event.Label
	for _, tool := range tools {
		um := 340.0
		l := event.Label{Machine: drill, Tool: tool, At: ends[tool], WearUM: &um, By: "kim", Given: given}
		l.ID = l.NewLabelID()
		all = append(all, l)
	}
	if err := labels.Write(t.Context(), cfg, all, func(int) {}); err != nil {
		t.Fatal(err)
	}
}

// publishedEvent is a message as monitors publish it.
func publishedEvent(topic, id, machine, typ string, at time.Time, v any) bus.Message {
	m := bus.Message{Topic: topic, Key: machine, Value: event.JSON(v)}
	for _, a := range event.Attributes(id, machine, typ, at, "application/json") {
		m.Headers = append(m.Headers, bus.Header{Key: a[0], Value: []byte(a[1])})
	}
	return m
}

// verdicts are results of a model, one a second until a time, of which the first are unknown.
func verdicts(model, machine string, epoch, n, unknown int, until time.Time) (msgs []bus.Message) {
	for i := range n {
		start := until.Add(time.Duration(i-n) * time.Second)
		r := event.Result{Group: "tcm-monitor", Machine: machine, Epoch: fmt.Sprintf("%016x", epoch), Seq: uint64(i), Tool: "T1", Start: start, End: start.Add(time.Second), Verdict: event.Healthy, Model: model}
		if i < unknown {
			r.Verdict = event.Unknown
		}
		r.ID = event.WindowID(machine, r.Epoch, r.Seq) + "/tcm-monitor"
		msgs = append(msgs, publishedEvent(bus.TopicResults, r.ID, machine, event.ResultType, r.End, r))
	}
	return msgs
}

// answered is an alarm of a model that a person marks as false, or acknowledges.
func answered(model string, n int, at time.Time, isFalse bool) (msgs []bus.Message) {
	a := event.Alert{Group: "tcm-monitor", Machine: drill, Tool: "T1", State: event.Raised, Incident: fmt.Sprintf("A-%08d", n), At: at, Since: at, Model: model}
	second := event.Acknowledged
	if isFalse {
		second = event.MarkedFalse
	}
	for _, state := range []event.AlertState{event.Raised, event.Cleared, second} {
		a.State, a.ID = state, fmt.Sprintf("%s/%d/%s", drill, n, state)
		if state == event.Acknowledged { // an acknowledgement is of an open alarm
			msgs = slices.Delete(msgs, len(msgs)-1, len(msgs))
		}
		msgs = append(msgs, publishedEvent(bus.TopicAlerts, a.ID, drill, event.AlertType, at, a))
	}
	return msgs
}

// asks runs watch --once and returns what it says of each model for programs.
func (dir folder) asks(t *testing.T, args string) (answers, error) {
	t.Helper()
	out, log, err := dir.trainer(t, "watch --once --quiet -o json "+args)
	var a answers
	if codeOf(err) != 1 && json.Unmarshal([]byte(out), &a) != nil {
		t.Fatalf("%v\n%s%s", err, out, log)
	}
	return a, err
}

// figures says the reasons shortly.
func figures(m *asked) string {
	var words []string
	for _, r := range m.Reasons {
		value := "–"
		if r.Figure != nil {
			value = fmt.Sprintf("%.3g", *r.Figure)
		}
		words = append(words, value+map[bool]string{true: "!"}[r.Due]+map[bool]string{true: "?"}[r.Gap != ""])
	}
	return strings.Join(words, " ")
}

// Watch gathers what monitors and people said of each champion, in the time that counts, and nothing of others.
func TestWatchGathers(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a broker with what monitors said of several days")
	}
	t.Parallel()
	addr, dir := rollout(t)
	told := story{t: t, dir: dir, addr: addr, ids: make(map[string]string)}
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	ask := "--kafka " + addr
	if a, err := dir.asks(t, ask); codeOf(err) != codeUnsure || len(a.Models) != 0 {
		t.Errorf("without a champion: %+v, %v", a, err)
	}
	if text, _, err := dir.trainer(t, "watch --once --kafka "+addr); codeOf(err) != codeUnsure || !strings.Contains(text, "no champion on Kafka") {
		t.Errorf("without a champion: %s, %v", text, err)
	}
	told.do("keys new")
	for _, name := range []string{"a", "b"} {
		told.ids["MODEL_"+strings.ToUpper(name)] = strings.TrimSuffix(strings.Fields(told.do("publish " + name + ".flank"))[1], ",")
	}
	told.do("promote " + told.ids["MODEL_A"] + " --for 'acme/spore/bay2/**'")
	own, other, now := told.ids["MODEL_A"], told.ids["MODEL_B"], time.Now().UTC()
	drift := func(state event.AlertState, model, subject string, at time.Time) bus.Message {
		a := event.Advisory{Group: "tcm-monitor", Machine: drill, Kind: event.DriftAdvisory, Subject: subject, State: state, At: at, Model: model}
		return publishedEvent(bus.TopicAlerts, fmt.Sprint(subject, state, at), drill, event.AdvisoryType, at, a)
	}
	old := now.Add(-20 * 24 * time.Hour)
	foreign := verdicts(own, drill, 9, 1, 1, now)
	foreign[0].Value = []byte(strings.Replace(string(foreign[0].Value), `"tcm-monitor"`, `"other"`, 1))
	broken := publishedEvent(bus.TopicResults, "x", drill, event.ResultType, now, 7)
	for _, step := range []struct {
		name string
		msgs []bus.Message
		code int
		want string
	}{
		// The models of this test name no tools.
		{"nothing was judged", nil, codeUnsure, "0? 0? –? –?"},
		{"another model, group and machine", slices.Concat(verdicts(other, drill, 1, 150, 150, now), foreign, verdicts(own, "acme/spore/bay3/line1/usk26", 1, 150, 150, now), []bus.Message{broken}), codeUnsure, "0? 0? –? –?"},
		{"before the time that counts", verdicts(own, drill, 2, 150, 150, old), codeUnsure, "0? 0? –? –?"},
		{"known windows", verdicts(own, drill, 3, 180, 20, now), codeUnsure, "0? 0 0.111 –"},
		{"the same ones again", verdicts(own, drill, 3, 180, 20, now), codeUnsure, "0? 0 0.111 –"},
		{"unknown windows", verdicts(own, drill, 4, 100, 80, now.Add(-time.Hour)), codeDue, "0? 0 0.357! –"},
		{"an old drift that ended", []bus.Message{drift(event.Raised, own, "", old), drift(event.Cleared, own, "", old)}, codeDue, "0? 0 0.357! –"},
		{"drift under another model", []bus.Message{drift(event.Raised, other, "", now)}, codeDue, "0? 0 0.357! –"},
		{"an old drift that stands", []bus.Message{drift(event.Raised, own, "ch01", old)}, codeDue, "0? 1! 0.357! –"},
		{"few answers", slices.Concat(answered(own, 1, now, true), answered(own, 2, now, true), answered(own, 3, now, false), answered(own, 4, now, false)), codeDue, "0? 1! 0.357! –"},
		{"answers to another model and of old alarms", slices.Concat(answered(other, 5, now, true), answered(own, 6, old, true)), codeDue, "0? 1! 0.357! –"},
		{"enough answers", answered(own, 7, now, false), codeDue, "0? 1! 0.357! 0.4!"},
	} {
		if err := out.Send(t.Context(), step.msgs); err != nil {
			t.Fatal(err)
		}
		a, err := dir.asks(t, ask)
		if codeOf(err) != step.code || len(a.Models) != 1 || figures(a.Models[0]) != step.want {
			t.Errorf("%s: %+v, exit code %d, want %s and %d", step.name, a, codeOf(err), step.want, step.code)
		}
	}
	measured(t, cfg, now.Add(time.Minute), map[string]time.Time{"T1": now, "T2": now}, "T1", "T2")
	text, log, err := dir.trainer(t, "watch --once --kafka "+addr)
	if want := "acme/spore/bay2/**  " + own + "  due: tools labelled since 2 (limit 5), not known: the model does not say which tools"; !strings.HasPrefix(text, want) || !strings.Contains(log, `"messages":1`) || strings.Count(text, "DUE") != 3 {
		t.Errorf("%v\n%s%s", err, text, log)
	}
	dir.write(t, "tool.yaml", "evaluate: {by_tool: \"off\"}\n", "drift.yaml", "watch: {unknown: 0, false_alarms: 0, new_tools: 0}\n", "none.yaml", "watch: {unknown: 0, drifting: 0, false_alarms: 0, new_tools: 0}\n", "off.yaml", "watch: {unknown: 0, drifting: 0, false_alarms: 0, new_tools: 3}\n", "wear.csv", "machine,tool,time,vb_max_um\n"+drill+",T9,2026-11-02T06:00:00Z,10\n")
	for args, code := range map[string]int{"--config off.yaml": codeUnsure, "--config off.yaml --wear wear.csv": codeUnsure, "--for acme/spore/bay3/**": codeUnsure, "--for acme/**": codeDue, "--group other": codeUnsure, "--config drift.yaml": codeDue, "--config drift.yaml --group absent": codeUnsure, "--for a//b": 1, "--config absent.yaml": 1, "--config none.yaml": 1, "--run": 1, "--config tool.yaml --run --unsigned": 1} {
		if a, err := dir.asks(t, ask+" "+args); codeOf(err) != code {
			t.Errorf("%s: %+v, %v, want exit code %d", args, a, err, code)
		}
	}
	// What someone changes during a training ends it, and with nothing to train --run prints JSON alone.
	f := watchCommand{Train: true}
	f.Brokers = []string{addr}
	if _, err := f.wasOnTrial(t.Context(), &asked{For: "acme/spore/bay2/**"}, own); err == nil || !strings.Contains(err.Error(), "was changed during the training") {
		t.Errorf("changed: %v", err)
	}
	w := &watcher{all: []*watched{{figures: train.Figures{Gaps: make(map[train.Why]string)}}}}
	if err := w.topic(t.Context(), cfg, "tcm.absent.v1", now, nil, train.Unknowns); err != nil || w.all[0].figures.Gaps[train.Unknowns] != "tcm.absent.v1 is not there" {
		t.Errorf("a topic that is not there: %v, %v", w.all[0].figures.Gaps, err)
	}
	told.do("promote " + other + " --for 'acme/spore/bay2/**' --shadow 48h")
	if a, err := dir.asks(t, ask+" --run --key flank.key"); err != nil || a.Candidate != nil || len(a.Models) != 1 {
		t.Errorf("nothing to train: %+v, %v", a, err)
	}
	_, topic, err := f.writing().read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set, _, err := topic.Set(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for verb, at := range map[string]time.Time{" is on trial until ": now, " was on trial until ": now.Add(49 * time.Hour)} { // a trial that is over waits for a person too
		if w := newWatcher(set, set.Deployments()[0].For, "tcm-monitor", train.DefaultConfig(), at); len(w.all) != 1 || len(w.all[0].Waits) != 1 || w.all[0].over != (verb == " was on trial until ") || !strings.Contains(w.all[0].Waits[0], verb) {
			t.Errorf("at %v: %+v", at, w.all)
		}
	}
	if a, err := dir.asks(t, ask); err != nil || len(a.Models[0].Waits) != 1 {
		t.Errorf("with a shadow: %+v, %v", a, err)
	}
	// A trial that was begun with the watcher's own key counts for it, also if --public-key names the keys of others alone.
	for _, args := range []string{"keys new --out own", "promote " + other + " --for acme/spore/bay2/** --shadow 49h --key own.key --public-key flank.pub --kafka " + addr} {
		if _, log, err := dir.trainer(t, args); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, log)
		}
	}
	for args, refused := range map[string]int{" --public-key flank.pub": 1, " --public-key flank.pub --key own.key": 0, " --public-key flank.pub --run --key own.key": 0, " --run --key own.key": 5} { // the last one learns it before hours of training
		if a, _ := dir.asks(t, ask+args); a.Refused != refused || refused < 5 && (len(a.Models) != 1 || len(a.Models[0].Waits) != 1) || refused == 5 && len(a.Models) != 0 {
			t.Errorf("%s: %+v", args, a)
		}
	}
}

// Without --once the command ends in peace when a signal comes.
func TestWatchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"watch", "--kafka", "127.0.0.1:1"}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

// Of what Kafka has removed the watcher tells, and not of what it never had.
func TestBeginningIsLost(t *testing.T) {
	since := shift
	for name, tc := range map[string]struct {
		b    beginning
		want bool
	}{
		"whole":                        {beginning{0, 100, 0, since.Add(time.Hour)}, false},
		"empty":                        {beginning{0, 0, -1, time.Time{}}, false},
		"all are gone":                 {beginning{100, 100, -1, time.Time{}}, true},
		"none came since":              {beginning{50, 100, -1, time.Time{}}, false},
		"older ones are left":          {beginning{50, 100, 80, since.Add(time.Hour)}, false},
		"the first left is too young":  {beginning{50, 100, 50, since.Add(time.Hour)}, true},
		"behind a mark of Kafka":       {beginning{50, 100, 51, since.Add(time.Hour)}, true},
		"the first left is old enough": {beginning{50, 100, 50, since}, false},
	} {
		if tc.b.lost(since) != tc.want {
			t.Errorf("%s: lost %v", name, !tc.want)
		}
	}
}

// From a measurement to a candidate on trial: due, a worse candidate that is not published, a good one, and a person is waited for.
func TestWatchRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("trains again several times")
	}
	t.Parallel()
	config := strings.Replace(drillYAML, `by_tool: "off"`, "by_tool: leave-one-out", 1) + "watch: {new_tools: 1}\n"
	poor := config + "guard: \"off\"\nexclude: [\"*.b*\", \"*.c*\", \"*.e*\", \"*.f*\", \"*.h*\", \"*.i*\", \"*.k*\", \"*.m*\", \"*.p*\", \"*.r*\", \"*.sh*\", \"*.sl*\", \"*.sp*\", \"*.st*\", \"*.z*\"]\n" // skewness alone
	dir := bench(t, "train.yaml", config, "poor.yaml", poor)
	p := newPlant(t)
	form, err := window.NewForm(signal.GunDrill(), window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ends := make(map[string]time.Time)
	drilled(t, drill, sim.Tools(1, 20*time.Second)[:4], envelope.Gateway, func(_ uint64, _, msg bus.Message) {
		p.send(t, msg)
		var w window.Features
		if err := envelope.OpenFeatures(form, &msg, &w); err != nil {
			t.Fatal(err)
		}
		if w.Tool != "" {
			ends[w.Tool] = w.End()
		}
	})
	cfg := bus.Config{Brokers: []string{p.addr}, ClientID: "test"}
	tools := slices.Sorted(maps.Keys(ends))
	do := func(code int, args string, says ...string) string {
		t.Helper()
		out, log, err := dir.trainer(t, args+" --kafka "+p.addr)
		for _, want := range says {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", args, want, out)
			}
		}
		if codeOf(err) != code {
			t.Fatalf("%s: %v, want exit code %d\n%s%s", args, err, code, out, log)
		}
		return out
	}
	measured(t, cfg, time.Now().Add(-time.Hour), ends, tools[:3]...)
	if _, _, err := dir.trainer(t, "keys new --out anna"); err != nil {
		t.Fatal(err)
	}
	do(0, "fit --quiet --config train.yaml --labels all --model old.flank")
	old, err := model.Load(dir.path("old.flank"))
	if err != nil {
		t.Fatal(err)
	}
	do(0, "publish old.flank --key anna.key")
	do(0, "promote "+old.ID()+" --for acme/spore/bay2/** --key anna.key")
	p.send(t, verdicts(old.ID(), drill, 1, 150, 0, time.Now())...)
	for from, notes := range map[time.Time]int{shift: 0, shift.Add(-time.Hour): 1} { // when the champion's first window began
		old.Provenance.Data[0].From = from
		w := &watcher{all: []*watched{{asked: asked{deployment: deploy.Deployment{Champion: old}}}}}
		if err := w.forgotten(t.Context(), cfg); err != nil || len(w.all[0].Notes) != notes {
			t.Errorf("learnt from windows from %v on: %v, %v", from, w.all[0].Notes, err)
		}
	}
	const watch, good = "watch --once --quiet --key anna.key --model next.flank ", "watch --once --quiet --key anna.key --model good.flank "
	do(0, watch+"--config train.yaml", "not due: tools labelled since 0 (limit 1)")
	do(0, watch+"--run --config train.yaml", "nothing to train")

	measured(t, cfg, time.Now(), ends, tools[3:]...)
	do(codeDue, watch+"--config train.yaml", "due: DUE tools labelled since 1 (limit 1)")
	do(codeDue, watch+"--run --config poor.yaml", "is not published: it is worse than the champion")
	do(codeDue, watch+"--run --config poor.yaml", "it is not trained again", "is not published")
	models := func(want int) (all published) {
		t.Helper()
		if err := json.Unmarshal([]byte(do(0, "models ls -o json --public-key anna.pub")), &all); err != nil || len(all.Models) != want || len(all.Deployments) != 1 || all.Deployments[0].Champion != old.ID() {
			t.Fatalf("%v, %+v, want %d models", err, all, want)
		}
		return all
	}
	models(1)

	killed := 0
	for _, seen := range []string{"good.checkpoint", "good.flank", "good.watch.json"} { // killed when it is there
		if _, err := os.Stat(dir.path(seen)); err == nil {
			continue
		}
		cmd := exec.Command(os.Args[0], "-test.run", "^TestArchiveChild$")
		cmd.Env = append(os.Environ(), archiveChild+"="+strings.Join(dir.words(good+"--run --config train.yaml --kafka "+p.addr), " "))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for running := true; running; {
			select {
			case <-ended: // before
				running = false
			case <-time.After(time.Millisecond):
				if _, err := os.Stat(dir.path(seen)); err == nil {
					_ = cmd.Process.Kill() // it may have ended
					<-ended
					running, killed = false, killed+1
				}
			}
		}
	}
	says := do(0, good+"--run --config train.yaml")
	t.Logf("killed %d times, then:\n%s", killed, says)
	next, err := model.Load(dir.path("good.flank"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(dir.path("good.report.html"))
	if err != nil || !strings.Contains(string(page), "Compared with the champion") {
		t.Errorf("the card does not compare: %v", err)
	}
	all := models(2)
	if s := all.Deployments[0].Shadows; len(s) != 1 || s[0].Model != next.ID() || !slices.ContainsFunc(all.Models, func(m listedModel) bool {
		return m.ID == next.ID() && strings.HasPrefix(m.Note, "trainer watch: 1 tools labelled since; G-mean ")
	}) {
		t.Errorf("on trial %+v of %+v", s, all.Models)
	}
	do(0, good+"--config train.yaml", "waits for a person: "+next.ID()+" is on trial until ")
	do(0, good+"--run --config train.yaml", "nothing to train")
	// A person ends the trial: the same labels do not put it on trial again.
	do(0, "retire --for acme/spore/bay2/** --shadow "+next.ID()+" --key anna.key")
	do(codeDue, good+"--run --config train.yaml", "it is not trained again", "was on trial, and no label is new since")
	if all := models(2); len(all.Deployments[0].Shadows) != 0 {
		t.Errorf("%+v", all.Deployments)
	}
}

// Only champions that a candidate can be compared with are trained for, before hours of training.
func TestTrainable(t *testing.T) {
	layout := signal.GunDrill()
	champion := func(s window.Spec) deploy.Deployment {
		return deploy.Deployment{Champion: &model.Model{Window: s}}
	}
	for name, tc := range map[string]struct {
		m    asked
		says string
	}{
		"as it should be":     {asked{Layout: layout.Fingerprint(), deployment: champion(window.DefaultSpec), fresh: train.Fresh{{Tool: "T1"}}}, ""},
		"the hop is written":  {asked{Layout: layout.Fingerprint(), deployment: champion(window.Spec{Length: time.Second, Hop: time.Second}), fresh: train.Fresh{{Tool: "T1"}}}, ""},
		"another length":      {asked{Layout: layout.Fingerprint(), deployment: champion(window.Spec{Length: 2 * time.Second}), fresh: train.Fresh{{Tool: "T1"}}}, "windows of 2s every 2s, and the configuration's are of 1s every 1s"},
		"another hop":         {asked{Layout: layout.Fingerprint(), deployment: champion(window.Spec{Length: time.Second, Hop: time.Second / 2}), fresh: train.Fresh{{Tool: "T1"}}}, "windows of 1s every 500ms"},
		"another layout":      {asked{Layout: "x", deployment: champion(window.DefaultSpec), fresh: train.Fresh{{Tool: "T1"}}}, "its layout is x"},
		"no tool that is new": {asked{Layout: layout.Fingerprint(), deployment: champion(window.DefaultSpec)}, "no labelled tool is new"},
	} {
		var says strings.Builder
		some := trainable([]*asked{&tc.m}, &dataset{Config: train.DefaultConfig(), Layout: layout}, &says)
		if (len(some) == 1) != (tc.says == "") || !strings.Contains(says.String(), tc.says) {
			t.Errorf("%s: %d, %q", name, len(some), says.String())
		}
	}
}

// What a candidate follows from is its labels, its configuration, its champions, and which windows the flags name.
func TestSumOfCandidate(t *testing.T) {
	sum := func(change func(*watchCommand)) string {
		var f watchCommand
		change(&f)
		s, err := f.sumOf([]*asked{{For: "acme/**", Champion: "m"}}, &dataset{Config: train.DefaultConfig()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	same := sum(func(*watchCommand) {})
	for name, tc := range map[string]struct {
		change func(*watchCommand)
		same   bool
	}{
		"nothing":    {func(*watchCommand) {}, true},
		"broker":     {func(f *watchCommand) { f.Brokers = []string{"a:1"} }, true},
		"an archive": {func(f *watchCommand) { f.Table = []string{"a/**/*.parquet"} }, false},
		"since":      {func(f *watchCommand) { f.Since.Text = "720h" }, false},
		"until":      {func(f *watchCommand) { f.Until.Text = "2026-11-02T06:00:00Z" }, false},
		"from":       {func(f *watchCommand) { f.Source = "features" }, false},
		"recordings": {func(f *watchCommand) { f.Data = []string{"a.csv"} }, false},
	} {
		if got := sum(tc.change); (got == same) != tc.same {
			t.Errorf("%s: the same %v", name, !tc.same)
		}
	}
}

// A trial that is over is a person's turn: of a model that is due the exit code says so.
func TestWatchExits(t *testing.T) {
	trial := []string{"m is on trial"}
	for name, tc := range map[string]struct {
		m    asked
		more int // refused records
		code int
	}{
		"not due":                        {asked{Due: train.DueNot}, 0, 0},
		"not due, with refused records":  {asked{Due: train.DueNot}, 1, codeUnsure},
		"not known":                      {asked{Due: train.DueUnsure}, 0, codeUnsure},
		"due":                            {asked{Due: train.DueNow}, 1, codeDue},
		"due, on trial":                  {asked{Due: train.DueNow, Waits: trial}, 0, 0},
		"due, on trial, refused records": {asked{Due: train.DueNow, Waits: trial}, 1, codeUnsure},
		"due, trial over":                {asked{Due: train.DueNow, Waits: trial, over: true}, 0, codeDue},
		"not due, trial over":            {asked{Due: train.DueNot, Waits: trial, over: true}, 0, 0},
		"not known, trial over":          {asked{Due: train.DueUnsure, Waits: trial, over: true}, 0, 0},
	} {
		a := answers{Models: []*asked{&tc.m}, Refused: tc.more}
		if err := a.exit(); codeOf(err) != tc.code {
			t.Errorf("%s: %v, want exit code %d", name, err, tc.code)
		}
	}
}

// For a champion that has seen no worn tool, the first one with a label makes training due.
func TestWatchFirstWornTool(t *testing.T) {
	healthy, worn := train.LabelledTool{Tool: "T1"}, train.LabelledTool{Tool: "T2", Worn: true}
	for _, c := range []struct {
		m     *model.Model
		tools []train.LabelledTool
		want  train.Due
	}{
		{machinetest.FirstDay(t), []train.LabelledTool{healthy, worn}, train.DueNow},
		{machinetest.FirstDay(t), []train.LabelledTool{healthy}, train.DueNot},
		{machinetest.OneValue(t), []train.LabelledTool{healthy, worn}, train.DueNot},
	} {
		c.m.Provenance.Data = []model.DataSet{{Machines: []model.MachineTools{{Machine: drill, Tools: []string{"T0"}}}}}
		x := &watched{asked: asked{deployment: deploy.Deployment{Champion: c.m}}, figures: train.Figures{Judged: 1000, Answered: 10, Gaps: make(map[train.Why]string)}}
		new(watcher).tools(x, nil, c.tools)
		if due, reasons := train.DefaultConfig().Watch.Ask(x.figures); due != c.want {
			t.Errorf("%s, %d tools: %s, %v", c.m.ID(), len(c.tools), due, reasons)
		}
	}
}

// A --since of so long ago is of the day on which watch asks, and not of the day on which it began.
func TestWatchAsksAgainFromNow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began, day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), "2020-01-01T00:00:00Z"
	f := new(watchCommand)
	f.Since, f.Until = cli.Instant{Time: began, Text: "24h"}, cli.Instant{Time: began, Text: day}
	if err := f.Run(ctx, cli.Output{Stdout: io.Discard, Stderr: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if !f.Since.After(began) || !f.Until.Equal(began) {
		t.Errorf("since %v until %v", f.Since, f.Until)
	}
	f.Since = cli.Instant{}
	if err := f.Run(ctx, cli.Output{Stdout: io.Discard, Stderr: io.Discard}); err != nil || !f.Since.IsZero() {
		t.Errorf("%v: without --since from %v", err, f.Since)
	}
}
