package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/labels"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/internal/train/archive"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/rs/zerolog"
)

// inputFlags name the data that a command works on.
type inputFlags struct {
	Data []string `sep:"none" placeholder:"FILE" help:"Labelled recording; repeat it, or name more files after it. A quoted pattern such as 'runs/*.csv' works too."`
	cli.FeatureTables
	kafkaFlags
	Ignore []string `sep:"," placeholder:"COLUMN" help:"Columns of tables that are not features, text or a time for example, with commas between them; * stands for any characters. Adds to ignore in the configuration."`
	cli.KeptColumns
	cli.WearFile
	Labels string `enum:"none,floor,all" default:"none" placeholder:"KIND" help:"Labels on Kafka, in addition to the labels of --wear: floor, what people said of tools; all, their answers to alarms too, of tools without another label; or none (default: none). With files, --kafka has the labels alone."`
	cli.OneMachine
	cli.Moment
	More []string `arg:"" optional:"" name:"file" help:"More recordings, or tables if the first one is a table."`
}

// layoutFlag names another layout.
type layoutFlag struct {
	Layout string `placeholder:"FILE" help:"Layout file that says where the channels are in the recordings, instead of the configuration's, or of the one that the model was trained on. Of a table: of the windows that its features were computed of; trainer features writes it into its tables."`
}

// noMachine is the machine of recordings that nothing names one of.
const noMachine = "local/site/area/line/machine"

// examinedFlags say of the data of an examination what the model does not know.
type examinedFlags struct {
	layoutFlag
	windowFlag
}

// windowFlag says how long windows are.
type windowFlag struct {
	Window time.Duration `placeholder:"TIME" help:"Length of a window, or of the windows that rows of a table are of, such as 2s, where nothing else says it."`
}

// dataset is what inputFlags name.
type dataset struct {
	Config  train.Config
	Layout  *signal.Layout
	Columns signal.Recording // how recordings are read
	Inputs  []train.Input
	Wear    []wear.Measurement // nil: labels are in the recordings

	meta *train.FeatureMeta // of tables of recordings; else nil
}

// Window returns how long rows of a table last, as the flag or the configuration says; a
// length of 0 if neither does.
func (d *dataset) Window(f examinedFlags) window.Spec {
	switch {
	case f.Window > 0:
		return window.Spec{Length: f.Window}
	case d.Config.Window.Said:
		return window.Spec{Length: d.Config.Window.Length, Hop: d.Config.Window.Hop}
	}
	return window.Spec{}
}

// Named reports whether any data are named.
func (f inputFlags) Named() bool {
	return f.kafkaFlags.Named() || len(f.Data)+len(f.Table)+len(f.More) > 0
}

// loadFor is load of what m is examined on, with the flags for that.
func (f inputFlags) loadFor(m *model.Model, flag, file string, of examinedFlags, log zerolog.Logger) (*dataset, error) {
	if of.Window < 0 {
		return nil, fmt.Errorf("--window %v: must be positive, such as 2s", of.Window)
	}
	return f.load(flag, file, of.Layout, m, log)
}

// load reads the training configuration and finds the data to learn from, or, unless m is nil, to examine it on. A flag names
// the configuration, which may be empty; errors name the flag. A layout file, which may be empty too, stands for the layout of
// the configuration. The layout of m counts, and another one must match it; without a configuration recordings are read as those
// that m was trained on.
func (f inputFlags) load(flag, file, layout string, m *model.Model, log zerolog.Logger) (*dataset, error) {
	d := &dataset{Config: train.DefaultConfig(), Layout: signal.GunDrill()}
	f.Machine = cmp.Or(f.Machine, noMachine)
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
	if err := f.check(flag, file, m != nil || layout != ""); err != nil {
		return nil, err
	}
	d.Config.Ignore = append(d.Config.Ignore, f.Ignore...)
	kept, ofArchive, err := f.archived(flag, log)
	if err == nil && ofArchive && len(d.Config.Ignore) > 0 {
		err = errors.New("--ignore, or `ignore` in the configuration, leaves out columns of tables, and files of an archive have the features of their layout: name features that shall not count under `exclude` in train.yaml")
	}
	if err != nil {
		return nil, err
	}
	if err := d.findLayout(file, layout, m, len(f.Table) > 0 && !ofArchive); err != nil {
		return nil, err
	}
	asTrained := m != nil && file == "" && layout == ""
	if asTrained && (f.Wear != "" || f.ofKafka()) { // the labels are there, and need no columns
		d.Columns.VBMean, d.Columns.VBMax, d.Columns.VBMeanMM, d.Columns.VBMaxMM, d.Columns.State = "", "", "", "", ""
	}
	if ofArchive {
		d.Inputs = []train.Input{kept}
	} else if err := f.open(d, flag, m, log); err != nil {
		return nil, err
	}
	if asTrained {
		for i := range d.Inputs {
			d.Inputs[i].Open = suggestLayout(d.Inputs[i].Open)
		}
	}
	path := f.wearPath(file, d.Config)
	if d.meta != nil {
		if err := d.applyMeta(m, path != "" || f.ofKafka()); err != nil {
			return nil, fmt.Errorf("--table %s: %w", f.Table[0], err)
		}
	}
	if err := d.measure(f, path, log); err != nil {
		return nil, err
	}
	return d, d.checkNames()
}

