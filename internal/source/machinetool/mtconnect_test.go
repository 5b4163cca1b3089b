package machinetool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func parseFile(t *testing.T, name string) *document {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := parse(f)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Items are found by id, name, type and subtype; the last observation counts.
func TestFind(t *testing.T) {
	for _, c := range []struct{ file, name, want, problem string }{
		{"current-1.3.xml", "tid", "GD-12.7-0042", ""},
		{"current-1.3.xml", "program", "O1234 <bore>", ""},
		{"current-1.3.xml", "ToolNumber", "8", ""},
		{"current-1.3.xml", "TOOL_ASSET_ID", "GD-12.7-0042", ""},
		{"current-1.3.xml", "Srpm", "1649.5", ""},
		{"current-1.3.xml", "RotaryVelocity:ACTUAL", "1649.5", ""},
		{"current-1.3.xml", "RotaryVelocity", "", `2 data items fit: name one by its id: Sact (RotaryVelocity:ACTUAL), Scmd (RotaryVelocity:PROGRAMMED)`},
		{"current-1.3.xml", "Sload", "", ""},
		{"current-1.3.xml", "Tol", "", `"Tol": the MTConnect agent has no such data item: name one by id, name or type: avail (Availability), Sact (Rota`},
		{"sample-2.0.xml", "p1tool", "4", ""},
		{"sample-2.0.xml", "Program", "", ""},
		{"sample-2.0.xml", "HoleNumber", "17", ""},
		{"sample-2.0.xml", "ToolNumber", "", "2 data items fit"},
	} {
		got, err := parseFile(t, c.file).find(c.name)
		if got.Text != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s in %s: %q, %v; want %q, %q", c.name, c.file, got.Text, err, c.want, c.problem)
		}
	}
}

