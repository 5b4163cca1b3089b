package web

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Dashboards are what Grafana's own library takes.
func TestDashboards(t *testing.T) {
	paths, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range append(paths, alarmDashboard) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard.Dashboard                                                //nolint:staticcheck // its second version is for Grafana 12 and later only
		if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" { // it is never nil
			t.Errorf("%s: %v", path, err)
		} else if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

const alarmDashboard = "../../examples/grafana/flank-alarms.json"

// The page answers the queries of the dashboard of alarms, with each of their columns. It says in the words of the page what people should do.
func TestAlarmDashboard(t *testing.T) {
	text, err := os.ReadFile(alarmDashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title       string
			FieldConfig struct {
				Overrides []struct {
					Properties []struct {
						ID    string
						Value json.RawMessage
					}
				}
			}
			Targets []struct {
				URL          string
				RootSelector string `json:"root_selector"`
				Columns      []struct{ Selector string }
			}
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	hub, columns := fullHub(), 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			url := strings.NewReplacer("${__from:date:iso}", "2026-03-01T00:00:00.000Z", "${__to:date:iso}", "2026-03-02T00:00:00.000Z").Replace(target.URL)
			w := get(hub, "GET", url)
			rows := into(decoded(t, w), target.RootSelector).([]any)
			for _, c := range target.Columns {
				columns++
				if !slices.ContainsFunc(rows, func(row any) bool { return into(row, c.Selector) != nil }) && c.Selector != "cleared" {
					t.Errorf("%s: no row of %s has %q: %s", p.Title, url, c.Selector, w.Body)
				}
			}
		}
		for _, o := range p.FieldConfig.Overrides {
			for _, property := range o.Properties {
				if property.ID == "mappings" {
					checkMappings(t, property.Value)
				}
			}
		}
	}
	if columns < 10 {
		t.Errorf("%d columns", columns)
	}
}

func decoded(t *testing.T, w *httptest.ResponseRecorder) (document any) {
	t.Helper()
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// into follows the names of a selector; nil where there is nothing.
func into(v any, selector string) any {
	for name := range strings.SplitSeq(selector, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// checkMappings compares the words for what people should do with the page's words.
func checkMappings(t *testing.T, value json.RawMessage) {
	t.Helper()
	var mappings []struct {
		Options map[string]struct{ Text string }
	}
	if err := json.Unmarshal(value, &mappings); err != nil {
		t.Fatal(err)
	}
	english, err := os.ReadFile("static/text/en.js")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`"say\.([a-z_]+)": "(.*)",`).FindAllStringSubmatch(string(english), -1)
	for _, s := range said {
		first, _, _ := strings.Cut(strings.TrimRight(mappings[0].Options[s[1]].Text, "."), ". ")
		if first == "" && s[1] != "read_advisory" || !strings.HasPrefix(strings.ReplaceAll(s[2], "[ since {since}]", ""), first) {
			t.Errorf("%s is %q, the page says %q", s[1], first, s[2])
		}
	}
	if len(said) != len(mappings[0].Options)+1 {
		t.Errorf("%d words of %d", len(mappings[0].Options), len(said)-1)
	}
}
