package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/source/track"
	"github.com/flank-tcm/flank/internal/source/track/tracktest"
	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// measurement is a file of LabVIEW: keys of its heading, a line each, and segments.
func measurement(keys string, segments ...string) string {
	text := "LabVIEW Measurement\t\nWriter_Version\t2\nReader_Version\t2\nSeparator\tTab\n" + keys + "Multi_Headings\tYes\nDate\t2026/11/02\nTime\t06:00:00.5\n***End_of_Header***\t\n"
	return text + "\t\n" + strings.Join(segments, "\t\n")
}

// segment is a segment of two channels.
func segment(at, step, names, rows string) string {
	return "Channels\t2\t\t\nSamples\t3\t3\t\nDate\t2026/11/02\t2026/11/02\t\nTime\t" + at + "\t" + at + "\t\nY_Unit_Label\tg\tN\t\nX_Dimension\tTime\tTime\t\nX0\t0.0\t0.0\t\n" +
		"Delta_X\t" + step + "\t" + step + "\t\n***End_of_Header***\t\t\t\n" + names + "\tComment\n" + rows
}

const (
	threeRows = "0.000\t1.5\t-2\n0.001\t2.5\tNaN\n0.002\t3.5\t4e3\tbroken\n"
	noTimes   = "\t1.5\t-2\n\t2.5\tNaN\n\t3.5\t4e3\tbroken\n"
	xab       = "X_Value\ta\tb"
)

// multi is a segment of two channels that have x values of their own: each key is above these, and b begins 1 s after a.
func multi(step, rows string) string {
	return "Channels\t2\t\t\t\t\nSamples\t3\t\t2\t\t\nDate\t2026/11/02\t\t2026/11/02\t\t\nTime\t06:00:00.5\t\t06:00:01.5\t\t\nY_Unit_Label\tg\t\tN\t\t\nX_Dimension\tTime\t\tTime\t\t\nX0\t0.0\t\t0.0\t\t\n" +
		step + "***End_of_Header***\t\t\t\t\t\nX_Value\ta\tX_Value\tb\tComment\n" + rows
}

// comma is text with a decimal comma.
func comma(text string) string { return strings.ReplaceAll(text, ".", ",") }

