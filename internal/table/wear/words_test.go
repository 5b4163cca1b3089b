package wear

import (
	"strings"
	"testing"
)

// A word for worn or broken is never healthy, and a word that no one knows is refused with both lists.
func TestStateClass(t *testing.T) {
	named := Rule{Classes: []Class{{Name: "healthy"}, {Name: "worn"}, {Name: "broken"}}}
	ambiguous := Rule{Classes: []Class{{Name: "healthy"}, {Name: "dull"}, {Name: "worn"}}}
	mapped := Rule{States: []string{"ok", "built-up"}, HealthyStates: []string{"worn", "run-in"}}
	for _, tc := range []struct {
		rule  Rule
		words string
		class int
	}{
		{DefaultRule(), "faulty worn Verschlissen defekt NOK n.i.O. N.I.O gebrochen chipped Broken failed bad beschädigt stumpf wear-out usé desgastado 磨损 roto No-good", Faulty},
		{DefaultRule(), "healthy new OK ok. i.O. neu gut sharp normal not_worn No-wear undamaged neuf nuevo 正常 новый", healthy},
		{DefaultRule(), "purple built-up 1 half", -1},
		{DefaultRule(), "worn=yes worn=1 broken=Y faulty=ja ok=0 sharp=False unworn=no nok=T not-ok not-sharp", Faulty},
		{DefaultRule(), "worn=no worn=0 broken=N nok=nein ok=1.0 healthy=true unworn=Y not-broken", healthy},
		{DefaultRule(), "worn=maybe worn=10 worn=-1 chatter=yes not notable", -1},
		{Rule{States: []string{"no"}, HealthyStates: []string{"worn=yes"}}, "worn=no", Faulty}, // what a person says counts
		{Rule{States: []string{"no"}, HealthyStates: []string{"worn=yes"}}, "worn=yes", healthy},
		{named, "worn=yes", 1},
		{named, "broken=yes", 2},
		{named, "broken=no worn=no", 0},
		{mapped, "ok built-up Built-Up broken", Faulty},
		{mapped, "worn WORN run-in new", healthy},
		{three, "worn verschlissen dull", 1},
		{three, "broken gebrochen faulty NOK defekt", 2},
		{three, "healthy io", 0},
		{named, "worn stumpf", 1},
		{named, "Broken bruch chipped", 2},
		{named, "nok defekt", -1}, // worn or broken?
		{ambiguous, "dull", 1},    // its own name
		{ambiguous, "verschlissen", -1},
		{ambiguous, "broken", -1},
	} {
		for word := range strings.FieldsSeq(tc.words) {
			if word == "wear-out" {
				word = "worn out"
			}
			class, ok := tc.rule.StateClass(word)
			if ok != (tc.class >= 0) || ok && class != tc.class {
				t.Errorf("%q by %v: %d, %v; want %d", word, tc.rule, class, ok, tc.class)
			}
		}
	}
}

