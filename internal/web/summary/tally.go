package summary

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

// inTallies is the bucket of a machine that has the tallies: the hour, the model, and for a
// shadow 0 and the champion → tally.
var inTallies = []byte("tallies")

// Bounds of what the store returns of a model.
const (
	maxTrialMachines = 50 // of a trial
	maxDriftSpans    = 200
	maxModelName     = 64
)

// The numbers of a tally, each of them a count of windows.
const (
	tallyJudged          = iota // healthy, faulty or unknown
	tallyUnknown                // of them
	tallyFaulty                 // of them
	tallyCompared               // both models judged them; only of shadows, like all below
	tallyDiffer                 // of those compared, the verdicts differ
	tallyShadowUnknown          // only the shadow does not know them
	tallyChampionUnknown        // only the champion does not know them
	tallyBothAlarm              // both models had an open alarm
	tallyOnlyShadow             // only the shadow had one
	tallyOnlyChampion           // only the champion had one
	tallies
)

// tallyVersion is the first byte of a tally; the numbers follow as little-endian uint32.
const tallyVersion = 1

// tally counts what a model made of the windows of a machine that end in one hour.
type tally [tallies]uint32

// tallyKey says whose windows are counted.
type tallyKey struct {
	hour     int64  // Unix seconds
	model    string // that judged
	champion string // in whose shadow; empty if the model is the champion
}

func (k tallyKey) bytes() []byte {
	b := append(timeKey(k.hour), k.model...)
	if k.champion != "" {
		b = append(append(b, 0), k.champion...)
	}
	return b
}

// tallyKeyOf reads the key of a tally.
func tallyKeyOf(b []byte) (k tallyKey, ok bool) {
	if k.hour, ok = keyTime(b); !ok {
		return k, false
	}
	model, champion, _ := bytes.Cut(b[8:], []byte{0})
	k.model, k.champion = string(model), string(champion)
	return k, true
}

