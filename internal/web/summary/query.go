package summary

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

const (
	auto   time.Duration = 0  // lets History choose the step
	ByHole time.Duration = -1 // makes each hole a point of a History
)

// steps are what History chooses from, in seconds.
var steps = []int64{60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600}

// ids returns the ids of all machines by their names.
func (s *Store) ids() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.names.of)
}

// byID returns names by their ids.
func byID(ids map[string]uint64) map[uint64]string {
	names := make(map[uint64]string, len(ids))
	for name, id := range ids {
		names[id] = name
	}
	return names
}

// History returns what the store holds of a machine from a time up to but not including
// another. The step is rounded up to minutes, to hours where minutes are not kept any more, and
// so that there are at most MaxPoints; History.Step says which it is. With the step ByHole the
// points are the holes that began in this time; if there are more than MaxPoints, a point sums up
// several that follow each other, as History.Each says. It returns ErrNoMachine for a machine that
// the store does not hold, and an error if from is not before to.
func (s *Store) History(name string, from, to time.Time, step time.Duration) (History, error) {
	h := History{Machine: name, Memory: s.InMemory(), Points: points(nil, nil), Tools: []ToolSpan{}, Alarms: []Alarm{}, Advisories: []AdvisorySpan{}}
	id, ok := s.ids()[name]
	if !ok {
		return h, ErrNoMachine
	}
	if !from.Before(to) {
		return h, fmt.Errorf("from %s, to %s: the time must end after it begins", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	if oldest := to.Add(-keepHours); from.Before(oldest) {
		from = oldest
	}
	err := s.view(func(tx *bbolt.Tx) error {
		q := query{h: &h, tx: tx, b: bucketOf(tx, id, nil)}
		if q.b == nil {
			return nil
		}
		return q.read(from, to, step, s.minute)
	})
	return h, err
}

// query reads the history of one machine.
type query struct {
	h  *History
	tx *bbolt.Tx
	b  *bbolt.Bucket
}

func (q *query) read(from, to time.Time, step, minutes time.Duration) error {
	var newest int64
	if hours := q.b.Bucket(inHours); hours != nil {
		c := hours.Cursor()
		if k, _ := c.First(); k != nil {
			t, _ := keyTime(k)
			q.h.Since = time.Unix(t, 0).UTC()
		}
		if k, _ := c.Last(); k != nil {
			newest, _ = keyTime(k)
		}
	}
	first, end := from.Unix(), to.Unix()
	if step == ByHole {
		q.byHole(first, end)
	} else {
		seconds := stepOf(from, to, step, newest-int64(minutes.Seconds()))
		first = floor(first, seconds)
		q.byTime(first, end, seconds)
	}
	q.h.From, q.h.To = time.Unix(first, 0).UTC(), to.UTC()
	var err error
	if q.h.Alarms, err = openBetween(q.b.Bucket(inAlarms), "an alarm", first*1000, end*1000, func(a *Alarm) time.Time { return a.Cleared }); err != nil {
		return err
	}
	for i := range q.h.Alarms {
		a := &q.h.Alarms[i]
		a.Machine, a.Changes = q.h.Machine, nonNil(a.Changes)
	}
	q.h.Advisories, err = openBetween(q.b.Bucket(inAdvice), "an advisory", first*1000, end*1000, func(a *AdvisorySpan) time.Time { return a.To })
	return err
}

// byTime makes a point of each step.
func (q *query) byTime(first, end, step int64) {
	q.h.Step, q.h.Holes = int(step), q.countHoles(first, end)
	times, rows := q.rows(first, end, step)
	q.h.Points = points(times, rows)
	q.tools(times, rows, func(i int) int64 { return times[i] + step })
}

// byHole makes a point of each hole, or of several.
func (q *query) byHole(first, end int64) {
	var holes []hole
	holes, q.h.Each, q.h.Holes = q.holes(first, end)
	times, ends, names, rows := make([]int64, len(holes)), make([]int64, len(holes)), make([]string, len(holes)), make([]row, len(holes))
	for i, h := range holes {
		times[i], ends[i], names[i], rows[i] = floor(h.from, 1000)/1000, floor(h.to+999, 1000)/1000, h.name, h.row
	}
	q.h.Points = points(times, rows)
	q.h.Points.End, q.h.Points.Hole = ends, names
	q.tools(times, rows, func(i int) int64 { return ends[i] })
}

// stepOf returns a step in seconds, for rows of minutes that are kept since a time.
func stepOf(from, to time.Time, step time.Duration, kept int64) int64 {
	width := to.Unix() - from.Unix()
	least := int64(60)
	if from.Unix() < kept {
		least = 3600
	}
	enough := func(s int64) bool { return s >= least && width/s+2 <= MaxPoints }
	want := int64((step + time.Second - 1) / time.Second)
	if step == auto {
		for _, s := range steps {
			if enough(s) {
				return s
			}
		}
		want = steps[len(steps)-1]
	}
	unit := least
	if want > 3600 {
		unit = 3600
	}
	want = max((want+unit-1)/unit*unit, unit)
	for !enough(want) {
		if want >= 3600 {
			unit = 3600
		}
		want += max((width/(MaxPoints-2)-want)/unit, 1) * unit
	}
	return want
}

// rows returns the sums of the steps that have windows.
func (q *query) rows(first, end, step int64) (times []int64, rows []row) {
	bucket := inMinutes
	if step >= 3600 {
		bucket = inHours
	}
	var r row
	for k, v := range ascending(q.b.Bucket(bucket), timeKey(first)) {
		t, ok := keyTime(k)
		if !ok || t >= end {
			break
		}
		if r.parse(v) != nil {
			continue
		}
		at := floor(t, step)
		if n := len(times); n == 0 || times[n-1] != at {
			times, rows = append(times, at), append(rows, row{})
		}
		rows[len(rows)-1].add(&r)
	}
	return times, rows
}

// points returns rows as lists.
func points(times []int64, rows []row) Points {
	n := len(rows)
	ints := func(of func(r *row) int) []int {
		list := make([]int, n)
		for i := range rows {
			list[i] = of(&rows[i])
		}
		return list
	}
	numbers := func(known func(r *row) bool, of func(r *row) float64) Numbers {
		list := make(Numbers, n)
		for i := range rows {
			if list[i] = math.NaN(); known(&rows[i]) {
				list[i] = of(&rows[i])
			}
		}
		return list
	}
	count := func(i int) []int { return ints(func(r *row) int { return int(r.counts[i]) }) }
	scored := func(r *row) bool { return r.scored > 0 }
	worn := func(r *row) bool { return r.wearAt != 0 }
	return Points{
		T: append([]int64{}, times...), Windows: ints((*row).windows), Cutting: ints((*row).cutting),
		Healthy: count(0), Faulty: count(1), Unknown: count(2), Learning: count(3), NotCutting: count(4), SensorFault: count(5),
		Late:      ints(func(r *row) int { return int(r.late) }),
		ScoreMean: numbers(scored, func(r *row) float64 { return float64(r.scoreSum) / 1e6 / float64(r.scored) }),
		ScoreMax:  numbers(scored, func(r *row) float64 { return float64(r.scoreMax) }),
		Threshold: numbers(func(r *row) bool { return r.threshold > 0 }, func(r *row) float64 { return float64(r.threshold) }),
		Wear:      numbers(worn, func(r *row) float64 { return float64(r.wear) }),
		WearLow:   numbers(worn, func(r *row) float64 { return float64(r.low) }),
		WearHigh:  numbers(worn, func(r *row) float64 { return float64(r.top) }),
	}
}

// tools adds the tools that were in the spindle. A stretch begins and ends with a point, or
// within it if the tool's life does. end returns when a point ends.
func (q *query) tools(times []int64, rows []row, end func(i int) int64) {
	lives := q.b.Bucket(inLives)
	for i := 0; i < len(rows); {
		j := i
		for j+1 < len(rows) && rows[j+1].tool == rows[i].tool {
			j++
		}
		span := ToolSpan{From: time.Unix(times[i], 0).UTC(), To: time.Unix(end(j), 0).UTC()}
		var l life
		if lives != nil && l.parse(lives.Get(lifeKey(rows[i].tool))) == nil {
			if from := time.UnixMilli(l.from).UTC(); from.After(span.From) && from.Before(span.To) {
				span.From = from
			}
			if to := time.UnixMilli(l.to).UTC(); to.After(span.From) && to.Before(span.To) {
				span.To = to
			}
			span.Tool, span.CuttingSeconds, span.WearUM = l.name, seconds(l.cutting), l.wearUM()
		}
		q.h.Tools = append(q.h.Tools, span)
		i = j + 1
	}
}

// lookBehind is how many alarms or advisories that began before a time are looked at for those that reach into it.
const lookBehind = 1000

// openBetween returns the alarms, or the advisories, of a bucket that were open at some time between two, in Unix milliseconds, the oldest
// first; the last MaxAlarms if they are more.
func openBetween[T any](b *bbolt.Bucket, what string, from, to int64, ended func(*T) time.Time) ([]T, error) {
	all, behind := []T{}, 0
	for k, v := range descending(b, timeKey(to)) {
		var one T
		if err := json.Unmarshal(v, &one); err != nil {
			return all, fmt.Errorf("%w: %s: %w", ErrDamaged, what, err)
		}
		if end := ended(&one); end.IsZero() || end.UnixMilli() >= from {
			all = append(all, one)
		}
		if t, _ := keyTime(k); t < from {
			behind++
		}
		if behind == lookBehind || len(all) == MaxAlarms {
			break
		}
	}
	slices.Reverse(all)
	return all, nil
}

func nonNil[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}

// Tools returns the tools of a machine whose last windows are newest, the newest first: at
// most limit, or MaxTools. It returns ErrNoMachine for a machine that the store does not hold.
func (s *Store) Tools(name string, limit int) ([]Life, error) {
	id, ok := s.ids()[name]
	if !ok {
		return nil, ErrNoMachine
	}
	if limit <= 0 || limit > MaxTools {
		limit = MaxTools
	}
	tools := []Life{}
	err := s.view(func(tx *bbolt.Tx) error {
		var all []life
		for _, v := range ascending(bucketOf(tx, id, inLives), nil) {
			var l life
			if l.parse(v) == nil && l.windows > 0 {
				all = append(all, l)
			}
		}
		slices.Reverse(all) // of two that end at once, the later one is first
		slices.SortStableFunc(all, func(a, b life) int { return cmp.Compare(b.to, a.to) })
		for i := range all[:min(limit, len(all))] {
			tools = append(tools, all[i].shown())
		}
		return nil
	})
	return tools, err
}

// Alarms returns alarms, the newest first; none for a machine that the store does not hold.
func (s *Store) Alarms(f AlarmFilter) ([]Alarm, error) {
	if f.Limit <= 0 || f.Limit > MaxAlarms {
		f.Limit = MaxAlarms
	}
	ids, alarms := s.ids(), []Alarm{}
	names, only := byID(ids), ids[f.Machine]
	if only == 0 && f.Machine != "" {
		return alarms, nil
	}
	err := s.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket(inByTime)
		if only != 0 {
			b = bucketOf(tx, only, inAlarms)
		}
		before := timeKey(math.MaxInt64)
		if !f.To.IsZero() {
			before = timeKey(f.To.UnixMilli())
		}
		for k, v := range descending(b, before) {
			if t, _ := keyTime(k); len(alarms) == f.Limit || !f.From.IsZero() && t < f.From.UnixMilli() {
				break
			}
			id := only
			if id == 0 {
				id = binary.BigEndian.Uint64(v)
			}
			a, ok, err := readAlarm(tx, id, k)
			if a.Machine = names[id]; err != nil {
				return err
			} else if ok && a.Machine != "" { // else it was retired
				alarms = append(alarms, a)
			}
		}
		return nil
	})
	return alarms, err
}

