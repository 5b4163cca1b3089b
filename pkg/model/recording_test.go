package model

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/flank-tcm/flank/pkg/signal"
)

// A model carries everything that a layout says of recordings, and comes back with it.
func TestRecordingSection(t *testing.T) {
	var full signal.Recording
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x" + v.Type().Field(i).Name)
		case reflect.Int:
			f.SetInt(3)
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"undefined"}))
		case reflect.Map:
			f.Set(reflect.ValueOf(map[string]signal.Origin{"ax": {From: "a [g]", Gain: 9.81, Offset: 2}}))
		default:
			t.Fatalf("field %s: a model cannot carry it: teach recordingSection", v.Type().Field(i).Name)
		}
	}
	text, err := json.Marshal(toRecordingSection(full))
	if err != nil {
		t.Fatal(err)
	}
	var s *recordingSection
	if err := json.Unmarshal(text, &s); err != nil || !reflect.DeepEqual(s.recording(), full) {
		t.Errorf("%v: %+v comes back as %+v", err, full, s.recording())
	}
	if s := toRecordingSection(signal.Recording{}); s != nil || !reflect.DeepEqual(s.recording(), signal.Recording{}) {
		t.Errorf("of nothing: %+v", s)
	}
}
