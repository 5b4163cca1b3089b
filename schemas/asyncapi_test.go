package schemas

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/window"
)

type header struct {
	Ref   string `yaml:"$ref"`
	Const string
}

// headers is the schema of a message's headers; parts are joined by allOf.
type headers struct {
	Ref        string `yaml:"$ref"`
	Required   []string
	Properties map[string]header
	AllOf      []headers `yaml:"allOf"`
}

type asyncAPI struct {
	AsyncAPI string `yaml:"asyncapi"`
	Channels map[string]struct {
		Address  string
		Block    []string `yaml:"x-iso-13374"`
		Messages map[string]struct {
			Ref string `yaml:"$ref"`
		}
		Bindings struct {
			Kafka struct {
				TopicConfiguration struct {
					Cleanup []string `yaml:"cleanup.policy"`
				} `yaml:"topicConfiguration"`
			}
		}
	}
	Operations map[string]struct {
		Action  string
		Channel struct {
			Ref string `yaml:"$ref"`
		}
	}
	Components struct {
		Messages map[string]struct {
			ContentType string `yaml:"contentType"`
			Headers     headers
		}
		Schemas map[string]headers
	}
}

func readAsyncAPI(t *testing.T) asyncAPI {
	t.Helper()
	var a asyncAPI
	if err := yaml.Unmarshal(AsyncAPI, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// The topics, in alphabetical order. A new name is a new contract.
func TestTopics(t *testing.T) {
	want := []struct {
		name    string
		cleanup string
	}{
		{bus.TopicAlerts, "delete"},
		{bus.TopicAudit, "delete"},
		{bus.TopicCommands, "delete"},
		{bus.TopicDead, "delete"},
		{bus.TopicFeatures, "delete"},
		{bus.TopicLabels, "compact,delete"},
		{bus.TopicModels, "compact"},
		{bus.TopicResults, "delete"},
		{bus.TopicState, "compact"},
		{bus.TopicWindows, "delete"},
	}
	a := readAsyncAPI(t)
	if !strings.HasPrefix(a.AsyncAPI, "3.") {
		t.Errorf("AsyncAPI %s", a.AsyncAPI)
	}
	var got []string
	for name, c := range a.Channels {
		got = append(got, c.Address+" "+strings.Join(c.Bindings.Kafka.TopicConfiguration.Cleanup, ","))
		for _, block := range c.Block {
			if !slices.Contains(blocks, block) {
				t.Errorf("%s: %q is not a block of ISO 13374", name, block)
			}
		}
		if len(c.Block) == 0 {
			t.Errorf("%s belongs to no block of ISO 13374", name)
		}
		var used bool
		for _, o := range a.Operations {
			used = used || o.Channel.Ref == "#/channels/"+name && o.Action == "send"
		}
		if used != (len(c.Messages) > 0) {
			t.Errorf("%s: has messages: %v, is sent to: %v", name, len(c.Messages) > 0, used)
		}
	}
	slices.Sort(got)
	for i, w := range want {
		if i >= len(got) || got[i] != w.name+" "+w.cleanup {
			t.Fatalf("topics are %q, want %v", got, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d topics, want %d", len(got), len(want))
	}
}

// blocks are the blocks of ISO 13374-1, §5.
var blocks = []string{
	"data acquisition", "data manipulation", "state detection",
	"health assessment", "prognostic assessment", "advisory generation",
}

// Every reference leads somewhere: inside the file, or to a file next to it.
func TestReferencesResolve(t *testing.T) {
	var root any
	if err := yaml.Unmarshal(AsyncAPI, &root); err != nil {
		t.Fatal(err)
	}
	var count int
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, sub := range v {
				if ref, ok := sub.(string); ok && k == "$ref" {
					count++
					if err := resolve(root, ref); err != nil {
						t.Errorf("%s: %v", at, err)
					}
				}
				walk(at+"/"+k, sub)
			}
		case []any:
			for i, sub := range v {
				walk(fmt.Sprintf("%s/%d", at, i), sub)
			}
		}
	}
	walk("#", root)
	if count == 0 {
		t.Error("no references found: the test looks in the wrong place")
	}
	if err := resolve(root, "#/channels/nowhere"); err == nil {
		t.Error("a reference to nowhere resolves")
	}
}

func resolve(root any, ref string) error {
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local {
		_, err := os.Stat(ref)
		return err
	}
	for _, key := range strings.Split(pointer, "/") {
		m, ok := root.(map[string]any)
		if !ok || m[key] == nil {
			return fmt.Errorf("%s: no %q", ref, key)
		}
		root = m[key]
	}
	return nil
}

// The contract names exactly the headers that the code sends.
func TestHeaders(t *testing.T) {
	a := readAsyncAPI(t)
	for name, want := range map[string]struct {
		typ, contentType string
		more             []string
	}{
		"window":   {event.WindowType, window.ContentType, []string{"layout", "epoch", "seq", "crc32c"}},
		"features": {event.FeaturesType, window.ContentType, []string{"layout", "epoch", "seq", "crc32c", "features", "extracted"}},
		"result":   {event.ResultType, "application/json", nil},
		"alert":    {event.AlertType, "application/json", nil},
		"state":    {event.StateType, "application/json", nil},

		"evidence": {event.EvidenceType, "application/json", nil},
		"advisory": {event.AdvisoryType, "application/json", nil},

		"command": {event.CommandType, "application/json", nil},
		"ledger":  {event.LedgerType, "application/json", nil},
		"fetched": {event.FetchedType, "application/json", nil},
		"audit":   {event.AuditType, "application/json", nil},
		"label":   {event.LabelType, "application/json", nil},
	} {
		m, ok := a.Components.Messages[name]
		if !ok {
			t.Errorf("no message %s", name)
			continue
		}
		if m.ContentType != want.contentType {
			t.Errorf("%s: content type %q, want %q", name, m.ContentType, want.contentType)
		}
		got := make(map[string]string) // name → const
		var required []string
		var collect func(h headers)
		collect = func(h headers) {
			if ref, ok := strings.CutPrefix(h.Ref, "#/components/schemas/"); ok {
				h = a.Components.Schemas[ref]
			}
			required = append(required, h.Required...)
			for k, p := range h.Properties {
				got[k] = p.Const
			}
			for _, part := range h.AllOf {
				collect(part)
			}
		}
		collect(m.Headers)
		sent := event.Attributes("id", "m", want.typ, time.Unix(0, 0), want.contentType)
		var names []string
		for _, h := range sent {
			names = append(names, h[0])
			if c := got[h[0]]; c != "" && c != h[1] {
				t.Errorf("%s: header %s is always %q, the code sends %q", name, h[0], c, h[1])
			}
		}
		names = append(names, want.more...)
		slices.Sort(names)
		slices.Sort(required)
		if !slices.Equal(required, names) {
			t.Errorf("%s: contract requires %v, the code sends %v", name, required, names)
		}
		if got["ce_type"] != want.typ {
			t.Errorf("%s: ce_type %q, want %q", name, got["ce_type"], want.typ)
		}
		switch name { // what not every message has
		case "window":
			names = append(names, envelope.ToolLife, envelope.Copied, envelope.Acquired, event.TraceHeader)
		case "features":
			names = append(names, envelope.ToolLife, "window_offset", envelope.Acquired, event.TraceHeader)
		case "ledger":
			names = append(names, envelope.Copied)
		case "result", "alert", "advisory", "evidence":
			names = append(names, event.TraceHeader)
		}
		if len(got) != len(names) {
			t.Errorf("%s: contract describes %v, the code sends %v", name, got, names)
		}
	}
}

func TestDeadLetterHeaders(t *testing.T) {
	m := readAsyncAPI(t).Components.Messages["dead"]
	headers := func(d bus.Message) (own []string) {
		for _, h := range d.Headers {
			if h.Key != "original_seq" {
				own = append(own, h.Key)
			}
		}
		return own
	}
	of := bus.Message{Headers: []bus.Header{{Key: "seq"}}, Value: make([]byte, bus.CutBytes+1)}
	if got := headers(bus.DeadLetter(of, "why", time.Unix(0, 0))); !slices.Equal(got, m.Headers.Required) {
		t.Errorf("contract demands %v, the code sends %v", m.Headers.Required, got)
	}
	got := headers(bus.CutLetter(of, "why", time.Unix(0, 0)))
	for _, h := range got {
		if _, described := m.Headers.Properties[h]; !described {
			t.Errorf("the contract does not describe %s", h)
		}
	}
	if len(got) != len(m.Headers.Properties) {
		t.Errorf("the contract describes %v, the code sends %v", m.Headers.Properties, got)
	}
}
