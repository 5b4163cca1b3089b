package model

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// What the file of this and of an older release says of the data, in words and as names of tools.
func TestLineage(t *testing.T) {
	for text, want := range map[string]struct {
		words string
		tools []string
	}{
		`{"name":"a","sha256":"0123456789abcdef01","windows":5}`: {"a, 5 windows, SHA-256 0123456789abcdef…", nil},
		`{"name":"a","sha256":"01","windows":5,"machines":[{"machine":"","tools":["T1"]}]}`: {
			"a, 5 windows, SHA-256 01…, tool T1", []string{"T1"}},
		`{"name":"a","sha256":"01","windows":5,"machines":[{"machine":"m","tools":[]}],"more_tools":1}`: {
			"a, 5 windows, SHA-256 01…, 1 tools of m", nil},
		`{"name":"a","sha256":"01","windows":5,"machines":[{"machine":"m","tools":["T1","T2"]}],"more_tools":7,"from":"2026-11-02T06:00:00Z","to":"2026-11-02T06:00:05Z"}`: {
			"a, 5 windows, SHA-256 01…, 9 tools of m, 2026-11-02T06:00:00Z to 2026-11-02T06:00:05Z", []string{"m/T1", "m/T2"}},
		`{"name":"a","sha256":"01","windows":5,"machines":[{"machine":"m","tools":["T2"]},{"machine":"k","tools":["T1","T2"]}],"offsets":[{"partition":3,"from":10,"to":15}]}`: {
			"a, 5 windows, SHA-256 01…, 3 tools of 2 machines, offsets 10 to 14 of partition 3", []string{"k/T1", "k/T2", "m/T2"}},
		`{"name":"f","sha256":"01","windows":5,"offsets":[{"topic":"f","partition":3,"from":10,"to":15,"windows":5}]}`: {
			"f, 5 windows, SHA-256 01…, offsets 10 to 14 of partition 3", nil},
		`{"name":"w, f","sha256":"01","windows":9,"offsets":[{"topic":"w","partition":3,"from":10,"to":15,"windows":2},{"topic":"f","partition":2,"from":0,"to":8,"windows":3},{"topic":"f","partition":3,"from":10,"to":15,"windows":4}]}`: {
			"w, f, 9 windows, SHA-256 01…, 2 from w, 7 from f, offsets 10 to 14 of partition 3 of w, offsets 0 to 7 of partition 2 of f, offsets 10 to 14 of partition 3 of f", nil},
	} {
		var d DataSet
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.String() != want.words {
			t.Errorf("%s: %s, %v, want %s", text, d, err, want.words)
		}
		if again, err := json.Marshal(d); err != nil || string(again) != text {
			t.Errorf("%s is written as %s, %v", text, again, err)
		}
		p := Provenance{Data: []DataSet{d, d}}
		if got, _ := p.Tools(); !slices.Equal(got, want.tools) {
			t.Errorf("%s: tools %q, want %q", text, got, want.tools)
		}
	}
	d := DataSet{Name: "a", SHA256: "01", From: time.Unix(2e9, 0), To: time.Unix(2e9, 0), Offsets: make([]OffsetRange, 64)}
	if got, want := d.Of(), "2033-05-18T03:33:20Z to 2033-05-18T03:33:20Z, offsets of 64 partitions"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