// measure finds what was measured of tools: the wear file at path, if that is not empty, and labels on Kafka.
func (d *dataset) measure(f inputFlags, path string, log zerolog.Logger) (err error) {
	if d.Wear, err = loadWear(path, log); err != nil || !f.ofKafka() {
		return err
	}
	return d.addLabels(f, log)
}

// open finds what is learnt from, which is not an archive.
func (f inputFlags) open(d *dataset, flag string, m *model.Model, log zerolog.Logger) (err error) {
	switch {
	case len(f.Table) > 0:
		return f.loadTables(d, m, log)
	case f.kafkaFlags.Named() && len(f.Data) == 0:
		r, err := f.reader(flag, log)
		if err != nil {
			return err
		}
		d.Inputs = []train.Input{{Name: strings.Join(r.topics, " and "), Cut: r.read}}
	default:
		d.Inputs, err = f.recordings(d, d.Columns, log)
	}
	return err
}

// archived returns the tables as windows if they are files of an archive.
func (f inputFlags) archived(flag string, log zerolog.Logger) (in train.Input, ok bool, err error) {
	paths, err := matchAll("--table", f.Table)
	if err != nil {
		return in, false, err
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) == 0 {
		return in, false, nil
	}
	return archived(paths, flag, log)
}

// checkNames reports recordings of one name that a wear file may speak of.
func (d *dataset) checkNames() error {
	if !slices.ContainsFunc(d.Wear, func(m wear.Measurement) bool { return m.Recording != "" }) {
		return nil
	}
	seen := make(map[string]bool)
	for _, in := range d.Inputs {
		if seen[in.Name] {
			return fmt.Errorf("--data: two recordings are named %s, so a row of the wear file that names it is of either: rename one of them", in.Name)
		}
		seen[in.Name] = true
	}
	return nil
}

// applyMeta completes the layout and the configuration by what tables say of their
// recordings, or reports why a model cannot be examined on them. Labelled says that there is
// a wear file.
func (d *dataset) applyMeta(m *model.Model, labelled bool) (err error) {
	if m != nil {
		return d.meta.Fits(m)
	}
	var named *signal.Layout
	if d.Config.Layout != "" {
		named = d.Layout
	}
	d.Layout, err = d.meta.Apply(&d.Config, named, labelled)
	d.Columns = d.meta.Recording
	return err
}

// loadTables finds the tables, and the layout if they are not of recordings and the
// configuration names none.
func (f inputFlags) loadTables(d *dataset, m *model.Model, log zerolog.Logger) error {
	ignore, err := table.NewIgnore(d.Config.Ignore)
	if err != nil {
		return err
	}
	t := tables{machine: f.Machine, scan: m == nil, ignore: ignore, keep: f.Keep, log: log}
	switch {
	case m != nil:
		t.of = &windows{m.Layout, m.Window, m.Features}
	case d.Config.Layout != "":
		t.of = &windows{d.Layout, window.Spec{Length: d.Config.Window.Length, Hop: d.Config.Window.Hop}, d.Config.Features}
	}
	if err := t.read(f.Table); err != nil {
		return err
	}
	d.Inputs, d.meta = t.inputs, t.meta
	if t.meta == nil && m == nil {
		if err := d.layoutOfTables(&t); err != nil {
			return fmt.Errorf("--table %s: %w", f.Table[0], err)
		}
	}
	if unused := ignore.Unused(); len(unused) > 0 {
		return fmt.Errorf("ignore: no column is named %q in %s: check the spelling", unused[0], strings.Join(f.Table, ", "))
	}
	return nil
}

