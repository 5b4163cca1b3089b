package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// set is a data set: one row for each window in the order of cutting, all rows of
// one tool together, with features as they are before a reference is taken.
type set struct {
	Name      string  `json:"name"`
	Reference int     `json:"reference"` // a tool's first windows, which nothing else is learnt from
	LimitUM   float64 `json:"limit"`     // a window is faulty from this wear on; µm, but for lmas
	Window    string  `json:"window"`    // what a row covers
	Splits    []split `json:"splits"`

	table *table.Table // Class is 0, healthy, or 1, faulty
}

// life is the rows of one tool after its reference.
type life struct {
	tool   string
	rows   []int // of the table
	faulty int   // how many of them are
}

// lives returns the tools in the order of the table.
func (s *set) lives() []life {
	var ls []life
	seen := 0
	for i, t := range s.table.Tool {
		if i == 0 || s.table.Tool[i-1] != t {
			ls, seen = append(ls, life{tool: t}), 0
		}
		if seen++; seen <= s.Reference {
			continue
		}
		l := &ls[len(ls)-1]
		l.rows = append(l.rows, i)
		l.faulty += s.table.Class[i]
	}
	return ls
}

// reader makes the table of a data set from the folder of recordings.
type reader struct {
	name string
	read func(ctx context.Context, folder string) (*set, error)
}

var readers = []reader{
	{"turning", readTurning},
	{"phm2010", readPHM},
	{"uniwear", readUniwear},
	{"lmas", readLMAS},
	{"drill", readDrill},
}

const (
	turningLimit = 300 // µm, as its authors have it
	phmLimit     = 150 // µm; 300 is never reached
	uniwearLimit = 150 // µm, which every experiment reaches
)

func newSet(name string, reference int, limit float64, window string, columns []string) *set {
	return &set{Name: name, Reference: reference, LimitUM: limit, Window: window, table: table.New(columns)}
}

// add appends a window, which is faulty from the limit on.
func (s *set) add(tool string, wear float64, features []float32) {
	class := 0
	if wear >= s.LimitUM {
		class = 1
	}
	s.table.Append(table.Row{Tool: tool, Class: class, VBMaxUM: wear, Features: features})
}

func readTurning(_ context.Context, folder string) (*set, error) {
	f, err := columns.Open(filepath.Join(folder, "vicomtech-turning", "turning_wear_dev.csv"))
	if err != nil {
		return nil, err
	}
	names := f.Except("tool", "Vb")
	s := newSet("turning", 10, turningLimit, "1 s", names)
	return s, f.Each(func(r *columns.Row) error {
		s.add(r.Text("tool"), r.Number("Vb"), r.Numbers(names))
		return nil
	})
}

// readPHM reads the cutters of the PHM challenge of 2010: a row for each cut, 70
// features, worn as the most worn of three flutes.
func readPHM(_ context.Context, folder string) (*set, error) {
	wear := make(map[string]float64)
	if err := columns.Each(filepath.Join(folder, "phm2010-features", "process_info.csv"), func(r *columns.Row) error {
		wear[r.Text("case")+" "+r.Text("run")] = max(r.Number("VB_flute_1"), r.Number("VB_flute_2"), r.Number("VB_flute_3"))
		return nil
	}); err != nil {
		return nil, err
	}
	f, err := columns.Open(filepath.Join(folder, "phm2010-features", "feature_vector.csv"))
	if err != nil {
		return nil, err
	}
	names := f.Except("case", "run", "enable")
	s := newSet("phm2010", 10, phmLimit, "one cut", names)
	return s, f.Each(func(r *columns.Row) error {
		um, ok := wear[r.Text("case")+" "+r.Text("run")]
		if !ok {
			return fmt.Errorf("case %s has no wear of run %s in process_info.csv", r.Text("case"), r.Text("run"))
		}
		s.add("cutter "+r.Text("case"), um, r.Numbers(names))
		return nil
	})
}

