package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

type initCommand struct {
	Data string `required:"" placeholder:"FILE" help:"A recording, in any format of docs/reference/formats.md, or a quoted pattern such as 'runs/*.csv': the first one is looked into. Others like it need no layout of their own."`
	cli.RateFlag
	Skip       int    `placeholder:"LINES" help:"Lines before the header, where they are not found."`
	TimeFormat string `placeholder:"FORMAT" help:"How dates are written, such as D/M/YYYY hh:mm:ss, where day and month may change places."`
	Decimal    string `placeholder:"comma|point" help:"What is before the decimals of numbers, where it is not found."`
	windowFlag
	Tool string `placeholder:"COLUMN" help:"Column that names the tool, or none if each file is a tool (default: guessed from the names)."`
	cli.KeptColumns
	cli.LongRecording
	cli.WearFile
	cli.UsualDestination `set:"out=."`
}

// Run looks into a recording, and writes a layout and a configuration for it.
func (f *initCommand) Run(ctx context.Context, out cli.Output) error {
	if f.Rate < 0 || f.Window < 0 {
		return fmt.Errorf("--rate %v, --window %v: must be positive", f.Rate, f.Window)
	}
	files, err := matchFiles("--data", f.Data)
	if err != nil {
		return err
	}
	s, p, err := f.look(ctx, files[0])
	if err != nil {
		printNotes(s, out.Stdout)
		return err
	}
	layout, err := p.layout(s.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	if f.Window > 0 {
		if err := (window.Spec{Length: f.Window}).Check(layout); err != nil {
			return err
		}
		p.length = f.Window
	}
	if err := os.MkdirAll(f.Out, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	layoutFile, configFile := filepath.Join(f.Out, "layout.yaml"), filepath.Join(f.Out, "train.yaml")
	if err := cli.WriteNew("--out", cli.File{Path: layoutFile, Text: p.layoutText(s.Path)}, cli.File{Path: configFile, Text: f.configText(p)}); err != nil {
		return err
	}
	if _, _, err := signal.LoadLayout(layoutFile); err != nil { // a defect of ours: name it now
		return err
	}
	if _, err := train.LoadConfig(configFile); err != nil {
		return err
	}
	if len(files) > 1 {
		fmt.Fprintf(out.Stdout, "looked    into %s, the first of %d recordings\n", s.Path, len(files))
	}
	printNotes(s, out.Stdout)
	if read := s.Read(); read != "" {
		fmt.Fprintln(out.Stdout, read)
	}
	if s.Clock != nil {
		fmt.Fprintln(out.Stdout, s.Clock)
	}
	return f.report(p, s.Path, layoutFile, configFile, out.Stdout)
}

// printNotes prints what is odd about a recording, if it could be opened.
func printNotes(s *inspect.Summary, w io.Writer) {
	if s == nil {
		return
	}
	for _, note := range s.Notes {
		fmt.Fprintf(w, "note      %s\n", plain.Text(note))
	}
}

// withoutOther takes the channels of another rate out of a summary, and returns why.
func withoutOther(s *inspect.Summary) (left [][2]string) {
	s.Channels = slices.DeleteFunc(s.Channels, func(c inspect.Channel) bool {
		if c.Other != "" {
			left = append(left, [2]string{c.Name, c.Other})
		}
		return c.Other != ""
	})
	return left
}

// look looks into the recording. Of several columns that may name the tool it takes the first one that does not make many short tools of it.
func (f *initCommand) look(ctx context.Context, path string) (*inspect.Summary, *proposal, error) {
	tool := f.Tool
	var refused error
	for {
		s, err := inspect.Inspect(ctx, path, inspect.Options{Rate: f.Rate, Columns: signal.Recording{Skip: f.Skip, Decimal: f.Decimal, TimeFormat: f.TimeFormat}, All: f.All, Tool: tool})
		if err != nil {
			return nil, nil, err
		}
		if s.Err != nil {
			return s, nil, s.Err
		}
		left := withoutOther(s)
		p, err := propose(s, f.Rate, cmp.Or(f.Tool, s.ToolColumn), f.Keep)
		if err == nil {
			p.left = append(p.left, left...)
		}
		if err == nil && f.Tool == "" {
			err = p.checkTools(s, train.DefaultConfig().Reference.Windows)
		}
		if !errors.Is(err, errTools) {
			return s, p, err
		}
		if refused == nil {
			refused = err
		}
		columns := inspect.Roles[0].Columns(s)
		next := slices.Index(columns, s.ToolColumn) + 1
		if next == len(columns) {
			return s, nil, refused
		}
		tool = columns[next]
	}
}

// report says what was written and guessed, and what to do next.
func (f *initCommand) report(p *proposal, path, layoutFile, configFile string, w io.Writer) error {
	guessed := 0
	for _, c := range p.channels {
		if c.why == "" {
			guessed++
		}
	}
	fmt.Fprintf(w, "wrote     %s: %d channels", layoutFile, len(p.channels))
	if guessed > 0 {
		fmt.Fprintf(w, "; the kind of %d is not known, look for KIND", guessed)
	}
	fmt.Fprintf(w, "\nwrote     %s: windows of %v\n", configFile, p.length)
	for _, note := range p.notes {
		fmt.Fprintf(w, "note      %s\n", plain.Text(note))
	}
	for _, one := range [][2]string{{"tool", p.rec.Tool}, {"time", p.rec.Time}, {"hole", p.rec.Hole}, {p.label, p.labelColumn()}} {
		switch {
		case one[0] == "time" && one[1] != "" && p.counts != "":
			fmt.Fprintf(w, "column    %q is time: it seems to count %s\n", one[1], p.counts)
		case one[1] != "":
			fmt.Fprintf(w, "column    %q is %s\n", one[1], one[0])
		}
	}
	if p.rec.Tool == "" {
		fmt.Fprintln(w, "tool      no column names it: each file is a tool, named as the file; name them all below, as --data 'runs/*.csv'")
	}
	if !p.dated {
		fmt.Fprintln(w, "dates     none, so windows count seconds from the start: name it by --start, and by `start` in train.yaml and ingest.yaml")
	}
	for i, l := range p.left {
		if i == 10 {
			fmt.Fprintf(w, "left out  %d more columns, see %s\n", len(p.left)-i, layoutFile)
			break
		}
		fmt.Fprintf(w, "left out  %q: %s\n", l[0], l[1])
	}
	fmt.Fprintf(w, "\nCheck the guesses in %s. Then:\n\n", layoutFile)
	fmt.Fprintf(w, "  ingest inspect %s --layout %s\n", cli.Quote(path), cli.Quote(layoutFile))
	fit := fmt.Sprintf("  trainer fit --config %s --data %s --model model.flank", cli.Quote(configFile), cli.Quote(f.Data))
	if p.label == "" && f.Wear == "" {
		tool := "T1"
		if p.rec.Tool == "" {
			tool = layoutName(path)
		}
		fmt.Fprint(w, "\nNo column has labels")
		if len(p.maybe) > 0 {
			fmt.Fprintf(w, ", but %q may, see above", p.maybe)
		}
		fmt.Fprintf(w, ". Write a wear file, wear.csv, with a row for each tool, such as (docs/how-to/labels.md):\n\n  tool,state\n  %s,worn\n\n", tool)
		fit += " --wear wear.csv"
	}
	check := strings.Replace(fit, "fit", "labels check", 1)
	check = strings.Replace(check, " --model model.flank", "", 1)
	_, err := fmt.Fprintf(w, "%s\n%s\n", check, fit)
	return err
}

func (p *proposal) labelColumn() string {
	if p.label == "" {
		return ""
	}
	return *p.columnOf(p.label)
}

// layoutText returns the layout file. Channels that differ in name only share an entry.
func (p *proposal) layoutText(path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by `trainer init --data %s`. Every key: schemas/layout.md\n", comment(path))
	b.WriteString("# A kind says how a channel is judged: vibration, force, torque, acoustic, current, voltage, power, position, velocity,\n" +
		"# acceleration, or feature for values that were computed before, one for each window.\n")
	fmt.Fprintf(&b, "name: %s\nchannels:\n", config.Text(layoutName(path)))
	for i := 0; i < len(p.channels); {
		first := p.channels[i]
		end := i + 1
		for end < len(p.channels) && same(first, p.channels[end]) {
			end++
		}
		p.entry(&b, p.channels[i:end])
		i = end
	}
	if len(p.left) > 0 {
		b.WriteString("# Not used:\n")
		for _, l := range p.left {
			fmt.Fprintf(&b, "#   %s: %s\n", comment(l[0]), comment(l[1]))
		}
	}
	return b.String() + p.recordingText()
}

func same(a, b proposedChannel) bool {
	return a.Kind == b.Kind && a.Rate == b.Rate && a.Unit == b.Unit && a.why == b.why
}

// entry writes channels that differ in name only.
func (p *proposal) entry(b *strings.Builder, cs []proposedChannel) {
	c := cs[0]
	says := map[string]string{"unit": "guessed from the unit", "name": "guessed from the names", "rate": "one row for each window"}[c.why]
	if says == "" {
		says = "KIND not known: correct it"
	}
	fmt.Fprintf(b, "  - kind: %s   # %s\n    rate: %v   # samples a second\n", c.Kind, says, c.Rate)
	if c.Unit != "" {
		fmt.Fprintf(b, "    unit: %s\n", config.Text(c.Unit))
	}
	if len(cs) == 1 {
		fmt.Fprintf(b, "    name: %s\n", config.Text(c.Name))
		return
	}
	b.WriteString("    names: [\n")
	line := "      "
	for _, c := range cs {
		name := config.Text(c.Name) + ","
		if len(line)+len(name) > 110 {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = "      "
		}
		line += name + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n    ]\n")
}

// recordingText returns the part of the layout that says how the recording is written.
func (p *proposal) recordingText() string {
	r := p.rec
	var b strings.Builder
	if r.Skip > 0 {
		fmt.Fprintf(&b, "  skip: %d\n", r.Skip)
	}
	for _, k := range [][3]string{
		{"header", r.Header, "lines that name the columns"}, {"separator", r.Separator, ""}, {"decimal", r.Decimal, ""},
		{"time", r.Time, "sensor time"}, {"date", r.Date, ""}, {"time_unit", r.TimeUnit, p.counts}, {"time_format", r.TimeFormat, "by days above 12, or by --time-format"}, {"machine", r.Machine, ""}, {"tool", r.Tool, "a change of it begins another tool"}, {"hole", r.Hole, ""},
		{"vb_max_um", r.VBMax, "label: flank wear"}, {"vb_mean_um", r.VBMean, "label: mean flank wear"},
		{"vb_max_mm", r.VBMaxMM, "label: flank wear, in mm by its size"}, {"vb_mean_mm", r.VBMeanMM, "label: mean flank wear, in mm by its size"}, {"state", r.State, "label: a word"},
	} {
		if k[1] == "" {
			continue
		}
		fmt.Fprintf(&b, "  %s: %s", k[0], config.Text(k[1]))
		if k[2] != "" {
			fmt.Fprintf(&b, "   # %s", k[2])
		}
		b.WriteString("\n")
	}
	if len(r.Missing) > 0 {
		cells := make([]string, len(r.Missing))
		for i, cell := range r.Missing {
			cells[i] = config.Text(cell)
		}
		fmt.Fprintf(&b, "  missing: [%s]   # cells that say that a value is missing\n", strings.Join(cells, ", "))
	}
	if b.Len() == 0 {
		return ""
	}
	return "recording:\n" + b.String()
}

// configText returns the configuration.
func (f *initCommand) configText(p *proposal) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by `trainer init --data %s`. Every key: docs/reference/training.md\n", comment(f.Data))
	b.WriteString("layout: layout.yaml\n")
	switch {
	case f.Wear != "":
		wear, err := filepath.Rel(f.Out, f.Wear)
		if err != nil { // one of them is absolute
			wear, _ = filepath.Abs(f.Wear)
		}
		fmt.Fprintf(&b, "wear: %s\n", config.Text(filepath.ToSlash(wear)))
	case p.label == "":
		b.WriteString("# wear: wear.csv   # no column has labels: write a file with a row for each tool, see docs/how-to/labels.md\n")
	}
	fmt.Fprintf(&b, "window:\n  length: %v\nlabel:\n", p.length)
	fmt.Fprintf(&b, "  %s: 300   # flank wear in µm from which on a tool is worn\n", p.limitKey())
	if p.label == "state" || p.label == "" {
		b.WriteString("  states: [worn, chipped, broken]   # words of the labels that mean a worn tool\n")
	}
	if p.limitKey() != "vb_max_um" {
		b.WriteString("  vb_max_um: 0\n")
	}
	return b.String()
}

// limitKey returns the key of the limit that goes with the labels.
func (p *proposal) limitKey() string {
	if strings.HasPrefix(p.label, "vb_mean") {
		return "vb_mean_um"
	}
	return "vb_max_um"
}

// comment makes text part of a comment of one line.
func comment(text string) string { return strings.Join(strings.Fields(text), " ") }
