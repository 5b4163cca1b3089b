package machine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/window"
)

// Deployment says what judges a machine and when it is alarmed. It must not be changed once it
// is in a Fleet.
type Deployment struct {
	Champion *model.Model
	Now      bool // a new champion judges once it has seen the tool's past, not from the next tool on
	Shadows  []Shadow
	Alarm    alarm.Settings // zero: Settings.Alarm
}

// Shadow is a model that judges the same windows as the champion and moves no alarm.
type Shadow struct {
	Model *model.Model
	Until time.Time // by the clock of Kafka; zero: until it is taken out of the deployment
}

// Fleet says what judges which machine. Its functions must be pure, and safe for concurrent
// use.
type Fleet struct {
	// Of returns the deployment of a machine whose windows have a layout of that fingerprint,
	// nil if there is none. Without a layout, which is not known of a machine that an older
	// program kept, it returns the one for any layout, or the first.
	Of func(machine, layout string) *Deployment

	// Model returns the model with an id: one that judged a machine last may not be the champion
	// any more. It returns nil if the model is not known any more.
	Model func(id string) *model.Model
}

// Everything returns a fleet in which a model judges every machine.
func Everything(m *model.Model) Fleet {
	d := &Deployment{Champion: m}
	return Fleet{
		Of: func(string, string) *Deployment { return d },
		Model: func(id string) *model.Model {
			if id == m.ID() {
				return m
			}
			return nil
		},
	}
}

// modelOf returns m as machines of the partition use it.
func (o *Owner) modelOf(m *model.Model) *Model {
	if o.models[m.ID()] == nil {
		o.models[m.ID()] = NewModel(m)
	}
	return o.models[m.ID()]
}

// Judge returns the model that judges the next window of a machine with these records of one
// group: the one that judged last, if it is known, else the champion. It returns nil if no
// model is deployed for the machine.
func (f Fleet) Judge(name string, records []Record) *model.Model {
	return f.judge(name, lastJudged(records))
}

func (f Fleet) judge(name string, last judgedLast) *model.Model {
	if m := f.Model(last.model); m != nil {
		return m
	}
	if d := f.Of(name, last.layout); d != nil {
		return d.Champion
	}
	return nil
}

// loadedBy returns the model under which a machine is loaded; nil if none is deployed for it,
// or if it has judged no window.
func (o *Owner) loadedBy(name string, records []Record) *Model {
	last := lastJudged(records)
	if !last.any {
		return nil
	}
	if m := o.fleet.judge(name, last); m != nil {
		return o.modelOf(m)
	}
	return nil
}

// redeploy lets every machine of a known layout know of another fleet.
func (o *Owner) redeploy(f Fleet) {
	o.fleet = f
	o.Machines(func(m *Machine) { o.deploy(m, o.fleet.Of(m.Machine, m.Layout), nil) })
	used := make(map[string]bool)
	for _, m := range o.machines {
		for _, by := range []*Model{m.model, m.next} {
			if by != nil {
				used[by.model.ID()] = true
			}
		}
	}
	for id := range o.models {
		if !used[id] {
			delete(o.models, id)
		}
	}
}

// deploy makes a deployment the machine's. Another champion judges at once if none did, or if
// the one before cannot judge windows of the form, which may be nil. Otherwise it waits for
// the next tool, or for a replay. Without a deployment nothing waits, and the alarm has the
// settings of all machines. A machine that has judged no window takes its model with the first
// one: until then its records do not say which models were deployed meanwhile.
func (o *Owner) deploy(m *Machine, d *Deployment, form *window.Form) {
	if form == nil && m.unjudged() {
		return
	}
	if d == nil {
		m.deployment, m.next = nil, nil
		m.setAlarm(alarm.Settings{})
		return
	}
	champion := o.modelOf(d.Champion)
	if m.deployment != d {
		m.deployment = d
		m.setAlarm(d.Alarm)
	}
	switch {
	case champion == m.model:
		m.next = nil
	case m.model == nil || form != nil && m.model.covers(form) != nil:
		m.takeModel(champion)
	case m.inSpindle() == nil:
		m.takeModel(champion)
	case d.Now && m.inSpindle().First.Epoch == "": // its past cannot be found
		m.takeModel(champion)
	default:
		m.next = champion
	}
}

// unjudged reports whether no window of the machine was ever judged.
func (m *Machine) unjudged() bool { return len(m.Epochs) == 0 && len(m.Tools) == 0 }