// An agent's refusal is an error that says what it refuses.
func TestParseError(t *testing.T) {
	f, err := os.Open("testdata/error-1.7.xml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = parse(f)
	if refused := (*refusal)(nil); !errors.As(err, &refused) && (err == nil || !strings.Contains(err.Error(), "NO_DEVICE: Could not find the device 'VMC9'")) {
		t.Errorf("%v", err)
	}
}

const head = `<MTConnectStreams xmlns="urn:mtconnect.org:MTConnectStreams:1.8"><Streams>`

// What is hostile or no MTConnect is refused with a reason.
func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"empty":       {"", "EOF"},
		"HTML":        {"<html><body>hello</body></html>", `begins with "html"`},
		"entity bomb": {`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>` + head + `<T dataItemId="a">&b;</T></Streams></MTConnectStreams>`, "document type declaration"},
		"entity":      {head + `<T dataItemId="a">&b;</T></Streams></MTConnectStreams>`, "invalid character entity"},
		"cut short":   {head + `<T dataItemId="a">8</T>`, "unexpected EOF"},
		"deep":        {head + strings.Repeat("<a>", 100), "nested more than 64 deep"},
		"many":        {head + strings.Repeat(`<T dataItemId="a">8</T>`, maxItems+1), "more than 20000 data items"},
		"charset":     {`<?xml version="1.0" encoding="UTF-7"?>` + head, "UTF-7"},
		"crossed":     {head + "<a><b></a></b>", "closed by"},
	} {
		if _, err := parse(strings.NewReader(c.doc)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "the answer is not from an MTConnect agent: line 1: ") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// agent serves what answer writes.
func agent(t *testing.T, answer http.HandlerFunc) *Agent {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	a := &Agent{URL: s.URL, Items: Items{Tool: "ToolAssetId", Hole: "Program", SpindleSpeed: "RotaryVelocity:ACTUAL"}}
	a.Items.FeedRate, a.Items.Programme, a.Items.Material = "PATH_FEEDRATE:ACTUAL", "Program", "MATERIAL"
	if err := a.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAgent(t *testing.T) {
	lathe := file(t, "current-1.3.xml")
	a := agent(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/LATHE 1/current" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(lathe)
	})
	a.Device = "LATHE 1"
	r, err := a.Read(t.Context())
	if want := (Reading{Tool: "GD-12.7-0042", Hole: "O1234 <bore>", SpindleSpeed: 1649.5, FeedRate: 75, Programme: "O1234 <bore>", Material: "42CrMo4"}); err != nil || r != want {
		t.Errorf("%v, %v; want %v", r, err, want)
	}
	a.Device = "LATHE 2"
	if _, err := a.Read(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "/LATHE%202/current: the answer is HTTP 404 Not Found: correct `url` and `device`") {
		t.Errorf("wrong device: %v", err)
	}
}

// A feed rate is taken from items that MTConnect gives in mm/s, and arrives in mm/min.
func TestFeedRate(t *testing.T) {
	doc := parseFile(t, "current-1.3.xml")
	for item, want := range map[string]struct {
		rate    float64
		problem string
	}{
		"Frt":                 {75, ""},
		"PathFeedrate:ACTUAL": {75, ""},
		"Fovr":                {0, `"Fovr" is a "PathFeedrate:OVERRIDE", which is not in mm/s: name a PathFeedrate or an AxisFeedrate`},
		"Frev":                {0, `"Frev" is a "PathFeedratePerRevolution:ACTUAL", which is not in mm/s`},
		"Srpm":                {0, "feed_rate: "},
		"PathFeedrate":        {0, "2 data items fit"},
	} {
		r := doc.reading(Items{FeedRate: item, Material: "mat"})
		if r.FeedRate != want.rate || r.Material != "42CrMo4" || (r.Problem == nil) != (want.problem == "") || r.Problem != nil && !strings.Contains(r.Problem.Error(), want.problem) {
			t.Errorf("%s: %+v, want %+v", item, r, want)
		}
	}
	for text, want := range map[string]float64{"0.333": 19.98, "-2": 120, "1e300": 0, "NaN": 0, "fast": 0, "UNAVAILABLE": 0} {
		doc, err := parse(strings.NewReader(head + `<AxisFeedrate dataItemId="f">` + text + `</AxisFeedrate></Streams></MTConnectStreams>`))
		if err != nil {
			t.Fatal(err)
		}
		if r := doc.reading(Items{FeedRate: "f"}); math.Abs(r.FeedRate-want) > 1e-9 || (r.Problem == nil) != (want != 0 || text == "UNAVAILABLE") {
			t.Errorf("%s: %+v, want %v", text, r, want)
		}
	}
}

// A part that cannot be used leaves the rest.
func TestAgentPart(t *testing.T) {
	a := agent(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, head+`<ToolAssetId dataItemId="t">T8</ToolAssetId><RotaryVelocity subType="ACTUAL" dataItemId="s">fast</RotaryVelocity></Streams></MTConnectStreams>`)
	})
	r, err := a.Read(t.Context())
	if err != nil || r.Tool != "T8" || r.SpindleSpeed != 0 || r.Problem == nil || !strings.Contains(r.Problem.Error(), `hole: "Program": the MTConnect agent has no such data item`) || !strings.Contains(r.Problem.Error(), `spindle_speed: "fast" is not a number`) {
		t.Errorf("%v, %v, %v", r, err, r.Problem)
	}
}

// Agents that never end, never answer, redirect or refuse are errors, and take neither
// time nor memory without bounds.
func TestAgentHostile(t *testing.T) {
	refusal := file(t, "error-1.7.xml")
	chunk := strings.Repeat(`<X y="z"/>`, 1000)
	endless := func(part string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, head)
			for range 1 << 30 / len(part) {
				if _, err := io.WriteString(w, part); err != nil {
					return
				}
			}
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a gigabyte of elements": {endless(chunk), "more than 100000 elements"},
		"a gigabyte of text":     {endless(strings.Repeat("x", 1<<16)), "the answer has more than 8 MiB"},
		"a gigabyte of name": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "<")
			endless(strings.Repeat("x", 1<<16))(w, r)
		}, "not from an MTConnect agent"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}, "HTTP 302 Found"},
		"a refusal": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write(refusal)
		}, "the MTConnect agent refuses: NO_DEVICE: Could not find the device 'VMC9'"},
		"silence": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no whole answer within the timeout: restart the MTConnect agent"},
		"a trickle": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, head)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the client has gone
		}, "no whole answer within the timeout: restart the MTConnect agent"},
	} {
		t.Run(name, func(t *testing.T) {
			a := agent(t, c.answer)
			patience := time.Minute
			if strings.Contains(c.want, "timeout") {
				patience = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := a.Read(ctx)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
				t.Errorf("took %d MiB", took>>20)
			}
		})
	}
}

