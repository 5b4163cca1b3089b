package card

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

func mustHTML(t *testing.T, r *Report) string {
	t.Helper()
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// jsonIn returns the JSON of a card.
func jsonIn(t *testing.T, page string) []byte {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<script type="application/json" id="report">`)
	text, _, end := strings.Cut(rest, "</script>")
	if !ok || !end {
		t.Fatal("no JSON in the card")
	}
	return []byte(text)
}

// The card of made-up figures is kept as a golden file, which a browser shows.
func TestHTML(t *testing.T) {
	r := fixedReport(t)
	r.Held = madeUp()
	r.Decide(LivesOf(r.Held.Group, r.Held.Class, r.Held.Score, nil, nil), alarm.Default, second, 300)
	page := mustHTML(t, r)
	golden.Check(t, "card.html", page)
	for _, part := range r.page().Sections {
		if strings.Count(page, `href="#`+part.ID+`"`) != 1 || strings.Count(page, `id="`+part.ID+`"`) != 1 {
			t.Errorf("section %s is not in the contents", part.Title)
		}
	}
	want, err := json.MarshalIndent(r, "", "  ")
	if err != nil || !bytes.Equal(jsonIn(t, page), want) {
		t.Errorf("the JSON of the card is not the JSON of the report: %v", err)
	}
}

// Names and configurations with markup are shown as they are, not as markup; nothing is
// loaded or run.
func TestHTMLOfAnything(t *testing.T) {
	const evil = `</script><script>alert(1)</script><img src=x onerror=alert(1)>"'&]]>`
	r := fixedReport(t)
	r.Model, r.Label, r.Job.Program, r.Balance, r.Cutting = evil, evil, evil, evil, evil
	r.Warnings, r.Windows.Join, r.Excluded, r.NotCompared = []string{evil}, evil, []string{evil}, evil
	r.Job.Config = json.RawMessage(`{"layout": ` + string(must(json.Marshal(evil))) + `}`)
	r.Job.Data[0].Name = evil
	r.Fit.Weights.Tools[0], r.Fit.Weights.Columns[0].Name = evil, evil
	r.Tools = nil
	r.SetByTool(&classify.Validation{Pooled: *r.Pooled, Groups: []classify.GroupScores{{Group: evil, Summary: *r.Pooled}, {Group: "T2", Summary: *r.Pooled}}}, evil, 2)
	r.Held = madeUp()
	for i := range r.Held.Group {
		r.Held.Group[i] += evil
	}
	r.Robustness = tried(trial(Gain, 1.1, 0.5, 0, evil), trial(Dead, 0, 0.5, 0, evil, "T2"))
	r.Baselines = []Baseline{{Method: evil, Ahead: nan(), AheadInterval: undefinedInterval()}}
	r.Decide(LivesOf(r.Held.Group, r.Held.Class, r.Held.Score, nil, nil), alarm.Default, second, 300)
	page := mustHTML(t, r)
	for _, tag := range []string{"<img", "onerror=alert(1)>", "<script>", "alert(1)</"} {
		if strings.Contains(page, tag) {
			t.Errorf("%s is in the card", tag)
		}
	}
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if strings.Count(page, "</script>") != 1 {
		t.Error("a name ends the JSON")
	}
	if found := regexp.MustCompile(`(?:src|href|url)\s*[=(]\s*"?[^#"]`).FindAllString(strings.ReplaceAll(page, string(jsonIn(t, page)), ""), -1); slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, "href") || strings.HasPrefix(s, "url") }) {
		t.Errorf("the card loads something: %q", found)
	}
	var back struct{ Label string }
	if err := json.Unmarshal(jsonIn(t, page), &back); err != nil || back.Label != evil {
		t.Errorf("%q, %v", back.Label, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Notes name files as they are.
func TestNotesOfTheFirstDay(t *testing.T) {
	r := &FirstDay{Sensor: "F_c", Limit: 2, Warnings: []string{"öl.csv:3: a word", "wear.csv:4: another"}}
	if text := wordsOf(r.page()); !strings.Contains(text, "Note: öl.csv:3: a word.\n") || !strings.Contains(text, "Note: wear.csv:4: another.\n") {
		t.Error(text)
	}
}

// Tools are sorted as people count them, wherever the card lists them.
func TestToolsOfTheCard(t *testing.T) {
	r := fixedReport(t)
	r.Tools = nil
	var groups []classify.GroupScores
	names := []string{"T10", "T1", "T2"}
	for _, name := range names {
		groups = append(groups, classify.GroupScores{Group: name, Summary: *r.Pooled})
	}
	r.SetByTool(&classify.Validation{Pooled: *r.Pooled, Groups: groups}, "leave-one-out", 3)
	r.Fit.Weights.Tools = names
	r.Held = HeldOut{Class: []int{0, 1, 0, 1, 0, 1}, Faulty: make([]float64, 6), Score: make([]float64, 6), Group: []string{"T10", "T10", "T1", "T1", "T2", "T2"}}
	r.Unknown = &UnknownReport{ErrorRate: 0.05, Classes: []unknownClass{{Class: "healthy"}}, Judged: r.Pooled, Decided: r.Pooled, Tools: []unknownTool{{Tool: "T10"}, {Tool: "T1"}, {Tool: "T2"}}}
	r.Decide(LivesOf(r.Held.Group, r.Held.Class, r.Held.Score, nil, nil), alarm.Default, second, 300)
	page := mustHTML(t, r)
	page = strings.ReplaceAll(page, string(jsonIn(t, page)), "")
	listed := regexp.MustCompile(`>(?:ρ of )?(T1|T2|T10)<`).FindAllStringSubmatch(page, -1)
	var got []string
	for _, m := range listed {
		got = append(got, m[1])
	}
	if len(got) < 6*3 || len(got)%3 != 0 {
		t.Fatalf("tools %v", got)
	}
	for i := range got {
		if want := []string{"T1", "T2", "T10"}[i%3]; got[i] != want {
			t.Fatalf("tools %v", got)
		}
	}
}

// The card of twenty tools with a history each is below two megabytes.
func TestSizeOfTheCard(t *testing.T) {
	r := fixedReport(t)
	r.Tools = nil
	var groups []classify.GroupScores
	r.Held = HeldOut{}
	for i := range 20 {
		name := "T" + string(rune('A'+i))
		groups = append(groups, classify.GroupScores{Group: name, Summary: score.Confusion{{5000, 3}, {4, 1000}}.Summary()})
		for w := range 6000 {
			p := float64((w*7919+i)%100003) / 100003
			r.Held.Class, r.Held.Group = append(r.Held.Class, w/5000), append(r.Held.Group, name)
			r.Held.Faulty, r.Held.Score = append(r.Held.Faulty, p), append(r.Held.Score, p)
		}
	}
	r.SetByTool(&classify.Validation{Pooled: score.Confusion{{100000, 60}, {80, 20000}}.Summary(), Groups: groups}, "leave-one-out", 20)
	r.Decide(LivesOf(r.Held.Group, r.Held.Class, r.Held.Score, nil, nil), alarm.Default, second, 300)
	if n := len(mustHTML(t, r)); n > 2<<20 {
		t.Errorf("%d bytes", n)
	} else {
		t.Logf("%d bytes", n)
	}
}

// The table of alarms says why a missed tool has no judged window that is worn, and nothing
// of unknown windows that were not counted.
func TestAlarmTable(t *testing.T) {
	r := fixedReport(t)
	r.Unknown = &UnknownReport{ErrorRate: 0.05}
	lives := []Life{
		lifeOf("T1", "0000000", "0000000", 50, 100, 150, 200, 210, 215, 220), lifeOf("T2", "00000111111", "00000999999", 50, 100, 150, 200, 250, 301, 310, 320, 330, 340, 350),
		lifeOf("T3", "0000000", "0999990", 50, 60, 70, 80, 90, 100, 110),
	}
	lives[0].Unjudged, lives[0].Why = 3, "3 with sensor faults"
	lives[1].Unjudged, lives[1].Why = 2, "2 not cutting"
	r.Decide(lives, alarm.Default, second, 300)
	text := wordsOf(r.page())
	for _, want := range []string{
		"\nT1 | 7 | – | 100.0 % | 8 | – | – | missed (worn windows that were not judged: 3 with sensor faults) | –\n",
		"\nT2 | 11 | – | 100.0 % | 6 | 10 | 340 | in time | –\n", "\nT3 | 7 | – | 28.6 % | – | 6 | 100 |  | 1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if r.Verdict.Level != NotYet || !strings.Contains(r.Verdict.Text(), "missed: T1 (its worn windows were not judged: 3 with sensor faults)") || !strings.Contains(r.Verdict.Text(), "how many windows are unknown was not measured") {
		t.Error(r.Verdict.Text())
	}
}
