package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

var shift = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)

// startBroker starts a broker that has the topics, with so many partitions.
func startBroker(t testing.TB, partitions int) bus.Config {
	t.Helper()
	b := brokertest.Start(t)
	cfg := b.Config("test")
	if _, err := bus.Apply(t.Context(), cfg, partitions, 1); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// onKafka sends the windows of the recording to a broker, a tool after the other,
// and writes a wear file. It returns the broker's address, and where the files are.
func onKafka(t *testing.T) (addr string, dir folder) {
	t.Helper()
	dir = bench(t, "train.yaml", trainYAML+"join: interpolate\nevaluate: {random_split: false}\n")
	cfg := startBroker(t, 2)
	layout, _, err := signal.LoadLayout(dir.path("layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(recording())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	wear := "machine,tool,time,vb_max_um\n"
	var msgs []bus.Message
	for i, row := range rows[1:] {
		rms, _ := strconv.ParseFloat(row[1], 32)
		power, _ := strconv.ParseFloat(row[2], 32)
		w := &window.Window{
			Context: signal.Context{Machine: "acme/lathe", Tool: row[0]}, Epoch: 7, Seq: uint64(i), Session: 1, First: int64(i),
			Start: shift.Add(time.Duration(i) * time.Second), Length: time.Second,
			Samples: [][]float32{{float32(rms)}, {float32(power)}}, Quality: make([]signal.Quality, 2),
		}
		e, err := codec.Seal(w)
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, envelope.Window(e))
		wear += fmt.Sprintf("acme/lathe,%s,%s,%s\n", row[0], w.Start.Format(time.RFC3339), row[3])
	}
	if err := os.WriteFile(dir.path("wear.csv"), []byte(wear), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := msgs[3]
	foreign.Headers = slices.Clone(foreign.Headers)
	foreign.Value = []byte("not a window")
	late := append(slices.Clone(msgs[:10]), msgs[11:]...)
	late = append(late, msgs[10], msgs[5], foreign) // late, sent again, and none at all
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := out.Send(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	return cfg.Brokers[0], dir
}

// Windows on Kafka teach what the recording that they were cut from teaches.
func TestFitWindowsOnKafka(t *testing.T) {
	t.Parallel()
	broker, dir := onKafka(t)
	out, log, err := dir.trainer(t, "fit --config train.yaml --wear wear.csv --kafka "+broker)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "120 windows cut, 104 used, 16 make the references") || !strings.Contains(log, "left out messages: something else") {
		t.Errorf("%s%s", out, log)
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --data tools.csv --model file.flank"); err != nil {
		t.Fatal(err)
	}
	type report struct{ Pooled, Groups json.RawMessage }
	var reports [2]report
	for i, path := range []string{"model.report.json", "file.report.json"} {
		text, err := os.ReadFile(dir.path(path))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &reports[i]); err != nil {
			t.Fatal(err)
		}
	}
	if string(reports[0].Groups) != string(reports[1].Groups) || string(reports[0].Pooled) != string(reports[1].Pooled) {
		t.Errorf("scores\n%s\nof the recording\n%s", reports[0].Pooled, reports[1].Pooled)
	}
	out, _, err = dir.trainer(t, "evaluate --quiet --model model.flank --wear wear.csv --kafka "+broker)
	if err != nil || !strings.Contains(out, "104") {
		t.Errorf("evaluate: %v\n%s", err, out)
	}
	// The model says what it was trained on.
	type inspected struct{ Provenance model.Provenance }
	var said inspected
	if out, _, err = dir.trainer(t, "inspect --format json model.flank"); err != nil || json.Unmarshal([]byte(out), &said) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sum := said.Provenance.Data[0].SHA256
	want := model.DataSet{Name: bus.TopicWindows, SHA256: sum, Windows: 120, Machines: []model.MachineTools{{Machine: "acme/lathe", Tools: []string{"T1", "T2", "T3", "T4"}}},
		From: shift, To: shift.Add(2 * time.Minute), Offsets: said.Provenance.Data[0].Offsets}
	if got := said.Provenance.Data; !reflect.DeepEqual(got, []model.DataSet{want}) || len(sum) != 64 || len(said.Provenance.Labels) != 64 || len(want.Offsets) != 1 || want.Offsets[0].To-want.Offsets[0].From != 120 {
		t.Errorf("trained on %+v, labels %s", got, said.Provenance.Labels)
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --wear wear.csv --until 2026-11-02T06:01:30Z --model three.flank --kafka "+broker); err != nil {
		t.Fatal(err)
	}
	out, _, err = dir.trainer(t, "models diff model.flank three.flank")
	for _, want := range []string{
		"trained on     tcm.windows.v1, 120 windows, SHA-256 ", "…, 4 tools of acme/lathe, 2026-11-02T06:00:00Z to 2026-11-02T06:02:00Z, offsets 0 to 119 of partition ",
		"…, 3 tools of acme/lathe, 2026-11-02T06:00:00Z to 2026-11-02T06:01:30Z, offsets ", "tools only in  acme/lathe/T4\n               –\n",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("models diff: %v, want %q\n%s", err, want, out)
		}
	}
	if out, _, err = dir.trainer(t, "inspect three.flank"); err != nil || !strings.Contains(out, "tools       acme/lathe/T1, acme/lathe/T2, acme/lathe/T3\n") {
		t.Errorf("inspect: %v\n%s", err, out)
	}
	// The table of these windows has the same model.
	if _, _, err := dir.trainer(t, "features --quiet --config train.yaml --wear wear.csv --out f.parquet --kafka "+broker); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config train.yaml --table f.parquet --model table.flank"); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(dir.path("model.flank"))
	if got, err := os.ReadFile(dir.path("table.flank")); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("another model from the table of windows on Kafka: %v", err)
	}
	// Its layout is the machines', also if no configuration names it: it judges what they send.
	if err := os.WriteFile(dir.path("plain.yaml"), []byte(strings.Replace(unscored, "layout: layout.yaml\n", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config plain.yaml --table f.parquet --model plain.flank"); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir.path("plain.flank"))
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := sentLately(t.Context(), bus.Config{Brokers: []string{broker}, ClientID: "test"})
	if s, err := suitsOf(m, all, func(string) bool { return true }); err != nil || !slices.Equal(s.can, []string{"acme/lathe"}) {
		t.Errorf("it suits %+v: %v", s, err)
	}
}

func TestPartsOfATopic(t *testing.T) {
	before := cli.KafkaPatience
	t.Cleanup(func() { cli.KafkaPatience = before })
	cli.KafkaPatience = time.Millisecond
	broker, dir := onKafka(t)
	for args, want := range map[string]string{
		"--since 2026-11-02T06:00:30Z":                              "90 windows cut",
		"--since 2026-11-02T06:00:30Z --until 2026-11-02T06:01:30Z": "60 windows cut",
		"--until 2026-11-02T06:01:30Z":                              "90 windows cut",
	} {
		out, _, err := dir.trainer(t, "fit --quiet --config train.yaml --wear wear.csv --kafka "+broker+" "+args)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	fit := "fit --quiet --config train.yaml --wear wear.csv "
	for name, text := range map[string]string{
		"kafka.yaml": "kafka: {brokers: [\"" + broker + "\"]}\n", "open.yaml": "kafka: {brokers: [\"" + broker + "\"], sasl: {user: trainer, password_env: X}}\n",
	} {
		if err := os.WriteFile(dir.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, _, err := dir.trainer(t, fit+"--kafka-config kafka.yaml"); err != nil || !strings.Contains(out, "120 windows cut") {
		t.Errorf("--kafka-config: %v\n%s", err, out)
	}
	for args, want := range map[string]string{
		fit + "--kafka " + broker + " --since yesterday":                                         `--since: "yesterday": write a time such as`,
		fit + "--kafka " + broker + " --since 2030-01-01T00:00:00Z":                              "no windows between --since and --until: Kafka has windows from 2026-11-02T06:00:01Z to 2026-11-02T06:02:00Z",
		fit + "--kafka " + broker + " --since 2026-11-02T06:01:00Z --until 2026-11-02T06:00:30Z": "Kafka has windows from 2026-11-02T06:00:01Z",
		"labels check --quiet --config train.yaml --kafka " + broker:                             "--wear FILE",
		fit + "--kafka " + broker + " --data tools.csv":                                          "not from both at once",
		fit + "--kafka-config kafka.yaml --data tools.csv":                                       "not from both at once",
		fit + "--kafka-config kafka.yaml --kafka " + broker:                                      "give one of them",
		fit + "--kafka-config open.yaml":                                                         "without `tls`",
		fit + "--kafka-config absent.yaml":                                                       "absent.yaml",
		fit + "--data tools.csv --since 3h":                                                      "--since and --until go with --kafka",
		"fit --quiet --wear wear.csv --kafka " + broker:                                          "is a window of layout",
		"fit --quiet --config train.yaml --kafka " + broker:                                      "--wear FILE",
		fit + "--kafka nowhere:x --since 1h":                                                     "nowhere:x",
		"evaluate --quiet --model absent.flank --kafka 127.0.0.1:1":                              "absent.flank",
		"fit --quiet --config train.yaml --kafka " + broker + " --until=-1":                      `--until: "-1": write a time`,
	} {
		if _, _, err := dir.trainer(t, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
