package machine

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// raisedBy is the alert of the window with that seq in epoch 1.
const raisedBy = drill + "/0000000000000001/11/" + group + "/raised"

func withEvidence(s *Settings) { s.Evidence, s.EvidenceURL = true, "http://plant:9102" }

// An alert says where its waveform will be, and leaves a job that is due when the windows
// after it have come. The job survives a restart and is done once.
func TestEvidence(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t), withEvidence)
	var alerts []event.Alert
	for seq := range uint64(16) {
		alerts = append(alerts, b.window(at(seq, "T1", seq >= 10)).Alerts...)
		b.restart()
		if _, due := b.m.EvidenceDue(noon); due {
			t.Fatalf("due after window %d", seq)
		}
	}
	if len(alerts) != 1 || alerts[0].ID != raisedBy {
		t.Fatalf("%s", event.JSON(alerts))
	}
	a := alerts[0]
	if a.Evidence == nil || !a.Evidence.From.Equal(at(7, "", false).Start) || !a.Evidence.To.Equal(at(16, "", false).End()) ||
		a.Evidence.URL != "http://plant:9102/evidence/"+evidence.Name(a.Incident, 11)+".arrow" {
		t.Fatalf("%+v", a.Evidence)
	}
	b.window(at(16, "T1", true))
	j, due := b.m.EvidenceDue(noon)
	if !due || j.Alert != raisedBy || j.Incident != a.Incident || j.Offset.At != 7 {
		t.Fatalf("due %v: %+v", due, j)
	}
	e, _ := j.About(drill, b.settings.EvidenceURL)
	e.Text = "kept"
	d := b.apply(EvidenceDone{j, e})
	if d.Evidence == nil || d.Evidence.ID != raisedBy+"/evidence" || d.Evidence.Group != group || d.Evidence.URL != a.Evidence.URL {
		t.Errorf("%+v", d.Evidence)
	}
	b.restart()
	if again := b.apply(EvidenceDone{j, e}); !again.Empty() {
		t.Errorf("published twice: %+v", again)
	}
	if _, due := b.m.EvidenceDue(noon.Add(time.Hour)); due {
		t.Error("due although it is done")
	}
}

// Windows that do not come are waited for so long and no longer, and an epoch that another
// one followed has none.
func TestEvidenceDue(t *testing.T) {
	m := machinetest.OneValue(t)
	b := newBench(t, m, withEvidence)
	b.wear("T1", 0)
	for after, want := range map[time.Duration]bool{0: false, evidencePatience - 1: false, evidencePatience: true} {
		b.m.Evidence[0].since = noon
		if _, due := b.m.EvidenceDue(noon.Add(after)); due != want {
			t.Errorf("after %v: due %v", after, due)
		}
	}
	b = newBench(t, m, withEvidence)
	b.wear("T1", 0)
	next := at(4, "T1", true)
	next.Epoch = 2
	b.window(next)
	if _, due := b.m.EvidenceDue(noon); !due {
		t.Error("it waits for windows of an epoch that is over")
	}
}

// A record may have a job and no epochs. The job is due then, and nothing
// breaks.
func TestEvidenceWithoutEpochs(t *testing.T) {
	m := machinetest.OneValue(t)
	r := event.StateRecord{Key: event.StateKey{Group: group, Machine: drill}, Value: []byte(`{"version":3,"machine":"` + drill + `","model":"` + m.ID() + `",` +
		`"evidence":[{"name":"A-AAAAAAAA-1","alert":"` + drill + `/x","from":"2026-01-01T00:00:00Z","to":"2026-01-01T00:00:10Z"}]}`)}
	b := newBench(t, m, withEvidence)
	b.records = map[event.StateKey]event.StateRecord{r.Key: r}
	b.restart()
	j, due := b.m.EvidenceDue(noon)
	if !due {
		t.Fatalf("%s: not due", r.Key)
	}
	e, _ := j.About(drill, "")
	e.Text = "not kept"
	if d := b.apply(EvidenceDone{j, e}); d.Evidence == nil {
		t.Errorf("%s: nothing published", r.Key)
	}
	b.window(at(0, "T1", false))
}

// Without a store an alert announces no evidence.
func TestNoEvidence(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	for seq := range uint64(4) {
		for _, a := range b.window(at(seq, "T1", seq > 1)).Alerts {
			if a.Evidence != nil {
				t.Errorf("%+v", a.Evidence)
			}
		}
	}
	if len(b.m.Evidence) > 0 {
		t.Errorf("%+v", b.m.Evidence)
	}
}

