package machine

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/window"
)

var tooLong = &window.Mismatch{What: window.OtherLength, Text: "windows of 2s, expected windows of 1s"}

// refusal returns the error about a window of a machine.
func refusal(name string, seq uint64, why *window.Mismatch) *Refusal {
	return &Refusal{Machine: name, Epoch: window.FormatEpoch(1), Seq: seq, Why: why}
}

// refused gives the machine the next window of the partition, which the model cannot judge.
func (b *bench) refused(seq uint64, why *window.Mismatch) Decision {
	b.t.Helper()
	when := noon.Add(b.sent)
	d := b.apply(refusedWindow{refusal(drill, seq, why), when, when})
	b.offset++
	b.sent += time.Second
	return d
}

// steps returns what gives the kinds of a decision's advisories, with restarts after the monitor was started again.
func (b *bench) steps(restarts bool) func(d Decision) []string {
	return func(d Decision) []string {
		if restarts {
			b.restart()
		}
		return kinds(d.Advisories)
	}
}

// The first refused window raises one advisory. The first window that is judged a minute
// after the last refused one clears it. Restarts change nothing.
func TestRefusedWindows(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		b := newBench(t, machinetest.OneValue(t))
		step := b.steps(restarts)
		step(b.window(at(0, "T1", false)))
		d := b.refused(1, tooLong)
		wantStrings(t, "first refused window", step(d), []string{"windows_refused raised"})
		if a := d.Advisories[0]; a.Severity != "warning" || a.Tool != "T1" || a.Seq != 1 || a.ID != drill+"/0000000000000001/1/"+group+"/windows_refused/raised" ||
			!a.Since.Equal(noon.Add(time.Second)) || !a.At.Equal(a.Since) ||
			a.Text != "drill: NOT WATCHED, its windows are refused: windows of 2s, expected windows of 1s. Set window.length of its ingester to the model's, or train a model on such windows" {
			t.Errorf("%+v", a)
		}
		for seq := range uint64(100) { // windows of both kinds in turn: no storm
			wantStrings(t, "judged", step(b.window(at(1000+seq, "T1", false))), nil)
			wantStrings(t, "refused", step(b.refused(2+seq, tooLong)), nil)
		}
		for seq := range uint64(59) {
			wantStrings(t, "judged", step(b.window(at(2000+seq, "T1", false))), nil)
		}
		d = b.window(at(2059, "T1", false))
		wantStrings(t, "judged for a minute", step(d), []string{"windows_refused cleared"})
		if a := d.Advisories[0]; a.Severity != "info" || a.Text != "drill: windows are judged again; those from 12:00:01 on were refused" || !a.At.Equal(noon.Add(b.sent-time.Second)) {
			t.Errorf("%+v", a)
		}
		if n := b.m.Notices.of(event.RefusedAdvisory, ""); n != nil {
			t.Errorf("%+v is remembered", n)
		}

		step(b.refused(500, tooLong))
		b.sent += 2 * time.Hour // someone stops the ingester, and corrects it
		wantStrings(t, "first window after the correction", step(b.window(at(3000, "T1", false))), []string{"windows_refused cleared"})
	}
}

// What is remembered says why the last window was refused, for lists: a person may correct
// one thing and get another one wrong.
func TestRefusedForAnotherReason(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.refused(0, &window.Mismatch{What: window.OtherLayout, Text: "windows of layout a, expected layout b"})
	wantStrings(t, "another reason", kinds(b.refused(1, tooLong).Advisories), nil)
	b.restart()
	sum, err := Summarise(b.stored())
	if err != nil || len(sum.Notices) != 1 || !sum.Notices[0].Stands() || !strings.Contains(sum.Notices[0].Text, tooLong.Text) {
		t.Errorf("%+v, %v", sum, err)
	}
	b.refused(2, &window.Mismatch{What: window.OtherSchema, Text: "x"})
	if n := b.m.Notices.of(event.RefusedAdvisory, ""); !strings.HasSuffix(n.Text, "x. Run ingest and monitor of the same release") {
		t.Error(n.Text)
	}
}

// Lists tell a machine that only lacks a model from one whose windows are wrong.
func TestLacksModel(t *testing.T) {
	for what, want := range map[string]bool{NoModel: true, window.OtherFeatures: false, window.OtherLayout: false, window.OtherLength: false, window.OtherSchema: false} {
		b := newBench(t, machinetest.OneValue(t))
		text := b.refused(0, &window.Mismatch{What: what, Text: "no model is deployed for it"}).Advisories[0].Text
		if n := b.m.Notices.of(event.RefusedAdvisory, ""); LacksModel(text) != want || LacksModel(n.Text) != want {
			t.Errorf("%s: LacksModel(%q) is not %v", what, text, want)
		}
	}
}

