// Classes compares ways to choose the costs of three classes on tools held out, and prints
// the table of docs/figures/settings.md:
//
//	classes -data ../shared/data -cells cells.json
//
// Networks are trained once for each split and seed; all costs judge by their posteriors. The
// file of cells keeps these, so that a run that is cut off goes on where it was.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/config/atomicfile"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/classify"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("classes: ")
	data := flag.String("data", os.Getenv("FLANK_DATA"), "`folder` of recordings")
	file := flag.String("cells", "", "`file` that keeps what networks say of the tools held out")
	sets := flag.String("sets", "turning,phm2010,uniwear,drill", "data sets, separated by commas")
	seeds := flag.Uint64("seeds", 2, "how many seeds to train each split with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, *file, strings.Split(*sets, ","), *seeds); err != nil {
		log.Fatal(err)
	}
}

// classes is how many the data sets have here.
const classes = 3

// cell is what networks say that are trained on one part of the tools.
type cell struct {
	Set      string `json:"set"`
	Protocol string `json:"protocol"`
	Name     string `json:"name"` // of the split
	Seed     uint64 `json:"seed"`

	Held    part              `json:"held"`    // tools held out
	Choices []classify.Choice `json:"choices"` // of costs, on the tools that were learnt from
}

// part is rows with posteriors.
type part struct {
	Posterior []float64 `json:"posterior"` // three for each row
	Class     []int     `json:"class"`
	Tool      []string  `json:"tool"`
}

func (c *cell) key() string { return fmt.Sprint(c.Set, " ", c.Protocol, " ", c.Name, " ", c.Seed) }

func run(ctx context.Context, data, file string, sets []string, seeds uint64) error {
	cells, err := loadCells(file)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for i := range cells {
		known[cells[i].key()] = true
	}
	for _, name := range sets {
		job, err := jobOf(data, name)
		if err != nil {
			return err
		}
		_, lessons, _, err := train.Lessons(ctx, job)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for seed := range seeds {
			for _, s := range splitsOf(name, lessons) {
				c := cell{Set: name, Protocol: s.protocol, Name: s.name, Seed: seed + 1}
				if known[c.key()] {
					continue
				}
				if err := c.train(ctx, job, lessons, s.held); errors.Is(err, classify.ErrTooFew) || errors.Is(err, classify.ErrClasses) {
					continue
				} else if err != nil {
					return fmt.Errorf("%s: %w", c.key(), err)
				}
				if cells = append(cells, c); file != "" {
					if err := saveCells(file, cells); err != nil {
						return err
					}
				}
			}
		}
	}
	cells = slices.DeleteFunc(cells, func(c cell) bool { return !slices.Contains(sets, c.Set) })
	fmt.Print(tableOf(cells))
	return nil
}

func loadCells(file string) (cells []cell, err error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &cells)
	}
	return cells, err
}

func saveCells(file string, cells []cell) error {
	b, err := json.Marshal(cells)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, b)
}

// train fills in what networks say that are trained without the tools held.
func (c *cell) train(ctx context.Context, job train.Job, t *classify.Table, held []string) error {
	job.Config.Seed = c.Seed
	s := job.Config.Settings(job.Workers)
	var f classify.Fold
	for i, g := range t.Groups {
		if slices.Contains(held, g) {
			f.Test = append(f.Test, i)
		} else {
			f.Train = append(f.Train, i)
		}
	}
	v, err := classify.CrossValidateTable(ctx, t, s, []classify.Fold{f})
	if err != nil {
		return err
	}
	c.Choices = v.Reports[0].Costs.Choices
	for _, i := range f.Test {
		c.Held.Class, c.Held.Tool = append(c.Held.Class, t.Y[i]), append(c.Held.Tool, t.Groups[i])
		c.Held.Posterior = append(c.Held.Posterior, v.Posterior[classes*i:classes*(i+1)]...)
	}
	return nil
}

// split holds tools out.
type split struct {
	protocol, name string
	held           []string
}

const (
	oneOut   = "one tool left out"
	thirdOut = "a third of the tools left out"
)

// thirds is how many random splits there are that hold out a third of the tools.
const thirds = 24

// splitsOf returns the splits of a set: each tool left out in turn, and a third of the
// tools where there are nine or more, in random splits whose parts have all classes.
func splitsOf(name string, t *classify.Table) []split {
	_, tools := classify.NumberGroups(t.Groups)
	var out []split
	for _, g := range tools {
		out = append(out, split{oneOut, g, []string{g}})
	}
	if len(tools) < 8 {
		return out
	}
	if name == "drill" {
		out = nil // twenty tools: thirds say as much in less time
	}
	rng := rand.New(rand.NewPCG(1, 0x746869726473)) // "thirds"
	seen := make(map[string]bool)
	for n := 0; n < thirds; {
		rng.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		held := slices.Sorted(slices.Values(tools[:len(tools)/3]))
		name := strings.Join(held, " ")
		if seen[name] || !allClasses(t, func(g string) bool { return slices.Contains(held, g) }) || !allClasses(t, func(g string) bool { return !slices.Contains(held, g) }) {
			continue
		}
		seen[name] = true
		n++
		out = append(out, split{thirdOut, name, held})
	}
	return out
}

// allClasses reports whether tools have rows of all three classes.
func allClasses(t *classify.Table, of func(tool string) bool) bool {
	has := make([]bool, classes)
	for i, g := range t.Groups {
		has[t.Y[i]] = has[t.Y[i]] || of(g)
	}
	return !slices.Contains(has, false)
}
