package route

import (
	"encoding/hex"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What sparkplug-payload 1.0.3 of the Tahu project's npm packages writes for the
// same payloads.
func TestSparkplugPayload(t *testing.T) {
	at := time.UnixMilli(1793585621000)
	for name, tc := range map[string]struct {
		got  []byte
		want string
	}{
		"death": {spbPayload(at, -1, []spbMetric{{"bdSeq", int64(7)}}), "0888d0a2d0993412120a0562645365711888d0a2d0993420045807"},
		"birth": {spbPayload(at, 0, []spbMetric{{"bdSeq", int64(7)}, {spbRebirth, false}}),
			"0888d0a2d0993412120a0562645365711888d0a2d099342004580712210a144e6f646520436f6e74726f6c2f526562697274681888d0a2d09934200b70001800"},
		"every type": {spbPayload(at, 255, []spbMetric{
			{"Alarm/Active", true}, {"Alarm/State", "raised"}, {"Alarm/Since", at.Add(-6 * time.Second)}, {"Alarm/Text", "Übermaß"},
		}), "0888d0a2d0993412190a0c416c61726d2f4163746976651888d0a2d09934200b7001121e0a0b416c61726d2f53746174651888d0a2d09934200c7a06726169736564121d0a0b416c61726d2f53696e63651888d0a2d09934200d5898a1a2d0993412200a0a416c61726d2f546578741888d0a2d09934200c7a09c39c6265726d61c39f18ff01"},
		"null": {spbPayload(at, 3, []spbMetric{{"Alarm/Since", time.Time{}}}), "0888d0a2d0993412180a0b416c61726d2f53696e63651888d0a2d09934200d38011803"},
	} {
		if got := hex.EncodeToString(tc.got); got != tc.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, tc.want)
		}
	}
}

func TestSparkplugRebirth(t *testing.T) {
	at := time.UnixMilli(1793585621000)
	for why, tc := range map[string]struct {
		payload []byte
		want    bool
	}{
		"what a host sends":  {unhex(t, "0888d0a2d0993412210a144e6f646520436f6e74726f6c2f526562697274681888d0a2d09934200b7001"), true},
		"false":              {spbPayload(at, -1, []spbMetric{{spbRebirth, false}}), false},
		"another metric":     {spbPayload(at, -1, []spbMetric{{"Node Control/Reboot", true}}), false},
		"among others":       {spbPayload(at, -1, []spbMetric{{"x", true}, {spbRebirth, true}, {"y", false}}), true},
		"nothing":            {nil, false},
		"a name, not a bool": {spbPayload(at, -1, []spbMetric{{spbRebirth, "true"}}), false},
	} {
		if got, err := spbWants(tc.payload, spbRebirth); err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", why, got, err)
		}
	}
	if _, err := spbWants([]byte("Node Control/Rebirth"), spbRebirth); err == nil {
		t.Error("text is taken for a payload")
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Any bytes are safe to hear.
func FuzzSparkplug(f *testing.F) {
	f.Add(spbPayload(time.UnixMilli(1), 1, []spbMetric{{spbRebirth, true}}))
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = spbWants(b, spbRebirth) })
}

// What is written is read again.
func TestSparkplugRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, set := rapid.String().Draw(t, "name"), rapid.Bool().Draw(t, "set")
		payload := spbPayload(time.UnixMilli(rapid.Int64Range(0, 1<<41).Draw(t, "at")), rapid.IntRange(-1, 255).Draw(t, "seq"),
			[]spbMetric{{"other", rapid.String().Draw(t, "text")}, {name, set}})
		if got, err := spbWants(payload, name); err != nil || got != set {
			t.Errorf("%q: %v, %v, want %v", name, got, err, set)
		}
	})
}
