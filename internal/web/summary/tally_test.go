package summary

import (
	"reflect"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// judgedBy is the result of a model of the seq-th second of a machine.
func judgedBy(model, machine string, seq uint64, v event.Verdict, incident string) *event.Result {
	r := result(machine, seq, v)
	r.Model, r.Incident = model, incident
	return r
}

// shadowed is the result of a shadow, of a window of which a champion made something.
func shadowed(machine string, seq uint64, v event.Verdict, incident string, champion event.Champion) Message {
	r := judgedBy("new", machine, seq, v, incident)
	r.Champion = &champion
	return Message{At: r.End, Offset: int64(seq), Shadow: r}
}

func use(t *testing.T, s *Store, model string) ModelUse {
	t.Helper()
	u, err := s.ModelUse(model, t0.Add(-24*time.Hour), t0.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Each window counts for the model that judged it, in the hour in which it ended, of all
// machines, also after a restart.
func TestModelUse(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	putResults(t, s,
		judgedBy("old", "a", 0, event.Unknown, ""), judgedBy("old", "a", 1, event.Healthy, ""), judgedBy("old", "b", 1, event.Unknown, ""),
		judgedBy("old", "a", 2, event.Learning, ""), judgedBy("new", "a", 3, event.Healthy, ""), judgedBy("", "a", 4, event.Healthy, ""),
		judgedBy("old", "a", 3600, event.Healthy, ""), judgedBy("old", "a", 3600, event.Healthy, "")) // the last one came again
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	s = s.crash(t, dir)
	putResults(t, s, judgedBy("old", "b", 2, event.Faulty, ""))
	got := use(t, s, "old")
	want := ModelUse{T: []int64{t0.Unix(), t0.Unix() + 3600}, Judged: []int{4, 1}, Unknown: []int{2, 0}, Trials: []Trial{}, Drift: []DriftSpan{}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if u := use(t, s, "new"); !reflect.DeepEqual(u.Judged, []int{1}) || !reflect.DeepEqual(u.Unknown, []int{0}) {
		t.Errorf("%+v", u)
	}
	if u := use(t, s, "other"); len(u.T)+len(u.Trials)+len(u.Drift) > 0 || u.T == nil {
		t.Errorf("%+v", u)
	}
	if u, err := s.ModelUse("old", t0.Add(time.Hour), t0.Add(2*time.Hour)); err != nil || len(u.T) != 1 {
		t.Errorf("of the second hour: %+v, %v", u, err)
	}
}

// A shadow disagrees only on windows that both models judged.
func TestTrials(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	champion := func(v event.Verdict, incident string) event.Champion {
		return event.Champion{Model: "old", Verdict: v, Incident: incident}
	}
	older := shadowed("a", 9, event.Faulty, "", champion(event.Healthy, ""))
	older.Shadow.Champion = nil
	put(t, s, "shadow",
		shadowed("a", 0, event.Healthy, "", champion(event.Healthy, "")),
		shadowed("a", 1, event.Faulty, "A-1", champion(event.Healthy, "")),
		shadowed("a", 2, event.Faulty, "A-1", champion(event.Faulty, "A-2")),
		shadowed("a", 3, event.Unknown, "A-1", champion(event.Faulty, "A-2")),
		shadowed("b", 3, event.Healthy, "", champion(event.Unknown, "A-3")),
		shadowed("b", 4, event.Learning, "", champion(event.Healthy, "")), // the shadow did not judge it
		older)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	s = s.crash(t, dir)
	put(t, s, "shadow", shadowed("b", 3600, event.Healthy, "", champion(event.Healthy, "")))
	first := Disagreement{Windows: 5, Differ: 3, ShadowUnknown: 1, ChampionUnknown: 1, BothAlarm: 2, OnlyShadow: 1, OnlyChampion: 1}
	sum := first
	sum.Windows++
	want := []Trial{{
		Shadow: "new", Champion: "old", Sum: sum, T: []int64{t0.Unix(), t0.Unix() + 3600}, Hours: []Disagreement{first, {Windows: 1}},
		Machines: []TrialMachine{
			{"a", Disagreement{Windows: 4, Differ: 2, ShadowUnknown: 1, BothAlarm: 2, OnlyShadow: 1}},
			{"b", Disagreement{Windows: 2, Differ: 1, ChampionUnknown: 1, OnlyChampion: 1}},
		},
	}}
	for _, model := range []string{"old", "new"} {
		if got := use(t, s, model); !reflect.DeepEqual(got.Trials, want) || len(got.T) != 0 {
			t.Errorf("%s: got  %+v\nwant %+v", model, got, want)
		}
	}
	if n := windows(t, s, "a"); n != 0 {
		t.Errorf("%d windows of shadows are in the history of the machine", n)
	}
}

// A window of a trial counts once, also if the topic of shadows is read again from its beginning, as after a restore
// of older brokers next to a newer history. Each shadow of a window counts, and so does the champion's result.
func TestTrialsCountOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	champion := event.Champion{Model: "old", Verdict: event.Faulty}
	all := []Message{shadowed("a", 1, event.Healthy, "", champion), shadowed("a", 2, event.Healthy, "", champion)}
	second := shadowed("a", 2, event.Healthy, "", champion)
	second.Shadow.Model = "newer"
	all = append(all, second)
	putResults(t, s, judgedBy("old", "a", 2, event.Faulty, ""))
	put(t, s, "shadow", all...)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	s = s.crash(t, dir)
	if _, ok := s.Begin("shadow", 0, [16]byte{}, true); ok {
		t.Fatal("a topic that lost messages is not read from its beginning")
	}
	put(t, s, "shadow", all...)
	putResults(t, s, judgedBy("old", "a", 1, event.Faulty, ""))
	u := use(t, s, "old")
	if len(u.Trials) != 2 || u.Trials[0].Sum.Windows != 2 || u.Trials[1].Sum.Windows != 1 || !reflect.DeepEqual(u.Judged, []int{2}) {
		t.Errorf("%+v", u)
	}
}

// advise is an advisory of a machine.
func advise(machine string, kind event.AdvisoryKind, state event.AlertState, at time.Time) Message {
	return Message{At: at, Advisory: &event.Advisory{ID: machine + string(kind) + string(state) + at.String(), Machine: machine, Kind: kind, State: state, At: at, Since: at}}
}

// Of more drift than a page takes the last counts, also where one machine has it all.
func TestLastDriftOfModel(t *testing.T) {
	s := open(t, t.TempDir())
	putResults(t, s, judgedBy("m", "a", 1, event.Healthy, ""), judgedBy("m", "b", 1, event.Healthy, ""))
	for i := range maxDriftSpans + 10 {
		at := t0.Add(time.Duration(i) * time.Second)
		put(t, s, "alerts", advise("a", event.DriftAdvisory, event.Raised, at), advise("a", event.DriftAdvisory, event.Cleared, at.Add(time.Millisecond)))
	}
	last := t0.Add(time.Hour / 2)
	put(t, s, "alerts", advise("b", event.DriftAdvisory, event.Raised, last))
	got := use(t, s, "m").Drift
	if len(got) != maxDriftSpans || got[len(got)-1] != (DriftSpan{"b", last, time.Time{}}) || !got[0].From.Equal(t0.Add(11*time.Second)) {
		t.Errorf("%d spans, from %v to %v", len(got), got[0], got[len(got)-1])
	}
}

// Drift is of the machines that the model judged, while it could have been open.
func TestDriftOfModel(t *testing.T) {
	s := open(t, t.TempDir())
	putResults(t, s, judgedBy("old", "a", 0, event.Healthy, ""), judgedBy("new", "b", 0, event.Healthy, ""))
	end := t0.Add(time.Hour)
	put(t, s, "alerts", advise("a", event.DriftAdvisory, event.Raised, t0), advise("a", event.DriftAdvisory, event.Cleared, end),
		advise("a", event.SilenceAdvisory, event.Raised, t0), advise("b", event.DriftAdvisory, event.Raised, t0))
	if got, want := use(t, s, "old").Drift, []DriftSpan{{"a", t0, end}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := use(t, s, "new").Drift, []DriftSpan{{"b", t0, time.Time{}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A machine that gets another name keeps what models made of its windows; tallies go when their hours do.
func TestTalliesMoveAndGo(t *testing.T) {
	s := open(t, t.TempDir())
	putResults(t, s, judgedBy("old", "a", 0, event.Unknown, ""), judgedBy("old", "a", 1, event.Healthy, ""), judgedBy("old", "a", 3600, event.Healthy, ""))
	renamed := alertAt("b", 7200, event.Renamed, "")
	renamed.Was = "a"
	putAlerts(t, s, renamed)
	if u := use(t, s, "old"); !reflect.DeepEqual(u.Judged, []int{2, 1}) || !reflect.DeepEqual(u.Unknown, []int{1, 0}) {
		t.Errorf("%+v", u)
	}
	s.hour = time.Hour
	s.now = func() time.Time { return t0.Add(3 * time.Hour) }
	if err := s.Tick(); err != nil {
		t.Fatal(err)
	}
	if u := use(t, s, "old"); !reflect.DeepEqual(u.Judged, []int{1}) {
		t.Errorf("after an hour: %+v", u)
	}
}

// A tally that cannot be read counts from zero again.
func TestTallyDamaged(t *testing.T) {
	var a tally
	a.add(judgedBy("m", "a", 0, event.Unknown, ""))
	whole := a.appendTo(nil)
	for _, b := range [][]byte{nil, {1}, whole[:len(whole)-1], append([]byte{9}, whole[1:]...)} {
		var got tally
		if got.parse(b); got != (tally{}) {
			t.Errorf("%v: %v", b, got)
		}
	}
	var got tally
	if got.parse(whole); got != a {
		t.Errorf("%v, want %v", got, a)
	}
}
