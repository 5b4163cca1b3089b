package archive

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/rs/zerolog"
)

var (
	largeDir  = flag.String("archive.large", "", "write an archive for `make bench-archive-rows` into this folder")
	largeDays = flag.Int("archive.days", 58, "days of its four machines, 43,200 windows each")
)

// The archive of TestWriteLarge: one force sensor, and windows of 2 s. A tool lasts four hours, in which it wears by 300 µm.
const (
	largeSpan  = 2 * time.Second
	largeDay   = int(24 * time.Hour / largeSpan)
	largeLife  = int(4 * time.Hour / largeSpan)
	largeHoles = 20 // of a tool
)

// TestWriteLarge writes an archive of many windows as Run does, without a broker, and wear.csv, layout.yaml and train.yaml next to it.
func TestWriteLarge(t *testing.T) {
	if *largeDir == "" {
		t.Skip("no -archive.large: nothing is written")
	}
	layout, err := signal.NewLayout("force", []signal.Channel{{Name: "force", Kind: signal.Force, Rate: 20, Unit: "N"}})
	if err != nil {
		t.Fatal(err)
	}
	var all errgroup.Group
	for p := range 2 {
		all.Go(func() error { return writeLarge(*largeDir, layout, p) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(*largeDir, "wear.csv"))
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(f)
	fmt.Fprintln(out, "machine,tool,hole,vb_max_um")
	for m := range 4 {
		for tool := range *largeDays * largeDay / largeLife {
			for hole := range largeHoles {
				fmt.Fprintf(out, "%s,T%04d,H%02d,%d\n", largeMachine(m), tool, hole, (hole+1)*300/largeHoles)
			}
		}
	}
	for name, text := range map[string]string{
		"layout.yaml": "name: force\nchannels:\n  - {name: force, kind: force, rate: 20, unit: N}\n",
		"train.yaml": `layout: layout.yaml
window: {length: 2s}
label: {vb_max_um: 240}
network: {hidden: [10], pretrain: {epochs: 1, batch: 100}, fine_tune: {epochs: 1, batch: 100}}
costs: {folds: 2}
evaluate: {by_tool: "off", random_split: false}
`,
	} {
		if err := os.WriteFile(filepath.Join(*largeDir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmp.Or(out.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func largeMachine(m int) string { return fmt.Sprintf("acme/mill%d", m) }

// writeLarge writes the windows of two machines, as of one partition.
func writeLarge(dir string, layout *signal.Layout, partition int) error {
	r := &run{
		Config: Config{Dir: dir, Layouts: []*signal.Layout{layout}, Log: zerolog.Nop(), Progress: func(string, int, int) {}, cells: batchCells, step: func(string) error { return nil }},
		Report: Report{Rows: make(map[string]int), LeftOut: make(map[string]int)}, fresh: make(map[string]bool), reader: newReader(topics[0], []*signal.Layout{layout}),
	}
	form, err := window.NewForm(layout, window.Spec{Length: largeSpan}, signal.FeatureSpec{}, nil)
	if err != nil {
		return err
	}
	of := &state{topic: topics[0]}
	b := &rows{of: of, partition: partition, last: -1, parts: make(map[string]*part)}
	for i := range *largeDays * largeDay {
		for k := range 2 {
			e, err := form.Seal(largeWindow(form, 2*partition+k, i))
			if err != nil {
				return err
			}
			m := envelope.Features(e, envelope.Gateway, 0)
			m.Partition, m.Offset, m.Time = partition, int64(2*i+k), e.Time.Add(time.Minute)
			if err := r.add(b, &m); err != nil {
				return err
			}
			if b.cells >= r.cells {
				if err := r.write(b); err != nil {
					return err
				}
				*b = rows{of: of, partition: partition, first: m.Offset + 1, last: -1, parts: make(map[string]*part)}
			}
		}
	}
	if err := r.write(b); err != nil || len(r.LeftOut) > 0 {
		return fmt.Errorf("%w, left out %v", err, r.LeftOut)
	}
	return nil
}

// largeWindow returns features of window i of a machine, which pauses for 6 s a minute.
func largeWindow(form *window.Form, machine, i int) *window.Features {
	rng := rand.New(rand.NewPCG(uint64(machine), uint64(i)))
	at := i % largeLife
	force := 4 * (1 + 0.2*rng.Float64())
	if i%30 >= 3 {
		force = 500 * (1 + 0.6*float64(at)/float64(largeLife) + 0.2*rng.NormFloat64())
	}
	x := &window.Features{Form: form, Level: force}
	x.Context = signal.Context{Machine: largeMachine(machine), Tool: fmt.Sprintf("T%04d", i/largeLife), Hole: fmt.Sprintf("H%02d", at*largeHoles/largeLife)}
	x.Epoch, x.Seq, x.First, x.Length, x.Quality = 7, uint64(i), int64(i)*40, largeSpan, []signal.Quality{0}
	x.Start = time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * largeSpan)
	for _, name := range form.Names() {
		of := 1.
		if strings.HasSuffix(name, "std") || strings.HasSuffix(name, "slope") {
			of = 0.1
		}
		x.Values = append(x.Values, float32(force*of*(1+0.05*rng.NormFloat64())))
	}
	for range form.Frames() {
		x.Frames = append(x.Frames, float32(force*(1+0.05*rng.NormFloat64())))
	}
	return x
}
