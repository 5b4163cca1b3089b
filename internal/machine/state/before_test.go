package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/golden"
)

const (
	group = "test"
	drill = "acme/line1/drill"
)

// before returns records that the release before wrote. T1, T2 and T3 are worn, T9 was in the spindle for one window of another
// epoch; a shadow has seen all of them.
func before(t *testing.T) (records []Record) {
	t.Helper()
	text, err := os.ReadFile("testdata/records-2.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Records []struct {
			Key   string
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	for _, r := range kept.Records {
		k, ok := ParseKey(r.Key)
		if !ok {
			t.Fatalf("key %q", r.Key)
		}
		records = append(records, Record{Key: k, Value: r.Value})
	}
	return records
}

// shown returns records as a person reads them.
func shown(records []Record) string {
	var b strings.Builder
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	for _, r := range records {
		var value bytes.Buffer
		if err := json.Indent(&value, r.Value, "", " "); err != nil {
			value.WriteString(err.Error())
		}
		fmt.Fprintf(&b, "%q %s\n", r.Key, value.String())
	}
	return b.String()
}

// Records of the release before become records of this one: a tool's memory becomes a judging, a shadow's too, and masks of the tool in
// the spindle become the machine's.
func TestUpgrade(t *testing.T) {
	records := before(t)
	now, old, err := Upgrade(records)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := VersionOf(now); v != Version || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	if len(old) != 6 || slices.ContainsFunc(old, func(k Key) bool { return !strings.Contains(k.Group, shadowSeparator) }) {
		t.Errorf("not needed any more: %q", old)
	}
	golden.Check(t, "records-3.txt", shown(now))
}

// Memories that the release before did not trust are not trusted, and what is not there is not made up.
func TestUpgradeOddRecords(t *testing.T) {
	change := func(part string, from, to string) func([]Record) []Record {
		return func(records []Record) []Record {
			for i, r := range records {
				if strings.HasSuffix(r.Key.String(), part) {
					if !strings.Contains(string(r.Value), from) {
						t.Fatalf("%q has no %s", r.Key, from)
					}
					records[i].Value = []byte(strings.Replace(string(r.Value), from, to, 1))
				}
			}
			return records
		}
	}
	own := group + "\x1f" + drill
	without := func(suffix string) func([]Record) []Record {
		return func(records []Record) []Record {
			return slices.DeleteFunc(records, func(r Record) bool { return strings.HasSuffix(r.Key.String(), suffix) })
		}
	}
	for name, tc := range map[string]func([]Record) []Record{
		"a tool whose memory is built again": change(own+"\x1ftool\x1fT1", `"seen":1`, `"seen":1,"rebuild":true`),
		"a tool whose memory is stale":       change(own+"\x1ftool\x1fT1", `"seen":1`, `"seen":1,"stale":true`),
		"a tool without a first window":      change(own+"\x1ftool\x1fT1", `"epoch":"0000000000000001","seq":0`, `"epoch":"","seq":0`),
		"a tool of another life":             change(own+"\x1ftool\x1fT1", `"seen":1`, `"seen":1,"life":"2"`),
		"a tool without a record":            without(own + "\x1ftool\x1fT3"),
		"an alarm that was announced":        change(own, `"silent":true,`, ``),
		"a shadow that cannot be read":       change("~ecs-dbn-a5da0ce4c06d\x1f"+drill+"\x1fslow", `{"epochs"`, `["epochs"`),
		"no slow record":                     without(own + "\x1fslow"),
		"no epoch":                           change(own, `"epoch":{"id":"0000000000000001","judged":[[0,19]],"led":true,"last_ms":1793620819000},`, ``),
		"drift":                              change(own+"\x1fslow", `{"epochs"`, `{"drift":{"tools":1},"epochs"`),
	} {
		t.Run(name, func(t *testing.T) {
			usual, _, err := Upgrade(before(t))
			if err != nil {
				t.Fatal(err)
			}
			now, _, err := Upgrade(tc(before(t)))
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "odd-"+strings.ReplaceAll(name, " ", "-")+".txt", difference(usual, now))
		})
	}
	for want, tc := range map[string]func([]Record) []Record{
		"the record is of tool \"T2\"": change(own+"\x1ftool\x1fT1", `{"tool":"T1"`, `{"tool":"T2"`),
		"unexpected end":               change(own+"\x1ftool\x1fT1", `}`, ``),
		"cannot unmarshal":             change(own, `"model":"`, `"model":1,"x":"`),
	} {
		if _, _, err := Upgrade(tc(before(t))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// difference returns what is in one machine's records and not in another's.
func difference(usual, now []Record) string {
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
func TestModels(t *testing.T) {
	records := before(t)
	if ids := Models(records); !slices.Equal(ids, []string{"ecs-dbn-4097c53eb22f", "ecs-dbn-a5da0ce4c06d"}) {
		t.Errorf("%q", ids)
	}
	now, _, err := Upgrade(records)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(now)
	if ids := Models(slices.Concat(now, []Record{{Key: Key{Group: group, Machine: drill}}, {Key: Key{Group: group, Machine: drill}, Value: []byte("x")}})); len(ids) != 2 {
		t.Errorf("%q", ids)
	}
}

// A record that goes to another partition keeps all but its offsets, and its tool's past is gone.
func TestMoved(t *testing.T) {
	now, _, err := Upgrade(before(t))
	if err != nil {
		t.Fatal(err)
	}
	head := slices.IndexFunc(now, func(r Record) bool { return r.Key.IsHead() })
	now[head].Value = []byte(strings.Replace(string(now[head].Value), `"evidence":null`, `"evidence":[{"name":"a","offset":7},{"name":"b","offset":-9},{"name":"c","offset":-1}]`, 1))
	for _, records := range [][]Record{now, before(t)} {
		moved := make([]Record, len(records))
		for i, r := range records {
			if moved[i], err = Moved(r); err != nil {
				t.Fatal(err)
			}
		}
		v, err := VersionOf(records)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, fmt.Sprintf("moved-%d.txt", v), difference(records, moved))
	}
	for _, bad := range []Record{
		{Key: Key{Group: group, Machine: drill}, Value: []byte("x")},
		{Key: Key{Group: group, Machine: drill}, Value: []byte(`{"tool":7}`)},
		{Key: Key{Group: group, Machine: drill}, Value: []byte(`{"evidence":7}`)},
		{Key: Key{Group: group, Machine: drill}, Value: []byte(`{"evidence":[{}]}`)},
		{Key: Key{Group: group, Machine: drill}, Value: []byte(`{"tool":{"trace":7}}`)},
		{Key: Key{Group: group, Machine: drill, OfTool: true}, Value: []byte(`{"trace":"A"}`)},
	} {
		if _, err := Moved(bad); err == nil {
			t.Errorf("%q %s is moved", bad.Key, bad.Value)
		}
	}
	for _, same := range []Record{{Key: Key{Group: group, Machine: drill}}, {Key: Key{Group: group, Machine: drill, Slow: true}, Value: []byte("x")}} {
		if r, err := Moved(same); err != nil || string(r.Value) != string(same.Value) {
			t.Errorf("%q: %v %s", same.Key, err, r.Value)
		}
	}
}

// A machine goes on under another name with the records of its group, and of no other.
func TestRenamed(t *testing.T) {
	kept := []event.Kept{{Key: "other\x1f" + drill, Value: []byte("{}")}, {Key: group + "\x1f" + drill + "\x1fslow", Value: []byte("{1}")}}
	got, err := Renamed(kept, group, drill, "new")
	if err != nil || len(got) != 1 || got[0].Key != (Key{Group: group, Machine: "new", Slow: true}) || string(got[0].Value) != "{1}" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Renamed(kept[:1], group, drill, "new"); err != ErrNoRecord {
		t.Error(err)
	}
	for _, key := range []string{"x", group + "\x1fother"} {
		if _, err := Renamed([]event.Kept{{Key: key}}, group, drill, "new"); err == nil {
			t.Errorf("%q is renamed", key)
		}
	}
}

// Whose record one is, its group's and of its shadows.
func TestOfGroup(t *testing.T) {
	for g, want := range map[string]bool{group: true, ShadowGroup(group, "m"): true, "other": false, group + "x": false, ShadowGroup("other", "m"): false} {
		if got := (Key{Group: g}).OfGroup(group); got != want {
			t.Errorf("%q: %v", g, got)
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

// An offset is one in the features topic, or in the windows topic.
func TestInFeatures(t *testing.T) {
	for _, offset := range []int64{0, 1, 1 << 40} {
		if at := InFeatures(offset); at >= -1 || InFeatures(at) != offset {
			t.Errorf("%d became %d", offset, at)
		}
	}
}