// readAlarm reads the record of an alarm.
func readAlarm(tx *bbolt.Tx, id uint64, key []byte) (a Alarm, ok bool, err error) {
	b := bucketOf(tx, id, inAlarms)
	if b == nil {
		return a, false, nil
	}
	v := b.Get(key)
	if v == nil {
		return a, false, nil
	}
	if err := json.Unmarshal(v, &a); err != nil {
		return a, false, fmt.Errorf("%w: an alarm: %w", ErrDamaged, err)
	}
	a.Changes = nonNil(a.Changes)
	return a, true, nil
}

// Alarm returns everything about an alarm. It returns ErrNoAlarm for one that the store does not
// hold.
func (s *Store) Alarm(incident string) (AlarmDetail, error) {
	names := byID(s.ids())
	d := AlarmDetail{Alerts: []event.Alert{}, Evidence: []event.Evidence{}}
	err := s.view(func(tx *bbolt.Tx) error {
		at := tx.Bucket(inByName).Get([]byte(incident))
		if len(at) <= 16 {
			return ErrNoAlarm
		}
		id, key := binary.BigEndian.Uint64(at), at[8:]
		a, ok, err := readAlarm(tx, id, key)
		if err != nil {
			return err
		}
		if d.Machine = names[id]; !ok || d.Machine == "" {
			return ErrNoAlarm
		}
		a.Machine, d.Alarm = d.Machine, a
		c := bucketOf(tx, id, inAlarms).Cursor()
		c.Seek(key)
		if k, _ := c.Next(); k != nil {
			d.Next = string(k[8:])
		}
		c.Seek(key)
		if k, _ := c.Prev(); k != nil {
			d.Previous = string(k[8:])
		}
		return d.readEvents(bucketOf(tx, id, inEvents), incident)
	})
	return d, err
}

