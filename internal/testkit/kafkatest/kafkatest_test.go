package kafkatest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
)

// A second broker on a folder that is in use does not start, and does not harm the first:
// two brokers on one folder could hang.
func TestFolderInUse(t *testing.T) {
	if Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka: make e2e-kafka does")
	}
	b := Start(t)
	script, err := modulePath("scripts", "kafka", "broker.sh")
	if err != nil {
		t.Fatal(err)
	}
	ports, err := freePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(script, Version(), b.dir, ports[0], ports[1]).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "is in use by another broker") {
		t.Errorf("%v: %s", err, said)
	}
	if !b.ready(1) {
		t.Error("the first broker does not serve any more")
	}
}

// A broker that someone else kills has died; one that the test kills has not.
func TestDied(t *testing.T) {
	if Version() == "" {
		t.Skip("FLANK_KAFKA names no version of Apache Kafka: make e2e-kafka does")
	}
	b := Start(t)
	b.Kill()
	if err := b.Died(); err != nil {
		t.Errorf("killed by the test: %v", err)
	}
	b.Restart(t)
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-b.ended
	if err := b.Died(); err == nil || !strings.Contains(err.Error(), "node 0 ended by itself") || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("killed by another program: %v", err)
	}
}

// documented reads the rights in the table, and the commands below the table grant the same.
func TestDocumented(t *testing.T) {
	path, err := modulePath("deploy", "kafka", "acls.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for principal, want := range map[string]string{
		"ingest":  "tcm.windows.v1 Write, tcm.windows.v1 DescribeConfigs, tcm.audit.v1 Write",
		"trainer": "tcm.windows.v1 Read, tcm.features.v1 Read, tcm.alerts.v1 Read, tcm.models.v1 Read, tcm.models.v1 Write, tcm.labels.v1 Read, tcm.labels.v1 Write, tcm.state.v1 Read, tcm.results.v1 Read, tcm.audit.v1 Write",
		"monitor": "group tcm-* Read, transactional id tcm-* Write, tcm.windows.v1 Read, tcm.features.v1 Read, tcm.state.v1 Read, tcm.commands.v1 Read, tcm.models.v1 Read, " +
			"tcm.features.v1 Write, tcm.state.v1 Write, tcm.results.v1 Write, tcm.alerts.v1 Write, tcm.shadow.v1 Write, tcm.dlq.v1 Write, tcm.commands.v1 Write, tcm.labels.v1 Read, tcm.labels.v1 Write, tcm.audit.v1 Write",
		"monitor` with a page": "tcm.results.v1 Read, tcm.alerts.v1 Read, tcm.shadow.v1 Read",
		"operator":             "tcm.commands.v1 Write, tcm.alerts.v1 Read, tcm.state.v1 Read, tcm.results.v1 Read, tcm.windows.v1 Read, tcm.features.v1 Read, tcm.audit.v1 Write",
		"the administrator": "tcm.* Create, tcm.* Describe, tcm.* DescribeConfigs, tcm.* AlterConfigs, tcm.* Alter, tcm.models.v1 Read, tcm.models.v1 Write, tcm.state.v1 Read, " +
			"tcm.state.v1 Write, tcm.windows.v1 Read, tcm.features.v1 Read, tcm.commands.v1 Read, group tcm-* Read, tcm.audit.v1 Read, tcm.audit.v1 Write, tcm.dlq.v1 Read, tcm.windows.v1 Write, tcm.features.v1 Write",
		"stranger": "",
	} {
		entries, err := documented(string(text), principal)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			name := e.ResourceName
			if e.ResourcePatternType == kafka.PatternTypePrefixed {
				name += "*"
			}
			switch e.ResourceType {
			case kafka.ResourceTypeGroup:
				name = "group " + name
			case kafka.ResourceTypeTransactionalID:
				name = "transactional id " + name
			}
			for op, is := range operations {
				if is == e.Operation {
					got = append(got, fmt.Sprintf("%s %s", name, op))
				}
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s may %q, want %q", principal, got, want)
		}
		if principal != "stranger" && principal != "the administrator" && !slices.ContainsFunc(strings.Split(string(text), "\n"), func(l string) bool {
			return strings.Contains(l, "--allow-principal User:"+strings.Split(principal, "`")[0])
		}) {
			t.Errorf("no command grants %s anything", principal)
		}
	}
}
