package card

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/report"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// worked returns windows of a second from a time on, by the classes' digits; . has no label.
func worked(from time.Time, classes string) []LabelledWindow {
	var ws []LabelledWindow
	for i, c := range classes {
		w := LabelledWindow{Start: from.Add(time.Duration(i) * time.Second), Length: time.Second, Class: int(c - '0'), WearUM: float64(i)}
		if c == '.' {
			w.Class, w.WearUM, w.Why = NoLabel, math.NaN(), "nothing is known"
		}
		ws = append(ws, w)
	}
	return ws
}

func TestLabelsOfSeveralClasses(t *testing.T) {
	day := time.Date(2026, 11, 2, 23, 59, 0, 0, time.UTC)
	l := &Labels{
		Source: "wear file", Rule: "as the rule says", Classes: []string{"healthy", "worn", "chipped", "broken"},
		Tools: []LabelledTool{
			{"T10", worked(day, "000111222333")},
			{"T2", worked(time.Unix(0, 0), strings.Repeat("0", 100)+strings.Repeat("1", 30)+"..")},
			{"a tool with a very long name", append(worked(day, "33"), worked(day.AddDate(0, 0, 1), ".0")...)},
			{"T3", []LabelledWindow{{Length: time.Second, Class: 1, WearUM: math.NaN()}}},
		},
		Mismatches: []string{"two names"}, Warnings: []string{"one warning"},
	}
	golden.Check(t, "labels.txt", l.Text())
	golden.Check(t, "labels.svg", l.SVG())
	for class, color := range []string{report.Blue, report.Green, report.Purple, report.Orange} {
		if l.color(class) != color {
			t.Errorf("class %d has the colour of another", class)
		}
	}
}

// Every window is in one character of the bar, in one span of the plot and in one count.
func TestLabelsOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Labels{Classes: []string{"healthy", "worn", "broken"}[:rapid.IntRange(2, 3).Draw(t, "classes")]}
		windows, longest := 0, 0
		for i := range rapid.IntRange(1, 4).Draw(t, "tools") {
			signs := ".01"
			if len(l.Classes) == 3 {
				signs = ".012"
			}
			life := rapid.StringOfN(rapid.RuneFrom([]rune(signs)), 1, 200, -1).Draw(t, "life")
			from := rapid.SampledFrom([]time.Time{{}, time.Unix(5, 0), time.Unix(2e9, 0)}).Draw(t, "from")
			l.Tools = append(l.Tools, LabelledTool{string(rune('A' + i)), worked(from, life)})
			windows, longest = windows+len(life), max(longest, len(life))
		}
		labelled, all := l.Labelled()
		if all != windows {
			t.Fatalf("%d windows of %d", all, windows)
		}
		each := (longest + barWidth - 1) / barWidth
		without := 0
		for _, tool := range l.Tools {
			if bar := l.bar(tool, each); len(bar) != (len(tool.Windows)+each-1)/each || len(bar) > barWidth {
				t.Fatalf("%d windows are %q", len(tool.Windows), bar)
			}
			of, none := tool.Count(len(l.Classes))
			for _, n := range of {
				none += n
			}
			if none != len(tool.Windows) {
				t.Fatalf("counts %v of %d windows", of, len(tool.Windows))
			}
			_, none = tool.Count(len(l.Classes))
			without += none
		}
		if labelled != windows-without {
			t.Fatalf("%d labelled, %d not, %d windows", labelled, without, windows)
		}
		if len(l.SVG()) == 0 || strings.Count(l.Text(), "\n") < len(l.Tools)+4 {
			t.Fatal(l.Text())
		}
	})
}

// Worn tools whose windows cannot raise an alarm are named.
func TestShortOfAlarm(t *testing.T) {
	l := Labels{Classes: []string{"healthy", "faulty"}}
	for name, worn := range map[string]int{"T1": 0, "T2": 5, "T3": 8} {
		l.Tools = append(l.Tools, LabelledTool{Name: name, Windows: slices.Repeat([]LabelledWindow{{Class: 1}}, worn)})
	}
	if text := l.ShortOfAlarm(5); text != "" {
		t.Error(text)
	}
	if text := l.ShortOfAlarm(6); !strings.HasPrefix(text, "tools with fewer faulty windows than the 6 that raise an alarm: 1 of 2, such as T2 with 5: ") {
		t.Error(text)
	}
	l = Labels{Classes: []string{"healthy", "worn", "broken"}} // each but healthy raises alarms
	for name, of := range map[string][2]int{"T1": {8, 1}, "T2": {3, 1}, "T3": {2, 0}} {
		windows := append(slices.Repeat([]LabelledWindow{{Class: 1}}, of[0]), slices.Repeat([]LabelledWindow{{Class: 2}}, of[1])...)
		l.Tools = append(l.Tools, LabelledTool{Name: name, Windows: windows})
	}
	l.sort()
	if text := l.ShortOfAlarm(6); !strings.HasPrefix(text, "tools with fewer worn or broken windows than the 6 that raise an alarm: 2 of 3, such as T2 with 4: ") {
		t.Error(text)
	}
}
