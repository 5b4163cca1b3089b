package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/testkit/deploytest"
	"github.com/flank-tcm/flank/internal/testkit/golden"
	"github.com/flank-tcm/flank/internal/testkit/machinetest"
	"github.com/flank-tcm/flank/internal/train/compare"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// replayPlant has features of two machines on Kafka, models in files, and a configuration.
type replayPlant struct {
	t   *testing.T
	cfg bus.Config
	dir string
}

// Tools get worn in steps. One model knows every step, the other one does not know those
// between new and worn.
var replaySteps = []float32{10, 12, 15, 16.03, 16.06, 16.09, 16.12, 16.15, 16.18, 16.21, 16.25, 20}

const windowsAStep = 20

// wearing returns the windows of a tool that gets worn.
func wearing(machine, tool string, first uint64) (ws []*window.Window) {
	for _, v := range replaySteps {
		for range windowsAStep {
			w := machinetest.At(first+uint64(len(ws)), tool, false)
			w.Machine, w.Samples[0][0] = machine, v
			ws = append(ws, w)
		}
	}
	return ws
}

func newReplayPlant(t *testing.T) *replayPlant {
	t.Helper()
	p := &replayPlant{t: t, dir: t.TempDir()}
	b := brokertest.Start(t)
	p.cfg = b.Config("test")
	if _, err := bus.Apply(t.Context(), p.cfg, 3, 1); err != nil {
		t.Fatal(err)
	}
	one := machinetest.OneValue(t)
	for name, m := range map[string]*model.Model{"one": one, "three": machinetest.OfThree(t), "cycling": machinetest.Cycling(t)} {
		if err := m.Save(p.path(name + ".flank")); err != nil {
			t.Fatal(err)
		}
	}
	p.write("monitor.yaml", fmt.Sprintf("kafka:\n  brokers: [%q]\nalarm:\n  k: 5\n  n: 8\n", p.cfg.Brokers[0]))
	var msgs []bus.Message
	for i, machine := range []string{machinetest.Drill, "acme/line2/drill"} {
		ws := append(wearing(machine, "T1", uint64(i)), wearing(machine, "T2", uint64(i)+uint64(windowsAStep*len(replaySteps)))...)
		for n, w := range ws {
			f := machinetest.Features(one, w)
			e, err := f.Form.Seal(f)
			if err != nil {
				t.Fatal(err)
			}
			msgs = append(msgs, envelope.Features(e, envelope.Monitor, int64(n)))
			if n == 7 {
				msgs = append(msgs, envelope.Features(e, envelope.Gateway, 0)) // it came both ways
			}
		}
	}
	broken := msgs[3]
	broken.Value = []byte("not features")
	p.send(append(msgs, broken)...)
	return p
}

func (p *replayPlant) path(name string) string { return filepath.Join(p.dir, name) }

func (p *replayPlant) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *replayPlant) send(msgs ...bus.Message) {
	p.t.Helper()
	out, err := bus.NewProducer(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	if err := out.Send(p.t.Context(), msgs); err != nil {
		p.t.Fatal(err)
	}
}

// replay runs the command with models of files.
func (p *replayPlant) replay(a, b string, args ...string) (string, error) {
	p.t.Helper()
	var out, log bytes.Buffer
	err := run(p.t.Context(), append([]string{"replay", "--quiet", "--config", p.path("monitor.yaml"), "--models", p.path(a) + "," + p.path(b)}, args...), &out, &log)
	return strings.ReplaceAll(out.String(), p.dir+string(filepath.Separator), ""), err
}

func (p *replayPlant) report(a, b string, args ...string) (r compare.Report) {
	p.t.Helper()
	text, err := p.replay(a, b, append(args, "--format", "json")...)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		p.t.Fatal(err)
	}
	return r
}

