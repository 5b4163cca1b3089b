package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/signal/cycle"
	"pgregory.net/rapid"
)

var (
	texts    = rapid.StringMatching(`[A-Za-z0-9_ åß-]{1,12}`)
	optional = rapid.OneOf(rapid.Just(""), texts)
	shares   = rapid.Float64Range(0, 1)
	machines = rapid.StringMatching(`[a-z0-9_-]{1,8}(/[a-z0-9_-]{1,8}){0,4}`)
	epochs   = rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("%016x", rapid.Uint64().Draw(t, "epoch")) })
	// Up to the last year that RFC 3339 can say, in any zone.
	times = rapid.Custom(func(t *rapid.T) time.Time {
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "zone"))
		return time.Unix(rapid.Int64Range(-62135510400, 253402214400).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).In(zone)
	})
)

func drawResult(t *rapid.T) event.Result {
	r := event.Result{Group: "g",
		Machine: machines.Draw(t, "machine"), Epoch: epochs.Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq"),
		Tool: optional.Draw(t, "tool"), ToolLife: optional.Draw(t, "tool life"), Hole: optional.Draw(t, "hole"),
		FeedRate: rapid.SampledFrom([]float64{0, 0.5, 82.5, 1e6}).Draw(t, "feed rate"), Programme: optional.Draw(t, "programme"), Material: optional.Draw(t, "material"),
		Start: times.Draw(t, "start"), End: times.Draw(t, "end"),
		Verdict: rapid.SampledFrom(event.Verdicts).Draw(t, "verdict"), Model: texts.Draw(t, "model"),
		Alarm: rapid.SampledFrom([]string{"normal", "raised", "acknowledged", "out_of_service"}).Draw(t, "alarm"), Late: rapid.Bool().Draw(t, "late"),
	}
	if state := rapid.IntRange(int(cycle.Unknown), int(cycle.Retract)).Draw(t, "state"); state != int(cycle.Unknown) {
		r.CuttingState = cycle.State(state).String()
	}
	if r.Alarm != "normal" {
		r.Incident = rapid.StringMatching(`A-[A-Z2-7]{8}`).Draw(t, "incident")
	}
	r.ID = event.WindowID(r.Machine, r.Epoch, r.Seq)
	switch r.Verdict {
	case event.Healthy, event.Faulty:
		r.Posterior = rapid.SliceOfN(shares, 2, 5).Draw(t, "posterior")
		r.Score = shares.Draw(t, "score")
	case event.Learning:
		r.ReferenceLen = rapid.IntRange(0, 1000).Draw(t, "reference")
	}
	if r.WearUnknown = rapid.Bool().Draw(t, "wear unknown"); !r.WearUnknown && rapid.Bool().Draw(t, "wear") {
		um := rapid.Float64Range(0, 1000)
		r.Wear = &event.Wear{WearUM: um.Draw(t, "wear"), WearLowUM: um.Draw(t, "low"), WearHighUM: um.Draw(t, "high")}
		left, low, high := um.Draw(t, "left"), um.Draw(t, "left, low"), um.Draw(t, "left, high")
		switch rapid.IntRange(0, 2).Draw(t, "life") {
		case 1:
			r.HolesLeft, r.HolesLeftLow, r.HolesLeftHigh = &left, &low, &high
		case 2:
			r.WindowsLeft, r.WindowsLeftLow = &left, &low
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "sensors") {
		q := signal.Quality(rapid.IntRange(1, 63).Draw(t, "quality"))
		r.Sensors = append(r.Sensors, event.Sensor{Channel: texts.Draw(t, "channel"), Flags: q.Names()})
	}
	return r
}

func drawAlert(t *rapid.T) event.Alert {
	counts := rapid.IntRange(0, 64)
	a := event.Alert{Group: "g",
		Machine: machines.Draw(t, "machine"), Epoch: epochs.Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq"),
		Tool: optional.Draw(t, "tool"), Hole: optional.Draw(t, "hole"),
		State: event.Raised, Severity: "warning", Since: times.Draw(t, "since"), At: times.Draw(t, "at"),
		Faulty: counts.Draw(t, "faulty"), Of: counts.Draw(t, "of"), Unknown: counts.Draw(t, "unknown"), K: 1 + counts.Draw(t, "k")%64, N: 1 + counts.Draw(t, "n")%64,
		Score: shares.Draw(t, "score"), Model: texts.Draw(t, "model"), Text: texts.Draw(t, "text"),
	}
	switch rapid.SampledFrom([]string{"raised", "cleared", "by a command"}).Draw(t, "what") {
	case "cleared":
		a.State, a.Severity = event.Cleared, "info"
		a.Reason = rapid.SampledFrom([]string{"tool_change", "recovered", "acknowledged"}).Draw(t, "reason")
	case "by a command":
		a.State, a.Severity, a.Alarm = "shelved", "info", "shelved"
		a.Incident, a.By, a.Note, a.Until = "A-K3ZQ7M2P", texts.Draw(t, "by"), texts.Draw(t, "note"), times.Draw(t, "until")
		a.Command = rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`).Draw(t, "command")
		a.ID = a.Machine + "/command/" + a.Command + "/shelved"
		return a
	}
	a.ID = event.WindowID(a.Machine, a.Epoch, a.Seq) + "/" + string(a.State)
	a.CuttingState, a.CuttingSeconds = rapid.SampledFrom([]string{"", "drilling"}).Draw(t, "state"), shares.Draw(t, "cutting")
	if rapid.Bool().Draw(t, "wear") {
		a.Wear = &event.Wear{WearUM: 3, WearLowUM: 2, WearHighUM: 4}
	}
	if a.State == event.Raised && rapid.Bool().Draw(t, "reasons") {
		a.Reasons = drawReasons(t)
		for range rapid.IntRange(1, event.MaxTrace).Draw(t, "trace") {
			a.Trace = append(a.Trace, event.Point{Seq: rapid.Uint64().Draw(t, "seq"), End: a.At, Score: 0.5, Verdict: event.Faulty})
		}
		a.Evidence = &event.EvidenceLink{URL: "/evidence/A-K3ZQ7M2P-1.arrow", From: a.Since, To: a.At}
	}
	return a
}

func drawReasons(t *rapid.T) *event.Reasons {
	r := &event.Reasons{
		Method: "integrated_gradients", Of: "log_odds", Base: rapid.Float64Range(-9, 9).Draw(t, "base"), Total: 3,
		Channels: []event.ChannelReason{}, Features: []event.FeatureReason{}, // not null
	}
	for range rapid.IntRange(0, event.MaxChannels).Draw(t, "channels") {
		r.Channels = append(r.Channels, event.ChannelReason{Channel: texts.Draw(t, "channel"), Share: shares.Draw(t, "share")})
	}
	for range rapid.IntRange(0, event.MaxFeatures).Draw(t, "features") {
		f := event.FeatureReason{Feature: texts.Draw(t, "feature"), Channel: texts.Draw(t, "channel"), Words: optional.Draw(t, "words"), Share: shares.Draw(t, "share")}
		if v := rapid.Float64Range(-9, 9).Draw(t, "value"); v > 0 {
			f.Value, f.Usual, f.Unit = &v, &v, "N"
		}
		r.Features = append(r.Features, f)
	}
	return r
}

func TestEvidenceIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAlert(t)
		e := event.Evidence{Group: "g",
			ID: a.ID + "/evidence", Alert: a.ID, Machine: a.Machine, Incident: a.Incident, URL: "http://plant:9102/evidence/A-K3ZQ7M2P-1.arrow",
			From: a.Since, To: a.At, Text: texts.Draw(t, "text"),
		}
		if e.Complete = rapid.Bool().Draw(t, "complete"); e.Complete {
			e.Windows, e.Bytes, e.SHA256 = 10, 1<<40, strings.Repeat("0f", 32)
		}
		if err := Validate(Evidence, event.JSON(e)); err != nil {
			t.Fatal(err)
		}
	})
}

func drawAdvisory(t *rapid.T) event.Advisory {
	a := event.Advisory{Group: "g",
		Machine: machines.Draw(t, "machine"), Epoch: epochs.Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq"), Tool: optional.Draw(t, "tool"),
		Kind:  rapid.SampledFrom([]event.AdvisoryKind{event.SensorAdvisory, event.SilenceAdvisory, event.UnknownAdvisory, event.DriftAdvisory}).Draw(t, "kind"),
		State: event.Raised, Severity: "warning", Since: times.Draw(t, "since"), At: times.Draw(t, "at"), Model: texts.Draw(t, "model"), Text: texts.Draw(t, "text"),
	}
	if a.Kind == event.SensorAdvisory {
		if a.Subject = optional.Draw(t, "channel"); rapid.Bool().Draw(t, "rate") {
			a.Channels = []string{"thrust", "torque"}
		}
	}
	switch {
	case rapid.Bool().Draw(t, "cleared"):
		a.State, a.Severity = event.Cleared, "info"
	case a.Kind == event.SensorAdvisory:
		a.Severity = rapid.SampledFrom([]string{"warning", "info"}).Draw(t, "severity")
		a.Status = rapid.SampledFrom([]string{signal.Failure, "function_check", signal.OutOfSpecification, signal.MaintenanceRequired}).Draw(t, "status")
		a.Flags = signal.Quality(rapid.IntRange(1, 63).Draw(t, "flags")).Names()
	}
	a.ID = event.WindowID(a.Machine, a.Epoch, a.Seq) + "/" + string(a.Kind) + "/" + string(a.State)
	return a
}

func TestAdvisoriesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := event.JSON(drawAdvisory(t))
		if err := Validate(Advisory, doc); err != nil {
			t.Fatalf("%s\n%v", doc, err)
		}
	})
}

func TestResultsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := event.JSON(drawResult(t))
		if err := Validate(Result, doc); err != nil {
			t.Fatalf("%s\n%v", doc, err)
		}
	})
}

func TestAlertsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := event.JSON(drawAlert(t))
		if err := Validate(Alert, doc); err != nil {
			t.Fatalf("%s\n%v", doc, err)
		}
	})
}

var (
	at = time.Date(2026, 3, 1, 2, 13, 41, 0, time.UTC)

	goodResult = event.Result{Group: "g",
		ID: "acme/usk25/00000000000000a1/7", Machine: "acme/usk25", Epoch: "00000000000000a1", Seq: 7, Tool: "T07", Start: at, End: at.Add(time.Second),
		Verdict: event.Faulty, Posterior: []float64{0.1, 0.9}, Score: 0.93, Model: "ecs-dbn-3fb19c04a7d2", Alarm: "raised",
		Sensors: []event.Sensor{{Channel: "ch07", Flags: []string{"flatline"}}},
	}
	goodAdvisory = event.Advisory{Group: "g",
		ID: "acme/usk25/00000000000000a1/7/sensor/ch07/raised", Machine: "acme/usk25", Kind: event.SensorAdvisory, Subject: "ch07", State: event.Raised,
		Status: signal.Failure, Flags: []string{"flatline"}, Severity: "warning", Since: at, At: at.Add(time.Second), Epoch: "00000000000000a1", Seq: 7,
		Model: "ecs-dbn-3fb19c04a7d2", Text: "usk25: SENSOR ch07 Failure: flatline; tool verdict on 13 channels",
	}
	goodAlert = event.Alert{Group: "g",
		ID: "acme/usk25/00000000000000a1/7/raised", Machine: "acme/usk25", State: event.Raised, Severity: "warning", Since: at, At: at.Add(time.Minute),
		Epoch: "00000000000000a1", Seq: 7, Faulty: 5, Of: 8, K: 5, N: 8, Score: 0.93, Model: "ecs-dbn-3fb19c04a7d2", Text: "usk25: faulty",
	}
)

func TestWrongDocumentsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		spoil  func(d map[string]any)
		names  string // what the error must name
	}{
		"advisory of no kind":           {Advisory, func(d map[string]any) { delete(d, "kind") }, "kind"},
		"advisory that is acknowledged": {Advisory, func(d map[string]any) { d["state"] = "acknowledged" }, "/state"},
		"sensor that is just not good":  {Advisory, func(d map[string]any) { delete(d, "status") }, "status"},
		"a card of one channel":         {Advisory, func(d map[string]any) { d["channels"] = []any{"ch07"} }, "/channels"},
		"cleared, and still flat":       {Advisory, func(d map[string]any) { d["state"], d["severity"] = "cleared", "info" }, "not"},
		"no such verdict":               {Result, func(d map[string]any) { d["verdict"] = "broken" }, "/verdict"},
		"no verdict":                    {Result, func(d map[string]any) { delete(d, "verdict") }, "verdict"},
		"judged without probabilities":  {Result, func(d map[string]any) { delete(d, "posterior") }, "posterior"},
		"a single class":                {Result, func(d map[string]any) { d["posterior"] = []any{1} }, "/posterior"},
		"probability above one":         {Result, func(d map[string]any) { d["posterior"] = []any{0.5, 1.5} }, "/posterior/1"},
		"score above one":               {Result, func(d map[string]any) { d["score"] = 1.01 }, "/score"},
		"negative seq":                  {Result, func(d map[string]any) { d["seq"] = -1 }, "/seq"},
		"seq beyond 64 bits":            {Result, func(d map[string]any) { d["seq"] = json.Number("18446744073709551616") }, "/seq"},
		"seq as text":                   {Result, func(d map[string]any) { d["seq"] = "7" }, "/seq"},
		"short epoch":                   {Result, func(d map[string]any) { d["epoch"] = "a1" }, "/epoch"},
		"id without epoch":              {Result, func(d map[string]any) { d["id"] = "acme/usk25/7" }, "/id"},
		"time that is none":             {Result, func(d map[string]any) { d["start"] = "yesterday" }, "/start"},
		"empty tool":                    {Result, func(d map[string]any) { d["tool"] = "" }, "/tool"},
		"sensor without flags":          {Result, func(d map[string]any) { d["sensors"] = []any{map[string]any{"channel": "c"}} }, "/sensors/0"},
		"undescribed property":          {Result, func(d map[string]any) { d["colour"] = "red" }, "colour"},
		"undescribed property inside":   {Result, func(d map[string]any) { d["sensors"].([]any)[0].(map[string]any)["volts"] = 3 }, "volts"},
		"no such state":                 {Alert, func(d map[string]any) { d["state"] = "maybe" }, "/state"},
		"raised as information":         {Alert, func(d map[string]any) { d["severity"] = "info" }, "/severity"},
		"raised with a reason to clear": {Alert, func(d map[string]any) { d["reason"] = "recovered" }, ""},
		"cleared without a reason": {Alert, func(d map[string]any) {
			d["id"], d["state"], d["severity"] = "acme/usk25/00000000000000a1/7/cleared", "cleared", "info"
		}, "reason"},
		"raised again as information": {Alert, func(d map[string]any) { d["state"], d["severity"] = "reactivated", "info" }, "/severity"},
		"an incident without a name":  {Alert, func(d map[string]any) { d["incident"] = "A-1" }, "/incident"},
		"nothing to say":              {Alert, func(d map[string]any) { d["text"] = "" }, "/text"},
		"k of none":                   {Alert, func(d map[string]any) { d["k"] = 0 }, "/k"},
		"half a window":               {Alert, func(d map[string]any) { d["faulty"] = 2.5 }, "/faulty"},
		"id without state":            {Alert, func(d map[string]any) { d["id"] = "acme/usk25/00000000000000a1/7" }, "/id"},
		"shares above one": {Alert, func(d map[string]any) {
			d["reasons"] = map[string]any{"method": "m", "of": "o", "base": 0, "total": 1, "features": []any{}, "channels": []any{map[string]any{"channel": "c", "share": 1.5}}}
		}, "/reasons/channels/0/share"},
		"a trace of nothing": {Alert, func(d map[string]any) { d["trace"] = []any{} }, "/trace"},
		"undescribed wear": {Alert, func(d map[string]any) {
			d["wear"] = map[string]any{"wear_um": 1, "wear_low_um": 1, "wear_high_um": 1, "mm": 1}
		}, "mm"},
		"evidence nowhere":       {Alert, func(d map[string]any) { d["evidence"] = map[string]any{"from": d["at"], "to": d["at"]} }, "url"},
		"what a result would be": {Alert, func(d map[string]any) { d["verdict"] = "faulty" }, "verdict"},
	} {
		var good any = goodResult
		if tc.schema == Alert {
			good = goodAlert
		}
		if tc.schema == Advisory {
			good = goodAdvisory
		}
		if err := Validate(tc.schema, event.JSON(good)); err != nil {
			t.Fatalf("%s before it is spoilt: %v", tc.schema, err)
		}
		var d map[string]any
		if err := json.Unmarshal(event.JSON(good), &d); err != nil {
			t.Fatal(err)
		}
		tc.spoil(d)
		switch err := Validate(tc.schema, event.JSON(d)); {
		case err == nil:
			t.Errorf("%s: accepted", name)
		case !strings.Contains(err.Error(), tc.names):
			t.Errorf("%s: error does not name %q: %v", name, tc.names, err)
		}
	}
	if err := Validate(Result, []byte(`{"id": `)); err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("half a document: %v", err)
	}
	if err := Validate(Result, []byte(`[]`)); err == nil {
		t.Error("a list: accepted")
	}
}

// Command.Check and the schema accept the same commands.
func TestCommands(t *testing.T) {
	good := event.Command{
		ID: event.NewCommandID(), Machine: "acme/usk25", Action: event.Shelve, Incident: "A-K3ZQ7M2P", By: "kim", Note: "test piece", Issued: at, Until: at.Add(time.Hour),
	}
	for name, tc := range map[string]struct {
		change func(c *event.Command)
		ok     bool
	}{
		"shelve":                  {func(c *event.Command) {}, true},
		"shelve for ever":         {func(c *event.Command) { c.Until = time.Time{} }, false},
		"shelve without a reason": {func(c *event.Command) { c.Note = "" }, false},
		"acknowledge":             {func(c *event.Command) { c.Action, c.Note = event.Acknowledge, "" }, true},
		"acknowledge anything":    {func(c *event.Command) { c.Action, c.Incident = event.Acknowledge, "" }, false},
		"acknowledge a machine":   {func(c *event.Command) { c.Action, c.Incident = event.Acknowledge, "usk25" }, false},
		"a false alarm": {func(c *event.Command) {
			*c = event.Command{ID: "1", Machine: "m", Action: event.MarkFalse, Incident: "A-K3ZQ7M2P", By: "kim", Issued: at}
		}, true},
		"no false alarm": {func(c *event.Command) {
			*c = event.Command{ID: "1", Machine: "m", Action: event.UnmarkFalse, Incident: "A-K3ZQ7M2P", By: "kim", Issued: at}
		}, true},
		"false, of any alarm": {func(c *event.Command) { c.Action, c.Incident = event.MarkFalse, "" }, false},
		"unshelve": {func(c *event.Command) {
			*c = event.Command{ID: "1", Machine: "m", Action: event.Unshelve, By: "kim", Issued: at}
		}, true},
		"shelve the machine": {func(c *event.Command) { c.Incident = "" }, true},
		"shelve a tool":      {func(c *event.Command) { c.Tool = "T7" }, false},
		"unshelve an alarm":  {func(c *event.Command) { c.Action, c.Note, c.Until = event.Unshelve, "", time.Time{} }, true},
		"suppress a tool":    {func(c *event.Command) { c.Action, c.Tool, c.Until = event.Suppress, "T7", time.Time{} }, true},
		"unsuppress a tool": {func(c *event.Command) {
			*c = event.Command{ID: "1", Machine: "m", Action: event.Unsuppress, Tool: "T7", By: "kim", Issued: at}
		}, true},
		"a tool out of service": {func(c *event.Command) { c.Action, c.Tool, c.Until = event.OutOfService, "T7", time.Time{} }, true},
		"a tool in service": {func(c *event.Command) {
			*c = event.Command{ID: "1", Machine: "m", Action: event.InService, Tool: "T7", By: "kim", Issued: at}
		}, true},
		"a tool of a long name": {func(c *event.Command) { c.Action, c.Tool = event.Suppress, strings.Repeat("x", 201) }, false},
		"a new tool": {func(c *event.Command) {
			*c = event.Command{ID: "1", Machine: "m", Action: event.NewTool, Tool: "T7", By: "kim", Issued: at}
		}, true},
		"acknowledge a tool": {func(c *event.Command) { c.Action, c.Tool = event.Acknowledge, "T7" }, false},
		"retire a tool": {func(c *event.Command) {
			*c = event.Command{ID: "1", Machine: "m", Action: event.Retire, Tool: "T7", By: "kim", Issued: at}
		}, false},
		"suppress without a reason": {func(c *event.Command) { c.Action, c.Note = event.Suppress, "" }, false},
		"out of service":            {func(c *event.Command) { c.Action, c.Until = event.OutOfService, time.Time{} }, true},
		"fetch": {func(c *event.Command) {
			c.Action, c.Incident, c.Wanted = event.Fetch, "", &event.Wanted{From: at, To: at.Add(time.Minute), Windows: 60}
		}, true},
		"fetch seqs": {func(c *event.Command) {
			c.Action, c.Incident, c.Wanted = event.Fetch, "", &event.Wanted{Epoch: "00000000cafe0001", Last: 9, Windows: 10}
		}, true},
		"fetch for ever": {func(c *event.Command) {
			c.Action, c.Until, c.Wanted = event.Fetch, time.Time{}, &event.Wanted{Epoch: "00000000cafe0001", Windows: 10}
		}, false},
		"fetch everything": {func(c *event.Command) { c.Action, c.Wanted = event.Fetch, &event.Wanted{Windows: 10} }, false},
		"fetch too much": {func(c *event.Command) {
			c.Action, c.Wanted = event.Fetch, &event.Wanted{Epoch: "00000000cafe0001", Windows: 100_001}
		}, false},
		"fetch no windows": {func(c *event.Command) {
			c.Action, c.Wanted = event.Fetch, &event.Wanted{Epoch: "00000000cafe0001"}
		}, false},
		"fetch from somewhere on": {func(c *event.Command) { c.Action, c.Wanted = event.Fetch, &event.Wanted{From: at, Windows: 10} }, false},
		"fetch nothing":           {func(c *event.Command) { c.Action = event.Fetch }, false},
		"shelve windows": {func(c *event.Command) {
			c.Wanted = &event.Wanted{Epoch: "00000000cafe0001", Windows: 10}
		}, false},
		"unknown action":             {func(c *event.Command) { c.Action = "stop" }, false},
		"without by":                 {func(c *event.Command) { c.By = "" }, false},
		"no id":                      {func(c *event.Command) { c.ID = "" }, false},
		"an id with a slash":         {func(c *event.Command) { c.ID = "a/b" }, false},
		"no machine":                 {func(c *event.Command) { c.Machine = "" }, false},
		"a novel":                    {func(c *event.Command) { c.Note = strings.Repeat("x", 1001) }, false},
		"a name as long as a letter": {func(c *event.Command) { c.By = strings.Repeat("x", 101) }, false},
	} {
		c := good
		tc.change(&c)
		if err := c.Check(); (err == nil) != tc.ok {
			t.Errorf("%s: checked: %v", name, err)
		}
		if err := Validate(Command, event.JSON(c)); (err == nil) != tc.ok {
			t.Errorf("%s: validated: %v", name, err)
		}
	}
	for _, a := range event.Actions {
		if !strings.Contains(string(commandJSON), fmt.Sprintf("%q", a)) {
			t.Errorf("command.schema.json does not know %s", a)
		}
	}
}

// What a gateway answers agrees with the schema.
// Any record of the audit agrees with its schema once it is clean, and cleaning it again changes nothing.
func TestAuditIsValid(t *testing.T) {
	anything := rapid.OneOf(rapid.String(), texts, rapid.SampledFrom([]string{"", "A-K3ZQ7M2P", "login", "terminal", "refused", strings.Repeat("x", 3000)}))
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return anything.Draw(t, name) }
		a := event.Audit{
			ID: text("id"), At: times.Draw(t, "at"), Program: text("program"), Host: text("host"),
			Actor:  event.Actor{Name: text("name"), Role: text("role"), Identified: event.Identified(text("identified")), From: text("from")},
			Action: event.Action(text("action")), Machine: text("machine"), Alarm: text("alarm"), Model: text("model"), Object: text("object"), Command: text("command"),
			Group: text("group"), Outcome: event.Outcome(text("outcome")), Reason: text("reason"), More: rapid.Uint64().Draw(t, "more"),
		}.Clean()
		if err := Validate(Audit, event.JSON(a)); err != nil {
			t.Fatal(err)
		}
		if again := a.Clean(); again != a {
			t.Errorf("a clean record changes:\n%+v\n%+v", a, again)
		}
	})
}

// A label agrees with its schema exactly if its own check finds nothing wrong with what a schema can say.
func TestLabelIsValid(t *testing.T) {
	um, more := 340.0, -1.0
	some := event.Label{Machine: "acme/usk25", Tool: "T8", At: at, WearUM: &um, By: "kim", Given: at}
	for name, change := range map[string]func(*event.Label){
		"":                         func(*event.Label) {},
		"state":                    func(l *event.Label) { l.State, l.WearUM, l.Incident, l.Method = "worn", nil, "A-K3ZQ7M2P", "eye" },
		"revoked":                  func(l *event.Label) { l.Revoked = &event.Revoked{By: "kim", Reason: "another tool", At: at} },
		"not: nothing known":       func(l *event.Label) { l.WearUM = nil },
		"not: negative":            func(l *event.Label) { l.WearUM = &more },
		"not: no tool":             func(l *event.Label) { l.Tool = "" },
		"not: no machine":          func(l *event.Label) { l.Machine = "" },
		"not: by no one":           func(l *event.Label) { l.By = "" },
		"not: an alarm":            func(l *event.Label) { l.Incident = "A-1" },
		"not: revoked for nothing": func(l *event.Label) { l.Revoked = &event.Revoked{By: "kim", At: at} },
	} {
		l := some
		change(&l)
		l.ID = l.NewLabelID()
		valid, good := Validate(Label, event.JSON(l)), l.Check()
		if bad := strings.HasPrefix(name, "not"); bad != (valid != nil) || bad != (good != nil) {
			t.Errorf("%s: by the schema %v, by the code %v", name, valid, good)
		}
	}
}

func TestFetchedIsValid(t *testing.T) {
	none := event.Fetched{ID: "c/fetched", Command: "c", Machine: "acme/usk25", At: at, Gone: true, Text: "sent no window; the spool is empty"}
	some := none
	some.Windows, some.From, some.To, some.Oldest, some.More, some.Lost = 3, at, at.Add(3*time.Second), at, true, 1
	for _, f := range []event.Fetched{none, some} {
		if err := Validate(Fetched, event.JSON(f)); err != nil {
			t.Error(err)
		}
	}
	none.Windows = -1
	if Validate(Fetched, event.JSON(none)) == nil {
		t.Error("fewer windows than none: accepted")
	}
}

// Additions of a later version of v1 must not stop today's readers.
func TestPublishedSchemasAreOpen(t *testing.T) {
	for _, text := range [][]byte{resultJSON, alertJSON, evidenceJSON, advisoryJSON, commandJSON, fetchedJSON, ledgerJSON, auditJSON, labelJSON, MachineStateJSON, MonitorStatusJSON, manifestJSON, deploymentJSON} {
		if s := string(text); strings.Contains(s, "additionalProperties") || strings.Contains(s, "unevaluatedProperties") {
			t.Errorf("a reader of %.80s… would refuse additions", s)
		}
	}
}

// The schemas describe exactly the fields of the structs. Fields that are never left out are
// required.
func TestSchemasMatchStructs(t *testing.T) {
	type object struct {
		Properties map[string]struct {
			Description string
			Type        string
			Enum        []any
			Ref         string `json:"$ref"`
		}
		Required []string
		Defs     map[string]object `json:"$defs"`
	}
	read := func(text []byte) (o object) {
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	for typ, o := range map[reflect.Type]object{
		reflect.TypeFor[event.Result](): read(resultJSON),
		reflect.TypeFor[event.Sensor](): read(resultJSON).Defs["sensor"],
		reflect.TypeFor[event.Alert]():  read(alertJSON),

		reflect.TypeFor[event.Wear]():          read(alertJSON).Defs["wear"],
		reflect.TypeFor[event.Reasons]():       read(alertJSON).Defs["reasons"],
		reflect.TypeFor[event.ChannelReason](): read(alertJSON).Defs["channel"],
		reflect.TypeFor[event.FeatureReason](): read(alertJSON).Defs["feature"],
		reflect.TypeFor[event.Point]():         read(alertJSON).Defs["point"],
		reflect.TypeFor[event.EvidenceLink]():  read(alertJSON).Defs["evidence"],
		reflect.TypeFor[event.Evidence]():      read(evidenceJSON),
		reflect.TypeFor[event.Fetched]():       read(fetchedJSON),
		reflect.TypeFor[event.Advisory]():      read(advisoryJSON),
		reflect.TypeFor[event.SourceLedger]():  read(ledgerJSON),
		reflect.TypeFor[event.LostSamples]():   read(ledgerJSON).Defs["lost"],
		reflect.TypeFor[event.Ledger]():        read(resultJSON).Defs["ledger"],
		reflect.TypeFor[event.UnusedSamples](): read(resultJSON).Defs["unused"],

		reflect.TypeFor[event.Command](): read(commandJSON),
		reflect.TypeFor[event.Audit]():   read(auditJSON),
		reflect.TypeFor[event.Actor]():   read(auditJSON).Defs["actor"],
		reflect.TypeFor[event.Label]():   read(labelJSON),
		reflect.TypeFor[event.Revoked](): read(labelJSON).Defs["revoked"],

		reflect.TypeFor[deploy.Manifest]():       read(manifestJSON),
		reflect.TypeFor[deploy.ManifestLayout](): read(manifestJSON).Defs["layout"],
		reflect.TypeFor[deploy.Change]():         read(deploymentJSON),
		reflect.TypeFor[deploy.Trial]():          read(deploymentJSON).Defs["shadow"],
		reflect.TypeFor[deploy.PastVersion]():    read(deploymentJSON).Defs["previous"],
		reflect.TypeFor[deploy.AlarmRecord]():    read(deploymentJSON).Defs["alarm"],
	} {
		var all, always []string
		for _, f := range reflect.VisibleFields(typ) {
			if f.Anonymous { // its fields are visible by themselves
				continue
			}
			// A struct that is embedded by its address may be missing.
			there := len(f.Index) == 1 || typ.Field(f.Index[0]).Type.Kind() == reflect.Struct
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			all = append(all, name)
			if options == "" && there {
				always = append(always, name)
			}
		}
		slices.Sort(all)
		slices.Sort(always)
		if got := slices.Sorted(maps.Keys(o.Properties)); !slices.Equal(got, all) {
			t.Errorf("%v: schema describes %v, the struct has %v", typ, got, all)
		}
		if got := slices.Sorted(slices.Values(o.Required)); !slices.Equal(got, always) {
			t.Errorf("%v: schema requires %v, the struct always has %v", typ, got, always)
		}
		for name, p := range o.Properties {
			if p.Description == "" || p.Type == "" && p.Enum == nil && p.Ref == "" {
				t.Errorf("%v: %s has no description or no type", typ, name)
			}
		}
	}
	var verdicts []any
	for _, v := range event.Verdicts {
		verdicts = append(verdicts, string(v))
	}
	if got := read(resultJSON).Properties["verdict"].Enum; !slices.Equal(got, verdicts) {
		t.Errorf("schema has the verdicts %v, the code %v", got, verdicts)
	}
	flags := fmt.Sprintf("%q", signal.Quality(math.MaxUint8).Names())
	if want := strings.ReplaceAll(strings.Trim(flags, "[]"), " ", ", "); !strings.Contains(string(resultJSON), want) {
		t.Errorf("result.schema.json does not list the flags %s", want)
	}
}

func TestUnknownSchema(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Validate("windows", []byte("{}"))
}