// findLayout finds the layout, and how recordings are read: from the layout file, from the
// configuration, or from the model, the first of them that there is.
func (d *dataset) findLayout(file, layout string, m *model.Model, tables bool) (err error) {
	from := layout
	switch {
	case layout != "":
		if m == nil {
			d.Config.Layout = layout
		}
		d.Layout, d.Columns, err = signal.LoadLayout(layout)
	case d.Config.Layout != "":
		from = file
		d.Layout, d.Columns, err = signal.LoadLayout(config.ResolvePath(file, d.Config.Layout))
	case m != nil && file == "":
		d.Layout, d.Columns = m.Layout, m.Recording
		d.Config.Join = train.JoinOf(m)
		return nil
	default:
		from = file
	}
	if err != nil || m == nil || tables {
		return err
	}
	if file == "" {
		d.Config.Join = train.JoinOf(m)
	}
	if err := m.Fits(d.Layout, m.Window); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// suggestLayout adds to an error of opening a recording that is read as those that the model
// was trained on what to do if it is different.
func suggestLayout(open func() (source.Source, error)) func() (source.Source, error) {
	if open == nil {
		return nil
	}
	return func() (source.Source, error) {
		src, err := open()
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w; it is read as the recordings that the model was trained on: if its columns or format are different, say so in a layout file and name it with --layout", err)
		}
		return src, err
	}
}

// check reports data that are not named, or named in two ways. Where a model or a file says the layout,
// recordings need no configuration.
func (f inputFlags) check(flag, file string, layout bool) error {
	files := len(f.Data)+len(f.Table) > 0
	switch {
	case f.kafkaFlags.Named() && files && !f.ofKafka():
		return errors.New("--kafka: learn from windows on Kafka or from files, not from both at once; files may have --labels on Kafka")
	case f.kafkaFlags.Named() && !files:
		return nil
	case f.ofKafka() && !f.kafkaFlags.Named():
		return errors.New("--labels: they are on Kafka, name the broker with --kafka")
	}
	return cmp.Or(
		config.Wrong(f.Bounded(), "--since and --until go with --kafka, which names the broker"),
		config.Wrong(f.Source != "" && f.Source != fromAuto, "--from goes with --kafka, which names the broker"),
		config.Wrong(len(f.Keep) > 0 && len(f.Table) == 0, "--keep goes with tables: recordings have the channels of their layout"),
		config.Wrong(len(f.Ignore) > 0 && len(f.Table) == 0, "--ignore leaves out columns of tables: recordings have the channels of their layout; name features that shall not count under `exclude` in train.yaml"),
		config.Wrong(len(f.Data) > 0 && len(f.Table) > 0, "--data and --table: learn from recordings or from tables, not from both at once"),
		config.Wrong(!files, "no data: name labelled recordings with --data, tables of features with --table, or windows on Kafka with --kafka (see --help)"),
		config.Wrong(len(f.Data) > 0 && file == "" && !layout, "%s is missing: the layout that it names says which columns of a recording are channels; examples/turning/train.yaml is one (or name a layout file with --layout)", flag))
}

// ofKafka reports whether labels on Kafka count.
func (f inputFlags) ofKafka() bool { return f.Labels == labelsFloor || f.Labels == labelsAll }

// What inputFlags.Labels may be.
const (
	labelsNone  = "none"
	labelsFloor = "floor" // what people said of tools, without their answers to alarms
	labelsAll   = "all"
)

// addLabels adds the labels on Kafka to the labels of the wear file.
func (d *dataset) addLabels(f inputFlags, log zerolog.Logger) error {
	cfg, err := f.Bus("flank-trainer")
	if err != nil {
		return err
	}
	ctx, cancel := cli.WithPatience(context.Background(), &cfg)
	defer cancel(nil)
	floor, err := readLabels(ctx, cfg, log)
	var answers []event.Label
	if err == nil && f.Labels == labelsAll {
		answers, err = labels.Answers(ctx, cfg)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("--labels: %w", err)
	}
	ms := train.LabelMeasurements(floor, answers)
	if len(ms)+len(d.Wear) == 0 {
		return fmt.Errorf("--labels: there are none on Kafka: give some with 'trainer labels add', or name a wear file with --wear")
	}
	log.Info().Int("labels", len(ms)).Msg("read labels on Kafka")
	d.Wear = append(d.Wear, ms...)
	return nil
}