// written by LabVIEW, and what is in it: a line for each track, and the notes.
var measurements = map[string]struct{ file, want string }{
	"one":  {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows)), "a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000\n"},
	"no":   {measurement("X_Columns\tNo\n", segment("06:00:00.5", "0.001", xab, noTimes)), "a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000\n"},
	"dec":  {comma(measurement("Decimal_Separator\t.\nX_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows))), "a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000\n"},
	"sep":  {strings.ReplaceAll(strings.Replace(measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows)), "Separator\tTab", "Separator\tComma", 1), "\t", ","), "a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000\n"},
	"crlf": {strings.ReplaceAll(measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows)), "\n", "\r\n"), "a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000\n"},
	"multi": {measurement("X_Columns\tMulti\n", multi("Delta_X\t0.001\t\t0.01\t\t\n", "0.000\t1\t0.000\t5\n0.001\t2\t0.010\t6\n0.002\t3\t\t\n")),
		"a [g] 1000 Hz 06:00:00.5: 1 2 3\nb [N] 100 Hz 06:00:01.5: 5 6\n"},
	"goes-on": {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows), segment("06:00:00.503", "0.001", xab, threeRows)),
		"a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5 1.5 2.5 3.5\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000 -2 NaN 4000\n"},
	"goes-on-x": {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows), segment("06:00:00.5", "0.001", xab, "0.003\t1\t2\n0.004\t1\t2\n0.005\t1\t2\n")),
		"a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5 1 1 1\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000 2 2 2\n"},
	"six-digits": {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, "1000.00\t1\t2\n1000.00\t2\t3\n1000.00\t3\t4\n")),
		"a [g] 1000 Hz 06:16:40.5: 1 2 3\nb [N] 1000 Hz 06:16:40.5: 2 3 4\n"},
	"pause": {measurement("X_Columns\tNo\n", segment("06:00:00.5", "0.001", xab, noTimes), segment("06:00:09.5", "0.001", xab, noTimes)),
		"1/a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\n1/b [N] 1000 Hz 06:00:00.5: -2 NaN 4000\n2/a [g] 1000 Hz 06:00:09.5: 1.5 2.5 3.5\n2/b [N] 1000 Hz 06:00:09.5: -2 NaN 4000\nchannels that are recorded several times: each recording is a session of its own, with its number as the hole\n"},
	"empty-line": {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows), "0.003\t1\t2\n0.004\t1\t2\n0.005\t1\t2\n"),
		"a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5 1 1 1\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000 2 2 2\n"},
	"overlap": {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows), segment("06:00:00.5", "0.001", xab, threeRows)),
		"1/a [g] 1000 Hz : 1.5 2.5 3.5\n1/b [N] 1000 Hz : -2 NaN 4000\n2/a [g] 1000 Hz : 1.5 2.5 3.5\n2/b [N] 1000 Hz : -2 NaN 4000\nchannels that are recorded several times: each recording is a session of its own, with its number as the hole\nthe starts that it states are not used: by them a channel begins again before it ended\n"},
	"uneven": {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, "0.000\t1\t2\n0.7\t3\t4\n1.1\t5\t6\n")),
		"X_Value [s] 0 Hz : 1793599200.5 1793599201.2 1793599201.6\na [g] 0 Hz : 1 3 5\nb [N] 0 Hz : 2 4 6\nline 22: x is 0.7 and not 0.001, as Delta_X says: the column X_Value says when rows are\n"},
	"scalars": {measurement("X_Columns\tNo\n", segment("06:00:00.5", "1", xab, "\t1\t2\n"), segment("06:00:00.9", "1", xab, "\t3\t4\n"), segment("06:00:02", "1", xab, "\t5\t6\n")),
		"X_Value [s] 0 Hz : 1793599200.5 1793599200.9 1793599202\na [g] 0 Hz : 1 3 5\nb [N] 0 Hz : 2 4 6\nthe segment at line 35 has 1 of the 3 rows that its heading says: it was not finished\n"},
	"special": {measurement("X_Columns\tOne\n", "***Start_Special***\t\nx\ty\n***End_Special***\t\n\t\n"+segment("06:00:00.5", "0.001", xab, threeRows)), "a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000\n"},
	"half": {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows+"0.003\t1\t7")),
		"a [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 06:00:00.5: -2 NaN 4000\nthe last line, 24, has no line end and may be half written: dropped; end the line if it is whole\n"},
	"same-names": {measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", "X_Value\t\xb5m\t\xb5m", threeRows)), "µm [g] 1000 Hz 06:00:00.5: 1.5 2.5 3.5\nµm 2 [N] 1000 Hz 06:00:00.5: -2 NaN 4000\n"},
	"german":     {measurement("X_Columns\tOne\n", dated("05.11.2026", "06:00:00,5", "0.0", threeRows)), "a [g] 1000 Hz 2026-11-05 06:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 2026-11-05 06:00:00.5: -2 NaN 4000\n"},
	"afternoon":  {measurement("X_Columns\tNo\n", dated("2026/11/05", "06:00:00.5 PM", "0.0", noTimes)), "a [g] 1000 Hz 2026-11-05 18:00:00.5: 1.5 2.5 3.5\nb [N] 1000 Hz 2026-11-05 18:00:00.5: -2 NaN 4000\n"},
	"since-1904": {measurement("X_Columns\tOne\n", dated("2026/11/05", "06:00:00.5", "3.8767032005E+9", "3876703200.500\t1\t2\n3876703200.501\t3\t4\n3876703200.502\t5\t6\n")), "a [g] 1000 Hz 2026-11-05 06:00:00.5: 1 3 5\nb [N] 1000 Hz 2026-11-05 06:00:00.5: 2 4 6\n"},
	"other-1904": {measurement("X_Columns\tOne\n", dated("2025/11/05", "06:00:00.5", "3.8767032005E+9", "3876703200.500\t1\t2\n3876703200.501\t3\t4\n3876703200.502\t5\t6\n")),
		"a [g] 1000 Hz : 1 3 5\nb [N] 1000 Hz : 2 4 6\nits date and time \"2025/11/05 06:00:00.5\" and x, which begins at 3876703200.5 s after 1904, do not agree: its start is not known; name it by --start\n"},
	"slashes": {measurement("X_Columns\tOne\n", dated("05/11/2026", "06:00:00", "0.0", threeRows)),
		"a [g] 1000 Hz : 1.5 2.5 3.5\nb [N] 1000 Hz : -2 NaN 4000\nits date and time \"05/11/2026 06:00:00\" are not read: its start is not known; name it by --start\n"},
}

// dated is a segment whose heading says when it was taken, and at which x.
func dated(day, at, x0, rows string) string {
	return strings.NewReplacer("2026/11/02", day, "X0\t0.0\t0.0", "X0\t"+x0+"\t"+x0).Replace(segment(at, "0.001", xab, rows))
}

func openLVM(text string) (track.Contents, error) {
	return lvm.New(strings.NewReader(text), int64(len(text)), "f.lvm")
}

