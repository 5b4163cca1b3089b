package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/reference"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// docs/reference/monitor.md is made from settings: go test ./cmd/monitor -run Reference -update.
func TestReferenceIsCurrent(t *testing.T) {
	golden.Check(t, filepath.Join("..", "..", "..", "docs", "reference", "monitor.md"), referencePage+reference.Table(t, defaults("monitor.yaml"), sentences))
}

// Texts of the page that name monitor.yaml name keys that it has.
func TestPageNamesKeys(t *testing.T) {
	keys := map[string]bool{}
	for _, k := range reference.Keys(defaults("monitor.yaml"), nil) {
		for name := k.Name; name != ""; name = name[:max(0, strings.LastIndexByte(name, '.'))] {
			keys[name] = true
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "internal", "web", "static", "text", "*.js"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%q, %v", files, err)
	}
	word := regexp.MustCompile(`(^|[^-\w.])([a-z]+(?:[._][a-z]+)+)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for line := range strings.Lines(string(text)) {
			_, said, ok := strings.Cut(line, `": "`)
			if !ok || !strings.Contains(said, "monitor.yaml") {
				continue
			}
			for _, m := range word.FindAllStringSubmatch(said, -1) {
				if m[2] == "monitor.yaml" {
					continue
				}
				if found++; !keys[m[2]] {
					t.Errorf("%s: monitor.yaml has no key %s: %s", filepath.Base(file), m[2], line)
				}
			}
		}
		if found < 3 {
			t.Errorf("%s: names %d keys: the test looks in the wrong place", filepath.Base(file), found)
		}
	}
}

const referencePage = `# monitor.yaml

<!-- Made by cmd/monitor from its configuration: go test ./cmd/monitor -run Reference -update -->

The keys of the configuration of ` + "`monitor`" + `. ` + "`monitor init`" + ` writes one ([how keys are written](environment.md#configurations)). A commented file is [examples/gun-drill/monitor.yaml](../../examples/gun-drill/monitor.yaml). See also [tune-alarms.md](../how-to/tune-alarms.md), [routes.md](../how-to/routes.md), [receivers.md](../how-to/receivers.md).

`

const r = "alerts.routes[]."

var sentences = map[string]string{
	"kafka.brokers":            "Addresses of brokers, as in `[\"127.0.0.1:9092\"]`. One must be named.",
	"kafka.tls.ca":             "File of the certificates that may sign the brokers'. Without it the system's count.",
	"….sasl.user":              "User to log in as, by SCRAM-SHA-512.",
	"….tls.ca":                 "File of the certificates that may sign the other side's.",
	"….tls.cert":               "File of this program's certificate.",
	"….tls.key":                "File of its private key.",
	"….tls.server_name":        "default: the host of the address. Name in the other side's certificate.",
	"….user":                   "User to log in as.",
	"….password_file":          "File whose one line is the password.",
	"….password_env":           "Environment variable with the password.",
	"model":                    "Model file of `trainer fit`. It judges every machine of its layout. `monitor run` needs it, or `models.keys`.",
	"models.keys":              "Files of public keys, of `trainer keys new`. Models and deployments then come from `tcm.models.v1`, if one of these keys signed them, and `model` is left out.",
	"group":                    "[Consumer group](../concepts/tools.md#groups): its monitors share the machines.",
	"alarm.k":                  "Faulty windows of the last `n` that raise the alarm.",
	"alarm.n":                  "Judged windows that are looked at, at most 64.",
	"alarm.clear":              "Faulty windows of the last `n` at or below which the condition is over.",
	"alarm.on_hold":            "Cutting time for which `k` of `n` must be faulty.",
	"alarm.off_hold":           "Cutting time for which at most `clear` may be faulty until it is over.",
	"alarm.latch":              "Whether an alarm stays until a person acknowledges it.",
	"alarm.max_shelf":          "Longest time to shelve an alarm for, at most `168h`.",
	"alarm.re_alarm":           "After a call, a tool that comes back is silent for this long; at most `24h`.",
	"alarm.threshold":          "Score from 0 to 1 from which on a window counts as faulty; 0.5 is the model's own decision.",
	"metrics":                  "Address of `/metrics`, as `127.0.0.1:9103`.",
	"page.listen":              "Address of the page; `\"\"` for none. Alone it is `page: ADDRESS`.",
	"page.people":              "File of people who may log in, see `monitor people`. Without it and without `page_token` the page only shows.",
	"page.read":                "`open`: everyone sees the page. `token`: only people who have logged in.",
	"page.tls.cert":            "File of the page's certificate. With it the page speaks HTTPS.",
	"page.tls.key":             "File of its private key.",
	"page.hosts":               "More names, without a port, under which browsers reach the page.",
	"page.insecure":            "Lets tokens travel without TLS also from other computers.",
	"page.notice":              "Lines shown before a login, at most 2,048 bytes.",
	"silence":                  "Time without a window after which a machine has an advisory; `0s`: never.",
	"shifts":                   "Hours at which shifts begin, for `monitor report`.",
	"history.dir":              "Folder of the page's history, of this monitor alone. Without it one day is kept, in memory.",
	"evidence.dir":             "Folder that keeps the waveform around each alert. Without it none is kept.",
	"evidence.keep":            "Alerts whose waveform is kept; the oldest go.",
	"evidence.url":             "Address of the page as receivers of alerts reach it, such as `http://usk25-monitor:9102`.",
	"page_token.file":          "File whose one line is a token that people share: who knows it is an operator. Not together with `page.people`.",
	"page_token.env":           "Environment variable with the token.",
	r + "name":                 "Name of the route. Its position in the alerts is kept under this name.",
	r + "severity":             "default: all. Least severity of events: `info` or `warning`.",
	r + "kinds":                "default: all. Events: `alert`, `evidence`, `advisory`, or kinds of advisories such as `silence`.",
	r + "states":               "default: all. States of alerts and advisories, such as `raised`.",
	r + "machines":             "default: all. Patterns of machine paths, or of their last part.",
	r + "hours":                "default: all. Time of day in which events were sent, as in `22:00-06:00`.",
	r + "zone":                 "default: this computer's. Time zone of the hours, such as `Europe/Madrid`.",
	r + "timeout":              "default: `10s`. Longest time of one attempt.",
	r + "kafka.topic":          "Topic that gets the events as they are. It must be there.",
	r + "kafka.brokers":        "default: the cluster of the alerts. Brokers of another cluster.",
	r + "webhook.url":          "URL that gets a POST for each event.",
	r + "webhook.url_file":     "File that holds the URL, where the URL itself is a secret.",
	r + "webhook.mode":         "default: `binary`. `binary`, attributes as headers, or `structured`, one JSON object.",
	r + "webhook.secret.file":  "File of the secret that signs requests; each line is a secret.",
	r + "webhook.secret.env":   "Environment variable with the secret.",
	"….token.file":             "File of the token that is sent as bearer token.",
	"….token.env":              "Environment variable with the token.",
	r + "alertmanager.url":     "URL of Alertmanager, below which `api/v2/alerts` is.",
	r + "alertmanager.resend":  "default: `1m`. How often a firing alert is sent again. Keep it below Alertmanager's `resolve_timeout`.",
	r + "alertmanager.labels":  "Labels that every alert gets, such as `{team: tools}`.",
	r + "mqtt.broker":          "MQTT 5 broker, as in `mqtts://host:8883`.",
	r + "mqtt.prefix":          "default: `flank`. First part of the topics.",
	r + "mqtt.client_id":       "default: of this process alone. Client id, which differs for each monitor.",
	r + "mqtt.sparkplug.group": "default: `flank`. Group id of Sparkplug B.",
	r + "mqtt.sparkplug.edge":  "default: the host. Edge node id of Sparkplug B, which differs for each monitor.",
	r + "smtp.server":          "Mail server, as in `mail.example:587`.",
	r + "smtp.encrypt":         "default: `starttls`. `starttls`, `tls`, or `none` for a relay in the plant.",
	r + "smtp.from":            "Sender of the mails.",
	r + "smtp.to":              "Recipients of the mails.",

	r + "opcua.endpoint":          "OPC UA server, as `opc.tcp://host:4840`. [Advisory, never a safety function](../how-to/opcua-route.md).",
	r + "opcua.insecure":          "Allows another computer without `tls`.",
	r + "opcua.handshake_timeout": "default: `30s`. To acknowledge a request.",
	r + "opcua.nodes":             "[Variables](../how-to/opcua-route.md#set-it-up) of each machine.",
}

// Every key has an environment variable of its own.
func TestVariables(t *testing.T) {
	if err := config.Distinct(new(settings)); err != nil {
		t.Error(err)
	}
	t.Setenv("TCM_PAGE_TLS_CERT", "page.pem")
	t.Setenv("TCM_KAFKA_BROKERS", "[b:9092]")
	c, err := load("../../deploy/compose/monitor.yaml")
	if err != nil || c.Page.TLS.Cert != "page.pem" || c.Page.Listen != "0.0.0.0:9102" || len(c.Kafka.Brokers) != 1 || c.Kafka.Brokers[0] != "b:9092" {
		t.Errorf("%+v, %v", c.Page, err)
	}
}