func (t *tally) appendTo(b []byte) []byte {
	b = append(b, tallyVersion)
	for _, n := range t {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// parse reads a tally. Of one that cannot be read nothing counts.
func (t *tally) parse(b []byte) {
	if len(b) != 1+4*tallies || b[0] != tallyVersion {
		return
	}
	for i := range t {
		t[i] = binary.LittleEndian.Uint32(b[1+4*i:])
	}
}

// add counts a window.
func (t *tally) add(r *event.Result) {
	judged := func(v event.Verdict) bool { return v == event.Healthy || v == event.Faulty || v == event.Unknown }
	count := func(i int, yes bool) {
		if yes {
			t[i]++
		}
	}
	count(tallyJudged, judged(r.Verdict))
	count(tallyUnknown, r.Verdict == event.Unknown)
	count(tallyFaulty, r.Verdict == event.Faulty)
	c := r.Champion
	if c == nil || !judged(r.Verdict) || !judged(c.Verdict) {
		return
	}
	t[tallyCompared]++
	shadow, champion := r.Incident != "", c.Incident != ""
	count(tallyDiffer, r.Verdict != c.Verdict)
	count(tallyShadowUnknown, r.Verdict == event.Unknown && c.Verdict != event.Unknown)
	count(tallyChampionUnknown, c.Verdict == event.Unknown && r.Verdict != event.Unknown)
	count(tallyBothAlarm, shadow && champion)
	count(tallyOnlyShadow, shadow && !champion)
	count(tallyOnlyChampion, champion && !shadow)
}

// join adds another's counts.
func (t *tally) join(o *tally) {
	for i, n := range o {
		t[i] += n
	}
}

// joinTo adds counts to an element of a map.
func joinTo[K comparable](all map[K]*tally, at K, o *tally) {
	if all[at] == nil {
		all[at] = new(tally)
	}
	all[at].join(o)
}

// count counts a window of a machine for the model that judged it.
func (s *Store) count(m *machine, r *event.Result, end time.Time) error {
	model := r.Model[:min(len(r.Model), maxModelName)]
	if model == "" {
		return nil
	}
	k := tallyKey{hour: floor(end.Unix(), 3600), model: model}
	if r.Champion != nil {
		k.champion = r.Champion.Model[:min(len(r.Champion.Model), maxModelName)]
	}
	into := m.tallies[k]
	if into == nil {
		into = new(tally)
		if err := s.file.get(m.id, inTallies, k.bytes(), func(v []byte) error { into.parse(v); return nil }); err != nil {
			return err
		}
		m.tallies[k] = into
		s.rows++
	}
	into.add(r)
	return nil
}

// foldShadow folds a result of a shadow that Kafka got at a time. A result that does not say
// what the champion made of the window does not count.
func (s *Store) foldShadow(r *event.Result, at time.Time) error {
	id, ok := s.names.resolve(r.Machine, at)
	if !ok || r.Champion == nil || r.Champion.Model == "" {
		return nil
	}
	m, err := s.machine(id)
	if err != nil {
		return err
	}
	if !m.first(m.head.Shadows, r.Epoch+"/"+r.Model[:min(len(r.Model), maxModelName)], r.Seq, at) {
		return nil // it is here already
	}
	_, end := spanOf(r, at)
	return s.count(m, r, end)
}

// ModelUse is what the store holds of a model between two times. The caller owns its slices.
type ModelUse struct {
	T       []int64     `json:"t"`       // hours with windows that it judged as the champion, Unix seconds, the oldest first
	Judged  []int       `json:"judged"`  // in each of them: healthy, faulty or unknown
	Unknown []int       `json:"unknown"` // of them
	Trials  []Trial     `json:"trials"`  // in which it was shadow or champion
	Drift   []DriftSpan `json:"drift"`   // of machines that it judged, the oldest first; the last maxDriftSpans
}

// Trial says what a shadow and a champion made of the windows that both judged.
type Trial struct {
	Shadow   string         `json:"shadow"`
	Champion string         `json:"champion"`
	Sum      Disagreement   `json:"sum"`
	T        []int64        `json:"t"` // hours with such windows, Unix seconds, the oldest first
	Hours    []Disagreement `json:"hours"`
	Machines []TrialMachine `json:"machines"` // those that differ most first; at most maxTrialMachines
}

// TrialMachine is the part of a machine in a trial.
type TrialMachine struct {
	Machine string `json:"machine"`
	Disagreement
}

// Disagreement counts windows that two models judged, and on how many of them they disagree.
type Disagreement struct {
	Windows         int `json:"windows"`
	Differ          int `json:"differ"`           // the verdicts are not the same
	ShadowUnknown   int `json:"shadow_unknown"`   // only the shadow does not know them
	ChampionUnknown int `json:"champion_unknown"` // only the champion does not know them
	BothAlarm       int `json:"both_alarm"`       // both had an open alarm
	OnlyShadow      int `json:"only_shadow"`      // only the shadow had one
	OnlyChampion    int `json:"only_champion"`    // only the champion had one
}

func (t *tally) disagreement() Disagreement {
	return Disagreement{
		Windows: int(t[tallyCompared]), Differ: int(t[tallyDiffer]), ShadowUnknown: int(t[tallyShadowUnknown]), ChampionUnknown: int(t[tallyChampionUnknown]),
		BothAlarm: int(t[tallyBothAlarm]), OnlyShadow: int(t[tallyOnlyShadow]), OnlyChampion: int(t[tallyOnlyChampion]),
	}
}

// DriftSpan is the time for which an advisory said that features of a machine drift.
type DriftSpan struct {
	Machine string    `json:"machine"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to,omitzero"` // zero while it is open
}

// ModelUse returns what the store holds of a model from a time up to but not including another,
// of all machines.
func (s *Store) ModelUse(model string, from, to time.Time) (ModelUse, error) {
	u := modelUse{model: model, hours: make(map[int64]*tally), trials: make(map[[2]string]*trialUse)}
	names := byID(s.ids())
	err := s.view(func(tx *bbolt.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(names)) {
			b := bucketOf(tx, id, nil)
			if b == nil || !u.read(names[id], b.Bucket(inTallies), floor(from.Unix(), 3600), to.Unix()) {
				continue
			}
			if err := u.readDrift(names[id], b.Bucket(inAdvice), from, to); err != nil {
				return err
			}
		}
		return nil
	})
	return u.result(), err
}

// modelUse gathers what a ModelUse is made of.
type modelUse struct {
	model  string
	hours  map[int64]*tally
	trials map[[2]string]*trialUse // by shadow and champion
	drift  []DriftSpan
}

type trialUse struct {
	hours    map[int64]*tally
	machines map[string]*tally
}

// read adds the tallies of a machine in a bucket that may be nil. It reports whether the model
// judged the machine as its champion.
func (u *modelUse) read(name string, b *bbolt.Bucket, first, end int64) (judged bool) {
	for k, v := range ascending(b, timeKey(first)) {
		key, ok := tallyKeyOf(k)
		if ok && key.hour >= end {
			break
		}
		if !ok || key.model != u.model && key.champion != u.model {
			continue
		}
		var t tally
		t.parse(v)
		if key.champion == "" {
			judged = true
			joinTo(u.hours, key.hour, &t)
			continue
		}
		u.trial(key, name, &t)
	}
	return judged
}

// trial adds a tally of a shadow.
func (u *modelUse) trial(key tallyKey, name string, t *tally) {
	pair := [2]string{key.model, key.champion}
	of := u.trials[pair]
	if of == nil {
		of = &trialUse{make(map[int64]*tally), make(map[string]*tally)}
		u.trials[pair] = of
	}
	joinTo(of.hours, key.hour, t)
	joinTo(of.machines, name, t)
}

// readDrift adds the advisories of drift in a bucket that may be nil.
func (u *modelUse) readDrift(name string, b *bbolt.Bucket, from, to time.Time) error {
	for k, v := range ascending(b, nil) {
		at, ok := keyTime(k)
		if !ok || !bytes.HasPrefix(k[8:], append([]byte(event.DriftAdvisory), 0)) {
			continue
		}
		if at >= to.UnixMilli() {
			break
		}
		var span AdvisorySpan
		if err := json.Unmarshal(v, &span); err != nil {
			return fmt.Errorf("%w: an advisory: %w", ErrDamaged, err)
		}
		if span.To.IsZero() || span.To.After(from) {
			u.drift = append(u.drift, DriftSpan{name, span.From, span.To})
		}
	}
	return nil
}

// result returns what was gathered, in order.
func (u *modelUse) result() ModelUse {
	out := ModelUse{T: []int64{}, Judged: []int{}, Unknown: []int{}, Trials: []Trial{}, Drift: append([]DriftSpan{}, u.drift...)}
	for _, t := range slices.Sorted(maps.Keys(u.hours)) {
		if n := u.hours[t][tallyJudged]; n > 0 {
			out.T, out.Judged, out.Unknown = append(out.T, t), append(out.Judged, int(n)), append(out.Unknown, int(u.hours[t][tallyUnknown]))
		}
	}
	pairs := slices.SortedFunc(maps.Keys(u.trials), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	for _, pair := range pairs {
		out.Trials = append(out.Trials, u.trials[pair].result(pair))
	}
	slices.SortStableFunc(out.Drift, func(a, b DriftSpan) int { return a.From.Compare(b.From) })
	out.Drift = out.Drift[max(len(out.Drift)-maxDriftSpans, 0):]
	return out
}

func (u *trialUse) result(pair [2]string) Trial {
	t := Trial{Shadow: pair[0], Champion: pair[1], T: []int64{}, Hours: []Disagreement{}, Machines: []TrialMachine{}}
	var sum tally
	for _, hour := range slices.Sorted(maps.Keys(u.hours)) {
		sum.join(u.hours[hour])
		t.T, t.Hours = append(t.T, hour), append(t.Hours, u.hours[hour].disagreement())
	}
	t.Sum = sum.disagreement()
	for _, name := range slices.Sorted(maps.Keys(u.machines)) {
		t.Machines = append(t.Machines, TrialMachine{name, u.machines[name].disagreement()})
	}
	alone := func(m TrialMachine) int { return m.OnlyShadow + m.OnlyChampion }
	slices.SortStableFunc(t.Machines, func(a, b TrialMachine) int {
		return cmp.Or(cmp.Compare(alone(b), alone(a)), cmp.Compare(b.Differ, a.Differ))
	})
	t.Machines = t.Machines[:min(len(t.Machines), maxTrialMachines)]
	return t
}
