package monitor

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/fetch"
	"github.com/flank-tcm/flank/schemas"
)

// checkContract holds the headers and keys of all messages of a plant to
// asyncapi.yaml: nothing required is missing, nothing undescribed is sent.
func checkContract(t *testing.T, p *plant) {
	t.Helper()
	for topic, name := range map[string]string{
		bus.TopicFeatures: "features", bus.TopicResults: "result", bus.TopicAlerts: "alert", bus.TopicState: "state", bus.TopicDead: "dead",
	} {
		schema := headerSchema(t, name)
		msgs := p.read(topic)
		if len(msgs) == 0 {
			t.Errorf("%s: nothing to check", topic)
		}
		for _, m := range msgs {
			switch typ := string(m.Header("ce_type")); typ {
			case event.AdvisoryType:
				checkHeaders(t, headerSchema(t, "advisory"), "advisory", m)
			case event.EvidenceType:
				checkHeaders(t, headerSchema(t, "evidence"), "evidence", m)
			default:
				checkHeaders(t, schema, name, m)
			}
		}
	}
	command, err := fetch.CommandMessage(event.Command{ID: "1", Machine: drill, Action: event.Unshelve, By: "kim", Issued: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	checkHeaders(t, headerSchema(t, "command"), "command", command)
	schema := headerSchema(t, "window")
	checkHeaders(t, schema, "window", p.message(at(7, "T1", false)))
	checkHeaders(t, headerSchema(t, "features"), "features", p.edgeMessage(at(7, "T1", false)))
}

func checkHeaders(t *testing.T, schema *jsonschema.Schema, name string, m bus.Message) {
	t.Helper()
	headers := make(map[string]any)
	for _, h := range m.Headers {
		if _, twice := headers[h.Key]; twice {
			t.Errorf("%s: header %s twice", name, h.Key)
		}
		headers[h.Key] = string(h.Value)
	}
	if err := schema.Validate(headers); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if k, ok := headers["ce_partitionkey"]; ok && name != "state" && k != m.Key {
		t.Errorf("%s: key %q, ce_partitionkey %q", name, m.Key, k)
	}
}

// headerSchema returns the schema of the headers of a message, closed to what it
// does not describe.
func headerSchema(t *testing.T, message string) *jsonschema.Schema {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal(schemas.AsyncAPI, &doc); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	contract, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const url, closed = "urn:flank:asyncapi", "urn:flank:closed"
	if err := c.AddResource(url, contract); err != nil {
		t.Fatal(err)
	}
	ref := map[string]any{"$ref": url + "#/components/messages/" + message + "/headers", "unevaluatedProperties": false}
	if err := c.AddResource(closed, ref); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(closed)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// The check itself can fail.
func TestHeaderSchema(t *testing.T) {
	schema := headerSchema(t, "result")
	good := map[string]any{
		"ce_specversion": "1.0", "ce_id": "m/00000000000000a1/1", "ce_source": "/m", "ce_type": "io.tcm.result.v1",
		"ce_time": "2026-11-02T02:00:01Z", "ce_partitionkey": "m", "content-type": "application/json",
	}
	if err := schema.Validate(good); err != nil {
		t.Fatal(err)
	}
	for header, value := range map[string]any{"ce_id": "m", "ce_time": "yesterday", "ce_type": "io.tcm.alert.v1", "x-more": "1"} {
		bad := make(map[string]any)
		for k, v := range good {
			bad[k] = v
		}
		bad[header] = value
		if schema.Validate(bad) == nil {
			t.Errorf("%s: %q passes", header, value)
		}
	}
}
