package train

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/model"
)

// A window of a recording without a clock starts when it did.
func TestRestoreStart(t *testing.T) {
	j := latheJob(t)
	m, err := j.blank()
	if err != nil {
		t.Fatal(err)
	}
	judge := m.NewJudge()
	r, err := newRowReader(m, judge, "lathe", judge.FeatureNames())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := time.Unix(0, rapid.Int64Range(0, 20*24*int64(time.Hour)).Draw(t, "start")).UTC()
		d := &table.Details{StartS: float64(want.UnixNano()) / 1e9, VBMeanUM: nan}
		var o observed
		if err := r.restore(table.Row{Tool: "A", Class: table.NoClass, VBMaxUM: nan, Features: make([]float32, len(judge.FeatureNames())), Details: d}, time.Time{}, &o); err != nil {
			t.Fatal(err)
		}
		if !o.Start.Equal(want) || o.class != table.NoClass || o.truth.VBMaxUM == o.truth.VBMaxUM || o.truth.VBMeanUM == o.truth.VBMeanUM || o.truth.State != "" {
			t.Fatalf("started at %v, read as %v", want, o.Start)
		}
	})
}

func TestRestoreErrors(t *testing.T) {
	for text, want := range map[string]string{"{": "is damaged", "{}": "another release of Flank (format 0", `{"format": 2}`: "format 2"} {
		if _, err := ParseFeatureMeta(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("description %q: %v", text, err)
		}
	}
	rows := table.New(nil)
	for range 3 {
		rows.Append(table.Row{Tool: "T1", Class: table.NoClass})
	}
	for _, r := range []featureRecording{{FirstRow: 2, DataSet: model.DataSet{Windows: 2}}, {FirstRow: -1}, {DataSet: model.DataSet{Windows: -1}}, {FirstRow: 4}} {
		if ins, ok := (&FeatureMeta{SHA256: "s", Recordings: []featureRecording{r}}).Inputs(rows, "s"); ok || ins != nil {
			t.Errorf("%+v of 3 rows: %v", r, ins)
		}
	}
	if f, err := ParseFeatureMeta(""); f != nil || err != nil {
		t.Errorf("no description: %v, %v", f, err)
	}
}

// A description that does not fit its table is refused, and never panics.
func FuzzFeatureMeta(f *testing.F) {
	rows := table.New([]string{"rms"})
	for range 3 {
		rows.Append(table.Row{Tool: "T1", Class: table.NoClass, VBMaxUM: nan, Features: []float32{1}})
	}
	f.Add(`{"format":1,"layout":{"name":"x","channels":[{"name":"rms","kind":"feature","rate":1}]},"window":{"length_ns":1000000000},"recordings":[{"name":"a","windows":2},{"name":"b","windows":1,"first_row":2}],"sha256":"s"}`)
	f.Add(`{"format":1,"recordings":[{"windows":9223372036854775807,"first_row":-9223372036854775808}],"sha256":"s"}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseFeatureMeta(text)
		if err != nil || m == nil {
			return
		}
		ins, ok := m.Inputs(rows, "s")
		for _, in := range ins {
			if ok && (in.Table.Rows() != in.Windows || !in.Observed) {
				t.Fatalf("%d rows for %d windows", in.Table.Rows(), in.Windows)
			}
		}
		c := DefaultConfig()
		if l, err := m.Apply(&c, nil, false); err == nil && len(l.Channels()) == 0 {
			t.Fatal("a layout without channels")
		}
		_ = m.Same(m)
	})
}

// The table of a simulated drill gives the model that the drill gives.
func TestModelOfATable(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("computes features of many samples, and starts nothing of its own")
	}
	tools := sim.Tools(1, 16*time.Second)[:3]
	for i := range tools {
		tools[i].End = sim.Worn
	}
	modelOfATable(t, Simulation{Machine: "local/site/area/line/drill", Seed: 1, Schedule: HistorySchedule}.Job(tools), true)
}

// So does the table of the turning tools.
func TestRecordedModelOfATable(t *testing.T) {
	if testing.Short() {
		t.Skip("reads all turning tools")
	}
	modelOfATable(t, exampleJob(t, "turning", "vicomtech-turning/turning_wear_dev.csv"), false)
}

func modelOfATable(t *testing.T, j Job, cycle bool) {
	t.Helper()
	j.Config.Network = networkConfig{Hidden: []int{4}, Pretrain: dbn.PretrainSettings{Epochs: 1}, FineTune: fineTuneConfig{FineTuneSettings: dbn.FineTuneSettings{Epochs: 5}}}
	j.Config.Costs.Folds, j.Config.Evaluate.ByTool, j.Config.Evaluate.RandomSplit = 2, "off", false
	encode := func(j Job) []byte {
		t.Helper()
		m, _, err := Run(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if cycle != (m.Cycle != nil) {
			t.Fatalf("the machine cuts %s", m.Cutting())
		}
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	path := filepath.Join(t.TempDir(), "f.parquet")
	if n, err := WriteFeatures(t.Context(), j, FeatureFile{Path: path}); err != nil || n.Rows == 0 {
		t.Fatalf("%+v, %v", n, err)
	}
	want := encode(j)
	text, err := table.Meta(path)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := ParseFeatureMeta(text)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := table.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	again := j
	sum := rows.SHA256()
	var ok bool
	if again.Inputs, ok = meta.Inputs(rows, hex.EncodeToString(sum[:])); !ok {
		t.Fatal("the table is not as it was written")
	}
	again.Config.Layout, again.Config.Wear = "", ""
	if again.Layout, err = meta.Apply(&again.Config, nil, false); err != nil {
		t.Fatal(err)
	}
	if got := encode(again); !bytes.Equal(got, want) {
		t.Error("another model than the recordings give")
	}
}
