package card

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/score"
)

// lifeOf returns the life of a tool from its classes, its scores in tenths (? is out of distribution, a to j are
// 0 to 9 and ambiguous) and the wear of each window in tens of µm, where it has any.
func lifeOf(tool, classes, scores string, wear ...float64) Life {
	l := Life{Tool: tool}
	for i, c := range classes {
		l.Faulty = append(l.Faulty, c == '1')
		tenths, why := scores[i]-'0', model.UnknownReason("")
		switch {
		case scores[i] == '?':
			why = model.OutOfDistribution
		case scores[i] >= 'a':
			tenths, why = scores[i]-'a', model.Ambiguous
		}
		l.Score, l.Unknown = append(l.Score, float64(tenths)/10), append(l.Unknown, why)
		um := math.NaN()
		if len(wear) > 0 {
			um = wear[i]
		}
		l.WearUM = append(l.WearUM, um)
	}
	return l
}

var second = Timing{Length: time.Second}

// Alarms of tools that wear out, wear out unseen, ring early and ring for
// nothing.
func TestAlarms(t *testing.T) {
	lives := []Life{
		lifeOf("caught", "00000111", "00000059"), lifeOf("missed", "00000111", "00000044"),
		lifeOf("early", "00000111", "08500777"), lifeOf("never", "00000000", "00650000"),
	}
	a := Replay(lives, alarm.Settings{K: 2, N: 3}, second, 0)
	type life struct{ judged, healthy, worn, alarm, right, false int }
	for i, want := range []life{{8, 5, 6, 8, 7, 0}, {8, 5, 6, 0, 5, 0}, {8, 5, 6, 3, 6, 1}, {8, 8, 0, 4, 6, 1}} {
		l := a.Tools[i]
		if got := (life{l.Judged, l.Healthy, l.Worn, l.Alarm, l.Right, l.False}); got != want || l.Unknown != 0 || l.WearUM == l.WearUM {
			t.Errorf("%s: %+v, want %+v", l.Tool, l, want)
		}
	}
	if a.Worn != 3 || a.Caught != 1 || a.Early != 2 || a.False != 2 || a.MedianDelay != 2 {
		t.Errorf("%+v", a)
	}
	if perHour := float64(a.EarlyPerHour); math.Abs(perHour-2/(23./3600)) > 1e-9 {
		t.Errorf("%v early alarms per hour", perHour)
	}
	for threshold, want := range map[float64][4]int{ // the first alarm of each tool
		0.4: {8, 8, 3, 4}, 0.5: {8, 0, 3, 4}, 0.6: {0, 0, 7, 0}, 1: {},
	} {
		a := Replay(lives, alarm.Settings{K: 2, N: 3, Threshold: threshold}, second, 0)
		var got [4]int
		for i, tool := range a.Tools {
			got[i] = tool.Alarm
		}
		if got != want || a.Threshold != threshold {
			t.Errorf("threshold %v: alarms in windows %v, want %v; the report has %v", threshold, got, want, a.Threshold)
		}
	}
}

// An alarm near the limit of the wear is not false, one of a tool with little wear is, and
// a window that is out of distribution counts neither for nor against an alarm nor as time. One that is ambiguous counts as it
// was decided, and is not right.
func TestAlarmsByWear(t *testing.T) {
	s := alarm.Settings{K: 2, N: 3}
	a := Replay([]Life{
		lifeOf("near", "0000011", "0005555", 50, 100, 150, 200, 250, 310, 350),
		lifeOf("far", "0000011", "0550000", 50, 100, 150, 200, 250, 310, 350),
		lifeOf("doubt", "0000011", "??00???", 50, 100, 150, 200, 250, 310, 350),
		lifeOf("between", "0000011", "00000jj", 50, 100, 150, 200, 250, 310, 350),
		lifeOf("against", "0000011", "005a5aa", 50, 100, 150, 200, 250, 310, 350),
	}, s, Timing{Length: 2 * time.Second, Step: time.Second}, 300)
	type life struct {
		alarm, false, unknown int
		um                    score.Figure
	}
	for i, want := range []life{{5, 0, 0, 250}, {3, 1, 0, 150}, {0, 0, 5, 0}, {7, 0, 2, 350}, {5, 0, 3, 250}} {
		l := a.Tools[i]
		if l.Alarm != want.alarm || l.False != want.false || l.Unknown != want.unknown || (want.alarm > 0) != (l.WearUM == want.um) {
			t.Errorf("%+v, want %+v", l, want)
		}
	}
	if hours := 3600 * float64(a.HealthyHours); math.Abs(hours-22) > 1e-9 {
		t.Errorf("%v s of healthy cutting, want 22: five tools, less three unknown windows", hours)
	}
	a = Replay([]Life{lifeOf("A", "00", "00")}, s, Timing{}, 300)
	if a.HealthyHours == a.HealthyHours || a.EarlyPerHour == a.EarlyPerHour || a.MedianDelay == a.MedianDelay {
		t.Errorf("hours without the length of a window: %+v", a)
	}
}

// Wear that was measured says nothing of an alarm where the label has no limit of it.
func TestAlarmsByStates(t *testing.T) {
	life := lifeOf("early", "0000011", "0550000", 50, 100, 150, 200, 250, 310, 350)
	a := Replay([]Life{life}, alarm.Settings{K: 2, N: 3}, second, 0)
	if got := a.moment(a.Tools[0]); got != early {
		t.Errorf("an alarm before the tool was worn is %d", got)
	}
}

// Lives have the windows of each tool in their order, and tools as people count them.
func TestLivesOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		var group []string
		var class []int
		var scores []float64
		want := map[string][]float64{}
		for i := range n {
			g := rapid.SampledFrom([]string{"T1", "T2", "T10"}).Draw(t, "tool")
			group, class, scores = append(group, g), append(class, i%2), append(scores, float64(i))
			want[g] = append(want[g], float64(i))
		}
		last := ""
		for _, l := range LivesOf(group, class, scores, nil, nil) {
			if last != "" && CompareNames(last, l.Tool) >= 0 {
				t.Fatalf("%s before %s", last, l.Tool)
			}
			last = l.Tool
			for i, s := range l.Score {
				if s != want[l.Tool][i] || l.Faulty[i] != (int(s)%2 == 1) || l.Unknown[i] != "" || l.WearUM[i] == l.WearUM[i] {
					t.Fatalf("%+v", l)
				}
			}
			if len(l.Score) != len(want[l.Tool]) {
				t.Fatalf("%+v", l)
			}
			delete(want, l.Tool)
		}
		if len(want) > 0 {
			t.Fatalf("no life of %v", want)
		}
	})
}
