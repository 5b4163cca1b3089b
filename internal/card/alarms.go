package card

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// Alarms says what a person at the machine would have seen: one alarm for each
// worn tool, if all is well.
type Alarms struct {
	K         int         `json:"k"`         // of the last
	N         int         `json:"n"`         // judged windows
	Threshold float64     `json:"threshold"` // have this score or more; 0.5 is the model's own decision
	LimitUM   float64     `json:"limit_um"`  // of the wear, from which on a tool is faulty; 0 if the label has none
	Tools     []toolAlarm `json:"tools"`     // as people count their names

	Worn         int          `json:"worn"`           // tools that became faulty
	Caught       int          `json:"caught"`         // of them those with an alarm at their first faulty window or later
	Early        int          `json:"early"`          // tools, worn later or never, with an alarm while healthy
	False        int          `json:"false_alarms"`   // see toolAlarm
	HealthyHours score.Figure `json:"healthy_hours"`  // of cutting that was judged; null if the length of windows is not known
	EarlyPerHour score.Figure `json:"early_per_hour"` // early alarms per hour of healthy cutting
	MedianDelay  score.Figure `json:"median_delay_s"` // seconds of cutting from the first faulty window to the alarm, of tools caught
}

// toolAlarm is the life of one tool. Windows are counted from 1 among those that
// have a label and would be judged; 0 stands for never.
type toolAlarm struct {
	Tool    string `json:"tool"`
	Judged  int    `json:"judged"`
	Unknown int    `json:"unknown"`             // of them those with the verdict unknown
	Right   int    `json:"right"`               // of them those with the right verdict
	Healthy int    `json:"healthy"`             // of them those that are healthy by their label
	Worn    int    `json:"first_faulty_window"` // by its label
	Alarm   int    `json:"alarm_window"`        // in which the first alarm was raised

	// WearUM is the wear that was measured where the first alarm was raised.
	WearUM score.Figure `json:"wear_at_alarm_um"`

	// False counts alarms that were raised by windows that are healthy by their label, with
	// less measured wear than inTimeFrom of the limit. Someone acknowledges each alarm at once.
	False int `json:"false_alarms"`

	// Unjudged are windows that are faulty by their label and were not judged; Why says
	// what became of them. If no other window is faulty, the tool gets worn after its last
	// judged window.
	Unjudged int    `json:"faulty_not_judged,omitempty"`
	Why      string `json:"why_not_judged,omitempty"`
}

// Life is what an alarm sees of a tool: its judged windows in the order of cutting. All
// slices have one entry for each window.
type Life struct {
	Tool    string
	Score   []float64             // from 0.5 on the window is called faulty
	Faulty  []bool                // by its label
	Unknown []model.UnknownReason // why the verdict is unknown; empty where it is not
	WearUM  []float64             // as measured; NaN where it was not

	Unjudged int    // windows, none of the above, that are faulty by their label and were not judged
	Why      string // what became of these, in words
}

// LivesOf sorts windows, given in the order of cutting, into lives. Unknown and wearUM may be nil:
// no verdict is unknown, no wear is known.
func LivesOf(group []string, class []int, score []float64, unknown []model.UnknownReason, wearUM []float64) []Life {
	number, names := classify.NumberGroups(group)
	lives := make([]Life, len(names))
	for i, k := range number {
		l, um, why := &lives[k], math.NaN(), model.UnknownReason("")
		l.Tool = group[i]
		if wearUM != nil {
			um = wearUM[i]
		}
		l.Score, l.Faulty, l.WearUM = append(l.Score, score[i]), append(l.Faulty, class[i] != classify.Healthy), append(l.WearUM, um)
		if unknown != nil {
			why = unknown[i]
		}
		l.Unknown = append(l.Unknown, why)
	}
	slices.SortFunc(lives, func(a, b Life) int { return CompareNames(a.Tool, b.Tool) })
	return lives
}

