// Package schemas is the contract of what Flank sends and takes:
//
//   - asyncapi.yaml has the topics and headers;
//   - openapi.yaml has the HTTP API of the page;
//   - *.schema.json have the JSON of results, alerts, evidence, advisories, audit records, labels, states of
//     machines, manifests of models, deployments, live samples and context;
//   - *.md describe the Arrow forms of a window, of features, of evidence and of a frame of
//     live samples, the layout file and the model file.
//
// Its tests check that the code and the contract agree.
//
// Within v1 the contract only grows: readers must ignore unknown properties. The published
// schemas therefore allow them. [Validate] does not: it is for the sender, which must
// describe everything it sends.
package schemas

import _ "embed"

// The contract as published.
var (
	//go:embed result.schema.json
	resultJSON []byte // JSON Schema 2020-12 of event.Result
	//go:embed alert.schema.json
	alertJSON []byte // JSON Schema 2020-12 of event.Alert
	//go:embed evidence.schema.json
	evidenceJSON []byte // JSON Schema 2020-12 of event.Evidence
	//go:embed advisory.schema.json
	advisoryJSON []byte // JSON Schema 2020-12 of event.Advisory
	//go:embed audit.schema.json
	auditJSON []byte // JSON Schema 2020-12 of event.Audit
	//go:embed label.schema.json
	labelJSON []byte // JSON Schema 2020-12 of event.Label
	//go:embed context.schema.json
	contextJSON []byte // JSON Schema 2020-12 of a machine's context, see feed.Change
	//go:embed frame.schema.json
	FrameJSON []byte // JSON Schema 2020-12 of samples in JSON, see frame.md
	//go:embed command.schema.json
	commandJSON []byte // JSON Schema 2020-12 of event.Command
	//go:embed fetched.schema.json
	fetchedJSON []byte // JSON Schema 2020-12 of event.Fetched
	//go:embed ledger.schema.json
	ledgerJSON []byte // JSON Schema 2020-12 of event.SourceLedger
	//go:embed machine-state.schema.json
	MachineStateJSON []byte // JSON Schema 2020-12 of route.MachineState
	//go:embed monitor-status.schema.json
	MonitorStatusJSON []byte // JSON Schema 2020-12 of route.MonitorStatus
	//go:embed model-manifest.schema.json
	manifestJSON []byte // JSON Schema 2020-12 of deploy.Manifest
	//go:embed deployment.schema.json
	deploymentJSON []byte // JSON Schema 2020-12 of deploy.Change
	//go:embed asyncapi.yaml
	AsyncAPI []byte // AsyncAPI 3.0
	//go:embed openapi.yaml
	OpenAPI []byte // OpenAPI 3.1 of the HTTP API of a monitor's page
)

// Names of the schemas that Validate knows.
const (
	Result   = "result"
	Alert    = "alert"
	Evidence = "evidence"
	Ledger   = "ledger"
	Advisory = "advisory"
	Context  = "context"
	Frame    = "frame"
	Command  = "command"
	Fetched  = "fetched"

	MachineState  = "machine-state"
	MonitorStatus = "monitor-status"
	Manifest      = "model-manifest"
	Deployment    = "deployment"

	Audit = "audit"
	Label = "label"
)
