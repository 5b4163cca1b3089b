package imbalance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// Drill is the paper's experiment on gun drills, simulated: 20 tools until the end
// of their life. The paper's 19,712,414 samples of 2443 s of cutting can only be
// single readings of the 14 channels at 20 kHz, two in five of them, thrust and
// torque as they were when last read; so a row is that. It is faulty when the
// tool is chipped, broken, or worn by 300 µm or more.
type Drill struct {
	Seed    uint64
	Cutting time.Duration // of all tools
	Rows    int           // about how many are kept, drawn at random

	// Progress, if not nil, is called by one goroutine at a time as rows are
	// simulated and RunFull goes on.
	Progress func(phase string, done, total int)
}

// Of the paper.
const (
	PaperCutting = 2443 * time.Second
	PaperRows    = 19_712_414
)

// scan calls each with every row that is kept. A row is only lent.
func (d Drill) scan(ctx context.Context, each func(row []float32, tool string, faulty int) error) error {
	tools := sim.Tools(d.Seed, d.Cutting/20)
	drill, err := sim.New(sim.Settings{
		Machine: "local/site/area/line/drill", Seed: d.Seed, Tools: tools,
		Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		return err
	}
	var life time.Duration
	for _, t := range tools {
		life += t.Life
	}
	const rate = 20_000
	share := float64(d.Rows) / (life.Seconds() * rate)
	rng := rand.New(rand.NewPCG(d.Seed, 0x6b657074))
	var fast [][]float32
	var row []float32
	seen, all := 0, int(life.Seconds()*rate)
	for {
		b, err := drill.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if b.Group == 0 {
			fast = b.Samples
			continue
		}
		seen += len(fast[0])
		if d.Progress != nil {
			d.Progress("drilling", min(seen, all), all)
		}
		faulty := 0
		if t := b.Truth[0]; t.State != sim.Healthy || t.VBMaxUM >= sim.LimitUM {
			faulty = 1
		}
		hold := len(fast[0]) / len(b.Samples[0])
		for i := range fast[0] {
			if rng.Float64() >= share {
				continue
			}
			row = row[:0]
			for _, channel := range fast {
				row = append(row, channel[i])
			}
			for _, channel := range b.Samples {
				row = append(row, channel[i/hold])
			}
			if err := each(row, b.Tool, faulty); err != nil {
				return err
			}
		}
	}
}

const drillColumns = 14

// Sets of which DrillPage shows intervals over tools.
const drillTools, drillToolsGains = "drill-tools", "drill-tools-gains"

// Sets returns the rows four times: drill-random parts them 70 to 30 at random, as
// the paper does, so that readings a twenty-thousandth of a second apart are on both
// sides, once; drill-tools holds out six of the 20 tools, then six others, then
// the other eight; drill-tools-gains holds out the same tools, and trains on copies of the
// others' rows too, see addCopies; drill-tools-reference holds out the same tools, and its
// rows are relative to the beginning of their tool, see relative. To bear three trials,
// drill-tools and drill-tools-gains train on few rows of a tool.
func (d Drill) Sets(ctx context.Context) ([]*Set, error) {
	random := &Set{Name: "drill-random", X: dbn.Matrix{Cols: drillColumns}, Trials: 1}
	var tools []string
	err := d.scan(ctx, func(row []float32, tool string, faulty int) error {
		random.X.Data = append(random.X.Data, row...)
		random.X.Rows++
		random.Y = append(random.Y, faulty)
		tools = append(tools, tool)
		return nil
	})
	if err != nil {
		return nil, err
	}
	byTool := *random
	byTool.Name, byTool.Groups = drillTools, tools
	if random.Folds, err = thirds(random.Y, nil, 1, d.Seed); err != nil {
		return nil, err
	}
	if byTool.Folds, err = thirds(random.Y, tools, 3, d.Seed); err != nil {
		return nil, err
	}
	referenced := byTool
	referenced.Name = "drill-tools-reference"
	referenced.X = relative(random.X, tools, int(float64(d.Rows)*referenceTime.Seconds()/d.Cutting.Seconds()))
	byTool.Trials, byTool.Every, byTool.AsMany = 3, max(1, d.Rows/(20*trainedPerTool)), study.ManyRows+1
	gains := byTool
	gains.Name, gains.Copies = drillToolsGains, 4
	return []*Set{random, &byTool, &gains, &referenced}, nil
}

// trainedPerTool is about how many rows of a tool drill-tools trains on. With the copies
// of drill-tools-gains these are more than study.ManyRows, so both train networks as on many.
const trainedPerTool = 1000

// referenceTime is how long a tool is recorded before its rows can be judged
// relative to its beginning: a tenth of its life, on average.
const referenceTime = 12 * time.Second

// relative returns the rows of x, in which the rows of one tool follow each other in
// time, with each column divided by its root mean square over the first n rows of
// the row's tool. These are of a new tool and need no label. A column that is 0
// there stays as it is.
func relative(x dbn.Matrix, tools []string, n int) dbn.Matrix {
	z := dbn.NewMatrix(x.Rows, x.Cols)
	for from := 0; from < x.Rows; {
		to := from
		for to < x.Rows && tools[to] == tools[from] {
			to++
		}
		square := make([]float64, x.Cols)
		first := min(to, from+max(n, 1))
		for i := from; i < first; i++ {
			for j, v := range x.Row(i) {
				square[j] += float64(v) * float64(v) / float64(first-from)
			}
		}
		for i := from; i < to; i++ {
			for j, v := range x.Row(i) {
				z.Row(i)[j] = v
				if square[j] > 0 {
					z.Row(i)[j] = float32(float64(v) / math.Sqrt(square[j]))
				}
			}
		}
		from = to
	}
	return z
}

// thirds returns the first n of three folds, which hold out three tenths of the
// rows, or of the groups, then three others, then the other four.
func thirds(y []int, groups []string, n int, seed uint64) ([]classify.Fold, error) {
	if len(y) < 10 || slices.Max(y) == slices.Min(y) {
		return nil, fmt.Errorf("%d rows of the simulated drill are too few, or of one class: simulate more", len(y))
	}
	var tenths []classify.Fold
	if groups == nil {
		tenths = classify.StratifiedKFold(y, 10, newRand(seed))
	} else {
		tenths = classify.GroupKFold(y, groups, 10, newRand(seed))
	}
	home := make([]int, len(y)) // the fold that holds the row out
	for t, fold := range tenths {
		for _, i := range fold.Test {
			home[i] = min(t/3, 2)
		}
	}
	folds := make([]classify.Fold, n)
	for i, h := range home {
		for f := range folds {
			if f == h {
				folds[f].Test = append(folds[f].Test, i)
			} else {
				folds[f].Train = append(folds[f].Train, i)
			}
		}
	}
	return folds, nil
}

// The sets of RunFull.
const fullRandom, fullByTool = "drill-random-full", "drill-tools-full"

// RunFull fits dbn and ecs-dbn to all rows, which stay on disk in dir, and adds
// their cells to those there: of the sets drill-random-full and drill-tools-full.
// Cells that are there are not made again. It returns the cells of all sets of drills.
func (d Drill) RunFull(ctx context.Context, dir string) ([]Cell, error) {
	what := fmt.Sprintf("seed %d, %v of cutting, about %d rows", d.Seed, d.Cutting, d.Rows)
	none := func(Key) bool { return false }
	cells, err := addTo(dir, none, map[string]string{fullRandom: what, fullByTool: what}, nil, func(s *store) error { return d.runFull(ctx, dir, s) })
	return slices.DeleteFunc(cells, func(c Cell) bool { return !strings.HasPrefix(c.Dataset, "drill-") }), err
}

func (d Drill) runFull(ctx context.Context, dir string, cells *store) (err error) {
	keys := func(set string) (k [2]Key) {
		return [2]Key{{set, "ecs-dbn", 1, 1}, {set, "dbn", 1, 1}}
	}
	missing := slices.DeleteFunc([]string{fullRandom, fullByTool}, func(set string) bool {
		k := keys(set)
		return cells.has[k[0]] && cells.has[k[1]]
	})
	if len(missing) == 0 {
		return nil
	}
	file, err := table.NewRowFile(dir, drillColumns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var y []int
	var tools []string
	err = d.scan(ctx, func(row []float32, tool string, faulty int) error {
		y, tools = append(y, faulty), append(tools, tool)
		return file.Append(row)
	})
	if err == nil {
		err = file.Flush()
	}
	if err != nil {
		return err
	}
	for _, set := range missing {
		groups := tools
		if set == fullRandom {
			groups = nil
		}
		folds, err := thirds(y, groups, 1, d.Seed)
		if err != nil {
			return err
		}
		train, test := folds[0].Train, folds[0].Test
		groups = pick(groups, train)
		settings := study.DefaultFor(len(train), groups != nil)
		if d.Progress != nil {
			settings.Progress = func(_ string, done, total int) { d.Progress(set, done, total) }
		}
		f, err := fitRows(ctx, &classify.Table{X: classify.Part(file, train), Y: pick(y, train), Groups: groups}, classify.Part(file, test), seedOf(set, d.Seed), settings)
		if err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
		k, truth := keys(set), pick(y, test)
		made := []Cell{
			newCell(k[0], truth, nil, f.decide(f.costs("kept"), f.whole)),
			newCell(k[1], truth, nil, f.decide(classify.CostVector{0, 0}, f.network)),
		}
		if err := cells.add(slices.DeleteFunc(made, func(c Cell) bool { return cells.has[c.Key] })); err != nil {
			return err
		}
	}
	return nil
}