func TestLVM(t *testing.T) {
	for name, tc := range measurements {
		f, err := openLVM(tc.file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got strings.Builder
		for i, info := range f.Tracks() {
			x, err := tracktest.Read(f, i)
			if err != nil || int64(len(x)) != info.Len {
				t.Errorf("%s: %d of %d values, %v", name, len(x), info.Len, err)
			}
			start := ""
			if !info.Start.IsZero() {
				start = strings.TrimPrefix(info.Start.Format("2006-01-02 15:04:05.999"), "2026-11-02 ")
			}
			fmt.Fprintf(&got, "%s [%s] %v Hz %s:", info.Path(), info.Unit, info.Rate, start)
			for _, v := range x {
				fmt.Fprintf(&got, " %.12v", v)
			}
			fmt.Fprintln(&got)
		}
		for _, note := range f.Notes() {
			fmt.Fprintln(&got, note)
		}
		if got.String() != tc.want {
			t.Errorf("%s:\n%swant\n%s", name, got.String(), tc.want)
		}
		if !lvm.Like.MatchString(tc.file) {
			t.Errorf("%s: it does not look like a file of LabVIEW", name)
		}
	}
}

func TestLVMErrors(t *testing.T) {
	one := func(rows string) string {
		return measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, rows))
	}
	whole := one(threeRows)
	var out strings.Builder
	for _, tc := range []struct{ name, file string }{
		{"cut off in the heading", whole[:80]},
		{"cut off in the heading of a segment", whole[:220]},
		{"a heading without an end", strings.Replace(whole, "***End_of_Header***", strings.Repeat("1\t2\n", 2000), 1)},
		{"a heading of a segment without an end", whole[:strings.LastIndex(whole, "***End_of_Header***")] + strings.Repeat("1\t2\n", 2000)},
		{"no segment", measurement("")},
		{"no rows", one("")},
		{"rows without a heading", measurement("", "0\t1\t2\n")},
		{"a word", one("0.000\t1\tx\n")},
		{"a word for x", one("y\t1\t2\n")},
		{"no number of channels", strings.Replace(whole, "Channels\t2", "Channels\ttwo", 1)},
		{"more channels than names", strings.Replace(whole, "Channels\t2", "Channels\t7", 1)},
		{"a spectrum", strings.Replace(whole, "X_Dimension\tTime\tTime", "X_Dimension\tFrequency\tFrequency", 1)},
		{"other channels", measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows), segment("06:00:01", "0.001", "X_Value\ta\tc", threeRows))},
		{"another rate", measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows), segment("06:00:01", "0.002", xab, threeRows))},
		{"rows that nothing dates", measurement("X_Columns\tNo\n", segment("06:00:00.5", "0.001", xab, noTimes), noTimes)},
		{"x that begins again", one("0\t1\t2\n0.001\t1\t2\n0\t3\t4\n")},
		{"x that begins again behind an empty line", measurement("X_Columns\tOne\n", segment("06:00:00.5", "0.001", xab, threeRows), threeRows)},
		{"neither x nor a rate", measurement("X_Columns\tNo\n", segment("06:00:00.5", "0", xab, noTimes))},
		{"several uneven x", measurement("X_Columns\tMulti\n", segment("06:00:00.5", "0.001", "X_Value\ta\tX_Value\tb", "0.000\t1\t0.000\t5\n0.7\t2\t0.8\t6\n"))},
		{"a line that does not end", one(strings.Repeat("7", 3<<20))},
	} {
		f, err := openLVM(tc.file)
		for i := 0; err == nil && i < len(f.Tracks()); i++ {
			_, err = tracktest.Read(f, i)
		}
		if err == nil {
			t.Errorf("%s: no error", tc.name)
		}
		fmt.Fprintf(&out, "# %s\n%v\n\n", tc.name, err)
	}
	golden.Check(t, "lvm-errors.golden", out.String())
}

// TestWriteFixtures writes the fixtures for make peers-formats that lvm_read reads, too: without pauses.
func TestWriteFixtures(t *testing.T) {
	dir := tracktest.FixtureFolder(t)
	for _, name := range []string{"one", "no", "dec", "sep", "multi", "goes-on", "goes-on-x"} {
		if err := os.WriteFile(filepath.Join(dir, name+".lvm"), []byte(measurements[name].file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzLVM(f *testing.F) {
	for _, tc := range measurements {
		f.Add(tc.file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		r, err := openLVM(file)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "lvm: f.lvm: ") {
				t.Fatalf("error does not name the file: %v", err)
			}
			return
		}
		for i, info := range r.Tracks()[:min(len(r.Tracks()), 50)] {
			x, err := tracktest.Read(r, i)
			if err == nil && int64(len(x)) != info.Len {
				t.Fatalf("%s: %d of %d values", info.Path(), len(x), info.Len)
			}
		}
	})
}