// A machine whose windows come and are refused is not silent. It is when none come.
func TestRefusedWindowsAreNotSilence(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Silence = 10 * time.Second })
	for seq := range uint64(60) {
		d := b.refused(seq, tooLong)
		if now := noon.Add(b.sent); b.apply(Tick{Now: now}).AskEnd || len(d.Advisories) > 0 && seq > 0 {
			t.Fatalf("after %d refused windows the machine is silent", seq)
		}
	}
	now := noon.Add(b.sent + 10*time.Second)
	if !b.apply(Tick{Now: now}).AskEnd {
		t.Fatal("not asked")
	}
	b.m.EndIs(Position{Windows: b.offset}, true, now)
	d := b.apply(Tick{Now: now, Next: Position{Windows: b.offset}})
	wantStrings(t, "nothing comes", kinds(d.Advisories), []string{"silence raised"})
	b.restart()
	b.sent = 2 * time.Hour
	wantStrings(t, "a window is judged", kinds(b.window(at(0, "T1", false)).Advisories), []string{"silence cleared", "windows_refused cleared"})
}

// Retiring ends the advisory, and the next refused window begins it again.
func TestRetireRefused(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.refused(0, tooLong)
	b.restart()
	d := b.command(event.Command{ID: "c1", Action: event.Retire}, noon.Add(time.Minute))
	wantStrings(t, "retired", kinds(d.Advisories), []string{"windows_refused cleared"})
	if !strings.Contains(d.Advisories[0].Text, "the machine is retired") {
		t.Error(d.Advisories[0].Text)
	}
	b.restart()
	wantStrings(t, "refused again", kinds(b.refused(1, tooLong).Advisories), []string{"windows_refused raised"})
	b.restart()
	if !b.m.Commands.has("c1") {
		t.Error("the command is forgotten")
	}
}

// inputs returns messages from an offset on whose windows are refused.
func inputs(from int64, names ...string) (in []Input) {
	for i, name := range names {
		in = append(in, Input{Offset: from + int64(i), At: noon, Open: func(*window.Features) error { return fmt.Errorf("open: %w", refusal(name, uint64(i), tooLong)) }})
	}
	return in
}

// readyOwner returns an owner that has taken its partition over, and finds nothing there.
func readyOwner(t *testing.T) *Owner {
	o := NewOwner(&Settings{Group: group, Alarm: testAlarm}, Everything(machinetest.OneValue(t)), 0)
	o.On(Fenced{At: Position{Windows: -1, Commands: -1}}, noon)
	o.On(Loaded{}, noon)
	o.On(Published{}, noon)
	return o
}

// batchOf returns the batch among actions.
func batchOf(t *testing.T, actions []Action) *Batch {
	t.Helper()
	i := slices.IndexFunc(actions, is[*Batch])
	if i < 0 {
		t.Fatalf("%+v publish nothing", actions)
	}
	return actions[i].(*Batch)
}

// A refused window is a dead letter and an advisory of its machine, in one transaction
// with the machine's record. Windows that are not whole are letters only.
func TestOwnerRefuses(t *testing.T) {
	o := readyOwner(t)
	in := append(inputs(0, "acme/a", "acme/b", "acme/a"), Input{Offset: 3, At: noon, Open: func(*window.Features) error { return errors.New("damaged") }})
	b := batchOf(t, o.On(Read{Log: WindowLog, Inputs: in}, noon))
	var got []string
	for _, e := range b.Events {
		got = append(got, e.(Advisory).Machine+" "+string(e.(Advisory).Kind))
	}
	wantStrings(t, "events", got, []string{"acme/a windows_refused", "acme/b windows_refused"})
	got = nil
	for _, l := range b.Letters {
		got = append(got, fmt.Sprintln(l.Offset, l.Advised, l.Reason))
	}
	wantStrings(t, "letters", got, []string{"0 true open: window: " + tooLong.Text + "\n", "1 true open: window: " + tooLong.Text + "\n", "2 true open: window: " + tooLong.Text + "\n", "3 false damaged\n"})
	if len(b.State) != 2 || b.Position.Windows != 4 {
		t.Errorf("%d records, position %v", len(b.State), b.Position)
	}
}

