package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/schemas"
)

// contract is schemas/openapi.yaml. Objects are closed: an answer may have no member that is not
// described.
type contract struct {
	document map[string]any
	compiler *jsonschema.Compiler
}

const contractURL = "urn:flank:openapi"

var readContract = sync.OnceValue(func() contract {
	var plain any
	if err := yaml.Unmarshal(schemas.OpenAPI, &plain); err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(encode(plain)))
	if err != nil {
		panic(err)
	}
	closeAll(document)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(contractURL, document); err != nil {
		panic(err)
	}
	return contract{document.(map[string]any), c}
})

// closeAll forbids members that are not described wherever a schema of type object is.
func closeAll(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "object" && v["properties"] != nil && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeAll(inner)
		}
	case []any:
		for _, inner := range v {
			closeAll(inner)
		}
	}
}

// check reports data that does not agree with a schema of the contract.
func (c contract) check(schema string, data []byte) error {
	s, err := c.compiler.Compile(contractURL + "#/components/schemas/" + schema)
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(document)
}

// The handler answers the routes that the contract describes, and no others.
func TestRoutesOfContract(t *testing.T) {
	var got, want []string
	h := NewHub(Config{Control: &Control{}, Evidence: http.NotFoundHandler()})
	for pattern := range h.server.routes() {
		if !strings.HasPrefix(pattern, "GET /static/") && pattern != "GET /{$}" {
			got = append(got, pattern)
		}
	}
	got = slices.AppendSeq(got, maps.Keys(NewGuard(Protection{}).routes()))
	for path, methods := range readContract().document["paths"].(map[string]any) {
		for method := range methods.(map[string]any) {
			if head, ok := strings.CutSuffix(path, "evidence/{name}"); ok {
				path = head + "evidence/" // another handler reads the rest
			}
			path = strings.TrimSuffix(path, "{name}.arrow")
			want = append(want, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("routes\n%s\nin schemas/openapi.yaml\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const testIncident = "A-K3ZQ7M2P"

// fullHub holds machines and a past of which everything is known.
func fullHub() *Hub {
	stood := summary.Alarm{
		Incident: testIncident, Machine: testMachine, Tool: "T07", Since: t0, Raised: t0, State: "raised", Faulty: 6, Of: 8, WearUM: ptr(0.0),
		Changes: []summary.Change{{At: t0, State: event.Raised, By: "jk"}}, Severity: "warning",
	}
	one := []int{1}
	numbers := summary.Numbers{0}
	deployment := Deployment{For: "acme/**", Layout: "two", Champion: "m1", Shadows: []Shadow{{Model: "m2", Until: &t0}}, Alarm: &AlarmRule{5, 8, 0.5}, At: &t0, By: "jk", Note: "why"}
	facts := ModelFacts{ID: "m1", Title: "a model", Layout: "two", LimitUM: ptr(300.0), At: &t0, By: "jk", Note: "why", Key: "k"}
	h := NewHub(Config{
		Layout: twoChannels(), Control: &Control{},
		Facts: func(string, string) Facts { return Facts{Threshold: 0.5, LimitUM: 300} },
		History: func(machine string, from, to time.Time, step time.Duration) (summary.History, error) {
			if machine != testMachine {
				return summary.History{}, summary.ErrNoMachine
			}
			all := summary.History{
				Machine: machine, From: from, To: to, Step: int(step.Seconds()), Holes: 2, Since: t0,
				Points: summary.Points{
					T: []int64{t0.Unix()}, Windows: one, Cutting: one, Healthy: one, Faulty: one, Unknown: one, Learning: one, NotCutting: one, SensorFault: one, Late: one,
					ScoreMean: numbers, ScoreMax: numbers, Threshold: numbers, Wear: summary.Numbers{float64(nan)}, WearLow: numbers, WearHigh: numbers,
				},
				Tools:  []summary.ToolSpan{{Tool: "T07", From: from, To: to, CuttingSeconds: 0, WearUM: ptr(0.0)}},
				Alarms: []summary.Alarm{stood}, Advisories: []summary.AdvisorySpan{{Kind: event.SensorAdvisory, Subject: "ch01", From: from, To: to}},
			}
			if step == summary.ByHole {
				all.Step, all.Each, all.Points.End, all.Points.Hole = 0, 1, []int64{t0.Unix() + 9}, []string{"H1"}
			}
			return all, nil
		},
		Tools: func(machine string, limit int) ([]summary.Life, error) {
			if machine != testMachine {
				return nil, fmt.Errorf("summary: %w", summary.ErrNoMachine)
			}
			return []summary.Life{{Tool: "T06", From: t0, To: t0, WearUM: ptr(0.0), Windows: limit, Curve: summary.Curve{Cutting: numbers, Wear: numbers, Score: numbers}}}, nil
		},
		Usual: func(machine, tool string) (summary.Usual, error) {
			if machine != testMachine {
				return summary.Usual{}, summary.ErrNoMachine
			}
			return summary.Usual{Windows: 10, Channels: []event.Range{{Channel: "ch01", Low: -1, High: 1}}}, nil
		},
		Alarms: func(f summary.AlarmFilter) ([]summary.Alarm, error) {
			if f.Machine == "none" || f.Machine == testLathe {
				return nil, summary.ErrNoMachine
			}
			if f.Machine == "broken" {
				return nil, errors.New("the disk is gone")
			}
			return []summary.Alarm{stood, {Incident: "A-K3ZQ7M2Q", Machine: testMachine, State: "normal"}}, nil
		},
		Alarm: func(incident string) (summary.AlarmDetail, error) {
			if incident != testIncident {
				return summary.AlarmDetail{}, summary.ErrNoAlarm
			}
			return summary.AlarmDetail{Machine: testMachine, Alarm: stood, Alerts: []event.Alert{testAlert(1)}, Previous: "A-K3ZQ7M2A", Next: "A-K3ZQ7M2B"}, nil
		},
		ListModels: func(context.Context) (Deployed, error) {
			return Deployed{[]ModelFacts{facts}, []Deployment{deployment}}, nil
		},
		Model: func(_ context.Context, id string) (*ModelDetail, error) {
			if id != "m1" {
				return nil, nil
			}
			point := alarm.Point{K: 5, N: 8, Threshold: 0.5, PerHour: ptr(0.0), Delay: ptr(0.0)}
			return &ModelDetail{
				ModelFacts: facts, Deployments: []Deployment{deployment}, DefaultAlarm: &AlarmRule{5, 8, 0.5}, Curve: &alarm.Curve{Model: "m1", Now: point, Chosen: point, Points: []alarm.Point{point}}, CurveCommand: "trainer tune",
				Card: &ModelCard{
					Verdict: "shadow", Reasons: []CardReason{{"worn tools", "shadow", "few", "add tools"}}, Tools: 2, Split: "by tool", GMean: &CardInterval{0, ptr(0.0), ptr(0.0)},
					Recall: &CardInterval{Value: 0}, Specificity: &CardInterval{Value: 1}, Labels: "ef",
					Data: []CardData{{"a.csv", 1, "cd", []CardMachine{{testMachine, []string{"T07"}}}, 2, &t0, &t0, []CardOffsets{{"tcm.windows.v1", 3, 10, 19, 9}}}, {Name: "b.csv"}}, WindowSeconds: 1, Reference: "kind", Threshold: ptr(0.0),
				},
			}, nil
		},
		ModelUse: func(model string, from, to time.Time) (summary.ModelUse, error) {
			d := summary.Disagreement{Windows: 1}
			trial := summary.Trial{Shadow: "m2", Champion: model, Sum: d, T: []int64{t0.Unix()}, Hours: []summary.Disagreement{d}, Machines: []summary.TrialMachine{{Machine: testMachine, Disagreement: d}}}
			return summary.ModelUse{
				T: []int64{t0.Unix()}, Judged: []int{4}, Unknown: []int{1}, Trials: []summary.Trial{trial},
				Drift: []summary.DriftSpan{{Machine: testMachine, From: from, To: to}, {Machine: testMachine, From: from}},
			}, nil
		},
		System: func(context.Context) System {
			return System{
				Lag: []Lag{{0, 0}}, Missing: ptr(uint64(0)), Dead: &Dead{Count: 0}, Routes: []RouteLag{{Name: "mail", Problem: "another program connects"}}, Certificates: []Certificate{{"kafka.crt", 0.5}},
				Disk: &Disk{1, 2}, Problems: []Problem{{"a certificate ends", "ingest check", "acme/a", sentence("change_tool", "tool", "T07")}},
			}
		},
	})
	h.boot, h.now = "testboot", func() time.Time { return t0.Add(1500 * time.Millisecond) }
	h.beginWatch(testMachine)
	fillHub(h)
	return h
}

// fillHub lets everything happen to a machine, and little to another.
func fillHub(h *Hub) {
	samples := make([]float32, 2000)
	for i := range samples {
		samples[i] = float32(i % 7)
	}
	for seq := range uint64(3) {
		w := testWindow(seq)
		w.Samples, w.Envelope, w.RMS, w.Learning = [][]float32{samples, {1}}, nil, nil, true
		w.Quality[0] = 1
		h.Window(w)
		h.awaitUsual()
		r := fullResult(testMachine, seq)
		r.Threshold, r.Model = 0.5, "m1"
		if seq == 1 {
			r.Ledger = &event.Ledger{At: t0, Seconds: 60, Received: 9, InWindows: 6, Unused: []event.UnusedSamples{{Reason: "gap", Samples: 3}}}
		}
		h.Result(r)
	}
	gone := testAlert(1)
	gone.ID, gone.Tool, gone.State, gone.Reason, gone.Alarm, gone.Incident = "gone", "T06", event.Cleared, "tool_change", "normal", "A-K3ZQ7M2Q"
	h.Alert(gone)
	late := testResult(0)
	late.Epoch, late.Late, late.Class, late.Unknown = "00000000000000a0", true, "worn", "ambiguous"
	h.Result(late)
	a := testAlert(2)
	a.Alarm, a.Incident = "raised", testIncident
	h.Alert(a)
	for i, kind := range event.AdvisoryKinds {
		h.Advisory(event.Advisory{
			ID: fmt.Sprint(i), Machine: testMachine, Kind: kind, Subject: "ch01", State: event.Raised, Status: "failure", Flags: []string{"flatline"},
			Severity: "warning", Since: t0, At: t0, Text: "text",
		})
	}
	h.Evidence(event.Evidence{ID: a.ID + "/evidence", Alert: a.ID, Machine: testMachine, Incident: testIncident, From: t0, To: t0})
	h.Models(testMachine, Models{Now: "m1", Next: "m2", Shadows: []string{"m3"}, Unsigned: true})
	h.Models(testLathe, Models{Now: "m1"})
	h.Status(Status{Phase: Monitoring, Text: "monitoring", Fraction: -1, WindowsPerSecond: 1})
}

// Every answer agrees with the contract, errors too, and says what its code says.
func TestAnswersOfContract(t *testing.T) {
	m, lathe := "/api/machines/"+url.PathEscape(testMachine), "/api/machines/"+url.PathEscape(testLathe)
	hubs := map[string]*Hub{"full": fullHub(), "empty": NewHub(Config{})}
	for _, tc := range []struct {
		hub, path string
		code      int
		schema    string
		says      string // in the answer
	}{
		{"full", "/api/machines", 200, "Fleet", `"rank":0`},
		{"empty", "/api/machines", 200, "Fleet", `"machines":[]`},
		{"full", m, 200, "Machine", `"wear_low_um":0`},
		{"full", lathe, 200, "Machine", `"results":[]`},
		{"full", m, 200, "Machine", `"ledger":{"at":"`},
		{"full", "/api/machines/none", 404, "Error", `machine \"none\" is not known`},
		{"full", m + "/history", 200, "History", `"step":60`},
		{"full", m + "/history?from=2026-01-01T00:00:00Z&to=2026-03-31T00:00:00%2B02:00", 200, "History", `"step":7200`},
		{"full", m + "/history?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z&step=minute", 200, "History", `"step":60`},
		{"full", m + "/history?from=2026-03-01T00:00:00Z&to=2026-03-03T00:00:00Z&step=300s", 200, "History", `"step":300`},
		{"full", lathe + "/history", 200, "History", `"machine":"acme/spore/bay3/line1/lathe2"`},
		{"full", "/api/machines/none/history", 404, "Error", "none"},
		{"empty", m + "/history", 404, "Error", "history is not kept by this program"},
		{"full", m + "/history?from=yesterday", 400, "Error", `from=\"yesterday\" is not a time`},
		{"full", m + "/history?to=2026-03-01+02:00", 400, "Error", "%2B"},
		{"full", m + "/history?from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", 400, "Error", "is not before to"},
		{"full", m + "/history?from=2020-03-02T00:00:00Z", 400, "Error", "400 days"},
		{"full", m + "/history?from=2026-01-01T00:00:00Z&to=2026-03-31T00:00:00Z&step=hole", 200, "History", `"step":0,"each":1,"holes":2`},
		{"full", lathe + "/history?step=hole", 200, "History", `"step":0,"each":1,"holes":0`},
		{"full", m + "/usual", 200, "Usual", `"tool":"T07","windows":10,"channels":[{"channel":"ch01","low":-1,"high":1}]`},
		{"full", m + "/usual?tool=T06", 200, "Usual", `"tool":"T06"`},
		{"full", lathe + "/usual", 200, "Usual", `"windows":0,"channels":[]`},
		{"full", "/api/machines/none/usual", 404, "Error", "none"},
		{"full", m + "/history?step=week", 400, "Error", "step is auto, minute, hour, hole, or a whole number"},
		{"full", m + "/history?step=90s", 400, "Error", "step is auto"},
		{"full", m + "/history?step=0s", 400, "Error", "step is auto"},
		{"full", m + "/history?from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z&step=minute", 400, "Error", "step=2580s or more"},
		{"full", m + "/tools?limit=3", 200, "Tools", `"windows":3`},
		{"full", m + "/tools?limit=0", 400, "Error", "limit is a number from 1 to 200"},
		{"full", "/api/machines/none/tools", 404, "Error", "none"},
		{"full", lathe + "/tools", 200, "Tools", `"tools":[]`},
		{"full", m + "/spectrum", 200, "Spectrum", `"usual_db":[`},
		{"full", lathe + "/spectrum", 404, "Error", "no window of"},
		{"full", "/api/machines/none/spectrum", 404, "Error", "none"},
		{"full", "/api/alarms?machine=x&from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z&limit=500", 200, "Alarms", testIncident},
		{"full", "/api/alarms?limit=501", 400, "Error", "limit"},
		{"full", "/api/alarms?machine=none", 404, "Error", "none"},
		{"full", "/api/alarms?machine=" + testLathe, 200, "Alarms", `"alarms":[]`},
		{"full", "/api/alarms?machine=broken", 500, "Error", "the disk is gone"},
		{"full", "/api/alarms?from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", 400, "Error", "from is not before to"},
		{"empty", "/api/alarms", 404, "Error", "not kept"},
		{"full", "/api/alarms/" + testIncident, 200, "AlarmPage", `"previous":"A-K3ZQ7M2A"`},
		{"full", "/api/alarms/A-22222222", 404, "Error", "A-22222222"},
		{"full", "/api/alarms/../x", 400, "Error", "names of alarms look like"},
		{"full", "/api/models", 200, "Models", `"champion":"m1"`},
		{"empty", "/api/models", 404, "Error", "not kept"},
		{"full", "/api/models/m1", 200, "Model", `"unknown_rate":{"t":[1772331221],"share":[0.25],"windows":[4]}`},
		{"full", "/api/models/m1", 200, "Model", `"machines":[{"machine":"acme/spore/bay2/line1/usk25","tools":["T07"]}],"more_tools":2,"from":"2026-`},
		{"full", "/api/models/m1", 200, "Model", `"offsets":[{"topic":"tcm.windows.v1","partition":3,"from":10,"to":19,"windows":9}]},{"name":"b.csv","windows":0,"machines":[],"more_tools":0,"offsets":[]}],`},
		{"full", "/api/models/m9", 404, "Error", "m9"},
		{"full", "/api/system", 200, "System", `"command":"ingest check"`},
		{"full", "/api/system", 200, "System", `"received":9,"in_windows":6,"unused":[{"reason":"gap","samples":3}]}]`},
		{"empty", "/api/system", 200, "System", `"ledgers":[],"problems":[]`},
		{"full", "/api/events", 400, "Error", "reload the page"},
		{"full", "/api/events?page=map", 400, "Error", "page=fleet, machine, alarm or system"},
		{"full", "/api/events?page=machine", 400, "Error", "machine is missing"},
		{"full", "/api/events?page=alarm&incident=1", 400, "Error", "incident"},
	} {
		path := strings.Replace(tc.path, "/../", "/%2e%2e%2f", 1)
		w := get(hubs[tc.hub], "GET", path)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%s: %d %s, want %d and %s", tc.path, w.Code, w.Body, tc.code, tc.says)
		}
		if w.Code >= 400 && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s", tc.path, w.Header().Get("Content-Type"))
		}
		if err := readContract().check(tc.schema, w.Body.Bytes()); err != nil {
			t.Errorf("%s: %s\n%v", tc.path, w.Body, err)
		}
	}
}

// Events of every page agree with the contract.
func TestEventsOfContract(t *testing.T) {
	for query, want := range map[string][]string{
		"page=fleet":                          {"Fleet", "FleetUpdate"},
		ofTestMachine:                         {"MachineSnapshot", "MachineUpdate"},
		"page=machine&machine=none":           {"MachineSnapshot"},
		"page=alarm&incident=" + testIncident: {"AlarmSnapshot", "MachineUpdate"},
		"page=alarm&incident=A-22222222":      {"AlarmSnapshot"},
		"page=system":                         {"SystemEvent", "SystemEvent"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := fullHub()
			h.now = time.Now
			b, stop := open(h, query, "")
			defer stop()
			synctest.Wait()
			time.Sleep(framePause)
			fillHub(h)
			for i := range uint64(3) {
				h.Result(fullResult(testMachine, 100+i))
			}
			a := testAlert(200)
			a.State, a.Alarm, a.Incident = event.Acknowledged, "acknowledged", testIncident
			h.Alert(a)
			time.Sleep(systemPause + framePause)
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			got := regexp.MustCompile(`(?m)^event: (.*)(?:\nid: .*)?\ndata: (.*)$`).FindAllStringSubmatch(b.text.String(), -1)
			if len(got) < len(want) {
				t.Fatalf("%s: %d events: %s", query, len(got), b.text.String())
			}
			for i, schema := range want {
				name := []string{"snapshot", "update"}[i]
				if err := readContract().check(schema, []byte(got[i][2])); err != nil || got[i][1] != name {
					t.Errorf("%s: event %s: %s\n%v", query, got[i][1], got[i][2], err)
				}
			}
		})
	}
}

// A client that can read gzip gets it where that saves something, with the same content.
func TestGzip(t *testing.T) {
	h := fullHub()
	for path, zips := range map[string]bool{"/": true, "/static/vendor/uPlot.min.css": true, "/api/machines": true, "/api/openapi.yaml": true, "/api/alarms/A-22222222": false, "/livez": false} {
		plain := get(h, "GET", path)
		if plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: compressed for a client that did not ask", path)
		}
		for accepts, want := range map[string]bool{"gzip, deflate, br": zips, "gzip;q=0.5": zips, "br, GZIP": zips, "gzip;q=0": false, "br": false, "*": false} {
			w := get(h, "GET", path, "Accept-Encoding", accepts)
			body := w.Body.Bytes()
			zipped := w.Header().Get("Content-Encoding") == "gzip"
			if zipped {
				body = unzipped(t, body)
			}
			if zipped != want || !bytes.Equal(body, plain.Body.Bytes()) || zips && w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s for %q: compressed: %v, want %v; %v", path, accepts, zipped, want, w.Header())
			}
			if tag := w.Header().Get("ETag"); tag != "" {
				if (tag == plain.Header().Get("ETag")) == zipped {
					t.Errorf("%s: tag %s for both forms", path, tag)
				}
				if again := get(h, "GET", path, "Accept-Encoding", accepts, "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
					t.Errorf("%s again: %d", path, again.Code)
				}
			}
		}
	}
}

// The schemas of the contract are all used, and each is one.
func TestSchemasOfContract(t *testing.T) {
	text := string(schemas.OpenAPI)
	parts := readContract().document["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if _, err := readContract().compiler.Compile(contractURL + "#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		streamed := slices.Contains([]string{"FleetUpdate", "MachineSnapshot", "MachineUpdate", "AlarmSnapshot", "SystemEvent"}, name)
		if !streamed && !strings.Contains(text, "#/components/schemas/"+name+`"`) {
			t.Errorf("%s is not used", name)
		}
	}
	var described struct{ Action struct{ Enum []string } }
	if err := json.Unmarshal(encode(parts["Order"].(map[string]any)["properties"]), &described); err != nil {
		t.Fatal(err)
	}
	for _, action := range event.Actions {
		if got := slices.Contains(described.Action.Enum, string(action)); got != offered(action) {
			t.Errorf("%s is in the contract: %v; pages may ask for it: %v", action, got, offered(action))
		}
	}
}

func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
