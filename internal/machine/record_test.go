package machine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
)

// Records that are not of this machine, or of another version, are refused with a reason.
func TestLoadRefuses(t *testing.T) {
	b := newBench(t, machinetest.WithWear(t))
	b.wear("T1", 0)
	head, slow, tool := event.StateKey{Group: group, Machine: drill}, event.StateKey{Group: group, Machine: drill, Part: event.SlowState}, event.StateKey{Group: group, Machine: drill, Part: event.ToolState, Tool: "T1"}
	judging := event.StateKey{Group: group, Machine: drill, Part: event.ModelState, Model: b.model.ID(), Tool: "T1"}
	for want, change := range map[string]func(map[event.StateKey]string){
		"no record":                              func(r map[event.StateKey]string) { clear(r) },
		"it is of machine \"\"":                  func(r map[event.StateKey]string) { delete(r, head) },
		"of machine \"acme/line1/lathe\"":        func(r map[event.StateKey]string) { r[head] = strings.Replace(r[head], drill, "acme/line1/lathe", 1) },
		"it is of version 4, this program reads": func(r map[event.StateKey]string) { r[head] = strings.Replace(r[head], `"version":3`, `"version":4`, 1) },
		"the record is of tool \"T2\"":           func(r map[event.StateKey]string) { r[tool] = strings.ReplaceAll(r[tool], "T1", "T2") },
		"impossible state":                       func(r map[event.StateKey]string) { r[head] = strings.Replace(r[head], `"judged":2`, `"judged":-1`, 1) },
		"its reference is not of the model": func(r map[event.StateKey]string) {
			r[judging] = strings.Replace(r[judging], `"data":"AAAgQQ=="`, `"data":"AAAgQQAAIEE="`, 1)
		},
		"knows the tool in the spindle, and has no record": func(r map[event.StateKey]string) { delete(r, judging) },
		"is in the spindle, and has no record":             func(r map[event.StateKey]string) { delete(r, tool); delete(r, judging) },
		"a record of model": func(r map[event.StateKey]string) {
			r[judging] = strings.ReplaceAll(r[judging], b.model.ID(), "another")
		},
		"unexpected end of JSON": func(r map[event.StateKey]string) { r[slow] = "{" },
		"trace: cut off":         func(r map[event.StateKey]string) { r[head] = strings.Replace(r[head], `"trace":"`, `"trace":"A`, 1) },
	} {
		records := make(map[event.StateKey]string)
		for k, r := range b.records {
			records[k] = string(r.Value)
		}
		change(records)
		var all []event.StateRecord
		for k, v := range records {
			all = append(all, event.StateRecord{Key: k, Value: []byte(v)})
		}
		if _, err := Load(all, b.settings, modelsOf(b.model), noon); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A state that no machine can have is refused. What an older release left open is not.
func TestLoadRefusesTheImpossible(t *testing.T) {
	drifting, cycling := machinetest.WithWear(t), machinetest.Cycling(t)
	machinetest.MeasureDrift(drifting)
	drift := func(tools int, mean string) map[string]*model.DriftMemory {
		d := new(model.DriftMemory)
		if err := json.Unmarshal(fmt.Appendf(nil, `{"tools":%d,"f":1,"weight":1,"squares":1,"mean":%q}`, tools, mean), d); err != nil {
			t.Fatal(err)
		}
		return map[string]*model.DriftMemory{drifting.ID(): d}
	}
	never := func(kind event.AdvisoryKind) Notice { return Notice{Kind: kind, Notice: alarm.Notice{Recent: 1}} }
	for name, c := range map[string]struct {
		by     *model.Model
		change func(m *Machine, t *Tool)
		want   string // empty: it is loaded
	}{
		"as it is":                {drifting, func(*Machine, *Tool) {}, ""},
		"as it is, cycles":        {cycling, func(*Machine, *Tool) {}, ""},
		"drift of other features": {drifting, func(m *Machine, _ *Tool) { m.Drift = drift(1, "AAAAAAAAAAAAAAAAAAAAAAAAAAA=") }, "drift of 5 features"},
		"drift of a model that is not known": {drifting, func(m *Machine, _ *Tool) {
			m.Drift = map[string]*model.DriftMemory{"another": drift(1, "AAAAAAAAAAAAAAAAAAAAAAAAAAA=")[drifting.ID()]}
		}, ""},
		"drift of a model without": {cycling, func(m *Machine, _ *Tool) {
			m.Drift = map[string]*model.DriftMemory{cycling.ID(): drift(1, "AAAAAA==")[drifting.ID()]}
		}, ""},
		"a notice held before it was": {drifting, func(m *Machine, _ *Tool) {
			m.Notices = []Notice{{Kind: event.RivalAdvisory, Notice: alarm.Notice{Held: 1}}}
		}, "impossible state: notice"},
		"silence that is not":       {drifting, func(m *Machine, _ *Tool) { m.Notices = []Notice{never(event.SilenceAdvisory)} }, "silence: a notice that is kept only while it is raised"},
		"refused that is not":       {drifting, func(m *Machine, _ *Tool) { m.Notices = []Notice{never(event.RefusedAdvisory)} }, "windows_refused: a notice that is kept only"},
		"drift that is not":         {drifting, func(m *Machine, _ *Tool) { m.Notices = []Notice{never(event.DriftAdvisory)} }, "drift: a notice that is kept only"},
		"a model that is not":       {drifting, func(m *Machine, _ *Tool) { m.Notices = []Notice{never(event.ModelAdvisory)} }, "a notice that is kept only"},
		"a sensor that may be":      {drifting, func(m *Machine, _ *Tool) { m.Notices = []Notice{never(event.SensorAdvisory)} }, ""},
		"windows of a tool":         {drifting, func(_ *Machine, t *Tool) { t.Windows = -1 }, "-1 windows, "},
		"cutting of a tool":         {drifting, func(_ *Machine, t *Tool) { t.Cutting = -1 }, "-1ns of cutting"},
		"no cutting of a tool":      {drifting, func(_ *Machine, t *Tool) { t.Cutting = 0 }, ""},
		"windows of a model":        {drifting, func(_ *Machine, t *Tool) { t.Judgings[0].Windows = -1 }, ": -1 windows"},
		"no windows of a model":     {drifting, func(_ *Machine, t *Tool) { t.Judgings[0].Windows = 0 }, ""},
		"the alarm of a shadow":     {drifting, func(_ *Machine, t *Tool) { t.Judgings[0].Trial = &Alarm{State: alarm.State{Held: -1}} }, "held for -1ns"},
		"an alarm of a shadow":      {drifting, func(_ *Machine, t *Tool) { t.Judgings[0].Trial = new(Alarm) }, ""},
		"wear":                      {drifting, func(_ *Machine, t *Tool) { t.Judgings[0].Wear.Windows = -1 }, "trend: "},
		"the reference of a tool":   {drifting, func(_ *Machine, t *Tool) { t.Judgings[0].Reference.Tool = "T9" }, `its reference is of tool "T9"`},
		"cycles of other parts":     {cycling, func(_ *Machine, t *Tool) { t.Judgings[0].Cycle.Belief = []float64{1} }, "cycle: "},
		"no cycles yet":             {cycling, func(_ *Machine, t *Tool) { t.Judgings[0].Cycle = cycle.Memory{Zero: []float64{1, 2, 3}} }, ""},
		"cycles of a model without": {drifting, func(_ *Machine, t *Tool) { t.Judgings[0].Cycle.Belief = []float64{1} }, ""},
	} {
		b := newBench(t, c.by)
		for seq := range uint64(3) {
			b.window(at(seq, "T1", false))
		}
		c.change(b.m, b.m.Tools[0])
		b.m.dirty.all(b.m.Tools)
		b.keep()
		_, err := Load(b.stored(), b.settings, modelsOf(c.by), noon)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Any records on the state topic make a machine that judges windows, or are refused.
func FuzzLoad(f *testing.F) {
	m := machinetest.Cycling(f)
	m.Wear, m.Drift = machinetest.WithWear(f).Wear, machinetest.Unsure(f).Drift
	if _, err := m.Encode(); err != nil {
		f.Fatal(err)
	}
	b := newBench(f, m, withEvidence)
	for seq := range uint64(12) {
		b.window(at(seq, "T1", seq > 8))
	}
	b.window(at(12, "T2", false))
	b.command(event.Command{ID: "1", Action: event.Suppress, Note: "x"}, noon)
	head, slow, tool := event.StateKey{Group: group, Machine: drill}, event.StateKey{Group: group, Machine: drill, Part: event.SlowState}, event.StateKey{Group: group, Machine: drill, Part: event.ToolState, Tool: "T1"}
	judging := event.StateKey{Group: group, Machine: drill, Part: event.ModelState, Model: b.model.ID(), Tool: "T1"}
	f.Add(b.records[head].Value, b.records[slow].Value, b.records[tool].Value, b.records[judging].Value)
	for _, version := range []int{event.StateVersion - 1, event.StateVersion} {
		about := fmt.Sprintf(`{"version":%d,"machine":%q,"model":%q,`, version, drill, m.ID())
		f.Add([]byte(about+`"notices":[{"kind":"silence"},{"kind":"drift","recent":1},{"kind":"silence","recent":1}]}`), []byte(`{}`), []byte(`{"tool":"T1","alarm":{}}`), []byte(`{}`))
		f.Add([]byte(about+`"tool":{"tool":"T1","alarm":{}}}`), []byte(`{"epochs":[{"id":"x","judged":[]}]}`), []byte(`{"tool":"T1","alarm":{},"models":["`+m.ID()+`"],"reference":{"tool":"T1","windows":2,"settled":true,"data":"AAAgQQAAIEE="}}`),
			[]byte(`{"model":"`+m.ID()+`","reference":{"tool":"T1","windows":2,"settled":true,"data":"AAAgQQAAIEE="}}`))
		f.Add([]byte(about+`"epoch":{"id":"0000000000000001","judged":[[0,18446744073709551615]]},"tool":{"tool":"T1","alarm":{"tool":"T9","raised":true,"judged":1,"recent":1},"wear":{"tool":"T2","windows":1}}}`), []byte(`{"raised":[{}],"drift":{"tools":1}}`), []byte(`{}`), []byte(`{}`))
	}
	f.Fuzz(func(t *testing.T, first, second, third, fourth []byte) {
		records := []event.StateRecord{{Key: head, Value: first}, {Key: slow, Value: second}, {Key: tool, Value: third}, {Key: judging, Value: fourth}}
		mach, err := Load(records, b.settings, modelsOf(m), noon)
		if err != nil {
			return
		}
		if _, err := Summarise(records); err != nil {
			t.Errorf("it is loaded, and not summarised: %v", err)
		}
		d := &Deployment{Champion: m}
		if mach.judges.deployed = func(string) *Deployment { return d }; !mach.gone {
			mach.deploy(d)
		}
		for seq, name := range []string{"T1", "T2", "T1", "T1"} {
			w := at(uint64(100+seq), name, seq == 3)
			w.Epoch = uint64(1 + seq/2)
			mach.Apply(Window{Features: machinetest.Features(m, w), At: noon, Now: noon})
		}
		mach.Apply(Tick{Now: noon.Add(time.Hour)})
		mach.Apply(Command{Key: drill, Value: event.JSON(event.Command{ID: "2", Machine: drill, Action: event.NewTool, Tool: "T1", By: "kim", Issued: noon}), At: noon})
		mach.EvidenceDue(noon)
		again := &bench{t: t, m: mach, model: m, settings: b.settings, records: make(map[event.StateKey]event.StateRecord)}
		for _, r := range records {
			again.records[r.Key] = r
		}
		again.keep()
		again.restart()
	})
}

// manyFeatures returns a model of so many feature channels.
func manyFeatures(t *testing.T, n int) *model.Model {
	t.Helper()
	m := machinetest.OneValue(t)
	var channels []signal.Channel
	for i := range n {
		channels = append(channels, signal.Channel{Name: fmt.Sprint("f", i), Kind: signal.Feature, Rate: 1})
	}
	var err error
	if m.Layout, err = signal.NewLayout("many", channels); err != nil {
		t.Fatal(err)
	}
	m.Usual = make([]signal.Quality, n)
	x := dbn.NewMatrix(20, n)
	y := make([]int, x.Rows)
	for i := range y {
		y[i] = i % 2
		x.Row(i)[0] = float32(y[i])
	}
	if m.Classifier, _, err = classify.Fit(t.Context(), x, y, nil, classify.Settings{
		Network: dbn.Settings{Hidden: []int{3}, Pretrain: dbn.PretrainSettings{Epochs: 1}, FineTune: dbn.FineTuneSettings{Epochs: 5}}, Seed: 1,
	}); err != nil {
		t.Fatal(err)
	}
	m.Reference.Windows = 10
	if _, err := m.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// Once the reference is there a window writes little: what changed of the machine, not the
// reference, also with many tools, epochs and commands behind it.
func TestRecordWeight(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with 671 features")
	}
	const features = 671
	b := newBench(t, manyFeatures(t, features))
	rng := rand.New(rand.NewPCG(1, 1))
	window := func(seq, epoch uint64, tool string) (bytes, largest int) {
		w := at(seq, tool, false)
		w.Epoch, w.Quality, w.Samples = epoch, make([]signal.Quality, features), nil
		for range features {
			w.Samples = append(w.Samples, []float32{10 + float32(rng.NormFloat64())})
		}
		b.window(w)
		for _, r := range b.written {
			n := len(r.Key.String()) + len(r.Value)
			bytes, largest = bytes+n, max(largest, n)
		}
		return bytes, largest
	}
	seq := uint64(0)
	for i := range 20 {
		for range 12 {
			window(seq, uint64(1+i/2), fmt.Sprint("T", i))
			seq++
		}
	}
	for i := range maxCommands {
		b.command(event.Command{ID: fmt.Sprint(i), Action: event.Unshelve}, noon)
	}
	var total, most, largest int
	const windows = 200
	for range windows {
		n, one := window(seq, 10, "T19")
		total, most, largest = total+n, max(most, n), max(largest, one)
		seq++
	}
	t.Logf("%d features: %d bytes a window, at most %d", features, total/windows, most)
	if most > 2000 {
		t.Errorf("a window writes %d bytes, in records of up to %d", most, largest)
	}
}

// Tools that take turns write no more of each window after a long time.
func TestRecordsOfToolsInTurn(t *testing.T) {
	b := newBench(t, machinetest.OneValue(t))
	b.unchecked = true
	var seq uint64
	part := func() (n int) {
		for tool := range 10 {
			for range 3 {
				b.window(at(seq, fmt.Sprint("T", tool), false))
				seq++
				for _, r := range b.written {
					n += len(r.Key.String()) + len(r.Value)
				}
			}
		}
		return n / 30
	}
	for range 40 { // until traces and the intervals of visits are full
		part()
	}
	first := part()
	for range 200 {
		part()
	}
	last := part()
	if t.Logf("%d bytes a window at first, %d after 200 turns", first, last); last > first+first/20 {
		t.Error("it grows")
	}
}