// What cannot be an agent is refused before it is dialled.
func TestAgentOpen(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"agent:5000", "such as http://agent:5000"}, {"ftp://agent", "such as http"}, {"http://", "such as http"},
		{"http://me:pw@agent", "without user and query"}, {"http://agent/?path=x", "without user and query"},
	} {
		a := Agent{URL: c.url, Items: Items{Tool: "T"}}
		if err := a.Open(); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", c.url, err)
		}
	}
	a := Agent{URL: "http://agent:5000"}
	if err := a.Open(); err == nil {
		t.Error("nothing is asked for, and no error")
	}
}

// No document makes the parser fail in another way than by an error, and what it returns
// can be searched.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"current-1.3.xml", "sample-2.0.xml", "error-1.7.xml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(head + `<T dataItemId="a"><T dataItemId="b"/>x</T></Streams></MTConnectStreams>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := parse(strings.NewReader(string(text)))
		if (doc == nil) == (err == nil) {
			t.Fatal(doc, err)
		}
		if doc == nil {
			return
		}
		for _, item := range doc.Items {
			if item.ID == "" || len(item.Text) > maxText {
				t.Fatalf("%+v", item)
			}
			if _, err := doc.find(item.ID); err != nil {
				t.Fatal(err)
			}
		}
		r := doc.reading(Items{Tool: "ToolNumber", Hole: "Program", SpindleSpeed: "RotaryVelocity", FeedRate: "PathFeedrate", Material: "Material"})
		if !(r.SpindleSpeed >= 0) || !(r.FeedRate >= 0 && r.FeedRate <= 1e6) || len(r.Material) > 256 {
			t.Fatal(r)
		}
	})
}

// An agent whose creationTime stands still is not fresh, also if its clock is wrong.
func TestAgentStandsStill(t *testing.T) {
	begin := time.Date(2026, 11, 2, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		created []string // each second
		bad     int      // the first second that fails; -1: none
	}{
		"stands still":            {[]string{"2026-11-02T02:00:00Z", "", "", "", "", "", ""}, 3},
		"comes back":              {[]string{"a", "", "", "b", "", "", "c"}, -1},
		"a clock that goes back":  {[]string{"2026-11-02T02:00:00Z", "1970-01-01T00:00:00Z", "", "", "2000-01-01T00:00:00Z"}, -1},
		"an agent that is silent": {[]string{"-", "-", "-", "-", "-"}, -1},
	} {
		a := &Agent{URL: "http://agent:5000", Timeout: 3 * time.Second}
		last, bad := "", -1
		for i, created := range c.created {
			last = strings.Trim(cmp.Or(created, last), "-")
			if err := a.fresh(last, begin.Add(time.Duration(i)*time.Second)); err != nil && bad < 0 {
				bad = i
				if want := `http://agent:5000: the same document for 3s, creationTime "2026-11-02T02:00:00Z": restart`; !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if bad != c.bad {
			t.Errorf("%s: fails from second %d on, want %d", name, bad, c.bad)
		}
	}
	doc, err := parse(strings.NewReader(`<MTConnectStreams><Header creationTime="2026-11-02T02:00:00Z"/><Streams/></MTConnectStreams>`))
	if err != nil || doc.Created != "2026-11-02T02:00:00Z" {
		t.Errorf("creationTime %+v, %v", doc, err)
	}
}
