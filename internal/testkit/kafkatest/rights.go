package kafkatest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"
)

// GrantDocumented gives a program the rights that the table of deploy/kafka/acls.md says it
// needs, and no others.
func (b *Broker) GrantDocumented(t testing.TB, principal string) {
	t.Helper()
	path, err := modulePath("deploy", "kafka", "acls.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := documented(string(text), principal)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s: %d rights for %s; %v", path, len(entries), principal, err)
	}
	b.Grant(t, principal, entries...)
}

var (
	quoted     = regexp.MustCompile("`([^`]+)`")
	operations = map[string]kafka.ACLOperationType{
		"Read": kafka.ACLOperationTypeRead, "Write": kafka.ACLOperationTypeWrite, "DescribeConfigs": kafka.ACLOperationTypeDescribeConfigs,
		"Create": kafka.ACLOperationTypeCreate, "Describe": kafka.ACLOperationTypeDescribe, "Alter": kafka.ACLOperationTypeAlter, "AlterConfigs": kafka.ACLOperationTypeAlterConfigs,
	}
)

// resourceOf returns an entry of the kind of resource that a cell says, without its name.
func resourceOf(cell string) kafka.ACLEntry {
	entry := kafka.ACLEntry{ResourceType: kafka.ResourceTypeTopic, ResourcePatternType: kafka.PatternTypeLiteral}
	switch {
	case strings.Contains(cell, "transactional id"):
		entry.ResourceType = kafka.ResourceTypeTransactionalID
	case strings.Contains(cell, "group"):
		entry.ResourceType = kafka.ResourceTypeGroup
	}
	if strings.Contains(cell, "prefix") {
		entry.ResourcePatternType = kafka.PatternTypePrefixed
	}
	return entry
}

// documented returns the rights of a program from the rows
//
//	| `principal` | topic `name`, `name` | Operation, Operation | … |
//
// of a table. A row without a principal belongs to the one before it; "group" or
// "transactional id" may stand in place of "topic", and "prefix" behind makes the
// names prefixes.
func documented(text, principal string) (entries []kafka.ACLEntry, err error) {
	current := ""
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		if who := strings.TrimSpace(cells[1]); who != "" {
			current = strings.Trim(who, "`")
		}
		if current != principal {
			continue
		}
		entry := resourceOf(cells[2])
		for _, name := range quoted.FindAllStringSubmatch(cells[2], -1) {
			entry.ResourceName = name[1]
			for op := range strings.SplitSeq(cells[3], ",") {
				var ok bool
				if entry.Operation, ok = operations[strings.TrimSpace(op)]; !ok {
					return nil, fmt.Errorf("operation %q of %s", op, name[1])
				}
				entries = append(entries, entry)
			}
		}
	}
	return entries, nil
}
