//go:build unix

// Command scale measures what the trainer takes to learn from a table that does
// not fit in memory. Run it by make scale.
//
//	scale write --dir DIR     makes the table: 40 Parquet files of 250,000 rows × 196 features
//	scale measure --dir DIR   trains on its first 4 files and on all 40
//
// The two run as separate processes, because a process starts with the peak memory of the
// one that started it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/internal/table"
)

func main() { command.Main("scale", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] != "write" && args[0] != "measure" {
		return errors.New("say write or measure")
	}
	flags := command.Flags("scale", stderr)
	dir := flags.String("dir", "", "folder of the table: 8 GB, and as much again while the trainer runs")
	trainer := flags.String("trainer", "bin/trainer", "program to measure")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == "write" {
		return write(ctx, *dir)
	}
	return measure(ctx, *trainer, *dir, stdout, stderr)
}

// write writes all parts that are not there yet, some at a time.
func write(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for part := range parts {
		all.Go(func() error {
			path := filepath.Join(dir, partName(part))
			if _, err := os.Stat(path); err == nil || ctx.Err() != nil {
				return ctx.Err()
			}
			return rowsOf(part).Save(path)
		})
	}
	return all.Wait()
}

// settings is one epoch of each kind, and costs from two folds: three networks.
const settings = `network:
  hidden: [50]
  pretrain: {epochs: 1, batch: 100}
  fine_tune: {epochs: 1, batch: 100}
costs: {folds: 2}
evaluate: {by_tool: "off", random_split: false}
`

// measure prints what the trainer takes as rows of a Markdown table.
func measure(ctx context.Context, trainer, dir string, stdout, stderr io.Writer) error {
	config := filepath.Join(dir, "train.yaml")
	if err := os.WriteFile(config, []byte(settings), 0o644); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "| rows × features | files | most memory resident | elapsed | processor |\n|---|---|---|---|---|")
	for _, size := range []struct {
		files   int
		pattern string
	}{{4, "part-0[0-3].parquet"}, {parts, "part-*.parquet"}} {
		cmd := exec.CommandContext(ctx, trainer, "fit", "--config", config, "--table", filepath.Join(dir, size.pattern), "--model", filepath.Join(dir, "scale.flank"), "--fresh", "--quiet")
		cmd.Stdout, cmd.Stderr = stderr, stderr
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return err
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			return errors.New("this system does not say what a process took")
		}
		resident := float64(usage.Maxrss) / 1024 // of KiB, but for one system
		if runtime.GOOS == "darwin" {
			resident /= 1024
		}
		busy := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		fmt.Fprintf(stdout, "| %d × %d | %d | %.0f MiB | %v | %v |\n", size.files*partRows, features, size.files, resident, time.Since(began).Round(time.Second), busy.Round(time.Second))
	}
	return nil
}

// The table: lives of tools, one after the other, at one row a second.
const (
	parts    = 40
	partRows = 250_000
	features = 196
	telling  = 14     // features that wear moves
	life     = 12_500 // rows of a tool
)

func partName(part int) string { return fmt.Sprintf("part-%02d.parquet", part) }

// rowsOf returns the rows of a part, always the same.
func rowsOf(part int) *table.Table {
	names := make([]string, features)
	for i := range names {
		names[i] = fmt.Sprintf("f%03d", i)
	}
	t := table.New(names)
	t.Data = make([]float32, 0, partRows*features)
	rng := rand.New(rand.NewPCG(1, uint64(part)))
	x := make([]float32, features)
	for i := range partRows {
		wear := float64(i%life) / life
		for j := range x {
			x[j] = float32(rng.NormFloat64())
			if j < telling {
				x[j] += float32(2 * wear)
			}
		}
		class := 0
		if wear >= 0.8 {
			class = 1
		}
		t.Append(table.Row{Tool: fmt.Sprintf("T%04d", part*(partRows/life)+i/life), Class: class, VBMaxUM: math.NaN(), Features: x})
	}
	return t
}
