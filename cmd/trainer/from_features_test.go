package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

const drillYAML = `reference: {windows: 4, mode: kind}
label: {vb_max_um: 200}
network: {hidden: [4], pretrain: {epochs: 2}, fine_tune: {epochs: 8}}
costs: {folds: 3}
evaluate: {by_tool: "off", random_split: false}
`

// plant is a broker of its own, with what a plant sent to it.
type plant struct {
	addr string
	out  *bus.Producer
}

func newPlant(t testing.TB) *plant {
	t.Helper()
	cfg := startBroker(t, 2)
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return &plant{addr: cfg.Brokers[0], out: out}
}

func (p *plant) send(t testing.TB, msgs ...bus.Message) {
	t.Helper()
	if err := p.out.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
}

// shavings are what came of tools on a simulated machine.
type shavings struct {
	windows, features []window.Envelope
	wear              []string // rows of a wear file, by the holes of the tools
}

// drills has the shavings of all machines and tools that a test has asked for: many ask for the same ones, which take
// a second.
var (
	drills   = make(map[string]*shavings)
	drilling sync.Mutex
)

// drilled drills tools on a simulated machine, and calls each with the messages of each window and of its features. It
// returns rows of a wear file.
func drilled(t testing.TB, machine string, tools []sim.Tool, by envelope.Extractor, each func(seq uint64, w, f bus.Message)) (wear []string) {
	t.Helper()
	s := simulate(t, machine, tools)
	for i := range s.windows {
		each(uint64(i), envelope.Window(s.windows[i]), envelope.Features(s.features[i], by, int64(i)))
	}
	return slices.Clone(s.wear)
}

