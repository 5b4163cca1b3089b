package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

var start = time.Date(2026, 11, 2, 22, 0, 0, 0, time.UTC)

const (
	lathe = "acme/spore/bay 2/line%1/lathe"
	drill = "acme/spore/bay2/line1/usk26"
)

func newLayout(t testing.TB, name string) *signal.Layout {
	t.Helper()
	l, err := signal.NewLayout(name, []signal.Channel{{Name: "force", Kind: signal.Force, Rate: 20, Unit: "N"}, {Name: "power", Kind: signal.Feature, Rate: 1, Unit: "W"}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// plant is a broker with what a plant sent.
type plant struct {
	life   string // of its tools
	cfg    bus.Config
	out    *bus.Producer
	layout *signal.Layout
	seq    uint64
}

func newPlant(t testing.TB) *plant {
	t.Helper()
	b := brokertest.Start(t)
	p := &plant{life: "a", cfg: b.Config("test"), layout: newLayout(t, "lathe")}
	_, err := bus.Apply(t.Context(), p.cfg, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if p.out, err = bus.NewProducer(p.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.out.Close)
	return p
}

func (p *plant) send(t testing.TB, msgs ...bus.Message) {
	t.Helper()
	if err := p.out.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
}

// features returns features of the next window of a machine.
func (p *plant) features(t testing.TB, machine string, at time.Time) bus.Message {
	t.Helper()
	form, err := window.NewForm(p.layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.seq++
	rng := rand.New(rand.NewPCG(p.seq, 1))
	samples := [][]float32{make([]float32, 20), {rng.Float32()}}
	for i := range samples[0] {
		samples[0][i] = rng.Float32()
	}
	w := window.Window{
		Context: signal.Context{Machine: machine, Tool: fmt.Sprintf("T%d", p.seq/20), Hole: "H1", SpindleSpeed: 900, FeedRate: 40.5, Programme: "O1", Material: "steel", ToolLife: p.life},
		Epoch:   7, Seq: p.seq, Start: at, Length: time.Second, Session: 3, First: int64(p.seq) * 20, Samples: samples, Quality: []signal.Quality{0, signal.Clipped}, Rates: []float64{20.001},
	}
	if p.seq%5 == 0 {
		w.Tool, w.ToolLife, w.Rates, w.Samples[1][0] = "", "", nil, float32(nan())
	}
	var x window.Features
	form.NewExtractor().Extract(&w, &x)
	e, err := form.Seal(&x)
	if err != nil {
		t.Fatal(err)
	}
	return envelope.Features(e, envelope.Monitor, int64(p.seq))
}

func nan() float64 { z := 0.0; return z / z }

func result(machine string, seq int, at time.Time) bus.Message {
	wear := 120.5
	r := event.Result{ID: fmt.Sprintf("%s/7/%d/g", machine, seq), Group: "g", Machine: machine, Epoch: "7", Seq: uint64(seq), Tool: "T1", Start: at, End: at.Add(time.Second), Verdict: event.Healthy, Score: 0.25, Wear: &event.Wear{WearUM: wear}}
	return envelope.Event(bus.TopicResults, r.ID, machine, event.ResultType, r.End, event.JSON(r))
}

// days sends what three days and two machines gave, with a message that is damaged on each topic.
func (p *plant) days(t testing.TB) {
	t.Helper()
	var msgs []bus.Message
	for i := range 60 {
		at := start.Add(time.Duration(i) * time.Hour)
		for _, machine := range []string{lathe, drill} {
			msgs = append(msgs, p.features(t, machine, at), result(machine, i, at))
		}
	}
	bad := slices.Clone(msgs[:2])
	bad[0].Value, bad[1].Value = []byte("not features"), []byte("{")
	p.send(t, append(slices.Insert(msgs, 40, bad...), envelope.Event(bus.TopicAlerts, "a", drill, event.AlertType, start, []byte(`{"id":"a","state":"raised","at":"2026-11-02T22:00:00Z"}`)))...)
}

func (p *plant) config(dir string) Config {
	return Config{Bus: p.cfg, Dir: dir, Layouts: []*signal.Layout{p.layout}, Now: func() time.Time { return start }, Progress: func(string, int, int) {}, Log: zerolog.Nop(), cells: 2000}
}

// files returns the bytes of an archive by path.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// messages returns the values of the features that an archive has, by partition and offset. It fails on what is there twice.
func messages(t testing.TB, dir string) map[string]bus.Message {
	t.Helper()
	paths, err := Matches(filepath.ToSlash(dir) + "/features/**/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bus.Message)
	for _, path := range paths {
		if err := ReadFeatures(path, func(m bus.Message) error {
			at := fmt.Sprintf("%d/%d", m.Partition, m.Offset)
			if _, twice := all[at]; twice {
				return fmt.Errorf("%s is there twice", at)
			}
			all[at] = m
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func run1(t testing.TB, cfg Config) Report {
	t.Helper()
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What comes out of the archive is what Kafka has, but for damaged messages, which are counted.
func TestArchiveHoldsWhatKafkaHas(t *testing.T) {
	p := newPlant(t)
	p.days(t)
	dir := t.TempDir()
	r := run1(t, p.config(dir))
	if r.Rows["features"] != 120 || r.Rows["results"] != 120 || r.Rows["alerts"] != 1 || r.LeftOut["damaged"] != 2 || r.Merged == 0 {
		t.Errorf("%+v", r)
	}
	got := messages(t, dir)
	n := 0
	for part := range 2 {
		err := bus.ReadRange(t.Context(), p.cfg, bus.TopicFeatures, part, bus.Range{}, func(m bus.Message) error {
			g, ok := got[fmt.Sprintf("%d/%d", part, m.Offset)]
			if string(m.Value) == "not features" {
				return nil
			}
			n++
			if !ok || !bytes.Equal(g.Value, m.Value) || g.Key != m.Key || !g.Time.Equal(m.Time) || fmt.Sprint(g.Headers) != fmt.Sprint(m.Headers) {
				return fmt.Errorf("offset %d of partition %d is another: %v\n%v", m.Offset, part, g.Headers, m.Headers)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if n != len(got) {
		t.Errorf("%d messages, Kafka has %d", len(got), n)
	}
	again := files(t, dir)
	if r := run1(t, p.config(dir)); r.Files != 0 || !maps.Equal(files(t, dir), again) {
		t.Errorf("a second run wrote %d files", r.Files)
	}
}

// A run that is cut off anywhere, and begun again until one ends, leaves the bytes of a run that was not.
func TestKilledAHundredTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("is killed a hundred times")
	}
	p := newPlant(t)
	p.days(t)
	whole := t.TempDir()
	run1(t, p.config(whole))
	want := files(t, whole)
	steps := 0
	counting := p.config(t.TempDir())
	counting.step = func(string) error { steps++; return nil }
	run1(t, counting)
	killed := errors.New("killed")
	dir, rng, kills := t.TempDir(), rand.New(rand.NewPCG(1, 2)), 0
	for kills < 100 {
		cfg := p.config(dir)
		left := rng.IntN(1 + steps/4)
		cfg.step = func(path string) error {
			if left--; left >= 0 {
				return nil
			}
			if file, ok := strings.CutSuffix(path, ": written"); ok { // a kill leaves what is half written
				if err := os.WriteFile(filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".7"), []byte("half"), 0o600); err != nil {
					return err
				}
			}
			return killed
		}
		_, err := Run(t.Context(), cfg)
		messages(t, dir) // nothing is there twice
		switch {
		case errors.Is(err, killed):
			kills++
		case err != nil:
			t.Fatal(err)
		default:
			same(t, files(t, dir), want)
			dir = t.TempDir()
		}
	}
	run1(t, p.config(dir))
	same(t, files(t, dir), want)
}

func same(t testing.TB, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			t.Errorf("%s: %d bytes, want %d", path, len(got[path]), len(want[path]))
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is there too", path)
		}
	}
}

// Days that are over have the same bytes, in however many runs they were archived.
func TestMergedDaysDoNotDependOnRuns(t *testing.T) {
	p := newPlant(t)
	many := t.TempDir()
	for range 3 {
		p.days(t)
		run1(t, p.config(many))
	}
	p.send(t, p.features(t, lathe, start.AddDate(0, 0, 9)), p.features(t, drill, start.AddDate(0, 0, 9)))
	run1(t, p.config(many))
	one := t.TempDir()
	cfg := p.config(one)
	cfg.cells = 1 << 20
	p.send(t, p.features(t, lathe, start.AddDate(0, 0, 10)), p.features(t, drill, start.AddDate(0, 0, 10)))
	run1(t, cfg)
	p.send(t, p.features(t, lathe, start.AddDate(0, 0, 11)), p.features(t, drill, start.AddDate(0, 0, 11)))
	run1(t, cfg)
	run1(t, p.config(many))
	p.send(t, p.features(t, lathe, start.AddDate(0, 0, 12)), p.features(t, drill, start.AddDate(0, 0, 12)))
	run1(t, cfg)
	run1(t, p.config(many))
	merged := func(dir string) map[string]string {
		all := files(t, dir)
		maps.DeleteFunc(all, func(path, _ string) bool {
			return !strings.HasPrefix(path, "features") || strings.Contains(path, "part-")
		})
		return all
	}
	if got := merged(many); len(got) < 8 {
		t.Errorf("%d merged days", len(got))
	}
	same(t, merged(many), merged(one))
	if a, b := messages(t, many), messages(t, one); len(a) != len(b) || len(a) != 368 {
		t.Errorf("%d and %d messages", len(a), len(b))
	}
}

// A run reports what a partition no longer has; the rest is archived, and a batch that was begun gets the names that it had.
func TestExpiredBeginning(t *testing.T) {
	p := newPlant(t)
	p.days(t)
	dir := t.TempDir()
	cfg := p.config(dir)
	left := 3
	cfg.step = func(string) error {
		if left--; left < 0 {
			return errors.New("killed")
		}
		return nil
	}
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Fatal("not killed")
	}
	request(t, p.cfg, bus.TopicFeatures, func(part int32) int64 { return 30 })
	r := run1(t, p.config(dir))
	if len(r.Lost) == 0 {
		t.Errorf("%+v", r)
	}
	late := t.TempDir()
	if r := run1(t, p.config(late)); len(r.Lost) != 0 || len(messages(t, late)) == 0 {
		t.Errorf("a new archive: %+v", r)
	}
}

// What Kafka removed between two runs is lost, by topic and partition, but for labels, which it removes once they are corrected.
func TestLost(t *testing.T) {
	p := newPlant(t)
	send := func(topic string) {
		for i := range 4 {
			p.send(t, bus.Message{Topic: topic, Key: drill, Pinned: true, Value: []byte("{}"), Headers: []bus.Header{{Key: "ce_id", Value: fmt.Append(nil, i)}}})
		}
	}
	for topic, want := range map[string]map[string]int64{bus.TopicResults: {bus.TopicResults + ", partition 0": 3}, bus.TopicLabels: {}} {
		cfg := p.config(t.TempDir())
		send(topic)
		run1(t, cfg)
		send(topic)
		request(t, p.cfg, topic, func(int32) int64 { return 7 })
		if r := run1(t, cfg); !maps.Equal(r.Lost, want) {
			t.Errorf("%s: %v, want %v", topic, r.Lost, want)
		}
	}
}

// request removes the messages of a topic below an offset of each partition.
func request(t testing.TB, cfg bus.Config, topic string, below func(part int32) int64) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	partitions, err := bus.Partitions(t.Context(), cfg, topic)
	if err != nil {
		t.Fatal(err)
	}
	for part := range int32(partitions) {
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.TimeoutMillis = 1000
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: part, Offset: below(part)}}}}
		if _, err := cl.Request(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
}

// Messages of a transaction that was aborted are not archived.
func TestAbortedTransaction(t *testing.T) {
	p := newPlant(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(p.cfg.Brokers...), kgo.TransactionalID("m"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for i, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		m := result(drill, i, start)
		rec := &kgo.Record{Topic: m.Topic, Key: []byte(m.Key), Value: m.Value}
		for _, h := range m.Headers {
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		if err := cl.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	if r := run1(t, p.config(t.TempDir())); r.Rows["results"] != 1 {
		t.Errorf("%+v", r)
	}
}

// A machine whose messages moved to another partition has files of both.
func TestMovedPartition(t *testing.T) {
	p := newPlant(t)
	for i := range 2 {
		m := p.features(t, lathe, start.Add(time.Duration(i)*time.Second))
		m.Partition, m.Pinned = i, true
		p.send(t, m)
	}
	dir := t.TempDir()
	run1(t, p.config(dir))
	if got := slices.Sorted(maps.Keys(files(t, dir))); len(got) != 2 || filepath.Dir(got[0]) != filepath.Dir(got[1]) || len(messages(t, dir)) != 2 {
		t.Errorf("%q", got)
	}
}

// Features of a layout that is not named stop a run, unless they are to be left out: else they would be lost.
func TestUnknownLayout(t *testing.T) {
	p := newPlant(t)
	known := p.layout
	p.send(t, p.features(t, lathe, start))
	p.layout = newLayout(t, "other")
	if p.layout.Fingerprint() == known.Fingerprint() {
		l, err := signal.NewLayout("other", []signal.Channel{{Name: "torque", Kind: signal.Force, Rate: 20, Unit: "N"}, {Name: "power", Kind: signal.Feature, Rate: 1, Unit: "W"}})
		if err != nil {
			t.Fatal(err)
		}
		p.layout = l
	}
	p.send(t, p.features(t, lathe, start), result(lathe, 1, start))
	dir := t.TempDir()
	cfg := p.config(dir)
	cfg.Layouts = []*signal.Layout{known}
	var unknown *unknownLayout
	if _, err := Run(t.Context(), cfg); !errors.As(err, &unknown) || !strings.Contains(err.Error(), "--layout") {
		t.Errorf("%v", err)
	}
	if got := messages(t, dir); len(got) != 1 {
		t.Errorf("%d messages before it", len(got))
	}
	if results, _ := filepath.Glob(dir + "/results/*/*/*.parquet"); len(results) != 1 {
		t.Errorf("%d files of results", len(results))
	}
	cfg.SkipUnknown = true
	if r := run1(t, cfg); r.LeftOut["unknown layout"] != 1 {
		t.Errorf("%+v", r)
	}
	cfg.SkipUnknown, cfg.Layouts = false, append(cfg.Layouts, p.layout)
	run1(t, cfg)
	if got := messages(t, dir); len(got) != 2 {
		t.Errorf("%d messages of both layouts", len(got))
	}
}

// A folder is one run's at a time, and the second one says whose.
func TestTwoRuns(t *testing.T) {
	p := newPlant(t)
	cfg := p.config(t.TempDir())
	r := &run{Config: cfg}
	lock, err := r.take()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("%v", err)
	}
	lock.Close()
	run1(t, cfg)
}

// Retention removes the days that Kafka got first, and never what says where to go on or what the run itself archived. A
// machine's clock does not count.
func TestRetention(t *testing.T) {
	p := newPlant(t)
	for _, at := range []time.Time{start, time.Unix(0, 0), start.AddDate(200, 0, 0)} { // the clock of the second is at 1970
		p.send(t, p.features(t, lathe, at), p.features(t, lathe, at.Add(time.Second)))
	}
	p.send(t, p.features(t, lathe, start.AddDate(0, 0, 2)), p.features(t, drill, start.AddDate(0, 0, 2)))
	all := []string{"1970-01-01", "2026-11-02", "2226-11-02"}
	for name, tc := range map[string]struct {
		keep  time.Duration
		bytes int64
		after time.Duration // Kafka got the newest message
		gone  []string
	}{
		"nothing is old":  {24 * time.Hour, 0, time.Hour, nil},
		"all but the end": {24 * time.Hour, 0, 48 * time.Hour, all},
		"bytes":           {0, 1, 0, all},
	} {
		cfg := p.config(t.TempDir())
		cfg.cells = 1 // a batch a message
		var log bytes.Buffer
		cfg.Keep, cfg.KeepBytes, cfg.Log = tc.keep, tc.bytes, zerolog.New(&log)
		cfg.Now = func() time.Time { return p.received(t).Add(tc.after) }
		if r := run1(t, cfg); r.Removed > 0 {
			t.Errorf("%s: the run that archived them removed %d days", name, r.Removed)
		}
		r := run1(t, cfg)
		for _, day := range all {
			if there, _ := filepath.Glob(cfg.Dir + "/features/*/day=" + day); (len(there) == 0) != slices.Contains(tc.gone, day) {
				t.Errorf("%s: %s: %q", name, day, there)
			}
		}
		if r.Removed != len(tc.gone) || strings.Contains(log.String(), "check the clock") != (r.Removed > 0) {
			t.Errorf("%s: %d removed\n%s", name, r.Removed, &log)
		}
		if again := run1(t, cfg); again.Files != 0 {
			t.Errorf("%s: archived %d files again", name, again.Files)
		}
	}
}

// received returns when Kafka got the newest of the features.
func (p *plant) received(t testing.TB) (newest time.Time) {
	t.Helper()
	for part := range 2 {
		if err := bus.ReadRange(t.Context(), p.cfg, bus.TopicFeatures, part, bus.Range{}, func(m bus.Message) error {
			if m.Time.After(newest) {
				newest = m.Time
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return newest
}

func TestNames(t *testing.T) {
	for _, machine := range []string{lathe, drill, "Überholt/ÄÖ=1", "..", "a.b_c-d", "100%/%2F", "a\\b:c*?"} {
		folder := escape(machine)
		n := name{topic: "features", machine: machine, day: "2026-11-02", partition: 3, first: 17, last: 99, files: 2, columns: "00ff00ff00ff00ff"}
		got := name{topic: "features"}
		if strings.ContainsAny(folder, "/\\:*? ") || !got.parseFolder(machineKey+folder, "day=2026-11-02") || !got.parse(filepath.Base(n.path())) || got != n {
			t.Errorf("%q: folder %q, %+v", machine, folder, got)
		}
		n.files, got.files = 0, 0
		if !got.parse(filepath.Base(n.path())) || got != n {
			t.Errorf("merged: %+v", got)
		}
	}
	for _, file := range []string{"part-1-2-3-4.parquet", "part-1-2-x-4-ff.parquet", "day-1-2-3.parquet", "x.parquet", "part-1-2-3-0-ff.parquet", ".part-1-2-3-1-ff.parquet.7"} {
		if new(name).parse(file) {
			t.Errorf("%s is taken for a file of ours", file)
		}
	}
}

// A pattern opens only folders that it can match in.
func TestMatches(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	for _, path := range []string{"features/machine=a/day=2026-11-02/x.parquet", "features/machine=a/day=2026-12-01/y.parquet", "features/machine=b/day=2026-11-02/z.parquet", "results/machine=a/day=2026-11-02/r.parquet"} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]string{
		"features/**/*.parquet":                   "x y z",
		"features/**/machine=a/**/*.parquet":      "x y",
		"features/**/day=2026-11-*/*.parquet":     "x z",
		"features/machine=a/day=2026-11*/*":       "x",
		"**/x.parquet":                            "x",
		"features/**/machine=a/day=2026-1[12]*/*": "x y",
		"**/machine=c/*":                          "",
		"**":                                      "r x y z",
	} {
		paths, err := Matches(dir + "/" + pattern)
		var got []string
		for _, p := range paths {
			got = append(got, strings.TrimSuffix(filepath.Base(p), ".parquet"))
		}
		slices.Sort(got)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}
	if _, begins := match(strings.Split("features/machine=a/**/x", "/"), strings.Split("features/machine=b", "/")); begins {
		t.Error("the folder of another machine is opened")
	}
}

// A topic that was made again, and has grown past the archive, ends a run before it writes anything.
func TestTopicMadeAgain(t *testing.T) {
	for name, nameless := range map[string]bool{"with an id": false, "a broker without ids": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t)
			p.days(t)
			cfg := p.config(t.TempDir())
			if nameless {
				cfg.identify = func(ctx context.Context, c bus.Config, topic string) (string, int, error) {
					_, n, err := bus.Identify(ctx, c, topic)
					return "", n, err
				}
			}
			run1(t, cfg)
			if r := run1(t, cfg); r.Files > 0 {
				t.Errorf("%d files of the same topic", r.Files)
			}
			before := files(t, cfg.Dir)
			cl, err := kgo.NewClient(kgo.SeedBrokers(p.cfg.Brokers...))
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			req := kmsg.NewPtrDeleteTopicsRequest()
			topic := kmsg.NewDeleteTopicsRequestTopic()
			topic.Topic = kmsg.StringPtr(bus.TopicResults)
			req.Topics, req.TopicNames = append(req.Topics, topic), []string{bus.TopicResults}
			if _, err := cl.Request(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if _, err := bus.Apply(t.Context(), p.cfg, 2, 1); err != nil {
				t.Fatal(err)
			}
			p.days(t)
			p.days(t)
			_, err = Run(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), bus.TopicResults) || !strings.Contains(err.Error(), "made again") || !strings.Contains(err.Error(), "--out") {
				t.Errorf("%v", err)
			}
			same(t, files(t, cfg.Dir), before)
		})
	}
}

// Features of a tool that was declared new at a monitor get its life, as its results have it.
func TestLivesOfMonitors(t *testing.T) {
	p, dir := newPlant(t), t.TempDir()
	a := event.Alert{ID: "a", Machine: lathe, Tool: "T0", ToolLife: "c1", State: event.ToolIsNew, At: start.Add(2 * time.Hour)}
	p.life = ""
	msgs := []bus.Message{envelope.Event(bus.TopicAlerts, a.ID, a.Machine, event.AlertType, a.At, event.JSON(a))}
	for i := range 4 {
		msgs = append(msgs, p.features(t, lathe, start.Add(time.Duration(i)*time.Hour)))
	}
	p.send(t, msgs...)
	if _, err := Run(t.Context(), p.config(dir)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for path := range files(t, dir) {
		if !strings.Contains(path, "features") {
			continue
		}
		err := ReadFeatures(filepath.Join(dir, path), func(m bus.Message) error {
			e, err := envelope.Unpack(&m)
			got = append(got, fmt.Sprint(e.Seq, e.ToolLife))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(got)
	if s := strings.Join(got, " "); s != "1 2 3c1 4c1" {
		t.Errorf("lives %q", s)
	}
}

// Topics that are not there are passed over, but a broker with none of them is not one of ours.
func TestTopicsMissing(t *testing.T) {
	p := newPlant(t)
	for there, want := range map[string]error{"": bus.ErrNoTopic, bus.TopicFeatures: nil, bus.TopicLabels: nil} {
		cfg := p.config(t.TempDir())
		cfg.identify = func(ctx context.Context, c bus.Config, topic string) (string, int, error) {
			if topic != there {
				return "", 0, bus.ErrNoTopic
			}
			return bus.Identify(ctx, c, topic)
		}
		if _, err := Run(t.Context(), cfg); !errors.Is(err, want) {
			t.Errorf("only %q is there: %v, want %v", there, err, want)
		}
	}
}
