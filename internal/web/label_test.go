package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
)

// A page gives a label with the rights of an acknowledgement, and asks about what may be a mistake. Each has a record.
func TestLabel(t *testing.T) {
	const tool = `{"machine":"acme/usk25","action":"add_label","tool":"T8","tool_life":"2",`
	for name, tc := range map[string]struct {
		body  string
		role  credential.Role
		code  int
		says  string
		label string
	}{
		"wear":                {tool + `"wear":"0,34 mm"}`, credential.Operator, 202, `{"id":"L-`, "340 µm measured 0s"},
		"worn":                {strings.Replace(tool, `"tool_life":"2",`, "", 1) + `"state":"worn"}`, credential.Operator, 202, `{"id":"L-`, "worn eye 0s"},
		"worn since an alarm": {tool + `"state":"worn","incident":"A-K3ZQ7M2P","since":"2026-11-02T06:00:00Z","until":"2026-11-02T06:05:00Z"}`, credential.Engineer, 202, `{"id":"L-`, "worn eye 5m0s"},
		"wear of an alarm":    {tool + `"wear":"340um","since":"2026-11-02T06:00:00Z","until":"2026-11-02T06:05:00Z"}`, credential.Operator, 202, `{"id":"L-`, "340 µm measured 0s"},
		"a mistake":           {tool + `"state":"doubtful"}`, credential.Operator, 409, "wear falls", ""},
		"kept anyway":         {tool + `"state":"doubtful","anyway":true}`, credential.Operator, 202, `{"id":"L-`, "doubtful eye 0s"},
		"nothing":             {tool + `"wear":""}`, credential.Operator, 400, "say how worn", ""},
		"no unit":             {tool + `"wear":"0.34"}`, credential.Operator, 400, "say the unit", ""},
		"no tool":             {strings.Replace(tool, "T8", "", 1) + `"state":"worn"}`, credential.Operator, 400, "tool", ""},
		"a viewer":            {tool + `"state":"worn"}`, credential.Viewer, 403, "may not ask for add_label", ""},
		"no one":              {tool + `"state":"worn"}`, "", 401, "log in", ""},
		"no broker":           {strings.Replace(tool, "usk25", "away", 1) + `"state":"worn"}`, credential.Operator, 502, "no broker", ""},
	} {
		var kept []event.Label
		var records []event.Audit
		h := NewHub(Config{Layout: twoChannels(), Control: &Control{
			Label: func(_ context.Context, l event.Label, tools map[string]string, anyway bool) ([]string, error) {
				switch {
				case l.Machine == "acme/away":
					return nil, errors.New("no broker answers")
				case l.State == "doubtful" && !anyway:
					return []string{"wear falls"}, nil
				case tools["T8"] != "2":
					t.Errorf("%s: tools that were seen: %v", name, tools)
				}
				kept = append(kept, l)
				return nil, nil
			},
		}})
		h.Result(event.Result{Machine: "acme/usk25", Tool: "T8", ToolLife: "2", Verdict: event.Healthy, Start: time.Now(), End: time.Now()})
		g := NewGuard(Protection{
			Hosts: []string{"example.com"}, Audit: func(a event.Audit) { records = append(records, a) },
			Find: func(sum [sha256.Size]byte) (Person, bool, error) {
				return Person{Name: "kim", Role: tc.role}, tc.role != "" && sum == sha256.Sum256([]byte(secret)), nil
			},
		})
		r := httptest.NewRequest(http.MethodPost, "/api/commands", strings.NewReader(tc.body))
		if tc.role != "" {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.Handler(h.Handler()).ServeHTTP(w, r)
		got := ""
		if len(kept) == 1 {
			l := kept[0]
			got = l.Known() + " " + l.Method + " " + max(0, l.Until.Sub(l.At)).String()
			if l.By != "kim" || l.ToolLife != "2" || l.Check() != nil {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.says) || got != tc.label {
			t.Errorf("%s: %d %q, want %d %q; kept %q, want %q", name, w.Code, w.Body, tc.code, tc.says, got, tc.label)
		}
		if len(records) != 1 || (records[0].Outcome == event.Accepted) != (tc.code == 202) || tc.code != 401 && records[0].Action != event.AddLabel {
			t.Errorf("%s: records %+v", name, records)
		}
	}
}

// The tool that is in has its life also between cycles, and one in the magazine the life that its last alert names.
func TestLivesOfTools(t *testing.T) {
	h := newTestHub()
	r := testResult(1)
	r.ToolLife = "a"
	h.Result(r)
	between := testResult(2)
	between.Tool, between.Verdict = "", event.NotCutting
	h.Result(between)
	for seq, a := range []event.Alert{
		{Tool: "T2", ToolLife: "b", State: event.Raised, Alarm: "raised", Incident: "A-BBBBBBBB"}, {Tool: "T2", State: event.MarkedFalse, Incident: "A-BBBBBBBB"},
		{Tool: "T3", ToolLife: "c", State: event.Raised, Alarm: "raised", Incident: "A-CCCCCCCC"}, {Tool: "T3", ToolLife: "d", State: event.ToolIsNew},
	} {
		a.ID, a.Machine, a.Seq = strings.Repeat("x", seq), testMachine, uint64(seq)
		h.Alert(a)
	}
	if got, want := h.toolsOf(testMachine), map[string]string{r.Tool: "a", "T2": "b", "T3": "d"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