func simulate(t testing.TB, machine string, tools []sim.Tool) *shavings {
	t.Helper()
	drilling.Lock()
	defer drilling.Unlock()
	key := fmt.Sprint(machine, tools)
	if s := drills[key]; s != nil {
		return s
	}
	s := new(shavings)
	drill, err := sim.New(sim.Settings{Machine: machine, Start: shift, Seed: 1, Tools: tools, Hole: 5 * time.Second, Pause: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	cut, err := source.NewCutter(drill, window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := window.NewCodec(drill.Layout(), window.DefaultSpec)
	if err != nil {
		t.Fatal(err)
	}
	form, err := window.NewForm(drill.Layout(), window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := form.NewExtractor()
	for seq := uint64(0); ; {
		c, err := cut.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.Window == nil {
			continue
		}
		w := *c.Window
		w.Epoch, w.Seq, w.SpindleSpeed, w.Programme = 7, seq, 900, "O1"
		if seq == 3 { // a window without a tool
			w.Tool = ""
		}
		if seq%9 == 8 {
			w.Quality = slices.Clone(w.Quality)
			w.Quality[0] |= signal.Clipped
		}
		sealed, err := codec.Seal(&w)
		if err != nil {
			t.Fatal(err)
		}
		var f window.Features
		x.Extract(&w, &f)
		features, err := form.Seal(&f)
		if err != nil {
			t.Fatal(err)
		}
		s.windows, s.features = append(s.windows, sealed), append(s.features, features)
		seq++
	}
	for _, m := range drill.Measurements() {
		s.wear = append(s.wear, fmt.Sprintf("%s,%s,%s,%g", m.Machine, m.Tool, m.Hole, m.VBMaxUM))
	}
	drills[key] = s
	return s
}

func (dir folder) writeWear(t testing.TB, name string, rows []string) {
	t.Helper()
	if err := os.WriteFile(dir.path(name), []byte("machine,tool,hole,vb_max_um\n"+strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// bare returns the bytes of a model without what says where its windows came from.
func (dir folder) bare(t *testing.T, name string) ([]byte, model.DataSet) {
	t.Helper()
	m, err := model.Load(dir.path(name))
	if err != nil || len(m.Provenance.Data) != 1 {
		t.Fatalf("%v: %+v", err, m)
	}
	d := m.Provenance.Data[0]
	m.Provenance.Data, m.Provenance.LabelsFrom = nil, nil
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b, d
}

// Features on Kafka teach what their windows teach, byte for byte: also where windows are gone, where a gateway in mode
// edge sent none, and where wear was measured after that.
func TestFitFeaturesOnKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("trains several times on all windows of the drill")
	}
	t.Parallel()
	dir := bench(t, "drill.yaml", drillYAML)
	all, late, mixed := newPlant(t), newPlant(t), newPlant(t) // has everything; lost its windows; lost some
	const raw, edge = "acme/raw", "acme/edge"
	tools := sim.Tools(1, 20*time.Second)
	var held, all1 []bus.Message
	each := func(machine string) func(uint64, bus.Message, bus.Message) {
		return func(seq uint64, w, f bus.Message) {
			all.send(t, w, f)
			if machine == raw && seq >= 20 {
				mixed.send(t, w)
			}
			held, all1 = append(held, f), append(all1, f)
			if len(held) == 7 { // some come late, in another order than windows, and twice
				slices.Reverse(held)
				late.send(t, append(held, held[3])...)
				mixed.send(t, held...)
				held = held[:0]
			}
		}
	}
	wear := drilled(t, raw, tools[:2], envelope.Monitor, each(raw))
	early := len(wear)
	wear = append(wear, drilled(t, edge, tools[2:4], envelope.Gateway, each(edge))...)
	late.send(t, held...)
	mixed.send(t, held...)
	dir.writeWear(t, "wear.csv", wear)
	dir.writeWear(t, "early.csv", wear[:early])

	// What no one can take: of another form, of another layout, damaged, and an answer to a command.
	other, foreign, broken := all1[0], all1[1], all1[2]
	other.Headers, foreign.Headers = slices.Clone(other.Headers), slices.Clone(foreign.Headers)
	set := func(m *bus.Message, key, value string) {
		for i := range m.Headers {
			if m.Headers[i].Key == key {
				m.Headers[i].Value = []byte(value)
			}
		}
	}
	set(&other, "features", "0123456789abcdef")
	set(&foreign, "layout", "0123456789abcdef")
	set(&foreign, "features", "0123456789abcdef")
	broken.Value = broken.Value[:100]
	late.send(t, other, foreign, broken, envelope.Event(bus.TopicFeatures, "answer", raw, event.FetchedType, shift, []byte("{}")))

	fit := func(p *plant, model, wear, more string) (out, log string) {
		t.Helper()
		out, log, err := dir.trainer(t, "fit --config drill.yaml --wear "+wear+" --model "+model+" --kafka "+p.addr+" "+more)
		if err != nil {
			t.Fatalf("%s: %v\n%s", more, err, log)
		}
		return out, log
	}
	count := len(all1) - 2 // each machine sent a window without a tool
	says := fmt.Sprintf("%d windows cut", count)
	out, log := fit(all, "windows.flank", "wear.csv", "--from windows")
	if !strings.Contains(out, says) || !strings.Contains(log, `"messages":2,"because":"no tool","machines":"acme/edge, acme/raw"`) || !strings.Contains(log, "`context` in ingest.yaml") {
		t.Errorf("windows: %s, want %s\n%s", out, says, log)
	}
	want, from := dir.bare(t, "windows.flank")
	machines := from.Machines
	if from.Name != bus.TopicWindows || from.Windows != count {
		t.Errorf("from windows: %s", from)
	}
	fit(late, "early.flank", "early.csv", "") // two tools are not measured yet
	for _, tc := range []struct {
		name, more   string
		plant        *plant
		topics       []string
		log          []string
		fromFeatures int
	}{
		{"all.flank", "", all, []string{bus.TopicWindows}, nil, 0},
		{"features.flank", "--from features", all, []string{bus.TopicFeatures}, nil, count},
		{"late.flank", "", late, []string{bus.TopicFeatures}, []string{
			`"because":"features"`, `"because":"layout"`, `"messages":1,"because":"damaged"`, `"no_windows":"acme/edge, acme/raw"`}, count},
		{"mixed.flank", "--from auto", mixed, []string{bus.TopicWindows, bus.TopicFeatures}, []string{
			`"some_windows_gone":"acme/raw"`, `"no_windows":"acme/edge"`}, 0},
	} {
		out, log := fit(tc.plant, tc.name, "wear.csv", tc.more)
		if !strings.Contains(out, says) {
			t.Errorf("%s: %s, want %s", tc.name, out, says)
		}
		for _, text := range tc.log {
			if !strings.Contains(log, text) {
				t.Errorf("%s: want %s in\n%s", tc.name, text, log)
			}
		}
		got, from := dir.bare(t, tc.name)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: another model than from windows", tc.name)
		}
		if from.Name != strings.Join(tc.topics, ", ") || from.Windows != count || len(from.SHA256) != 64 || !reflect.DeepEqual(from.Machines, machines) || from.From.IsZero() {
			t.Errorf("%s: from %s", tc.name, from)
		}
		taken := 0
		for i, topic := range from.Topics() {
			if taken += topic.Windows; topic.Topic != tc.topics[i] || topic.Windows == 0 {
				t.Errorf("%s: %+v", tc.name, from.Offsets)
			}
		}
		if taken != count {
			t.Errorf("%s: %d windows are of some topic, want %d", tc.name, taken, count)
		}
	}

	// The other commands read features, too.
	for args, begins := range map[string]string{
		"labels check --quiet --config drill.yaml --wear wear.csv": "",
		"evaluate --quiet --model windows.flank --wear wear.csv":   "\nmodel ", // before and behind: by which data it knows that it was trained on these tools
	} {
		fromWindows, _, err := dir.trainer(t, args+" --from windows --kafka "+all.addr)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := dir.trainer(t, args+" --kafka "+late.addr)
		text := func(s string) string { s, _, _ = strings.Cut(s[strings.Index(s, begins):], "\nnote: "); return s }
		if err != nil || text(got) != text(fromWindows) || begins != "" && !strings.Contains(got, "the model was trained on these tools") {
			t.Errorf("%s from features: %v\n%s\nfrom windows\n%s", args, err, got, fromWindows)
		}
	}
	if _, _, err := dir.trainer(t, "features --quiet --config drill.yaml --wear wear.csv --out f.parquet --kafka "+mixed.addr); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dir.trainer(t, "fit --quiet --config drill.yaml --table f.parquet --model table.flank"); err != nil {
		t.Fatal(err)
	}
	whole, _ := os.ReadFile(dir.path("mixed.flank"))
	if got, err := os.ReadFile(dir.path("table.flank")); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("another model from the table of features on Kafka: %v", err)
	}

	// Labels that people give, with the windows or after they have gone, are worth as much as the file.
	var models [2][]byte
	for i, tc := range []struct {
		plant *plant
		files []string
		name  string
	}{{all, []string{"wear.csv"}, "at-once.flank"}, {late, []string{"early.csv", "wear.csv"}, "after.flank"}} {
		for _, file := range tc.files {
			if _, _, err := dir.trainer(t, "labels import --anyway "+file+" --kafka "+tc.plant.addr); err != nil {
				t.Fatal(err)
			}
		}
		out, log, err := dir.trainer(t, "fit --config drill.yaml --labels floor --from features --model "+tc.name+" --kafka "+tc.plant.addr)
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, log)
		}
		got, _ := dir.bare(t, tc.name)
		card, _ := os.ReadFile(dir.path(strings.Replace(tc.name, "flank", "report.html", 1)))
		from := fmt.Sprintf("%d from the floor", len(wear))
		if shown, _, err := dir.trainer(t, "models diff "+tc.name+" windows.flank"); !bytes.Equal(got, want) || !strings.Contains(string(card), from) {
			t.Errorf("%s: another model than with the file, or %q is not on its card: %v %s", tc.name, from, err, shown)
		}
		m, err := model.Load(dir.path(tc.name))
		if err != nil || m.Provenance.LabelsFrom["floor"] != len(wear) {
			t.Fatalf("%v, labels from %v", err, m)
		}
		m.Provenance.Data = nil
		if models[i], err = m.Encode(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(models[0], models[1]) {
		t.Error("labels that came after the windows had gone give another model")
	}
	for args, says := range map[string]string{
		"labels check --quiet --config drill.yaml --labels floor --kafka " + late.addr:                                       fmt.Sprintf("labels   %d from the floor", len(wear)),
		"labels check --quiet --config drill.yaml --table f.csv --labels floor --kafka " + late.addr:                         "from the floor",
		"evaluate --quiet --model windows.flank --labels floor --kafka " + late.addr:                                         "the model was trained on these tools",
		"labels check --quiet --config drill.yaml --labels all --wear wear.csv --kafka " + newPlant(t).addr + " --data none": "!--data none",
		"labels check --quiet --config drill.yaml --labels all --kafka " + newPlant(t).addr:                                  "!there are none on Kafka",
		"labels check --quiet --config drill.yaml --labels floor --table f.parquet":                                          "!they are on Kafka, name the broker",
	} {
		if strings.Contains(args, "f.csv") {
			if _, _, err := dir.trainer(t, "features --quiet --config drill.yaml --out f.csv --kafka "+mixed.addr); err != nil {
				t.Fatal(err)
			}
		}
		out, _, err := dir.trainer(t, args)
		if fails, bad := strings.CutPrefix(says, "!"); bad != (err != nil) || bad && !strings.Contains(err.Error(), fails) || !bad && !strings.Contains(out, says) {
			t.Errorf("%s: %v, want %q\n%s", args, err, says, out)
		}
	}

	// They may be read twice, as trainer tune does.
	d, err := inputFlags{kafkaFlags: kafkaFlags{Broker: cli.Broker{Brokers: []string{mixed.addr}}}}.load("--config", dir.path("drill.yaml"), "", nil, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir.path("windows.flank"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n := 0
		if _, err := d.Inputs[0].Cut(t.Context(), m, func(int, int) {}, func(*window.Features) error { n++; return nil }); err != nil || n != count {
			t.Errorf("read %d windows, %v, want %d", n, err, count)
		}
	}

	if err := os.WriteFile(dir.path("own.yaml"), []byte(drillYAML+"features: {set: [min, rms]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"fit --quiet --config own.yaml --from features --wear wear.csv --kafka " + late.addr:  "`features.set` cannot be had from features on Kafka",
		"fit --quiet --config drill.yaml --from windows --wear wear.csv --kafka " + late.addr: "no windows between --since and --until",
		"fit --quiet --config own.yaml --wear wear.csv --kafka " + late.addr:                  "of machines acme/edge, acme/raw; the first",
		"fit --quiet --config drill.yaml --from rows --wear wear.csv --kafka " + late.addr:    "--from",
		"fit --quiet --config train.yaml --wear wear.csv --kafka " + late.addr:                "name the layout and the window of the ingester in --config",
		"fit --quiet --config train.yaml --data tools.csv --from features":                    "--from goes with --kafka",
	} {
		if _, _, err := dir.trainer(t, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
