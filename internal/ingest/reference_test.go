package ingest

import (
	"path/filepath"
	"testing"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/reference"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// docs/reference/ingest.md is made from Config: go test ./internal/ingest -run Reference -update.
func TestReferenceIsCurrent(t *testing.T) {
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "reference", "ingest.md"), referencePage+reference.Table(t, Config{Machine: defaults()}, sentences))
}

const referencePage = `# ingest.yaml

<!-- Made by internal/ingest from its configuration: go test ./internal/ingest -run Reference -update -->

The keys of the configuration of ` + "`ingest`" + `. ` + "`ingest init`" + ` writes one ([how keys are written](environment.md#configurations)). Commented files are in [examples](../../examples). How to connect sources: [live-feeds.md](../how-to/live-feeds.md), [recordings.md](../how-to/recordings.md).

`

var sentences = map[string]string{
	"kafka.brokers":             "Addresses of brokers, as in `[\"127.0.0.1:9092\"]`. One must be named.",
	"kafka.tls.ca":              "File of the certificates that may sign the brokers'. Without it the system's count.",
	"kafka.sasl.user":           "User to log in as, by SCRAM-SHA-512.",
	"….tls.ca":                  "File of the certificates that may sign the other side's.",
	"….tls.cert":                "File of this program's certificate.",
	"….tls.key":                 "File of its private key.",
	"….tls.server_name":         "default: the host of the address. Name in the other side's certificate.",
	"….user":                    "User to log in as.",
	"….password_file":           "File whose one line is the password.",
	"….password_env":            "Environment variable with the password.",
	"retain.windows.time":       "default: `168h`. How long Kafka keeps windows. `ingest topics apply` sets it.",
	"retain.windows.bytes":      "default: `250GB`. How much Kafka keeps of each partition of the windows; 0: no limit but time.",
	"retain.features.time":      "default: `2160h`. How long Kafka keeps features.",
	"retain.features.bytes":     "default: `50GB`. The same of the features.",
	"retain.dead_letters.time":  "default: `720h`. How long Kafka keeps dead letters.",
	"retain.dead_letters.bytes": "default: `10GB`. The same of all dead letters.",
	"metrics":                   "Address of `/metrics`, `/livez` and `/readyz`, such as `127.0.0.1:9101`.",
	"mqtt.broker":               "MQTT 5 broker for samples and tools, as in `mqtts://host:8883`. Machines of kind `mqtt` need it.",
	"mqtt.prefix":               "default: `flank`. First part of the topics: `PREFIX/MACHINE/samples` and `PREFIX/MACHINE/context`.",
	"spool_only":                "Send no windows while monitors are down or topics [grow](../how-to/kafka-partitions.md): the next start without it sends them.",
	"machine":                   "Path of the machine by ISA-95: enterprise/site/area/line/machine. Its name everywhere.",
	"layout":                    "default: the gun drill's 14 channels. [Layout file](../../schemas/layout.md). It must be the model's.",
	"window.length":             "It must be the model's, or the monitor refuses the windows.",
	"window.hop":                "default: `window.length`. Time from the start of one window to the start of the next.",
	"spool":                     "Folder that keeps windows until Kafka has them, one for each machine; below `machines` the default ends with the machine's path. A spool of another machine in which windows wait is refused. One that another host had gets a new epoch and a warning.",
	"spool_full":                "default: `block` for recordings, `drop_oldest` for live sources. When the spool is full, acquisition waits, or the oldest windows are given up.",
	"spool_mib":                 "Most MiB that the spool may take; 0 for what the disk holds.",
	"spool_sync":                "default: `1`, or `64` at speed 0. Windows that share one sync to disk. A crash loses a live source's windows that wait for it.",
	"mode":                      "default: `raw`. `raw` sends windows; [`edge`](../how-to/edge-gateways.md) sends features, and windows stay in the spool until a command asks for them. Next to `machines`, `mode` and `edge` are for all that do not set them.",
	"edge.keep_hours":           "Hours for which mode `edge` keeps delivered windows.",
	"edge.keep_mib":             "default: what `spool_mib` leaves. Most MiB of delivered windows that mode `edge` keeps; the oldest go first.",
	"edge.sample":               "One window of so many is sent raw too, in mode `edge`.",
	"source.kind":               "Where samples come from: `simulate`, `file`, `folder`, `tcp` or `mqtt`.",
	"source.file":               "Recording to send, for kind `file` ([formats.md](formats.md)).",
	"source.speed":              "Times as fast as the sensor; 0: as fast as possible. For kinds `simulate`, `file` and `folder`.",
	"source.start":              "When recordings of kind `file` or `folder` began that do not say it themselves: `2026-11-02T06:00:00Z`, or `file-time`. Several [follow each other](../how-to/recordings.md#when-a-recording-began). Without it times are seconds from the start.",
	"source.folder":             "Folder whose new recordings are sent, for kind `folder`.",
	"source.pattern":            "Names of the recordings in the folder, such as `*.tdms`.",
	"source.settle":             "For how long a file must not have changed before it is read.",
	"source.seed":               "Seed of the simulated drill, for kind `simulate`.",
	"source.tool_life":          "Cutting time after which a simulated tool is worn.",
	"source.tools":              "default: `0`, until stopped. Number of simulated tools.",
	"source.faults":             "Faults of the simulated drill, such as `[\"flatline:ch07@30s+10s\"]` ([simulator.md](simulator.md)).",
	"source.insecure":           "Let other computers connect to `source.listen` without TLS.",
	"source.listen":             "Address that clients send frames to, for kind `tcp`, such as `127.0.0.1:9110`.",
	"source.timeout":            "How long a client of kind `tcp`, or the samples of kind `mqtt`, may be silent.",
	"source.max_lost":           "Most [samples of a minute](../concepts/ledger.md#who-hears-of-it) in no window, up to `1m`. For `tcp` and `mqtt`.",
	"context.mtconnect.url":     "MTConnect agent that is asked [which tool is in](../how-to/machine-context.md), such as `http://agent:5000`.",
	"context.mtconnect.device":  "Name or uuid of the machine, of an agent of several. Without it the whole answer is searched.",
	"context.opcua.endpoint":    "[OPC UA server](../how-to/machine-context.md#by-opc-ua) that is asked which tool is in, such as `opc.tcp://control:4840`.",
	"context.opcua.insecure":    "Ask a server on another computer without `tls`: anyone on the way can change what it says.",
	"context.tool":              "What names the tool: the data item's id, name or type, such as `ToolAssetId`; with `opcua` the node's id, such as `ns=2;s=Tool`. So for the next five.",
	"context.hole":              "Hole or cut, such as `Program`.",
	"context.spindle_speed":     "Spindle speed in rev/min, such as `RotaryVelocity:ACTUAL`.",
	"context.feed_rate":         "Feed rate, such as `PathFeedrate:ACTUAL`; with `opcua` a node in mm/min.",
	"context.programme":         "Programme that the control runs, such as `Program`.",
	"context.material":          "The workpiece's material, such as `Material`.",
	"context.no_tool":           "default: `0`, `none`, `n/a`, `-` and the like. Names that mean that no tool is in. Case and leading zeros do not count.",
	"context.interval":          "default: `1s`. Time between two readings of the control.",
	"context.timeout":           "default: `10s`. How long a reading may take, and how long all but the tool holds while the control does not answer.",
	"machines":                  "Several machines in place of one. Each has the keys from `machine` on.",
}

// Every key has an environment variable of its own.
func TestVariables(t *testing.T) {
	if err := config.Distinct(new(Config)); err != nil {
		t.Error(err)
	}
	t.Setenv("TCM_SPOOL_MIB", "77")
	t.Setenv("TCM_SOURCE_SPEED", "3")
	c, err := Load("../../deploy/compose/ingest.yaml")
	if err != nil || c.MiB != 77 || c.Source.Speed != 3 || c.Source.Kind != "simulate" {
		t.Errorf("%d, %+v, %v", c.MiB, c.Source, err)
	}
}