// Names of strangers fill neither the memory nor the state topic.
func TestStrangersAreBounded(t *testing.T) {
	o := readyOwner(t)
	records := 0
	for i := range 5 {
		var names []string
		for k := range mostRefused {
			names = append(names, fmt.Sprintf("stranger/%d/%d", i, k))
		}
		b := batchOf(t, o.On(Read{Log: WindowLog, Inputs: inputs(int64(i*mostRefused), names...)}, noon))
		records += len(b.State)
		for _, l := range b.Letters {
			if l.Advised != (i == 0) {
				t.Fatalf("round %d: letter %d, advised %v", i, l.Offset, l.Advised)
			}
		}
		o.On(Published{}, noon)
	}
	if records != mostRefused || len(o.machines) != mostRefused {
		t.Errorf("%d records of %d machines, want %d", records, len(o.machines), mostRefused)
	}
	// A machine of which windows were judged is still advised of.
	known := at(0, "T1", false)
	b := batchOf(t, o.On(Read{Log: WindowLog, Inputs: []Input{{Offset: 1000, At: noon, Open: func(w *window.Features) error { *w = *machinetest.Features(nil, known); return nil }}}}, noon))
	o.On(Published{}, noon)
	if b.Judged != 1 {
		t.Fatal("not judged")
	}
	b = batchOf(t, o.On(Read{Log: WindowLog, Inputs: inputs(1001, drill)}, noon))
	if len(b.Letters) != 1 || !b.Letters[0].Advised || len(b.Events) != 1 {
		t.Errorf("%+v", b)
	}
}

// A refused window ends the silence of a machine, too, and the advisory says so in words.
func TestRefusedWindowEndsSilence(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t), func(s *Settings) { s.Silence = time.Minute })
	b.window(at(0, "T1", false))
	late := noon.Add(10 * time.Minute)
	b.apply(Tick{Now: late})
	b.m.EndIs(Position{}, true, late)
	if d := b.apply(Tick{Now: late}); len(d.Advisories) != 1 {
		t.Fatalf("%q", kinds(d.Advisories))
	}
	late = late.Add(time.Minute)
	d := b.apply(refusedWindow{refusal(drill, 1, tooLong), late, late})
	wantStrings(t, "advisories", kinds(d.Advisories), []string{"silence cleared", "windows_refused raised"})
	if want := "drill: windows come again, after 11m0s without, and are refused"; d.Advisories[0].Text != want {
		t.Errorf("%q, want %q", d.Advisories[0].Text, want)
	}
}

// Features of a layout that is not known, and those that no model of their layout takes, move the tool and the alarms as windows of it do:
// what is published and what is remembered is the same but for the words of the advisory.
func TestRefusedFeaturesMoveTheTool(t *testing.T) {
	long := ofLength(t, 2*time.Second)
	for what, of := range map[string]func(epoch, seq uint64, tool string) *window.Features{
		NoModel: func(epoch, seq uint64, tool string) *window.Features {
			return wideOf(machinetest.TwoValues(t), epoch, seq, tool)
		},
		window.OtherFeatures: func(epoch, seq uint64, tool string) *window.Features {
			w := at(seq, tool, false)
			w.Epoch, w.Length = epoch, 2*time.Second
			w.Samples[0] = append(w.Samples[0], 10)
			return machinetest.Features(long, w)
		},
	} {
		t.Run(what, func(t *testing.T) { refusedFeaturesMoveTheTool(t, what, of) })
	}
}

