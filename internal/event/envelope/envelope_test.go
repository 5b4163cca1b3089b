package envelope

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/flank-tcm/flank/schemas"
)

var sealed = window.Envelope{
	Machine: "acme/line1/drill", Epoch: 0xa1, Seq: 7, Time: time.Date(2026, 11, 2, 2, 0, 1, 500, time.UTC),
	Layout: "0123456789abcdef", CRC: 0xdeadbeef, Value: []byte("value"), ToolLife: "life-1",
}

func same(a, b window.Envelope) bool {
	return a.Machine == b.Machine && a.Epoch == b.Epoch && a.Seq == b.Seq && a.Time.Equal(b.Time) && a.Layout == b.Layout && a.Features == b.Features &&
		a.CRC == b.CRC && string(a.Value) == string(b.Value) && a.ToolLife == b.ToolLife
}

func headers(m bus.Message) (all []string) {
	for _, h := range m.Headers {
		all = append(all, h.Key+" "+string(h.Value))
	}
	return all
}

// Messages say what the envelope says, and give it back.
func TestMessages(t *testing.T) {
	form := sealed
	form.Features, form.ToolLife = "fedcba9876543210", ""
	common := func(typ string) []string {
		return []string{
			"ce_specversion 1.0", "ce_id acme/line1/drill/00000000000000a1/7", "ce_source /acme/line1/drill", "ce_type " + typ,
			"ce_time 2026-11-02T02:00:01.0000005Z", "ce_partitionkey acme/line1/drill", "content-type application/vnd.apache.arrow.stream",
			"traceparent " + event.TraceParent(typ, "acme/line1/drill/00000000000000a1/7"),
			"layout 0123456789abcdef", "epoch 00000000000000a1", "seq 7", "crc32c deadbeef",
		}
	}
	for name, tc := range map[string]struct {
		m      bus.Message
		e      window.Envelope
		topic  string
		want   []string
		by     Extractor
		offset int64
	}{
		"window":                  {Window(sealed), sealed, bus.TopicWindows, append(common("io.tcm.window.v1"), "tool_life life-1"), "", 0},
		"features of a gateway":   {Features(form, Gateway, 3), form, bus.TopicFeatures, append(common("io.tcm.features.v1"), "features fedcba9876543210", "extracted gateway"), Gateway, -1},
		"features of a monitor":   {Features(form, Monitor, 3), form, bus.TopicFeatures, append(common("io.tcm.features.v1"), "features fedcba9876543210", "extracted monitor", "window_offset 3"), Monitor, 3},
		"of the topic's first":    {Features(form, Monitor, 0), form, bus.TopicFeatures, append(common("io.tcm.features.v1"), "features fedcba9876543210", "extracted monitor", "window_offset 0"), Monitor, 0},
		"features with a life of": {Features(func() window.Envelope { e := form; e.ToolLife = "x"; return e }(), Gateway, 0), func() window.Envelope { e := form; e.ToolLife = "x"; return e }(), bus.TopicFeatures, append(common("io.tcm.features.v1"), "tool_life x", "features fedcba9876543210", "extracted gateway"), Gateway, -1},
	} {
		if got := headers(tc.m); tc.m.Topic != tc.topic || tc.m.Key != tc.e.Machine || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s %s %q", name, tc.m.Topic, tc.m.Key, got)
		}
		if e, err := Of(&tc.m); err != nil || !same(e, tc.e) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
		if tc.by == "" {
			continue
		}
		if by, offset, err := Origin(&tc.m); err != nil || by != tc.by || offset != tc.offset {
			t.Errorf("%s: by %s at %d, %v", name, by, offset, err)
		}
	}
}