// A column whose name is a condition says it by yes and no; other columns say what they hold.
func TestStated(t *testing.T) {
	for column, want := range map[string]string{
		"worn": "worn=Yes", "is_worn": "worn=Yes", "Tool broken?": "broken=Yes", "werkzeug_verschlissen": "verschlissen=Yes", "ok_flag": "ok=Yes", "is_not_ok": "notok=Yes", "ist stumpf": "stumpf=Yes",
		"state": "Yes", "tool_condition": "Yes", "chatter": "Yes", "is": "Yes", "": "Yes",
	} {
		if got := Stated(column, "Yes"); got != want {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
		if got := Stated(column, "maybe"); got != "maybe" {
			t.Errorf("%s: %q", column, got)
		}
	}
	for text, want := range map[string]string{
		"tool,worn\nT1,no\nT2,yes\n":                    `healthy "worn=no" (1); faulty "worn=yes" (1)`,
		"tool;is_worn\nT1;0\nT2;1\n":                    `healthy "worn=0" (1); faulty "worn=1" (1)`,
		"tool,broken\nT1,N\nT2,Y\n":                     `healthy "broken=N" (1); faulty "broken=Y" (1)`,
		"tool,ok,remark\nT1,True,a\nT2,False,b\n":       `healthy "ok=True" (1); faulty "ok=False" (1)`,
		"tool,state,worn\nT1,new,no\nT2,broken,yes\n":   `healthy "new" (1); faulty "broken" (1)`,
		"tool,tool_condition,worn\nT1,new,no\nT2,x,y\n": `healthy "worn=no" (1); faulty "worn=y" (1)`,
		"tool,worn\nT1,no\nT2,maybe\n":                  `wear.csv:3: tool "T2": state "maybe" means none of the classes: healthy are healthy, new,`,
		"tool,state\nT1,new\nT2,yes\n":                  "write yes and no in a column that is named for what yes means, such as worn",
		"tool,worn,broken\nT1,no,yes\n":                 `columns 2, "worn", and 3, "broken", mean the same: remove one`,
	} {
		ms, _, err := readMeasurements(strings.NewReader(text), "wear.csv")
		if err == nil {
			err = DefaultRule().CheckClasses(ms)
		}
		states := make(map[string]int)
		for _, m := range ms {
			states[m.State]++
		}
		if got := DefaultRule().StatesByClass(states); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}

// An alarm of a class names what made windows of it, unless all of it is wear or breakage, in English or German.
func TestFinding(t *testing.T) {
	chatter := Rule{VBMaxUM: 300, States: []string{"chatter", "imbalance", "slightly worn", "Kolkverschleiß"}}
	named := Rule{Classes: []Class{{Name: "healthy"}, {Name: "worn", VBMaxUM: 300}, {Name: "chatter"}}}
	for _, tc := range []struct {
		rule   Rule
		class  int
		states []string
		want   string
	}{
		{chatter, Faulty, []string{"Chatter"}, "chatter"},
		{chatter, Faulty, []string{"chatter", "imbalance"}, "chatter or imbalance"},
		{chatter, Faulty, []string{"chatter", ""}, "chatter or worn"}, // by its wear
		{chatter, Faulty, []string{""}, ""},
		{chatter, Faulty, []string{"worn=yes", "ok=no"}, ""},
		{chatter, Faulty, []string{"worn", "chipped", "gebrochen", "N.i.O.", "slightly worn", "verschlissen", "Kolkverschleiß"}, ""},
		{DefaultRule(), Faulty, []string{"good"}, ""}, // and worn by its wear
		{named, 1, []string{""}, ""},
		{named, 2, []string{""}, "chatter"},
	} {
		var causes []string
		for _, s := range tc.states {
			causes = append(causes, tc.rule.Cause(tc.class, s))
		}
		if got := Finding(causes); got != tc.want {
			t.Errorf("%v, %q: %q, want %q", tc.rule, tc.states, got, tc.want)
		}
	}
}

func TestUnknownStatesAreRefused(t *testing.T) {
	ms, _, err := readMeasurements(strings.NewReader("tool,state\nT1,new\nT2,purple\n"), "wear.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []Rule{DefaultRule(), three} {
		err := rule.CheckClasses(ms)
		for _, want := range []string{"wear.csv:3", `state "purple"`, "healthy are healthy, new,", "chipped, broken", "verschlissen", "`states: [purple]`", "`healthy_states: [purple]`"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v; want %s", rule, err, want)
			}
		}
	}
	rule := DefaultRule()
	rule.HealthyStates = []string{"purple"}
	if err := rule.CheckClasses(ms); err != nil {
		t.Error(err)
	}
	if got, want := rule.StatesByClass(map[string]int{"purple": 2, "new": 1, "worn": 7}), `healthy "new" (1), "purple" (2); faulty "worn" (7)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	rule.HealthyStates = []string{"Broken"}
	if err := rule.Check(); err == nil || !strings.Contains(err.Error(), `healthy_states: "Broken" is a state of class faulty already`) {
		t.Error(err)
	}
}
