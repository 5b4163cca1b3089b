package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/audit"
	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
)

// rollout makes a folder with two models, and a broker.
func rollout(t *testing.T) (addr string, dir folder) {
	t.Helper()
	dir = folder(t.TempDir())
	for i, name := range []string{"a.flank", "b.flank"} {
		if err := os.WriteFile(dir.path(name), deploytest.Prove(t, machinetest.OneValue(t), uint64(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startBroker(t, 2).Brokers[0], dir
}

// The whole way of a model, as one reads it on the terminal.
func TestRollout(t *testing.T) {
	t.Parallel()
	addr, dir := rollout(t)
	out, err := bus.NewProducer(bus.Config{Brokers: []string{addr}, ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, m := range []string{"acme/spore/bay2/line1/usk25", "acme/spore/bay3/line1/usk26"} {
		text, err := json.Marshal(event.Result{Machine: m})
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Send(t.Context(), []bus.Message{{Topic: bus.TopicResults, Key: m, Value: text}}); err != nil {
			t.Fatal(err)
		}
	}
	told := story{t: t, dir: dir, addr: addr, ids: make(map[string]string)}
	told.do("keys new")
	for _, name := range []string{"a", "b"} {
		said := told.do("publish " + name + ".flank")
		told.ids["MODEL_"+strings.ToUpper(name)] = strings.TrimSuffix(strings.Fields(said)[1], ",")
	}
	for _, line := range []string{
		"publish a.flank",
		"promote MODEL_A --for 'acme/spore/bay2/**' --alarm k=2,n=3",
		"promote MODEL_B --for 'acme/spore/bay2/**' --shadow 48h --note trial",
		"models ls --public-key flank.pub",
		"promote MODEL_B --for 'acme/spore/bay2/**' --now --note better",
		"models diff MODEL_A MODEL_B",
		"rollback --for 'acme/spore/bay2/**'",
		"rollback --for 'acme/spore/bay2/**'",
		"promote MODEL_B --for 'acme/*re/bay2/**'",
		"promote MODEL_B --for 'acme/s*e/bay2/**'",
		"models rm MODEL_A",
		"models show MODEL_A",
		"models show 3",
		"retire --for 'acme/spore/bay2/**'",
		"models rm MODEL_A",
		"models history --for 'acme/spore/bay2/**'",
		"models ls --public-key flank.pub",
	} {
		told.do(line)
	}
	golden.Check(t, "rollout.txt", told.String())
	golden.Check(t, "audit.txt", audited(t, addr, told.ids))

	var now published
	if err := json.Unmarshal([]byte(told.do("models ls --public-key flank.pub -o json")), &now); err != nil || len(now.Models) != 1 || now.Models[0].ID != told.ids["MODEL_B"] || !now.Models[0].Checked || len(now.Deployments) != 1 || now.Deployments[0].For != "acme/*re/bay2/**" || now.Deployments[0].Champion != now.Models[0].ID {
		t.Errorf("%v, %+v", err, now)
	}
	var changes []listedChange
	if err := json.Unmarshal([]byte(told.do("models history --for 'acme/spore/bay2/**' -o json")), &changes); err != nil || len(changes) < 4 || changes[0].Action != "retire" || changes[0].For != "acme/spore/bay2/**" || changes[0].Checked || changes[0].Key == "" {
		t.Errorf("%v, %+v", err, changes)
	}
}

// The curve that `trainer tune` has put next to a model is published with it, also later. One of another
// model, or a damaged one, does not keep the model back.
func TestPublishCurve(t *testing.T) {
	t.Parallel()
	addr, dir := rollout(t)
	told := story{t: t, dir: dir, addr: addr, ids: make(map[string]string)}
	told.do("keys new")
	if said := told.do("publish a.flank"); strings.Contains(said, "curve") {
		t.Errorf("without a curve: %s", said)
	}
	m, err := model.Load(dir.path("a.flank"))
	if err != nil {
		t.Fatal(err)
	}
	point := alarm.Point{K: 2, N: 3, Threshold: 0.5}
	write := func(name, id string, points int) {
		t.Helper()
		c := alarm.Curve{Model: id, Now: point, Chosen: point}
		for range points {
			c.Points = append(c.Points, point)
		}
		text, err := json.Marshal(c)
		if err == nil {
			err = os.WriteFile(dir.path(name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("a.tune.json", m.ID(), 1)
	write("b.tune.json", m.ID(), 1)
	for _, step := range []struct{ line, want string }{
		{"publish a.flank", "curve     of trainer tune, for the page of the model"},
		{"publish a.flank", "curve     of trainer tune, published already"},
		{"publish b.flank", "published ecs-dbn-"},
	} {
		if said := told.do(step.line); !strings.Contains(said, step.want) || strings.HasPrefix(step.line, "publish b") && strings.Contains(said, "curve") {
			t.Errorf("%s: %s", step.line, said)
		}
	}
	for want, points := range map[string]int{"at most 65.5 kB": 5000, "": 2} {
		write("a.tune.json", m.ID(), points)
		if _, log, err := dir.trainer(t, "publish a.flank --key flank.key --kafka "+addr); err != nil || !strings.Contains(log, want) {
			t.Errorf("%d points: %v, %s", points, err, log)
		}
	}
	keys, err := deploy.LoadKeys(false, dir.path("flank.pub"))
	if err != nil {
		t.Fatal(err)
	}
	topic := deploy.NewTopic(bus.Config{Brokers: []string{addr}, ClientID: "test"}, keys)
	if _, err := topic.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := alarm.ParseCurve(topic.Book().Curve(m.ID()), m.ID())
	if err != nil || c == nil || len(c.Points) != 2 {
		t.Errorf("%v, %+v", err, c)
	}
}

// audited returns what the audit has, a record a line, with the names of models for their ids.
func audited(t *testing.T, addr string, ids map[string]string) string {
	t.Helper()
	var text strings.Builder
	skipped, err := audit.Read(t.Context(), bus.Config{Brokers: []string{addr}}, time.Time{}, func(a event.Audit) error {
		if a.Program != program || a.Actor.Name != "kim" || a.Actor.Identified != event.ByTerminal || !strings.Contains(a.Actor.From, "@") {
			t.Errorf("%+v", a)
		}
		fmt.Fprintf(&text, "%s %s; model %s; %s; %s\n", a.Action, a.Outcome, a.Model, a.Object, a.Reason)
		return nil
	})
	if err != nil || skipped > 0 {
		t.Fatalf("%d messages skipped, %v", skipped, err)
	}
	got := text.String()
	for name, id := range ids {
		got = strings.ReplaceAll(got, id, name)
	}
	return times.ReplaceAllString(hash.ReplaceAllString(got, "$1-CHANGE"), "TIME")
}

// story is a row of commands and what they print.
type story struct {
	t    testing.TB
	dir  folder
	addr string
	ids  map[string]string // of models, by a name for people
	text strings.Builder
}

// do runs a command and returns what it prints.
func (s *story) do(line string) string {
	s.t.Helper()
	for name, id := range s.ids {
		line = strings.ReplaceAll(line, name, id)
	}
	args := strings.Fields(line)
	if args[0] != "keys" {
		args = append(args, "--kafka", s.addr)
	}
	if args[0] != "keys" && args[0] != "models" || strings.HasPrefix(line, "models rm") {
		args = append(args, "--key", "flank.key")
	}
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
	}
	stdout, _, err := s.dir.run(s.t.Context(), strings.Join(args, " "))
	s.text.WriteString("$ trainer " + line + "\n" + stdout)
	if err != nil {
		s.text.WriteString("trainer: " + err.Error() + "\n")
	}
	s.text.WriteString("\n")
	return stdout
}

// What differs from run to run.
var (
	times = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
	keys  = regexp.MustCompile(`\b(key +)[0-9a-f]{16}\b`)
	hash  = regexp.MustCompile(`\b(\d+)-[0-9a-f]{8}\b`)
)

// String returns the story without what differs from run to run.
func (s *story) String() string {
	text := s.text.String()
	for name, id := range s.ids {
		text = strings.ReplaceAll(text, id, name+strings.Repeat("_", len(id)-len(name)))
	}
	text = times.ReplaceAllString(text, "2026-11-02 06:00:00")
	text = hash.ReplaceAllString(text, "$1-00000000")
	return keys.ReplaceAllString(text, "${1}0123456789abcdef")
}

func TestRolloutErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a broker that is not there")
	}
	addr, dir := rollout(t)
	before := cli.KafkaPatience
	cli.KafkaPatience = 100 * time.Millisecond
	defer func() { cli.KafkaPatience = before }()
	if _, _, err := dir.trainer(t, "keys new"); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"keys new":                "flank.key is there already",
		"publish none.flank":      "no such file",
		"publish a.flank":         "name your private key with --key",
		"publish a.flank --key k": "name the broker with --kafka",
		"publish a.flank --unsigned --key flank.key --kafka " + addr:                 "name your private key with --key",
		"publish a.flank --key flank.pub --kafka " + addr:                            "others may read this private key",
		"publish a.flank --key flank.key --kafka 127.0.0.1:1":                        "no answer from Kafka at 127.0.0.1:1",
		"publish a.flank --key flank.key --public-key flank.key --kafka " + addr:     "holds a private key",
		"promote m --for ** --no-now --key flank.key --kafka " + addr:                "model m: it is not on tcm.models.v1",
		"promote m --for ** --key flank.key --kafka " + addr:                         "model m: it is not on tcm.models.v1",
		"promote m --for ** --shadow=-1h --key flank.key --kafka " + addr:            "must be positive",
		"promote m --for ** --shadow 1h --alarm k=1 --key flank.key --kafka " + addr: "leave it out",
		"promote m --key flank.key --kafka " + addr:                                  "missing flags: --for=GLOB",
		"models show m --kafka " + addr:                                              "neither a published model nor a change",
		"models diff a.flank c.flank --kafka " + addr:                                "c.flank: it is not on tcm.models.v1",
		"models diff a.flank":                                         "1 models: name two to compare",
		"models diff a.flank c.flank":                                 "c.flank is not a file",
		"models rm change/1-00000000 --key flank.key --kafka " + addr: "is not a record that is refused",
		"models ls --kafka " + addr + " --kafka-config x":             "give one of them",
		"models ls --kafka " + addr + " --public-key a.flank":         "holds no public key",
	} {
		if _, _, err := dir.trainer(t, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestParseAlarm(t *testing.T) {
	for text, want := range map[string]string{
		"k=3,n=5":             "3 of 5, over at 0, off_hold 1m0s, latched, threshold 0.5",
		"clear=1,latch=false": "5 of 8, over at 1, off_hold 1m0s, threshold 0.5",
		"on_hold=2s, off_hold=0s, threshold=0.7, max_shelf=1h, re_alarm=20m": "5 of 8, over at 0, on_hold 2s, latched, threshold 0.7",
		"re_alarm=25h": "re_alarm is 25h0m0s: must be between 0s, for 10m0s, and 24h0m0s",
		"monitor":      "as each monitor is configured",
		"k=9":          "k is 9: must be between 1 and n",
		"k":            "write KEY=VALUE",
		"k=x":          "--alarm k=x",
		"patience=":    "want one of k, n, clear",
	} {
		s, err := parseAlarm(text, nil)
		var got string
		switch {
		case err != nil:
			got = err.Error()
		case s == nil:
			got = alarmText(nil)
		default:
			got = alarmText(deploy.RecordOf(*s))
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", text, got, want)
		}
	}
}