// A ledger comes out as it went in. The release before, which skips copies, skips it.
func TestLedger(t *testing.T) {
	l := event.SourceLedger{
		Machine: "acme/line1/drill", Ledger: event.Ledger{At: sealed.Time, Seconds: 60, Received: 5, InWindows: 3, Unused: []event.UnusedSamples{{Reason: "gap", Samples: 2}}},
		Lost: []event.LostSamples{{Reason: "gap", Seconds: 12}}, Idle: 10,
	}
	m := Ledger(l)
	if m.Topic != bus.TopicWindows || m.Key != l.Machine || !IsLedger(&m) || string(m.Header(Copied)) != "ledger" || string(m.Header("ce_id")) != "acme/line1/drill/ledger/1793584801000000500" {
		t.Errorf("%s %s %q", m.Topic, m.Key, headers(m))
	}
	if err := schemas.Validate(schemas.Ledger, m.Value); err != nil {
		t.Error(err)
	}
	if got, err := LedgerOf(&m); err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("%+v, %v", got, err)
	}
	m.Key = "acme/line1/other"
	if _, err := LedgerOf(&m); err == nil {
		t.Error("of another machine than its key: accepted")
	}
	if w := Window(sealed); IsLedger(&w) {
		t.Error("a window is a ledger")
	}
}

// A header that is missing or says nonsense is named.
func TestHeadersThatCannotBeRead(t *testing.T) {
	form := sealed
	form.Features = "fedcba9876543210"
	change := func(key string, value ...string) bus.Message {
		m := Features(form, Monitor, 3)
		m.Headers = slices.DeleteFunc(m.Headers, func(h bus.Header) bool { return h.Key == key })
		for _, v := range value {
			m.Headers = append(m.Headers, bus.Header{Key: key, Value: []byte(v)})
		}
		return m
	}
	moved := Features(form, Gateway, 0)
	moved.Topic = bus.TopicWindows
	for text, m := range map[string]bus.Message{
		`no header "ce_type": not features that Flank sent`:            change("ce_type"),
		`ce_type is "io.tcm.window.v1", expected "io.tcm.features.v1"`: change("ce_type", "io.tcm.window.v1"),
		`ce_type is "io.tcm.features.v1", expected "io.tcm.window.v1"`: moved,
		`no header "features"`:                                             change("features"),
		`header features is empty`:                                         change("features", ""),
		`header seq is "-1": not a number of 64 bits in base 10`:           change("seq", "-1"),
		`header crc32c is "1ffffffff": not a number of 32 bits in base 16`: change("crc32c", "1ffffffff"),
	} {
		if _, err := Of(&m); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
	for text, m := range map[string]bus.Message{
		`no header "extracted"`:                                 change("extracted"),
		`header extracted is "me", expected gateway or monitor`: change("extracted", "me"),
		`no header "window_offset"`:                             change("window_offset"),
		`header window_offset is "-1"`:                          change("window_offset", "-1"),
		`header window_offset is "9223372036854775807"`:         change("window_offset", "9223372036854775807"),
	} {
		if _, _, err := Origin(&m); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

// When a window was acquired comes back from its header. Older releases have none.
func TestAcquired(t *testing.T) {
	m := Window(sealed)
	if at := AcquiredAt(&m); !at.IsZero() {
		t.Errorf("acquired at %v", at)
	}
	want := time.Date(2026, 11, 2, 2, 0, 1, 5, time.FixedZone("", 3600))
	if SetAcquired(&m, want); !AcquiredAt(&m).Equal(want) {
		t.Errorf("acquired at %v, want %v", AcquiredAt(&m), want)
	}
	m.Headers[len(m.Headers)-1].Value = []byte("yesterday")
	if at := AcquiredAt(&m); !at.IsZero() {
		t.Errorf("acquired at %v", at)
	}
}

// The message of a window takes few objects: a gateway makes one for each.
func TestMessageMakesFewObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func()
		most float64
	}{
		"window":   {func() { Window(sealed) }, 12},
		"features": {func() { m := Features(sealed, Gateway, 0); SetAcquired(&m, sealed.Time) }, 16},
	} {
		if n := testing.AllocsPerRun(100, tc.do); n > tc.most {
			t.Errorf("%s: %v objects, at most %v may be", name, n, tc.most)
		}
	}
}