// readLabels returns the labels on Kafka, and says how many messages are none.
func readLabels(ctx context.Context, cfg bus.Config, log zerolog.Logger) ([]event.Label, error) {
	all, skipped, err := labels.Read(ctx, cfg)
	if skipped > 0 {
		log.Warn().Int("messages", skipped).Msgf("left out messages of %s that are not labels", bus.TopicLabels)
	}
	return all, err
}

// wearPath returns where the wear file is that --wear or the configuration in a file names; empty if there is none.
func (f inputFlags) wearPath(file string, c train.Config) string {
	return cmp.Or(f.Wear, config.ResolvePath(file, c.Wear))
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

// Match returns the files that an argument names, a file or a pattern.
func matchFiles(flag, arg string) ([]string, error) {
	paths, err := archive.Matches(arg)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, arg, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s %s: %w: check the path; a pattern must match a file", flag, arg, fs.ErrNotExist)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil, fmt.Errorf("%s %s is a folder: name its files, for example '%s'", flag, path, filepath.Join(path, "*.csv"))
		}
	}
	return paths, nil
}

// matchAll returns the files that arguments name.
func matchAll(flag string, args []string) (paths []string, err error) {
	for _, arg := range args {
		some, err := matchFiles(flag, arg)
		if err != nil {
			return nil, err
		}
		paths = append(paths, some...)
	}
	return paths, nil
}

// recordings returns those that the arguments name, files or patterns.
// A recording that is named twice, or has a name that another one's tool has
// already, would make near copies look like windows of another tool.
func (f inputFlags) recordings(d *dataset, columns signal.Recording, log zerolog.Logger) ([]train.Input, error) {
	start := f.Start
	if start.IsZero() {
		if err := start.UnmarshalText([]byte(d.Config.Start)); err != nil {
			return nil, fmt.Errorf("start: %w", err) // it was checked with the configuration
		}
	}
	var recs []*source.Recording // as they follow each other
	var ins []train.Input
	warn := source.Once(func(text string) { log.Warn().Msg(text) })
	bySum, byName := make(map[string]string), make(map[string]string)
	for _, arg := range f.Data {
		paths, err := matchFiles("--data", arg)
		if err != nil {
			return nil, err
		}
		var some []*source.Recording
		for _, path := range paths {
			rec := &source.Recording{Path: path, Layout: d.Layout, Columns: columns, Machine: f.Machine, Start: start, Warn: warn}
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
			some = append(some, rec)
			ins = append(ins, train.Input{Name: rec.Name(), SHA256: sum, Open: func() (source.Source, error) { return rec.Open() }})
		}
		slices.SortStableFunc(some, func(a, b *source.Recording) int { return card.CompareNames(a.Path, b.Path) })
		recs = append(recs, some...)
	}
	return ins, place(recs, start, warn)
}

// place gives recordings without a clock their start, in the order given, or in which
// their files were changed.
func place(recs []*source.Recording, start signal.Start, warn func(string)) error {
	if start.IsZero() {
		return nil
	}
	if start.FileTime {
		changed := make(map[*source.Recording]time.Time)
		for _, r := range recs {
			info, err := os.Stat(r.Path)
			if err != nil {
				return fmt.Errorf("--data: %w", err)
			}
			changed[r] = info.ModTime()
		}
		recs = slices.Clone(recs)
		slices.SortStableFunc(recs, func(a, b *source.Recording) int { return changed[a].Compare(changed[b]) })
	}
	var line source.Timeline
	late, first := 0, ""
	for _, r := range recs {
		by, err := line.Place(context.Background(), r)
		if err != nil {
			return err
		}
		if by >= source.Overlap {
			if late++; late == 1 {
				first = r.Path
			}
		}
	}
	if late > 0 {
		warn(fmt.Sprintf("by the times of change of their files %d recordings, the first is %s, would begin before others ended, so they follow them: keep times of change when copying recordings, or name the start of the first one by --start", late, first))
	}
	return nil
}
