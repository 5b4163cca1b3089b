package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/internal/testkit/recorded"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// quick makes training take no time.
const quick = `
reference: {windows: 2, mode: "off"}
stability: "off"
features: {set: [rms, kurtosis]}
network: {encoding: standard, hidden: [3], pretrain: {epochs: 1}, fine_tune: {epochs: 5}}
costs: {folds: 2}
unknown: {error_rate: 0, novelty: 0}
evaluate: {by_tool: "off", random_split: false}
`

// initCase is a recording of strangers, and what `trainer init` must make of it.
type initCase struct {
	data  string // a file or several
	rate  string // empty: the recording says it
	wear  string // wear file that a person writes; empty: the recording has labels
	edit  [2]string
	lines []string // of layout.yaml
	says  []string // printed
}

// What init writes can be used as it is: the recording is read with the layout, and a model
// is trained.
func (c initCase) check(t *testing.T, dir folder) {
	t.Helper()
	args := "init --data " + strings.Fields(c.data)[0]
	if c.rate != "" {
		args += " --rate " + c.rate
	}
	out, stderr, err := dir.trainer(t, args)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	text, err := os.ReadFile(dir.path("layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range c.lines {
		if !strings.Contains(string(text), want) {
			t.Errorf("layout.yaml lacks %q:\n%s", want, text)
		}
	}
	for _, want := range c.says {
		if !strings.Contains(out, want) {
			t.Errorf("init does not say %q:\n%s", want, out)
		}
	}
	layout, rec, err := signal.LoadLayout(dir.path("layout.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := inspect.Inspect(t.Context(), dir.path(strings.Fields(c.data)[0]), inspect.Options{Layout: layout, Columns: rec})
	if err != nil || s.Err != nil || len(s.Channels) != len(layout.Channels()) {
		t.Fatalf("inspect with the layout: %v, %+v", err, s)
	}
	config, err := os.ReadFile(dir.path("train.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(config), c.edit[0]) {
		t.Errorf("train.yaml lacks %q:\n%s", c.edit[0], config)
	}
	config = []byte(strings.Replace(string(config), c.edit[0], c.edit[1], 1) + quick)
	if err := os.WriteFile(dir.path("train.yaml"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	args = "fit --quiet --config train.yaml --model m.flank --data " + c.data
	if c.wear != "" {
		if err := os.WriteFile(dir.path("wear.csv"), []byte(c.wear), 0o600); err != nil {
			t.Fatal(err)
		}
		args += " --wear wear.csv"
	}
	if _, stderr, err := dir.trainer(t, args); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if m, err := model.Load(dir.path("m.flank")); err != nil || m.Layout.Fingerprint() != layout.Fingerprint() {
		t.Errorf("model: %v", err)
	}
}

// wearOf returns a wear file that labels whole tools.
func wearOf(um map[string]float64) string {
	var b strings.Builder
	b.WriteString("tool,vb_um\n")
	for tool, v := range um {
		fmt.Fprintf(&b, "%s,%v\n", tool, v)
	}
	return b.String()
}

// wav returns a sound of one channel whose noise has a level, of 16 bits.
func wav(rate, seconds int, level float64) []byte {
	rng := rand.New(rand.NewPCG(1, uint64(level*1e6)))
	n := rate * seconds
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, uint32(36+2*n))
	b = append(b, "WAVEfmt "...)
	for _, v := range []any{uint32(16), uint16(1), uint16(1), uint32(rate), uint32(2 * rate), uint16(2), uint16(16)} {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(2*n))
	for range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(level*rng.NormFloat64())))
	}
	return b
}

func TestInitWAV(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	um := make(map[string]float64)
	var names []string
	for i, level := range []float64{100, 110, 900, 1000} {
		name := fmt.Sprintf("cut%d", i)
		if err := os.WriteFile(dir.path(name+".wav"), wav(2000, 10, level), 0o600); err != nil {
			t.Fatal(err)
		}
		names, um[name] = append(names, name+".wav"), level
	}
	initCase{
		data: strings.Join(names, " "), wear: wearOf(um), edit: [2]string{"length: 200ms", "length: 500ms"},
		lines: []string{"name: cut0\n", "  - kind: vibration   # KIND not known: correct it\n    rate: 2000   # samples a second\n    name: \"1\"\n"},
		says:  []string{"the kind of 1 is not known", "each file is a tool, named as the file", "Write a wear file, wear.csv", "  tool,state\n  cut0,worn\n", "trainer labels check --config train.yaml --data cut0.wav --wear wear.csv\n", "--model model.flank --wear wear.csv\n"},
	}.check(t, dir)
}

// A table as a German logger writes it: semicolons, decimal commas, units in the header, a
// column that never changes and one of words.
func TestInitCSV(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	rng := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("Zeit;Tool ID;ax [g];Fz (N);on;coolant;state;VB max [µm];Zähler\n")
	seconds := 0
	for tool := range 4 {
		for row := range 60 * 20 {
			worn := tool > 1 && row > 600
			level := map[bool]float64{false: 1, true: 4}[worn]
			at := float64(seconds*1200+row)/20 + float64(tool)
			fmt.Fprintf(&b, "%s;T%d;%s;%s;1;%s;%s;%d;%d\n", comma(at), tool, comma(level*rng.NormFloat64()), comma(100+level*rng.NormFloat64()), "air", "ok", map[bool]int{false: 50, true: 350}[worn], row)
		}
		seconds++
	}
	if err := os.WriteFile(dir.path("logger.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	initCase{
		data: "logger.csv", rate: "20", edit: [2]string{"vb_max_um: 300 ", "vb_max_um: 200 "},
		lines: []string{"kind: vibration   # guessed from the unit\n    rate: 20   # samples a second\n    unit: g\n    name: ax\n", "kind: force   # guessed from the unit", "\n    unit: \"N\"\n",
			"#   on: it is 1 in every row\n", "#   coolant: it is text, such as \"air\"\n", "  separator: semicolon\n  decimal: comma\n", "  tool: \"Tool ID\" ", "  vb_max_um: \"VB max [µm]\" ", "  state: state "},
		says: []string{`column    "Tool ID" is tool`, `column    "VB max [µm]" is vb_max_um`},
	}.check(t, dir)
}

func comma(v float64) string { return strings.Replace(fmt.Sprintf("%.4f", v), ".", ",", 1) }

// Rates that follow from a column of times, and what init refuses.
func TestInitTime(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(dir.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(step float64, format string) string {
		b := "time,current,tool\n"
		for i := range 400 {
			b += fmt.Sprintf(format+",%d.5,T1\n", float64(i)*step, i%7)
		}
		return b
	}
	write("ms.csv", rows(1, "%.0f"))
	write("s.csv", rows(0.02, "%.2f"))
	write("text.csv", "a,b\nx,y\nz,w\nx,y\nz,w\nx,y\nz,w\nx,y\nz,w\nx,y\nz,w\nx,y\nz,w\n")
	if out, _, err := dir.trainer(t, "init --data s.csv --out ."); err != nil || !strings.Contains(out, `"time" is time`) {
		t.Fatalf("%v\n%s", err, out)
	}
	text, _ := os.ReadFile(dir.path("layout.yaml"))
	if !strings.Contains(string(text), "kind: current   # guessed from the names\n    rate: 50 ") || !strings.Contains(string(text), "  time: time ") {
		t.Errorf("%s", text)
	}
	kept := slices.Clone(text)
	for args, want := range map[string]string{
		"--data s.csv":                        "layout.yaml is there already, and is not overwritten: remove it, or name another place by --out",
		"--data ms.csv --out new":             `ms.csv: column "time" counts in steps of 1, which may be seconds, milliseconds or rows: give --rate HZ`,
		"--data text.csv --rate 1 --out new":  "text.csv: no column of numbers can be a channel",
		"--data absent.csv":                   "absent.csv",
		"--data s.csv --rate=-1":              "must be positive",
		"--data s.csv --out new --window 3ms": "choose a length and hop that are whole numbers of samples",
	} {
		if _, _, err := dir.trainer(t, "init "+args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	write("wide.csv", "x,y\n"+strings.Repeat("1,2\n3,4\n", 20))
	if _, _, err := dir.trainer(t, "init --data wide.csv --out new"); err == nil || !strings.Contains(err.Error(), "how many samples a second channel x has: give --rate HZ") {
		t.Error(err)
	}
	if text, _ := os.ReadFile(dir.path("layout.yaml")); !bytes.Equal(text, kept) {
		t.Error("layout.yaml was overwritten")
	}
	if _, err := os.Stat(dir.path("new")); err == nil {
		t.Error("a refused init left files")
	}
}

func TestRoundRate(t *testing.T) {
	for rate, want := range map[float64]float64{
		0: 0, 1000: 1000, 1 / 0.4950001: 2.02, 1 / 0.00333333333: 300, 49.99999999: 50, 0.1: 0.1, 1.0 / 3600: 1.0 / 3600, 1.0 / 7200.0001: 0.001,
	} {
		if got := roundRate(rate, false); math.Abs(got-want) > 1e-9*want {
			t.Errorf("roundRate(%v) = %v, want %v", rate, got, want)
		}
	}
	for rate, want := range map[float64]float64{99.98: 100, 1.0004e4: 1e4, 97.65625: 97.656, 12.8: 12.8, 4096: 4096, 409.6: 409.6, 1.0 / 0.003: 1 / 0.003, 99.8: 99.8} {
		if got := roundRate(rate, true); math.Abs(got-want) > 1e-9*want {
			t.Errorf("roundRate(%v) by a clock = %v, want %v", rate, got, want)
		}
	}
}

func TestGuessKind(t *testing.T) {
	for _, tc := range []struct {
		name, unit string
		kind       signal.Kind
		why        string
	}{
		{"x", "m/s²", signal.Vibration, "unit"}, {"thrust", "", signal.Force, "name"}, {"Fx", "", signal.Force, "name"}, {"AE_RMS", "", signal.Acoustic, "name"},
		{"Current_MainSpindle", "", signal.Current, "name"}, {"Power_SubSpindle", "", signal.Power, "name"}, {"Psition_ERR_X", "", signal.Position, "name"},
		{"vibration_y", "", signal.Vibration, "name"}, {"S1_ActualSpeed", "", signal.Velocity, "name"}, {"Mz", "", signal.Torque, "name"}, {"FE", "", signal.Vibration, ""}, {"7", "", signal.Vibration, ""},
		{"smcAC", "", signal.Current, "name"}, {"time constant", "", signal.Vibration, ""},
	} {
		if k, why := guessKind(tc.name, tc.unit); k != tc.kind || why != tc.why {
			t.Errorf("%s %s: %s from %q, want %s from %q", tc.name, tc.unit, k, why, tc.kind, tc.why)
		}
	}
}

// some writes every nth row of a table, with its header, to a file of its name here.
func (dir folder) some(t *testing.T, path string, nth int, keep func(row string) bool) string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Skip(err)
	}
	var out strings.Builder
	i := 0
	for row := range strings.Lines(string(text)) {
		if i == 0 || keep(row) && i%nth == 0 {
			out.WriteString(row)
		}
		if i == 0 || keep(row) {
			i++
		}
	}
	name := filepath.Base(path)
	if err := os.WriteFile(dir.path(name), []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRecordedInitTurning(t *testing.T) {
	t.Parallel()
	dir := recorded.Folder(t)
	at := folder(t.TempDir())
	name := at.some(t, filepath.Join(dir, "vicomtech-turning", "turning_wear_dev.csv"), 5, func(string) bool { return true })
	initCase{data: name, rate: "1", edit: [2]string{"vb_max_um: 300", "vb_max_um: 250"},
		lines: []string{"kind: feature   # one row for each window\n    rate: 1 ", "  tool: tool ", "  vb_max_um: Vb "}, says: []string{"152 channels"}}.check(t, at)
}

func TestRecordedInitUniwear(t *testing.T) {
	t.Parallel()
	dir := recorded.Folder(t)
	at := folder(t.TempDir())
	name := at.some(t, filepath.Join(dir, "uniwear", "uniwear_dev.csv"), 1, func(row string) bool {
		return strings.Contains(row, ",W1,") || strings.Contains(row, ",W2,") || strings.Contains(row, ",W3,")
	})
	initCase{data: name, edit: [2]string{"vb_max_um: 300 ", "vb_max_um: 200 "},
		lines: []string{"kind: force   # guessed from the names\n    rate: 2.025 ", "names: [\n      vibration_x, vibration_y,\n    ]", "  tool: experiment_tag ", "  vb_max_mm: tool_wear ",
			"  time: timestamp "}}.check(t, at)
}

func TestRecordedInitCWRU(t *testing.T) {
	t.Parallel()
	dir := recorded.Folder(t)
	at := folder(t.TempDir())
	um := map[string]float64{}
	var files []string
	for name, wear := range map[string]float64{"1797_Normal_first_half": 0, "1797_B_21_DE48": 400} {
		path := filepath.Join(dir, "cwru-bearing", name+".npz")
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
		files, um[name] = append(files, path), wear
	}
	slices.Sort(files)
	initCase{data: strings.Join(files, " "), rate: "48000", wear: wearOf(um), edit: [2]string{"length: 100ms", "length: 100ms"},
		lines: []string{"kind: vibration   # KIND not known: correct it\n    rate: 48000 ", "DE, FE,"}}.check(t, at)
}

func TestRecordedInitLathe(t *testing.T) {
	t.Parallel()
	dir := recorded.Folder(t)
	at := folder(t.TempDir())
	path := filepath.Join(dir, "cnc-lathe-mat", "Data_KS-NPC-6FF_0.mat")
	if _, err := os.Stat(path); err != nil {
		t.Skip(err)
	}
	um := map[string]float64{}
	for tool := range 60 {
		um[fmt.Sprint(tool)] = map[bool]float64{false: 0, true: 400}[tool > 25]
	}
	initCase{data: path, rate: "1000", wear: wearOf(um), edit: [2]string{"length: 1s", "length: 1s"},
		lines: []string{"  tool: TOOL_Number ", "kind: current   # guessed from the names", "kind: position ", "#   Time: --rate says the rate"}}.check(t, at)
}

// From traces of a PLC with lines before the header, and from tables that are packed and have no times, to a model, without a line of YAML that a person wrote.
func TestInitStrangers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	plc := func(tool int, level float64) string {
		var b strings.Builder
		b.WriteString("sep=;\nTrace of S7-1500;V3.1\nOperator;Kim\n" + strings.Repeat("\n# note", tool) + "\n\nDatum;Uhrzeit;ax;Kraft;\n;;[g];[N];\n")
		for row := range 600 {
			at := time.Date(2026, 11, 2, 6+tool, 0, 0, 0, time.UTC).Add(time.Duration(row) * 50 * time.Millisecond)
			fmt.Fprintf(&b, "%s;%s;%s;%s;\n", at.Format("02.01.2006"), at.Format("15:04:05,000"), comma(level*rng.NormFloat64()), comma(100+level*rng.NormFloat64()))
		}
		b.WriteString("End of trace\n")
		return b.String()
	}
	bare := func(_ int, level float64) string {
		var b strings.Builder
		b.WriteString("ax,Fz\n")
		for range 600 {
			fmt.Fprintf(&b, "%.4f,%.4f\n", level*rng.NormFloat64(), 100+level*rng.NormFloat64())
		}
		return b.String()
	}
	for name, tc := range map[string]struct {
		ending string
		text   func(tool int, level float64) string
		initCase
	}{
		"traces of a PLC": {".csv", plc, initCase{
			lines: []string{"rate: 20 ", "  separator: semicolon\n  decimal: comma\n  time: Uhrzeit ", "  date: Datum\n"}, says: []string{"3 lines before it skipped", "lines after the table, left out", `with the date in "Datum"`},
		}},
		"packed, without times": {".csv.gz", bare, initCase{rate: "20", lines: []string{"rate: 20 "}, says: []string{"unpacked from gzip"}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t.TempDir())
			um, names := make(map[string]float64), []string(nil)
			for tool, level := range []float64{1, 1.1, 5, 6} {
				text := []byte(tc.text(tool, level))
				if strings.HasSuffix(tc.ending, ".gz") {
					var b bytes.Buffer
					w := gzip.NewWriter(&b)
					w.Write(text)
					w.Close()
					text = b.Bytes()
				}
				run := fmt.Sprintf("run%d", tool)
				if err := os.WriteFile(dir.path(run+tc.ending), text, 0o600); err != nil {
					t.Fatal(err)
				}
				names, um[run] = append(names, run+tc.ending), 100*level
			}
			c := tc.initCase
			c.data, c.wear, c.edit = strings.Join(names, " "), wearOf(um), [2]string{"vb_max_um: 300 ", "vb_max_um: 200 "}
			c.check(t, dir)
		})
	}
}

// The configuration names the wear file so that training finds it, also where one of the two paths is absolute.
func TestInitNamesTheWearFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for folder, want := range map[string]string{"out": "wear: \"../wear.csv\"\n", filepath.Join(dir, "out"): fmt.Sprintf("wear: %q\n", filepath.Join(dir, "wear.csv"))} {
		f := new(initCommand)
		f.Wear, f.Out = "wear.csv", folder
		if text := f.configText(&proposal{}); !strings.Contains(text, want) {
			t.Errorf("--out %s: no %q in %s", folder, want, text)
		}
	}
}
