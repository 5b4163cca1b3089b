package event

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// A record's key is read back as written, for any name of a tool.
func TestStateKey(t *testing.T) {
	name := rapid.StringOfN(rapid.RuneFrom([]rune("aZ/ é\x1fx")), 0, 8, -1)
	plain := rapid.StringMatching(`[a-z/ ]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		k := StateKey{Group: plain.Draw(t, "group"), Machine: plain.Draw(t, "machine")}
		switch rapid.IntRange(0, 3).Draw(t, "part") {
		case 0:
			k.Part, k.Model, k.Tool = ModelState, "ecs-dbn-1", name.Draw(t, "tool")
		case 1:
			k.Part = SlowState
		case 2:
			k.Part, k.Tool = ToolState, name.Draw(t, "tool")
		}
		if got, ok := ParseStateKey(k.String()); !ok || got != k {
			t.Fatalf("%+v became %q, which is %+v, %v", k, k.String(), got, ok)
		}
	})
}

// Any key is one of a record, which makes the same key again, or none.
func FuzzParseStateKey(f *testing.F) {
	for _, k := range []string{"", "acme/line1/drill", "g\x1f" + "acme/line1/drill", "g\x1fm\x1fslow", "g\x1fm\x1ftool\x1fT1", "g\x1fm\x1ftool\x1f", "\x1f", "g\x1fm\x1fother", "g\x1fm\x1ftool\x1fa\x1fb", "g\x1fm\x1fslow\x1f", "g\x1fm\x1fjudging\x1fa\x1fT1\x1f", "g\x1fm\x1fjudging\x1f\x1fT1"} {
		f.Add(k)
	}
	f.Fuzz(func(t *testing.T, key string) {
		k, ok := ParseStateKey(key)
		if !ok {
			if k != (StateKey{}) {
				t.Errorf("%q is refused, and is %+v", key, k)
			}
			return
		}
		if k.String() != key || k.Machine == "" {
			t.Errorf("%q became %+v, which is %q", key, k, k)
		}
	})
}

// A trace is read back as it was written.
func TestStateTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var trace StateTrace
		for range rapid.IntRange(0, MaxTrace).Draw(t, "windows") {
			trace = append(trace, TracePoint{Point: Point{
				Seq: rapid.Uint64().Draw(t, "seq"), End: time.Unix(0, rapid.Int64().Draw(t, "end")).UTC(),
				Score: rapid.Float64Range(0, 1).Draw(t, "score"), Verdict: rapid.SampledFrom(Verdicts).Draw(t, "verdict"),
			}, Offset: Offset{rapid.Int64Range(0, math.MaxInt64-2).Draw(t, "offset"), rapid.Bool().Draw(t, "features")}})
		}
		text, err := json.Marshal(trace)
		if err != nil {
			t.Fatal(err)
		}
		var again StateTrace
		if err := json.Unmarshal(text, &again); err != nil || !slices.Equal(again, trace) {
			t.Fatalf("%+v became %+v: %v", trace, again, err)
		}
	})
}

// A verdict that this program does not know is refused.
func TestStateTraceOfALaterRelease(t *testing.T) {
	b := append([]byte{byte(len(Verdicts)), 0, 0, 0}, make([]byte, 8)...)
	var trace StateTrace
	if err := json.Unmarshal([]byte(`"`+base64.RawStdEncoding.EncodeToString(b)+`"`), &trace); err == nil {
		t.Errorf("%+v", trace)
	}
	b[0]--
	if err := json.Unmarshal([]byte(`"`+base64.RawStdEncoding.EncodeToString(b)+`"`), &trace); err != nil || len(trace) != 1 {
		t.Errorf("%+v, %v", trace, err)
	}
}

// Any text is a trace, which is written as one again, or refused.
func FuzzStateTrace(f *testing.F) {
	good, err := json.Marshal(StateTrace{{Point: Point{Seq: 7, End: noon, Score: 0.5, Verdict: Healthy}, Offset: Offset{At: 3}}, {Point: Point{Seq: 6, End: noon, Verdict: Learning}, Offset: Offset{At: 4}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(good), string(good[:20]) + `"`, `""`, `null`, `[]`, `"////"`, `"AAAAAAAAAAAAAAD4fw"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var trace, again StateTrace
		if err := json.Unmarshal(text, &trace); err != nil {
			return
		}
		if len(trace) > MaxTrace {
			t.Fatalf("%d windows", len(trace))
		}
		for _, p := range trace {
			if math.IsNaN(p.Score) || math.IsInf(p.Score, 0) || !slices.Contains(Verdicts, p.Verdict) {
				t.Fatalf("%+v", p)
			}
		}
		once, err := json.Marshal(trace)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(once, &again); err != nil || !slices.Equal(trace, again) {
			t.Fatalf("%+v became %+v: %v", trace, again, err)
		}
	})
}