// takeModel makes a model judge the machine from its next window on.
func (m *Machine) takeModel(by *Model) {
	m.model, m.next = by, nil
	m.adopt()
}

// forgetModel makes a machine that was retired what its records say of it.
func (m *Machine) forgetModel() {
	m.Model, m.model, m.next, m.deployment = "", nil, nil, nil
	m.setAlarm(alarm.Settings{})
}

// swapModel makes the next model judge, since another tool is put in.
func (m *Machine) swapModel() {
	was := m.Model
	m.takeModel(m.next)
	m.decision.Lines = append(m.decision.Lines, Line{false, "model_swapped", fmt.Sprintf("%s: model %s judges instead of %s, from the tool that is put in now on", short(m.Machine), m.Model, was)})
}

// setAlarm changes when alarms are raised; zero means the settings of all machines. What
// stands goes on.
func (m *Machine) setAlarm(s alarm.Settings) {
	if s == (alarm.Settings{}) {
		s = m.settings.Alarm
	}
	if s == m.alarmed {
		return
	}
	a, err := alarm.New(s)
	if err == nil {
		err = a.Restore(m.alarm.State())
	}
	if err != nil {
		return // deployments are checked when they are made
	}
	m.alarm, m.alarmed = a, s
}

// covers reports why the model cannot judge features of a form.
func (m *Model) covers(form *window.Form) error {
	if m.form != form {
		m.form, m.unfit = form, m.model.Covers(form)
	}
	return m.unfit
}

// Models returns the id of the model that judges the machine, and of the one that will from
// its next tool on; empty if there is none.
func (m *Machine) Models() (now, next string) {
	if m.model != nil {
		now = m.model.model.ID()
	}
	if m.next != nil {
		next = m.next.model.ID()
	}
	return now, next
}

// AlarmWord returns the state of the machine's alarm, in the words of a result.
func (m *Machine) AlarmWord() string { return m.alarm.State().Word() }

// unwatched returns why features of a machine cannot be judged; nil if they can.
func (o *Owner) unwatched(m *Machine, d *Deployment, f *window.Features) *window.Mismatch {
	layout := f.Form.Layout()
	if d == nil {
		if other := o.fleet.Of(m.Machine, ""); other != nil { // for machines of its name, of another layout
			return window.Compare(layout, other.Champion.Layout)
		}
		return &window.Mismatch{What: NoModel, Text: fmt.Sprintf("no model is deployed for it with layout %s", cmp.Or(layout.Name(), layout.Fingerprint()))}
	}
	if err := m.model.covers(f.Form); err != nil {
		return &window.Mismatch{What: window.OtherFeatures, Text: err.Error()}
	}
	return nil
}

// NoModel is the window.Mismatch.What of a window for which no model is deployed.
const NoModel = "no model"

// take lets a machine judge a window, and its shadows after it.
func (o *Owner) take(b *Batch, w Window) {
	name, layout := w.Machine, w.Form.Layout().Fingerprint()
	d := o.fleet.Of(name, layout)
	m := o.machines[name]
	if m == nil || m.gone {
		if d == nil && !o.roomForUnjudged() {
			b.Unwatched++
			return
		}
		if m == nil {
			m = o.meet(name, w.Now)
		}
	}
	switch p := m.wouldPlace(w, layout); {
	case p == repeat:
		o.add(b, m, Decision{Repeat: true})
		return
	case (p == late || p == rival) && (m.model == nil || m.model.covers(w.Form) != nil):
		b.Unwatched++
		o.add(b, m, m.Apply(passedWindow{w}))
		return
	}
	o.deploy(m, d, w.Form)
	if m.Layout != layout {
		m.Layout, m.dirty.head = layout, true
	}
	if why := o.unwatched(m, d, w.Features); why != nil {
		o.endShadows(m, d, w.At)
		b.Unwatched++
		o.add(b, m, m.Apply(RefusedWindow{&Refusal{Machine: name, Epoch: w.EpochString(), Seq: w.Seq, Why: why}, w.At, w.Now}))
		return
	}
	decision := m.Apply(w)
	if decision.Result != nil && o.OnWindow != nil {
		o.OnWindow(w.Features, *decision.Result)
	}
	o.add(b, m, decision)
	if !decision.Repeat { // a shadow may be younger than the window
		o.shadow(b, m, d, w, decision.Result)
	}
}

