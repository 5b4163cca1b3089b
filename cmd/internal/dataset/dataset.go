// Package dataset finds the labelled data that flags name: recordings, tables of
// features, and windows on Kafka. Trainer and `monitor tune` share it.
package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Flags name the data that a command works on.
type Flags struct {
	Data  []string `sep:"none" placeholder:"FILE" help:"Labelled recording; repeat it, or name more files after it. A quoted pattern such as 'runs/*.csv' works too."`
	Table []string `sep:"none" placeholder:"FILE" help:"Labelled table of features, .csv, .parquet or .arrow, instead of recordings; repeat it or quote a pattern."`
	Kafka
	Ignore  []string `sep:"," placeholder:"COLUMN" help:"Columns of tables to leave out, text for example; * stands for any characters, and commas separate names. Adds to ignore in the configuration."`
	Wear    string   `placeholder:"FILE" help:"Wear file with labels; overrides the configuration."`
	Machine string   `default:"local/site/area/line/machine" help:"ISA-95 path of the machine, where the recordings do not name it."`
	More    []string `arg:"" optional:"" name:"file" help:"More recordings, or tables if the first one is a table."`
}

// Data is what Flags name.
type Data struct {
	Config train.Config
	Layout *signal.Layout
	Inputs []train.Input
	Wear   []wear.Measurement // nil: labels are in the recordings

	meta *train.FeatureMeta // of tables of recordings; else nil
}

// Named reports whether any data are named.
func (f Flags) Named() bool {
	return f.Kafka.named() || len(f.Data)+len(f.Table)+len(f.More) > 0
}

// Load reads the training configuration and finds the data. A flag names the
// configuration, which may be empty; errors name the flag. If there is a model, its
// layout counts, and the layout of the configuration must match it.
func (f Flags) Load(flag, file string, m *model.Model, log zerolog.Logger) (*Data, error) {
	d := &Data{Config: train.DefaultConfig(), Layout: signal.GunDrill()}
	if file != "" {
		var err error
		if d.Config, err = train.LoadConfig(file); err != nil {
			return nil, err
		}
	}
	if len(f.Table) > 0 {
		f.Table = append(f.Table, f.More...)
	} else {
		f.Data = append(f.Data, f.More...)
	}
	if err := f.check(flag, file); err != nil {
		return nil, err
	}
	d.Config.Ignore = append(d.Config.Ignore, f.Ignore...)
	var columns signal.Recording
	var err error
	if d.Config.Layout != "" {
		if d.Layout, columns, err = signal.LoadLayout(config.ResolvePath(file, d.Config.Layout)); err != nil {
			return nil, err
		}
	}
	if len(f.Table) == 0 && m != nil && file != "" {
		if err := m.Fits(d.Layout, m.Window); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	switch {
	case len(f.Table) > 0:
		err = f.loadTables(d, m, log)
	case f.Kafka.named():
		d.Inputs = make([]train.Input, 1)
		d.Inputs[0], err = f.input(flag, log)
	default:
		d.Inputs, err = recordings(f.Data, d.Layout, columns, f.Machine)
	}
	if err != nil {
		return nil, err
	}
	if d.meta != nil && m != nil {
		if err := d.meta.Fits(m); err != nil {
			return nil, fmt.Errorf("--table %s: %w", f.Table[0], err)
		}
	}
	wear := cmp.Or(f.Wear, config.ResolvePath(file, d.Config.Wear))
	if d.meta != nil && m == nil {
		var named *signal.Layout
		if d.Config.Layout != "" {
			named = d.Layout
		}
		if d.Layout, err = d.meta.Apply(&d.Config, named, wear != ""); err != nil {
			return nil, fmt.Errorf("--table %s: %w", f.Table[0], err)
		}
	}
	d.Wear, err = loadWear(wear, log)
	return d, err
}

// loadTables finds the tables, and the layout if they are not of recordings and the
// configuration names none.
func (f Flags) loadTables(d *Data, m *model.Model, log zerolog.Logger) error {
	ignore, err := table.NewIgnore(d.Config.Ignore)
	if err != nil {
		return err
	}
	t := tables{machine: f.Machine, scan: m == nil, ignore: ignore, log: log}
	if err := t.read(f.Table); err != nil {
		return err
	}
	d.Inputs, d.meta = t.inputs, t.meta
	if t.meta == nil && d.Config.Layout == "" && m == nil {
		if d.Layout, err = tableLayout(d.Inputs[0], d.Config.Window.Length); err != nil {
			return err
		}
	}
	if unused := ignore.Unused(); len(unused) > 0 && !t.scanned {
		return fmt.Errorf("ignore: no column is named %q in %s: check the spelling", unused[0], strings.Join(f.Table, ", "))
	}
	return nil
}

// check reports data that are not named, or named in two ways.
func (f Flags) check(flag, file string) error {
	switch {
	case f.Kafka.named() && len(f.Data)+len(f.Table) > 0:
		return errors.New("--kafka: learn from windows on Kafka or from files, not from both at once")
	case f.Kafka.named():
	case len(f.From)+len(f.To) > 0:
		return errors.New("--from and --to go with --kafka, which names the broker")
	case len(f.Data) > 0 && len(f.Table) > 0:
		return errors.New("--data and --table: learn from recordings or from tables, not from both at once")
	case len(f.Data)+len(f.Table) == 0:
		return errors.New("no data: name labelled recordings with --data, tables of features with --table, or windows on Kafka with --kafka (see --help)")
	case len(f.Data) > 0 && file == "":
		return fmt.Errorf("%s is missing: the layout that it names says which columns of a recording are channels; examples/turning/train.yaml is one", flag)
	}
	return nil
}

// loadWear returns the measurements of the wear file at path, nil if that is empty.
func loadWear(path string, log zerolog.Logger) ([]wear.Measurement, error) {
	if path == "" {
		return nil, nil
	}
	ms, warnings, err := wear.Load(path)
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		log.Warn().Msg(w)
	}
	return ms, nil
}

// match returns the files that an argument names, a file or a pattern.
func match(flag, arg string) ([]string, error) {
	paths, err := filepath.Glob(arg)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, arg, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s %s: %w: check the path; a pattern must match a file", flag, arg, fs.ErrNotExist)
	}
	for _, path := range paths {
		if isDir(path) {
			return nil, fmt.Errorf("%s %s is a folder: name its files, for example '%s'", flag, path, filepath.Join(path, "*.csv"))
		}
	}
	return paths, nil
}

// recordings returns those that the arguments name, files or patterns.
// A recording that is named twice, or has a name that another one's tool has
// already, would make near copies look like windows of another tool.
func recordings(args []string, layout *signal.Layout, columns signal.Recording, machine string) ([]train.Input, error) {
	var ins []train.Input
	bySum, byName := make(map[string]string), make(map[string]string)
	for _, arg := range args {
		paths, err := match("--data", arg)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			rec := source.Recording{Path: path, Layout: layout, Columns: columns, Machine: machine}
			sum, err := rec.SHA256()
			if err != nil {
				return nil, err
			}
			if other, twice := bySum[sum]; twice {
				return nil, fmt.Errorf("--data: %s and %s are the same recording: name one of them", other, path)
			}
			if other, twice := byName[rec.Name()]; twice && columns.Tool == "" {
				return nil, fmt.Errorf("--data: %s and %s would name their tools alike, which the layout has no column for: rename one of them", other, path)
			}
			bySum[sum], byName[rec.Name()] = path, path
			ins = append(ins, train.Input{Name: rec.Name(), SHA256: sum, Open: rec.Open})
		}
	}
	return ins, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
