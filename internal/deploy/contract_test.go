package deploy

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/schemas"
)

// drawChange draws a change that may be written.
func drawChange(t *rapid.T) Change {
	number := rapid.Uint64Range(1, maxNumber)
	times := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
	ids := rapid.StringMatching(`ecs-dbn-[0-9a-f]{12}`)
	alarms := rapid.Custom(func(t *rapid.T) *AlarmRecord {
		n := rapid.IntRange(0, 64).Draw(t, "n")
		if n == 0 {
			return nil
		}
		k := rapid.IntRange(1, n).Draw(t, "k")
		return RecordOf(alarm.Settings{K: k, N: n, Clear: rapid.IntRange(0, k-1).Draw(t, "clear"), OffHold: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "off")),
			Latch: rapid.Bool().Draw(t, "latch"), MaxShelf: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "shelf")),
			ReAlarm: time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "re_alarm")), Threshold: rapid.Float64Range(0, 1).Draw(t, "threshold")})
	})
	c := Change{
		Number: number.Draw(t, "number"), Action: rapid.SampledFrom([]Action{promoted, shadowed, unshadowed, rolledBack, Retired}).Draw(t, "action"),
		For: drawGlob(t, "for").String(), Layout: rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "layout"),
		At: times.Draw(t, "at"), By: rapid.StringN(0, 50, 1000).Draw(t, "by"), Note: rapid.StringN(0, 50, 1000).Draw(t, "note"),
	}
	if c.First = 1; c.Action == Retired {
		return c
	}
	c.Champion, c.Alarm, c.Now, c.Since = ids.Draw(t, "champion"), alarms.Draw(t, "alarm"), rapid.Bool().Draw(t, "now"), times.Draw(t, "since")
	for _, id := range rapid.SliceOfNDistinct(ids, 0, maxShadow, rapid.ID[string]).Draw(t, "shadows") {
		if id != c.Champion {
			c.Shadows = append(c.Shadows, Trial{id, times.Draw(t, "from"), times.Draw(t, "until").Add(time.Second)})
		}
	}
	for range rapid.IntRange(0, maxPast).Draw(t, "before") {
		c.Previous = append(c.Previous, PastVersion{ids.Draw(t, "past"), alarms.Draw(t, "past alarm"), times.Draw(t, "past since")})
	}
	return c
}

// What is written agrees with the schema, and is read back as it was.
func TestChangesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChange(t)
		m, err := c.encode(anna)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.Validate(schemas.Deployment, m.Value); err != nil {
			t.Fatal(err)
		}
		back, err := decodeChange(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(back); err != nil || string(again) != string(m.Value) {
			t.Fatalf("%s became %s", m.Value, again)
		}
		if _, err := ofAnna.check(m); err != nil {
			t.Fatal(err)
		}
	})
}

// A record keeps every setting of an alarm.
func TestAlarmRecordKeepsSettings(t *testing.T) {
	want := alarm.Settings{
		K: 3, N: 5, Clear: 1, OnHold: time.Second, OffHold: time.Minute, Latch: true, MaxShelf: time.Hour, ReAlarm: 20 * time.Minute, Threshold: 0.7,
	}
	for i, v := 0, reflect.ValueOf(want); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set here: the test has no teeth", v.Type().Field(i).Name)
		}
	}
	text, err := json.Marshal(RecordOf(want))
	if err != nil {
		t.Fatal(err)
	}
	var r AlarmRecord
	if err := json.Unmarshal(text, &r); err != nil || *r.Settings() != want {
		t.Errorf("%+v became %+v by %s: %v", want, r.Settings(), text, err)
	}
}

// The contract names the headers and keys that the code sends.
func TestContract(t *testing.T) {
	all := trained()
	msgs, err := encodeModel(anna, all.file[all.a.ID()], manifestOf(all.a))
	if err != nil {
		t.Fatal(err)
	}
	if err := schemas.Validate(schemas.Manifest, msgs[1].Value); err != nil {
		t.Error(err)
	}
	type headers struct {
		Ref        string `yaml:"$ref"`
		Required   []string
		Properties map[string]struct{ Const string }
		AllOf      []headers `yaml:"allOf"`
	}
	var api struct {
		Components struct {
			Messages map[string]struct {
				ContentType string `yaml:"contentType"`
				Headers     headers
			}
			Schemas map[string]headers
		}
	}
	if err := yaml.Unmarshal(schemas.AsyncAPI, &api); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]bus.Message{"modelPart": msgs[0], "model": msgs[1], "modelCurve": message(anna, curvePrefix+all.a.ID(), curveType, "application/json", noon, []byte("{}")), "deployment": sealed(t, anna, promote(1, "**", all.a), 0)} {
		of := api.Components.Messages[name]
		var known []string
		for _, part := range of.Headers.AllOf {
			if ref, ok := strings.CutPrefix(part.Ref, "#/components/schemas/"); ok {
				part = api.Components.Schemas[ref]
			}
			for key, p := range part.Properties {
				if !slices.Contains(known, key) {
					known = append(known, key)
				}
				if got := string(m.Header(key)); p.Const != "" && p.Const != got {
					t.Errorf("%s: header %s is always %q, the code sends %q", name, key, p.Const, got)
				}
			}
		}
		var sent []string
		for _, h := range m.Headers {
			sent = append(sent, h.Key)
		}
		slices.Sort(sent)
		slices.Sort(known)
		if !slices.Equal(sent, known) || string(m.Header("content-type")) != of.ContentType || m.Topic != bus.TopicModels {
			t.Errorf("%s: contract describes %v, the code sends %v", name, known, sent)
		}
	}
}
