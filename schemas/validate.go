package schemas

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validate returns an error if data, one JSON document, does not agree with the named schema:
// a property is missing, has the wrong form, or is not described. The error names every
// wrong place. Validate is safe for concurrent use. It panics if the name is unknown.
func Validate(name string, data []byte) error {
	schema := compiled()[name]
	if schema == nil {
		panic("schemas: Validate: no schema " + name)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("schemas: %s: not JSON: %w", name, err)
	}
	if err := schema.Validate(document); err != nil {
		return fmt.Errorf("schemas: %s: %w", name, err)
	}
	return nil
}

// compiled returns the schemas by name, each closed to properties that it does
// not describe.
var compiled = sync.OnceValue(func() map[string]*jsonschema.Schema {
	schemas := make(map[string]*jsonschema.Schema)
	for name, text := range map[string][]byte{
		Result: resultJSON, Alert: alertJSON, Evidence: evidenceJSON, Advisory: advisoryJSON, Context: contextJSON, Frame: FrameJSON, Command: commandJSON, Fetched: fetchedJSON, Ledger: ledgerJSON,
		Audit: auditJSON, Label: labelJSON, MachineState: MachineStateJSON, MonitorStatus: MonitorStatusJSON, Manifest: manifestJSON, Deployment: deploymentJSON,
	} {
		s, err := compile(text)
		if err != nil {
			panic("schemas: " + name + ": " + err.Error())
		}
		schemas[name] = s
	}
	return schemas
})

func compile(text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	root, ok := document.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("not an object")
	}
	closeObjects(root)
	const url = "urn:flank:schema"
	delete(root, "$id") // names the published schema, which this is not
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(url, root); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// closeObjects forbids unknown properties wherever a schema of type object is.
func closeObjects(schema map[string]any) {
	if schema["type"] == "object" && schema["additionalProperties"] == nil {
		schema["additionalProperties"] = false
	}
	for _, v := range schema {
		if sub, ok := v.(map[string]any); ok {
			closeObjects(sub)
		}
	}
}