// A record that would have evidence written elsewhere is refused.
func TestLoadRefusesEvidence(t *testing.T) {
	good := EvidenceJob{Name: "A-K3ZQ7M2P-11", Alert: raisedBy, From: time.Unix(1, 0), To: time.Unix(2, 0)}
	for why, tc := range map[string]struct {
		change func(*EvidenceJob)
		ok     bool
	}{
		"as it was made":     {func(*EvidenceJob) {}, true},
		"a path":             {func(j *EvidenceJob) { j.Name = "../../etc/A-K3ZQ7M2P-11" }, false},
		"no name":            {func(j *EvidenceJob) { j.Name = "" }, false},
		"of another machine": {func(j *EvidenceJob) { j.Alert = "acme/lathe/0000000000000001/11/raised" }, false},
		"of no time":         {func(j *EvidenceJob) { j.To = j.From }, false},
	} {
		j := good
		tc.change(&j)
		text, err := json.Marshal(headRecord{Version: event.StateVersion, headState: headState{Machine: drill, Evidence: []EvidenceJob{j}}})
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, machinetest.OneValue(t))
		_, err = Load([]event.StateRecord{{Key: event.StateKey{Group: group, Machine: drill}, Value: text}}, b.settings, new(candidates), noon)
		if (err == nil) != tc.ok || err != nil && !strings.Contains(err.Error(), "evidence") {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// The usual bands are of the tool whose alarm the evidence is about, as powers of its reference,
// and only while the reference is of the features that the model takes.
func TestUsualBands(t *testing.T) {
	layout, err := signal.NewLayout("drill", []signal.Channel{{Name: "force", Kind: signal.Feature, Rate: 1}, {Name: "vib", Kind: signal.Vibration, Unit: "g", Rate: 2000}})
	if err != nil {
		t.Fatal(err)
	}
	by := NewModel(&model.Model{Layout: layout, Window: window.DefaultSpec, Reference: model.ReferenceSpec{Windows: 1, Mode: model.ReferenceKind}, Usual: make([]signal.Quality, 2)})
	x, err := signal.NewExtractor(layout, []int{1, 2000}, signal.FeatureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	sine := make([]float32, 2000)
	for i := range sine { // of mean square 1, at 500 Hz
		sine[i] = float32(math.Sqrt2 * math.Sin(2*math.Pi*500*float64(i)/2000))
	}
	features := x.Extract(nil, [][]float32{{1}, sine}, signal.Context{})
	own := &Judging{Model: by.id()}
	tool := &Tool{Name: "T1", By: by.id(), Judgings: []*Judging{own}, Alarm: Alarm{Incident: "A-K3ZQ7M2P"}}
	own.Reference.Learn(features, by.model.Reference)
	m := &Machine{State: State{Tools: []*Tool{tool, {Name: "T2", By: by.id()}}}, judges: judges{models: new(candidates)}}
	m.judges.models.used = map[string]*Model{by.id(): by}
	all := m.UsualBands(EvidenceJob{Incident: "A-K3ZQ7M2P"})
	var power, end float64
	for _, b := range all {
		if b.Channel != "vib" || b.LowHz != end || b.HighHz <= b.LowHz {
			t.Errorf("%+v begins at %v", b, end)
		}
		end = b.HighHz
		if p := math.Pow(10, b.DB/10) * (b.HighHz - b.LowHz); b.LowHz < 500 && 500 <= b.HighHz {
			power = p
		} else if p > 0.1 && math.Abs(b.LowHz-500) > 20 {
			t.Errorf("%+v has a power of %v", b, p)
		}
	}
	if end != 1000 || math.Abs(power-1) > 0.1 {
		t.Errorf("bands up to %v Hz, a power of %v around 500 Hz, want 1: %+v", end, power, all)
	}
	if got := m.UsualBands(EvidenceJob{Incident: "A-K3ZQ7M2Q"}); got != nil {
		t.Errorf("of an alarm that has ended: %+v", got)
	}
	m.judges.models.used = nil
	if got := m.UsualBands(EvidenceJob{Incident: "A-K3ZQ7M2P"}); got != nil {
		t.Errorf("of a model that is not known: %+v", got)
	}
	m.judges.models.used = map[string]*Model{by.id(): by}
	tool.Judgings[0] = &Judging{Model: by.id()}
	if got := m.UsualBands(EvidenceJob{Incident: "A-K3ZQ7M2P"}); got != nil {
		t.Errorf("of a reference that is being learnt: %+v", got)
	}
}