func refusedFeaturesMoveTheTool(t *testing.T, what string, of func(epoch, seq uint64, tool string) *window.Features) {
	one := machinetest.OneValue(t)
	var published [2]string
	for i := range published {
		p := newPlant(t, byLayout(one))
		foreign := func(f *window.Features) {
			if i == 0 {
				p.window(f)
				return
			}
			w := f.Window
			p.refuse(&Refusal{Machine: w.Machine, Epoch: w.EpochString(), Seq: w.Seq, Why: &window.Mismatch{What: what, Text: "x"}, Layout: f.Form.Layout().Fingerprint(), Window: &w})
			p.features = append(p.features, f)
		}
		foreign(of(1, 0, "T0")) // of a machine that is not known it moves nothing
		seq := p.run(1, 3, "T1", false)
		seq = p.run(seq, 3, "T1", true)
		for _, tool := range []string{"T2", "T2", "T1", "T3"} {
			f := of(1, seq, tool)
			foreign(f)
			foreign(f) // a repeat
			seq++
		}
		foreign(of(1, 2, "T9"))    // a repeat, too
		for k := range uint64(4) { // another epoch: it leads from the third window on
			foreign(of(2, k, "T4"))
		}
		for k := range uint64(2) {
			foreign(of(1, seq+k, "T5")) // and this one does not any more
		}
		p.restart()
		w := at(4, "T1", true)
		w.Epoch = 2
		p.window(machinetest.Features(nil, w))
		text := fmt.Sprintf("%q %q\n", states(p.alerts), kinds(p.advised))
		for _, k := range slices.SortedFunc(maps.Keys(p.records), func(a, b event.StateKey) int { return strings.Compare(a.String(), b.String()) }) {
			text += k.String() + " " + string(p.records[k].Value) + "\n"
		}
		if published[i] = regexp.MustCompile(`"text":"[^"]*"`).ReplaceAllString(text, ""); what == NoModel { // else it is a dead letter
			published[i] += fmt.Sprintln(p.others, "not watched")
		}
		if m := p.o.Machine(drill); m.inSpindle().Name != "T1" || len(m.Tools) != 4 {
			t.Errorf("%s is in the spindle, %d tools", m.inSpindle().Name, len(m.Tools))
		}
	}
	if published[0] != published[1] {
		t.Errorf("as windows\n%s\nas features\n%s", published[0], published[1])
	}
}

// A later release may know more kinds of advisories. What it left open is loaded, listed
// and kept.
func TestUnknownKindIsKept(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.window(at(0, "T1", false))
	later := Notice{Kind: "belt_slips", Subject: "x", Text: "drill: belt slips"}
	later.Raise(noon, noon)
	b.m.Notices = append(b.m.Notices, later)
	b.window(at(1, "T1", false))
	b.restart()
	b.window(at(2, "T1", false))
	sum, err := Summarise(b.stored())
	if err != nil || len(sum.Notices) != 1 || sum.Notices[0].Kind != "belt_slips" || !sum.Notices[0].Stands() {
		t.Errorf("%+v, %v", sum.Notices, err)
	}
}

// A machine of which only refused windows came has no model, and the alarm settings of all
// machines, no matter who took it over and what is deployed meanwhile: the next monitor
// publishes the same as the one before would have.
func TestRefusedOnlyHasNoModel(t *testing.T) {
	m := machinetest.OneValue(t)
	for i := range 4 {
		retired, deployed := i&1 > 0, i&2 > 0
		var published [2]string
		for restarts := range published {
			p := newPlant(t, Everything(m))
			if retired {
				p.window(machinetest.Features(nil, at(0, "T1", false)))
				p.command(event.Command{ID: "c1", Action: event.Retire})
			}
			p.refuse(refusal(drill, 1, tooLong))
			p.fleet = fleetOf(&Deployment{Champion: m, Alarm: alarm.Settings{K: 4, N: 6}}, m)
			if deployed {
				p.deploy(p.fleet)
			}
			if restarts > 0 {
				p.restart()
			}
			if now, next := p.o.Machine(drill).Judges(); now+next != "" {
				t.Errorf("retired %v, deployed %v, restarts %d: %q judges it, and then %q", retired, deployed, restarts, now, next)
			}
			p.alerts, p.advised = nil, nil
			p.refuse(refusal(drill, 2, &window.Mismatch{What: window.OtherSchema, Text: "another reason"}))
			p.command(event.Command{ID: "c2", Action: event.Suppress, Note: "n"})
			p.deploy(Everything(m))
			published[restarts] = fmt.Sprintf("%s\n%s", event.JSON(p.alerts), p.records[event.StateKey{Group: group, Machine: drill}].Value)
			p.window(machinetest.Features(nil, at(3, "T1", false)))
			if r := p.results[len(p.results)-1]; r.Seq != 3 || r.Model != m.ID() {
				t.Errorf("retired %v, deployed %v, restarts %d: window %d is judged by %q", retired, deployed, restarts, r.Seq, r.Model)
			}
		}
		if published[0] != published[1] {
			t.Errorf("retired %v, deployed %v: without a restart\n%s\nafter one\n%s", retired, deployed, published[0], published[1])
		}
	}
}

// refuse lets the owner take a window that the model cannot judge.
func (p *plant) refuse(why *Refusal) {
	in := Input{Offset: p.sent, At: p.now(), Open: func(*window.Features) error { return why }}
	p.sent++
	p.do(p.o.On(Read{Log: WindowLog, Inputs: []Input{in}}, in.At))
}