// uniwearRows is how many rows of Uniwear, of half a second each, make a window.
const uniwearRows = 20

// readUniwear reads Uniwear's experiments: windows of ten seconds, and of each of the
// three channels its mean, standard deviation, least and greatest value.
func readUniwear(_ context.Context, folder string) (*set, error) {
	channels := []string{"force_z", "vibration_x", "vibration_y"}
	var names []string
	for _, c := range channels {
		names = append(names, c+".mean", c+".sd", c+".min", c+".max")
	}
	s := newSet("uniwear", 10, uniwearLimit, "10 s", names)
	tool, n, um := "", 0, 0.0
	values := make([][]float64, len(channels))
	return s, columns.Each(filepath.Join(folder, "uniwear", "uniwear_dev.csv"), func(r *columns.Row) error {
		if t := r.Text("experiment_tag"); t != tool {
			tool, n, um = t, 0, 0
		}
		for c, name := range channels {
			if n == 0 {
				values[c] = values[c][:0]
			}
			values[c] = append(values[c], r.Number(name))
		}
		um += 1000 * r.Number("tool_wear") / uniwearRows
		if n++; n < uniwearRows {
			return nil
		}
		var x []float32
		for _, v := range values {
			mean, sd := stat.PopMeanStdDev(v, nil)
			x = append(x, float32(mean), float32(sd), float32(slices.Min(v)), float32(slices.Max(v)))
		}
		s.add(tool, um, x)
		n, um = 0, 0
		return nil
	})
}

// drillSeeds are the seeds of the simulated drill; each is an experiment of 20 tools.
var drillSeeds = []uint64{1, 2, 3}

// drillTool names a tool of the simulated drill: the tools of all seeds are in one set.
func drillTool(seed uint64, tool string) string { return fmt.Sprintf("%d-%s", seed, tool) }

// readDrill drills the tools of the simulated gun drill and extracts all features of
// their windows. It takes minutes.
func readDrill(ctx context.Context, _ string) (*set, error) {
	var s *set
	for _, seed := range drillSeeds {
		job := train.SimulatedHistory("local/site/area/line/drill", seed)
		job.Config.Reference.Mode = model.ReferenceOff
		t, _, _, err := train.Lessons(ctx, job)
		if err != nil {
			return nil, err
		}
		if s == nil {
			s = newSet("drill", job.Config.Reference.Windows, train.DefaultConfig().Label.VBMaxUM, "1 s", t.Columns)
		}
		for i := range t.Rows() {
			r := t.Row(i)
			s.table.Append(table.Row{Tool: drillTool(seed, r.Tool), Class: r.Class, VBMaxUM: r.VBMaxUM, Features: r.Features})
		}
	}
	return s, nil
}

// LMAS gives two tools of raw acceleration at 1 kHz. Its wear runs from 0 to 100
// without a unit.
const (
	lmasRate   = 1000
	lmasWindow = 200  // samples
	lmasLimit  = 68.5 // between the two cuts of the second tool, of 67.1 and 70
)