// readEvents reads the alerts and the evidence of an alarm.
func (d *AlarmDetail) readEvents(b *bbolt.Bucket, incident string) error {
	var all []storedEvent
	for _, k := range keysOf(b, []byte(incident)) {
		e, err := openEvent(b.Get(k))
		if err != nil {
			return err
		}
		all = append(all, e)
	}
	sortEvents(all)
	for _, e := range all {
		var err error
		if e.Alert != nil {
			d.Alerts = append(d.Alerts, event.Alert{})
			err = json.Unmarshal(e.Alert, &d.Alerts[len(d.Alerts)-1])
		} else {
			d.Evidence = append(d.Evidence, event.Evidence{})
			err = json.Unmarshal(e.Evidence, &d.Evidence[len(d.Evidence)-1])
		}
		if err != nil {
			return fmt.Errorf("%w: an event of alarm %s: %w", ErrDamaged, incident, err)
		}
	}
	return nil
}

// Machines returns what a page needs to show the machines at once, in the order of their names.
func (s *Store) Machines() ([]Machine, error) {
	var all []Machine
	ids := s.ids()
	err := s.view(func(tx *bbolt.Tx) error {
		for _, name := range slices.Sorted(maps.Keys(ids)) {
			b := bucketOf(tx, ids[name], nil)
			if b == nil {
				continue
			}
			m, err := shownMachine(name, b)
			if err != nil {
				return err
			}
			all = append(all, m)
		}
		return nil
	})
	return all, err
}