// roomForUnjudged reports whether the partition may know one more machine of which no window
// was ever judged.
func (o *Owner) roomForUnjudged() bool {
	n := 0
	o.Machines(func(m *Machine) {
		if m.unjudged() {
			n++
		}
	})
	return n < mostRefused
}

// shadowSeparator is between the group and the model in the group of a shadow's records.
const shadowSeparator = "~"

// ShadowGroup returns the group in whose name a shadow of a monitor's group publishes and keeps
// its records.
func ShadowGroup(group, id string) string { return group + shadowSeparator + id }

// OfGroup reports whether a record is of a group of monitors, or of one of its shadows.
func (k Key) OfGroup(group string) bool {
	return k.Group == group || strings.HasPrefix(k.Group, ShadowGroup(group, ""))
}

// shadowKey names a shadow of a machine.
type shadowKey struct{ machine, model string }

// shadows are the shadows of machines, by machine and by the id of the model.
type shadows map[string]map[string]*Machine

func (s shadows) set(key shadowKey, sm *Machine) {
	if s[key.machine] == nil {
		s[key.machine] = make(map[string]*Machine)
	}
	s[key.machine][key.model] = sm
}

func (s shadows) drop(key shadowKey) {
	if delete(s[key.machine], key.model); len(s[key.machine]) == 0 {
		delete(s, key.machine)
	}
}

// of calls f for the shadows of a machine, in the order of their models, until it returns
// false. It reports whether it did for all. F may drop the shadow.
func (s shadows) of(machine string, f func(shadowKey, *Machine) bool) bool {
	if len(s[machine]) == 0 {
		return true // as most machines
	}
	for _, id := range sortedKeys(s[machine]) {
		if !f(shadowKey{machine, id}, s[machine][id]) {
			return false
		}
	}
	return true
}

// all does so for the shadows of all machines, in the order of their names.
func (s shadows) all(f func(shadowKey, *Machine) bool) {
	if len(s) == 0 {
		return // as most partitions
	}
	for _, name := range sortedKeys(s) {
		if !s.of(name, f) {
			return
		}
	}
}

// shadowSettings returns the settings of the shadows of a model.
func (o *Owner) shadowSettings(id string) *Settings {
	s := *o.settings
	s.Group, s.Silence, s.Evidence = ShadowGroup(o.settings.Group, id), 0, false
	return &s
}

// shadow lets the shadows of a machine judge a window that it has judged. What it made of it may
// be nil.
func (o *Owner) shadow(b *Batch, m *Machine, d *Deployment, w Window, made *event.Result) {
	for _, s := range d.Shadows {
		key := shadowKey{m.Machine, s.Model.ID()}
		if s.over(w.At) || s.Model.ID() == m.model.model.ID() {
			continue
		}
		sm := o.shadows[key.machine][key.model]
		if sm == nil {
			sm = o.newShadow(m, s.Model, w.Now)
			o.shadows.set(key, sm)
		}
		if sm.gone || sm.model.covers(w.Form) != nil {
			continue // one that is gone begins again once its records are
		}
		if t := m.inSpindle(); t.Name == sm.passing && t.First.Epoch == "" {
			continue
		}
		sm.passing = ""
		sm.setAlarm(m.alarmed)
		if sm.awaiting {
			sm.retain(w)
			continue
		}
		decision := sm.Apply(w)
		if decision.Result != nil && made != nil {
			decision.Result.Champion = &event.Champion{Model: made.Model, Verdict: made.Verdict, Incident: made.Incident}
		}
		o.addShadow(b, decision)
	}
	o.endShadows(m, d, w.At)
}

func (s Shadow) over(at time.Time) bool { return !s.Until.IsZero() && !at.Before(s.Until) }

// newShadow returns a shadow of a machine. If the tool in the spindle has a past, the shadow
// waits until it has seen that, or passes over the tool if that cannot be found.
func (o *Owner) newShadow(m *Machine, by *model.Model, now time.Time) *Machine {
	sm, err := New(m.Machine, o.shadowSettings(by.ID()), NewModel(by), now)
	if err != nil {
		panic("machine: settings: " + err.Error()) // they were checked before
	}
	sm.Model, sm.Layout = by.ID(), m.Layout
	t := m.inSpindle()
	if past := t != nil && len(t.Trace) > 1; past && t.First.Epoch == "" {
		sm.passing = t.Name
	} else {
		sm.awaiting = past
	}
	return sm
}