// Timing says how long windows are and how far apart they begin. A length of 0 is not
// known; a step of 0 is the length.
type Timing struct{ Length, Step time.Duration }

// Replay replays each life through an alarm with the given settings, which pass their
// Check. LimitUM is the wear from which on a tool is faulty, or 0.
func Replay(lives []Life, s alarm.Settings, t Timing, limitUM float64) Alarms {
	a := Alarms{K: s.K, N: s.N, Threshold: cmp.Or(s.Threshold, alarm.Default.Threshold), LimitUM: limitUM}
	known := t.Length > 0
	if !known {
		t.Length, t.Step = time.Second, 0 // hold times need one
	}
	t.Step = cmp.Or(t.Step, t.Length)
	var delays []float64
	healthy := 0 // windows that were judged
	for _, l := range lives {
		life := l.replay(s, t, limitUM)
		healthy += l.healthy()
		if life.Worn > 0 {
			a.Worn++
			if life.Alarm >= life.Worn {
				a.Caught++
				delays = append(delays, (time.Duration(life.Alarm-life.Worn) * t.Step).Seconds())
			}
		}
		if life.Alarm > 0 && (life.Worn == 0 || life.Alarm < life.Worn) {
			a.Early++
		}
		a.False += life.False
		a.Tools = append(a.Tools, life)
	}
	unknown := score.Figure(math.NaN())
	a.HealthyHours, a.EarlyPerHour, a.MedianDelay = unknown, unknown, unknown
	if !known {
		return a
	}
	a.HealthyHours, a.MedianDelay = score.Figure(float64(healthy)*t.Step.Hours()), score.Figure(medianOf(delays))
	if healthy > 0 {
		a.EarlyPerHour = score.Figure(a.Early) / a.HealthyHours
	}
	return a
}

// healthy returns how many windows of the healthy tool were judged.
func (l Life) healthy() (n int) {
	for i, f := range l.Faulty {
		if !f && l.Unknown[i].Counts() {
			n++
		}
	}
	return n
}

// replay returns what becomes of one tool.
func (l Life) replay(s alarm.Settings, t Timing, limitUM float64) toolAlarm {
	s, err := s.Complete()
	if err != nil {
		panic("card: " + err.Error())
	}
	out := toolAlarm{Tool: l.Tool, Judged: len(l.Score), WearUM: score.Figure(math.NaN()), Unjudged: l.Unjudged, Why: l.Why}
	var bell alarm.State
	var at time.Time
	for i, v := range l.Score {
		out.count(&l, i)
		start := at
		at = at.Add(t.Step)
		if !l.Unknown[i].Counts() {
			continue
		}
		if end := start.Add(t.Length); bell.Observe(s, false, s.IsFaulty(v), start, end, end) != alarm.Raised {
			continue
		}
		if _, err := bell.Acknowledge(); err != nil {
			panic("card: " + err.Error()) // it was raised
		}
		if out.Alarm == 0 {
			out.Alarm, out.WearUM = i+1, score.Figure(l.WearUM[i])
		}
		if !l.Faulty[i] && !nearLimit(l.WearUM[i], limitUM) {
			out.False++
		}
	}
	if out.Worn == 0 && l.Unjudged > 0 {
		out.Worn = len(l.Score) + 1
	}
	return out
}

// nearLimit reports whether an alarm at that wear is near enough to the limit.
func nearLimit(um, limitUM float64) bool { return limitUM > 0 && um >= inTimeFrom*limitUM }

// count counts a window of the tool's life.
func (out *toolAlarm) count(l *Life, i int) {
	switch {
	case !l.Faulty[i]:
		out.Healthy++
	case out.Worn == 0:
		out.Worn = i + 1
	}
	switch {
	case l.Unknown[i] != "":
		out.Unknown++
	case (l.Score[i] >= alarm.Default.Threshold) == l.Faulty[i]:
		out.Right++
	}
}

// medianOf returns the median of x, NaN if it is empty.
func medianOf(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