// Two models judge what lies on Kafka; one raises later, since it does not know tools that are
// half worn.
func TestReplay(t *testing.T) {
	t.Parallel()
	p := newReplayPlant(t)
	p.write("wear.csv", "machine,tool,time,vb_max_um\nacme/line1/drill,T1,2026-11-02T02:00:00Z,0\nacme/line1/drill,T1,2026-11-02T02:04:00Z,480\n")
	text, err := p.replay("one.flank", "three.flank", "--wear", p.path("wear.csv"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "replay.txt", text)
	if r := p.report("one.flank", "one.flank"); r.Windows != 960 || r.Alarms.Same != 4 || r.Alarms.Both != 4 || r.Alarms.OnlyA+r.Alarms.OnlyB > 0 || *r.Unknown[0] != *r.Unknown[1] {
		t.Errorf("a model compared with itself: %+v", r)
	}
	from, to := "2026-11-02T02:04:00Z", "2026-11-02T02:06:00Z"
	for name, tc := range map[string]struct {
		args    []string
		windows uint64
		said    int
	}{
		"one machine":     {[]string{"--for", "acme/line2/**"}, 480, 1},
		"a time":          {[]string{"--since", from, "--until", to}, 240, 2},
		"none in a time":  {[]string{"--since", "2027-01-01T00:00:00Z"}, 0, 0},
		"none by machine": {[]string{"--for", "acme/line7/*"}, 0, 0},
	} {
		r := p.report("one.flank", "three.flank", tc.args...)
		if r.Windows != tc.windows || len(r.Machines) != tc.said {
			t.Errorf("%s: %d windows of %d machines", name, r.Windows, len(r.Machines))
		}
	}
	r := p.report("one.flank", "cycling.flank")
	if left := r.Machines[0].LeftOut; r.Windows != 0 || len(left) == 0 {
		t.Errorf("by a model that takes other features: %d windows, left out %v", r.Windows, left)
	}
	page, err := p.replay("one.flank", "three.flank", "--format", "html")
	if err != nil || !strings.Contains(page, "<svg") || !strings.Contains(page, "acme/line2/drill") {
		t.Errorf("page: %v\n%s", err, page)
	}
}

// Models are named by their ids, too, once they are published.
func TestReplayPublishedModels(t *testing.T) {
	t.Parallel()
	p := newReplayPlant(t)
	private := deploytest.Key(1)
	signer := deploy.NewSigner(private)
	w := deploy.Writer{Bus: p.cfg, Keys: deploy.NewKeys(false), Signer: signer, By: "test", Now: time.Now}
	var ids []string
	for i, m := range []*model.Model{machinetest.OneValue(t), machinetest.OfThree(t)} {
		mf, _, err := w.Publish(t.Context(), deploytest.Prove(t, m, uint64(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, mf.ID)
	}
	var out, log bytes.Buffer
	args := []string{"replay", "--quiet", "--config", p.path("monitor.yaml"), "--for", "acme/line1/**", "--models"}
	if err := run(t.Context(), append(args, strings.Join(ids, ",")), &out, &log); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "A         "+ids[0]+"\nB         "+ids[1]+"\nwindows   480 that both judged") || !strings.Contains(text, "alarms    2 in both (B later in 2; median: 20 s later)") {
		t.Error(text)
	}
	if err := run(t.Context(), append(args, ids[0]+",ecs-dbn-000000000000"), &out, &log); err == nil || !strings.Contains(err.Error(), "--models ecs-dbn-000000000000: ") {
		t.Error(err)
	}
}

// A replay of a table of features says what the table's wear is at the alarms.
func TestReplayTable(t *testing.T) {
	t.Parallel()
	p := &replayPlant{t: t, dir: t.TempDir()}
	for name, m := range map[string]*model.Model{"one": machinetest.OneValue(t), "three": machinetest.OfThree(t)} {
		if err := m.Save(p.path(name + ".flank")); err != nil {
			t.Fatal(err)
		}
	}
	p.write("monitor.yaml", "kafka:\n  brokers: [127.0.0.1:1]\n")
	layout := machinetest.OneValue(t).Layout
	meta := new(table.Origin)
	meta.Format, meta.Layout.Name, meta.Layout.Channels, meta.Window.LengthNS = 1, layout.Name(), layout.Channels(), time.Second
	meta.Features.Version = signal.FeatureVersion
	text, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(p.path("tables"), 0o700); err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	for i, tool := range []string{"T2", "T1"} { // the files' names are not in the order of time
		h := table.Head{Columns: []string{"force"}, Detailed: true, Meta: string(text)}
		err := h.Save(p.path(filepath.Join("tables", fmt.Sprintf("%d.parquet", i))), func(visit func(table.Row) error) error {
			for k, w := range wearing("", tool, uint64(500*(1-i))) {
				d := table.Details{Recording: tool, Sequence: float64(k), Level: nan, StartS: nan, LengthS: 1, VBMeanUM: nan, Status: table.Judged}
				if err := visit(table.Row{Tool: tool, Start: w.Start, Class: table.NoClass, VBMaxUM: float64(k), Features: []float32{w.Samples[0][0]}, Details: &d}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.write("tables/notes.txt", "not a table")
	got, err := p.replay("one.flank", "three.flank", "--table", p.path("tables"))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "replay-table.txt", got)
	if again := p.report("one.flank", "three.flank", "--table", p.path("tables/1.parquet"), "--table", p.path("tables/*.parquet")); again.Windows != 480 {
		t.Errorf("a table named twice: %d windows", again.Windows)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	p := &replayPlant{t: t, dir: t.TempDir()}
	if err := machinetest.OneValue(t).Save(p.path("one.flank")); err != nil {
		t.Fatal(err)
	}
	p.write("monitor.yaml", "kafka:\n  brokers: [127.0.0.1:1]\n")
	p.write("table.csv", "tool,force\nT1,10\n")
	for name, tc := range map[string]struct {
		models string
		args   []string
		want   string
	}{
		"one model":          {p.path("one.flank"), nil, "names 1 models: name two"},
		"no such model":      {p.path("one.flank") + "," + p.path("two.flank"), nil, "two.flank"},
		"times":              {"", []string{"--since", "2026-11-02T02:00:00Z", "--until", "2026-11-01T02:00:00Z"}, "is not before --until"},
		"machines":           {"", []string{"--for", "a//b"}, "a level is empty"},
		"wear":               {"", []string{"--wear", p.path("none.csv")}, "--wear: "},
		"no table":           {"", []string{"--table", p.path("*.parquet")}, "no table there"},
		"a stranger's table": {"", []string{"--table", p.path("table.csv")}, "nothing in the table says which layout"},
	} {
		models := tc.models
		if models == "" {
			models = p.path("one.flank") + "," + p.path("one.flank")
		}
		var out, log bytes.Buffer
		err := run(t.Context(), append([]string{"replay", "--config", p.path("monitor.yaml"), "--models", models}, tc.args...), &out, &log)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