func shownMachine(name string, b *bbolt.Bucket) (Machine, error) {
	m := Machine{Name: name}
	if v := b.Get(keyHead); v != nil {
		var h head
		if err := json.Unmarshal(v, &h); err != nil {
			return m, fmt.Errorf("%w: head of machine %s: %w", ErrDamaged, name, err)
		}
		m.Alarms = h.Alarms
		for _, e := range h.Strip {
			m.Strip += e.Letter
		}
		if h.Last != nil {
			m.Last, m.LastAt = *h.Last, time.UnixMilli(h.LastAt).UTC()
			m.Last.Machine = name // it may have been renamed
		}
	}
	if v := b.Get(keyAlert); v != nil {
		m.Alert = new(event.Alert)
		if err := json.Unmarshal(v, m.Alert); err != nil {
			return m, fmt.Errorf("%w: alert of machine %s: %w", ErrDamaged, name, err)
		}
		m.Alert.Machine = name
	}
	for _, v := range ascending(b.Bucket(inOpenNow), nil) {
		var a event.Advisory
		if err := json.Unmarshal(v, &a); err != nil {
			return m, fmt.Errorf("%w: advisory of machine %s: %w", ErrDamaged, name, err)
		}
		a.Machine = name
		m.Advisories = append(m.Advisories, a)
	}
	slices.SortStableFunc(m.Advisories, func(a, b event.Advisory) int { return a.Since.Compare(b.Since) })
	return m, nil
}