// readLMAS reads LMAS's two recordings, in windows of 0.2 s that lie inside one cut
// of the metadata, with the features of package signal.
func readLMAS(_ context.Context, folder string) (*set, error) {
	layout, err := signal.NewLayout("lmas", []signal.Channel{
		{Name: "ax", Kind: signal.Acceleration, Unit: "g", Rate: lmasRate},
		{Name: "ay", Kind: signal.Acceleration, Unit: "g", Rate: lmasRate},
		{Name: "az", Kind: signal.Acceleration, Unit: "g", Rate: lmasRate},
	})
	if err != nil {
		return nil, err
	}
	x, err := signal.NewExtractor(layout, []int{lmasWindow, lmasWindow, lmasWindow}, signal.FeatureSpec{Version: signal.FeatureVersion})
	if err != nil {
		return nil, err
	}
	s := newSet("lmas", 3, lmasLimit, "0.2 s", x.Names())
	for _, of := range []struct {
		tool, samples, metadata string
		start                   float64 // of the file in the metadata, s
	}{
		{"9", "accel_T0901_303_20xf", "metadata9.csv", 0},
		{"25", "accel_T2503", "metadata25.csv", 622},
	} {
		samples, err := readAcceleration(filepath.Join(folder, "lmas-milling", of.samples))
		if err != nil {
			return nil, err
		}
		if err := columns.Each(filepath.Join(folder, "lmas-milling", of.metadata), func(r *columns.Row) error {
			from, to, wear := r.Number("start_time"), r.Number("end_time"), r.Number("tool_wear")
			if r.Text("cut_type") == "A" {
				return nil // through air
			}
			at, end := int((from-of.start)*lmasRate), int((to-of.start)*lmasRate)
			for ; at >= 0 && at+lmasWindow <= min(end, len(samples[0])); at += lmasWindow {
				w := make([][]float32, len(samples))
				for c := range w {
					w[c] = samples[c][at : at+lmasWindow]
				}
				s.add(of.tool, wear, x.Extract(nil, w, signal.Context{}))
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// readAcceleration reads lines of three numbers. Lines that are a date are passed over.
func readAcceleration(path string) ([][]float32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := make([][]float32, 3)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if _, err := time.Parse("2006-01-02 15:04:05.999999", text); err == nil || text == "" {
			continue
		}
		var v [3]float32
		if _, err := fmt.Sscan(text, &v[0], &v[1], &v[2]); err != nil {
			return nil, fmt.Errorf("%s: line %d: %q is not three numbers: %w", path, n, text, err)
		}
		for c := range out {
			out[c] = append(out[c], v[c])
		}
	}
	return out, lines.Err()
}

// write stores the set in a folder, for the peers and for the next time.
func (s *set) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	err := config.WriteFileTo(filepath.Join(folder, s.Name+".csv"), func(out io.Writer) error {
		lines := [][]string{append([]string{"tool", "faulty", "wear"}, s.table.Columns...)}
		for i := range s.table.Rows() {
			r := s.table.Row(i)
			line := []string{r.Tool, strconv.Itoa(r.Class), number(r.VBMaxUM, 64)}
			for _, v := range r.Features {
				line = append(line, number(float64(v), 32))
			}
			lines = append(lines, line)
		}
		return csv.NewWriter(out).WriteAll(lines)
	})
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return config.WriteFile(filepath.Join(folder, s.Name+".json"), append(text, '\n'))
}

// number writes v so that it is read again exactly; nothing for NaN.
func number(v float64, bits int) string {
	if v != v {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

// loadSet reads what write wrote.
func loadSet(folder, name string) (s *set, err error) {
	s = &set{}
	s.table, err = columns.Table(folder, name, s)
	return s, err
}

// prepareSets makes the tables of the named sets that a folder does not have yet.
func prepareSets(ctx context.Context, names []string, data, folder string, log io.Writer) error {
	for _, r := range readers {
		if !slices.Contains(names, r.name) {
			continue
		}
		s, err := loadSet(folder, r.name)
		made := err == nil
		if errors.Is(err, fs.ErrNotExist) {
			if s, err = r.read(ctx, data); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w: name the folder of recordings by --data or FLANK_DATA", err)
			}
		}
		if err != nil {
			return err
		}
		s.Splits = s.allSplits() // by today's rules, also of a table that is there
		if err := s.write(folder); err != nil {
			return err
		}
		if made {
			continue
		}
		fmt.Fprintf(log, "%s: %d windows of %d features, %d faulty, %d tools; %d splits\n", s.Name, s.table.Rows(), len(s.table.Columns), s.faulty(), len(s.lives()), len(s.Splits))
	}
	return nil
}

func (s *set) faulty() int {
	n := 0
	for _, l := range s.lives() {
		n += l.faulty
	}
	return n
}
