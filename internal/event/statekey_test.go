package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

const (
	group = "test"
	drill = "acme/line1/drill"
)

// kept returns records as every release of version 3 must read them. T1, T2 and T3 are worn, T9 was in the spindle for one window of another
// epoch; a shadow has seen all of them.
func kept(t *testing.T) (records []StateRecord) {
	t.Helper()
	text, err := os.ReadFile("testdata/records-3.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Records []struct {
			Key   string
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Records {
		k, ok := ParseStateKey(r.Key)
		if !ok {
			t.Fatalf("key %q", r.Key)
		}
		records = append(records, StateRecord{Key: k, Value: r.Value})
	}
	return records
}

// shown returns records as a person reads them.
func shown(records []StateRecord) string {
	var b strings.Builder
	slices.SortFunc(records, func(a, b StateRecord) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	for _, r := range records {
		var value bytes.Buffer
		if err := json.Indent(&value, r.Value, "", " "); err != nil {
			value.WriteString(err.Error())
		}
		fmt.Fprintf(&b, "%q %s\n", r.Key, value.String())
	}
	return b.String()
}

// Records of this version are read; older and newer ones are refused, with the remedy.
func TestCheckStateVersion(t *testing.T) {
	records := kept(t)
	if err := CheckStateVersion(records); err != nil {
		t.Error(err)
	}
	head := slices.IndexFunc(records, func(r StateRecord) bool { return r.Key.Part == HeadState })
	for _, other := range []string{`"version":1,`, `"version":2,`, `"version":4,`, ""} {
		records[head].Value = []byte(strings.Replace(string(kept(t)[head].Value), `"version":3,`, other, 1))
		if err := CheckStateVersion(records); err == nil || !strings.Contains(err.Error(), "this program reads version 3: use the release that wrote it") {
			t.Errorf("%s %v", other, err)
		}
	}
	records[head].Value = []byte("{")
	if CheckStateVersion(records) == nil {
		t.Error("a torn head has a version")
	}
	records[head].Value = nil
	if err := CheckStateVersion(records); err != nil {
		t.Errorf("without a head: %v", err)
	}
}

// difference returns what is in one machine's records and not in another's.
func difference(usual, now []StateRecord) string {
	lines := strings.Split(shown(usual), "\n")
	var b strings.Builder
	record := ""
	for _, l := range strings.Split(shown(now), "\n") {
		if !strings.HasPrefix(l, " ") && l != "}" {
			record = l
		}
		if i := slices.Index(lines, l); i >= 0 {
			lines = slices.Delete(lines, i, i+1)
			continue
		}
		fmt.Fprintf(&b, "now, of %s: %s\n", record, l)
	}
	for _, l := range lines {
		fmt.Fprintf(&b, "not any more: %s\n", l)
	}
	return b.String()
}

// The models of records are the models of its judgings and of its heads.
func TestStateModels(t *testing.T) {
	records := kept(t)
	if ids := StateModels(records); !slices.Equal(ids, []string{"ecs-dbn-4097c53eb22f", "ecs-dbn-a5da0ce4c06d"}) {
		t.Errorf("%q", ids)
	}
	slices.Reverse(records)
	if ids := StateModels(slices.Concat(records, []StateRecord{{Key: StateKey{Group: group, Machine: drill}}, {Key: StateKey{Group: group, Machine: drill}, Value: []byte("x")}})); len(ids) != 2 {
		t.Errorf("%q", ids)
	}
}

// A record that goes to another partition keeps all but its offsets, and its tool's past is gone.
func TestMoved(t *testing.T) {
	now := kept(t)
	head := slices.IndexFunc(now, func(r StateRecord) bool { return r.Key.Part == HeadState })
	now[head].Value = []byte(strings.Replace(string(now[head].Value), `"model"`, `"evidence":[{"name":"a","offset":7},{"name":"b","offset":-9},{"name":"c","offset":-1}],"model"`, 1))
	moved := make([]StateRecord, len(now))
	for i, r := range now {
		var err error
		if moved[i], err = MovedState(r); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "moved.txt", difference(now, moved))
	for _, bad := range []StateRecord{
		{Key: StateKey{Group: group, Machine: drill}, Value: []byte("x")},
		{Key: StateKey{Group: group, Machine: drill}, Value: []byte(`{"tool":7}`)},
		{Key: StateKey{Group: group, Machine: drill}, Value: []byte(`{"evidence":7}`)},
		{Key: StateKey{Group: group, Machine: drill}, Value: []byte(`{"evidence":[{}]}`)},
		{Key: StateKey{Group: group, Machine: drill}, Value: []byte(`{"tool":{"trace":7}}`)},
		{Key: StateKey{Group: group, Machine: drill, Part: ToolState}, Value: []byte(`{"trace":"A"}`)},
	} {
		if _, err := MovedState(bad); err == nil {
			t.Errorf("%q %s is moved", bad.Key, bad.Value)
		}
	}
	for _, same := range []StateRecord{{Key: StateKey{Group: group, Machine: drill}}, {Key: StateKey{Group: group, Machine: drill, Part: SlowState}, Value: []byte("x")}} {
		if r, err := MovedState(same); err != nil || string(r.Value) != string(same.Value) {
			t.Errorf("%q: %v %s", same.Key, err, r.Value)
		}
	}
}

// A machine goes on under another name with the records of its group, and of no other.
func TestRenamed(t *testing.T) {
	kept := []Kept{{Key: "other\x1f" + drill, Value: []byte("{}")}, {Key: group + "\x1f" + drill + "\x1fslow", Value: []byte("{1}")}}
	got, err := RenamedState(kept, group, drill, "new")
	if err != nil || len(got) != 1 || got[0].Key != (StateKey{Group: group, Machine: "new", Part: SlowState}) || string(got[0].Value) != "{1}" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := RenamedState(kept[:1], group, drill, "new"); err != ErrNoState {
		t.Error(err)
	}
	for _, key := range []string{"x", group + "\x1fother"} {
		if _, err := RenamedState([]Kept{{Key: key}}, group, drill, "new"); err == nil {
			t.Errorf("%q is renamed", key)
		}
	}
}

// A group whose name could be a shadow's is refused.
func TestCheckGroup(t *testing.T) {
	for name, want := range map[string]bool{"tcm-monitor": true, "tcm-monitor~x": false, "a\x1fb": false} {
		if err := CheckGroup(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An offset is one number in a record: as it was in earlier ones, less than -1 for features.
func TestOffset(t *testing.T) {
	for text, want := range map[string]Offset{"0": {}, "-1": {At: -1}, "7": {At: 7}, "-2": {0, true}, "-9": {7, true}} {
		var o Offset
		if err := json.Unmarshal([]byte(text), &o); err != nil || o != want || string(JSON(o)) != text {
			t.Errorf("%s: %+v, %s, %v", text, o, JSON(o), err)
		}
	}
}
