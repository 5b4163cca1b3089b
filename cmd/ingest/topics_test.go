package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/ingest"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// What is printed on the way of a plant: the topics are made, what they keep is changed,
// the check says it, and they grow.
func TestTopics(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	gunDrills := "kafka: {brokers: [\"" + addr + "\"]}\nmachines:\n  - {machine: a/b/c/d/m1}\n  - {machine: a/b/c/d/m2}\n"
	dir := bench(t, "one.yaml", ingestYAML(addr, "", ""), "two.yaml", gunDrills,
		"less.yaml", gunDrills+"retain:\n  windows: {time: 24h, bytes: 16GB}\n  dead_letters: {bytes: 1GiB}\n",
		"more.yaml", gunDrills+"retain: {windows: {bytes: 0}}\n",
		"edge.yaml", gunDrills+"  - {machine: a/b/c/d/m3, mode: raw}\nmode: edge\nedge: {sample: 3600}\n",
		"alledge.yaml", gunDrills+"mode: edge\n")
	var got strings.Builder
	for _, args := range []string{
		"topics apply --config one.yaml",
		"topics apply --config two.yaml",
		"topics apply --config less.yaml",
		"topics apply --config more.yaml",
		"topics apply --config two.yaml",
		"topics grow --config two.yaml --partitions 80",
		"topics grow --config two.yaml --partitions 64",
		"topics apply --config two.yaml --partitions 64",
		"topics apply --config edge.yaml",
		"topics apply --config alledge.yaml",
	} {
		out, _, err := dir.run(t, t.Context(), args)
		got.WriteString("$ ingest " + args + "\n" + out)
		if err != nil {
			got.WriteString("ingest: " + err.Error() + "\n")
		}
		got.WriteString("\n")
	}
	out, _, err := dir.run(t, t.Context(), "check --config two.yaml")
	from, to := strings.Index(out, "topics "), strings.Index(out, "acl ")
	if err != nil || from < 0 || to < 0 {
		t.Fatalf("check: %v\n%s", err, out)
	}
	got.WriteString("$ ingest check --config two.yaml\n" + out[from:to])
	golden.Check(t, "topics.txt", got.String())

	var records []string
	if _, err := audit.Read(t.Context(), bus.Config{Brokers: []string{addr}}, time.Time{}, func(a event.Audit) error {
		records = append(records, strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Action, a.Outcome, a.Object)))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"apply_topics accepted " + strings.Join(plannedTopics(), ", ")}
	want = append(want, slices.Repeat([]string{"apply_topics accepted"}, 4)...)
	want = append(want, "grow_topics accepted 80 partitions", "grow_topics refused 64 partitions")
	want = append(want, slices.Repeat([]string{"apply_topics accepted"}, 3)...)
	if !slices.Equal(records, want) {
		t.Errorf("the audit has %q, want %q", records, want)
	}
}

func plannedTopics() (names []string) {
	for _, topic := range bus.Planned(1) {
		names = append(names, topic.Name)
	}
	return names
}

// docs/figures/sizes.md shows what is printed for 200 gun drills; -update writes it again.
func TestTopicsOfThePage(t *testing.T) {
	if testing.Short() {
		t.Skip("asks for the sizes of 200 machines")
	}
	t.Parallel()
	page, err := filepath.Abs("../../docs/figures/sizes.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	machines := "kafka: {brokers: [\"" + startBroker(t) + "\"]}\nmachines:\n"
	for i := range 200 {
		machines += fmt.Sprintf("  - {machine: a/b/c/d/m%d}\n", i)
	}
	dir := bench(t, "plant.yaml", machines)
	out, _, err := dir.run(t, t.Context(), "topics apply --config plant.yaml --partitions 64")
	if err != nil {
		t.Fatal(err)
	}
	const fence = "```\n"
	before, rest, _ := strings.Cut(string(text), fence+"topic ")
	_, after, found := strings.Cut(rest, fence)
	if !found {
		t.Fatal("docs/figures/sizes.md has no block that begins with \"topic \"")
	}
	want := before + fence + out + fence + after
	if golden.Update() {
		err = os.WriteFile(page, []byte(want), 0o644)
	} else if string(text) != want {
		err = errors.New("docs/figures/sizes.md does not show what follows; if that is meant, -update writes it again\n" + out)
	}
	if err != nil {
		t.Error(err)
	}
}

// The estimates hold of what a gateway really sends: the windows' is exact but for the
// names of machine, tool and hole.
func TestWrittenIsWhatIsSent(t *testing.T) {
	t.Parallel()
	addr := startBroker(t)
	dir := bench(t, "ingest.yaml", ingestYAML(addr, "", ""))
	for _, args := range []string{"topics apply --config ingest.yaml --partitions 1", "run --config ingest.yaml"} {
		if _, _, err := dir.run(t, t.Context(), args); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ingest.Load(dir.path("ingest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	written, err := written("ingest.yaml", c)
	if err != nil {
		t.Fatal(err)
	}
	a := written[0][bus.TopicWindows] / 86_400
	n := 0
	err = bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if envelope.IsLedger(&m) {
			return nil
		}
		n++
		size := int64(len(m.Key) + len(m.Value))
		for _, h := range m.Headers {
			size += int64(len(h.Key) + len(h.Value))
		}
		if size < a-50 || size > a+100 {
			t.Errorf("a window takes %d bytes, estimated were %d", size, a)
		}
		return nil
	})
	if err != nil || n != 4 {
		t.Errorf("%d windows, %v", n, err)
	}
}

// What the partitions are enough for is printed when they are made, and as long as one configuration alone has more machines.
func TestEnoughPartitions(t *testing.T) {
	for _, tt := range []struct {
		created              bool
		partitions, machines int
		want                 string
	}{
		{true, 8, 1, "\n8 partitions are enough for 32 machines, and for as many monitors as there are partitions. For more later: ingest topics grow\n"},
		{false, 8, 32, ""},
		{true, 8, 33, "\n33 machines are many for 8 partitions: some partitions get several times the average. More: ingest topics grow --partitions 16\n"},
		{false, 8, 200, "\n200 machines are many for 8 partitions: some partitions get several times the average. More: ingest topics grow --partitions 64\n"},
		{false, 64, 200, ""},
	} {
		var got strings.Builder
		status := []bus.TopicStatus{{Name: bus.TopicState}, {Name: bus.TopicWindows, Partitions: tt.partitions, Created: tt.created}}
		if err := printEnough(&got, status, tt.machines); err != nil || got.String() != tt.want {
			t.Errorf("%d machines on %d partitions: %q, %v, want %q", tt.machines, tt.partitions, got.String(), err, tt.want)
		}
	}
}