// Shadows returns the ids of the models that judge a machine as shadows, in order.
func (o *Owner) Shadows(machine string) (ids []string) {
	o.shadows.of(machine, func(key shadowKey, sm *Machine) bool {
		if !sm.gone {
			ids = append(ids, key.model)
		}
		return true
	})
	return ids
}

// endShadows forgets the shadows of a machine that no deployment wants any more.
func (o *Owner) endShadows(m *Machine, d *Deployment, at time.Time) {
	o.shadows.of(m.Machine, func(key shadowKey, sm *Machine) bool {
		wanted := d != nil && key.model != m.Model && slices.ContainsFunc(d.Shadows, func(s Shadow) bool { return s.Model.ID() == key.model && !s.over(at) })
		if !wanted && !sm.gone {
			o.forgetShadow(key, sm)
		}
		return true
	})
}

// forgetShadow removes a shadow and its records. One that still waits for the past of its tool
// has none.
func (o *Owner) forgetShadow(key shadowKey, sm *Machine) {
	if sm.awaiting {
		o.shadows.drop(key)
		return
	}
	sm.writeAll()
	sm.State = State{Machine: sm.Machine}
	sm.gone = true
}

// addShadow puts what a shadow's decision says into a batch.
func (o *Owner) addShadow(b *Batch, d Decision) {
	if d.Result != nil {
		b.Events = append(b.Events, Output{Result: d.Result, Shadow: true})
	}
	for i := range d.Alerts {
		b.Events = append(b.Events, Output{Alert: &d.Alerts[i], Shadow: true})
	}
}

// tellShadows lets shadows of a machine carry out what people say of its tools. What they say
// of its alarm is of the champion's.
func (o *Owner) tellShadows(b *Batch, c Command) {
	if len(o.shadows[c.Key]) == 0 {
		return
	}
	e, err := c.read()
	if err != nil || e.Action != event.NewTool && e.Action != event.Retire {
		return
	}
	o.shadows.of(c.Key, func(key shadowKey, sm *Machine) bool {
		switch {
		case sm.gone:
		case e.Action == event.Retire:
			o.forgetShadow(key, sm)
		case sm.awaiting: // the past of the tool begins again
			sm.replay, sm.retained = nil, nil
		default:
			o.addShadow(b, sm.Apply(c))
		}
		return true
	})
}

// loadShadows makes shadows of their records. One that cannot be used begins again.
func (o *Owner) loadShadows(b *Batch, records map[shadowKey][]Record, now time.Time) {
	for _, key := range slices.SortedFunc(maps.Keys(records), compareShadows) {
		of := records[key]
		if by := o.fleet.Model(key.model); by != nil && o.machines[key.machine] != nil {
			if sm, err := Load(of, o.shadowSettings(key.model), NewModel(by), now); err == nil && sm.Model == key.model {
				o.shadows.set(key, sm)
				continue
			}
		}
		for _, r := range of {
			b.State = append(b.State, Record{Key: r.Key})
		}
	}
}

func compareShadows(a, b shadowKey) int {
	return cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.model, b.model))
}

// shadowRecords returns the records of shadows that changed, and forgets the shadows that are
// over.
func (o *Owner) shadowRecords() (out []Record) {
	o.shadows.all(func(key shadowKey, sm *Machine) bool {
		records := sm.Records()
		if sm.gone {
			for i := range records {
				records[i].Value = nil
			}
			o.shadows.drop(key)
		}
		out = append(out, records...)
		return true
	})
	return out
}

// LastModels returns the ids of the models that judged the machines of these records last.
func LastModels(records []Record) (ids []string) {
	for _, r := range records {
		if id := lastJudged([]Record{r}).model; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// judgedLast is what records of one group say of the last windows of their machine.
type judgedLast struct {
	model  string // id of the model that judged; empty: they do not say
	layout string // likewise
	any    bool   // a window was judged
}

func lastJudged(records []Record) (last judgedLast) {
	for _, r := range records {
		if r.Key.Slow || r.Key.OfTool {
			continue
		}
		var h struct { // of headRecord, without what is long
			Model, Layout string
			Epoch, Tool   *struct{}
		}
		if json.Unmarshal(r.Value, &h) == nil {
			last = judgedLast{h.Model, h.Layout, h.Epoch != nil || h.Tool != nil}
		}
		break
	}
	return last
}
