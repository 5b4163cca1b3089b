package table

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// Wear in mm is wear in µm, and a class may be written with a decimal point.
func TestWearInMM(t *testing.T) {
	type row struct {
		Tool  string  `parquet:"tool"`
		Class float64 `parquet:"class"`
		Max   float64 `parquet:"vb_max_mm"`
		Mean  float64 `parquet:"vb_mean_mm"`
		RMS   float64 `parquet:"rms"`
	}
	var p bytes.Buffer
	if err := parquet.Write(&p, []row{{"T1", 0, 0.125, 0.0625, 1}, {"T1", 1, 0.5, 0.25, 2}}); err != nil {
		t.Fatal(err)
	}
	for name, scan := range map[string]func(sink) error{
		"csv": func(s sink) error {
			return scanCSV(strings.NewReader("tool,class,vb_max_mm,vb_mean_mm,rms\nT1,0.0,0.125,0.0625,1\nT1,1.0,0.5,0.25,2\n"), "f.csv", nil, s)
		},
		"parquet": func(s sink) error { return scanParquet(bytes.NewReader(p.Bytes()), int64(p.Len()), "f", nil, s) },
	} {
		got, err := gather(scan)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(got.VBMaxUM, []float64{125, 500}) || got.Details[0].VBMeanUM != 62.5 || !slices.Equal(got.Columns, []string{"rms"}) || !slices.Equal(got.Class, []int{0, 1}) {
			t.Errorf("%s: read\n%s", name, text(got))
		}
	}
	type short struct {
		Tool string  `parquet:"tool"`
		Max  float32 `parquet:"vb_max_mm"`
	}
	p.Reset()
	if err := parquet.Write(&p, []short{{"T1", 0.35}, {"T1", 0.45}}); err != nil {
		t.Fatal(err)
	}
	got, err := gather(func(s sink) error { return scanParquet(bytes.NewReader(p.Bytes()), int64(p.Len()), "f", nil, s) })
	if err != nil || !slices.Equal(got.VBMaxUM, []float64{350, 450}) { // a limit of 350 µm is reached
		t.Errorf("of 32 bits: %v, %v", got, err)
	}
	for in, want := range map[string]string{
		"tool,vb_max_um\nT1,-1\n":            `column "vb_max_um": "-1" is a negative flank wear: correct it, or leave the cell empty if it was not measured`,
		"tool,vb_mean_mm\nT1,-1\n":           `column "vb_mean_mm": "-1" is a negative flank wear`,
		"tool,vb_max_um,vb_max_mm\nT1,1,1\n": `columns "vb_max_um" and "vb_max_mm" are the same wear: remove one`,
		"tool,class,rms\nT1,0.5,1\n":         "is not a class",
		"tool,class,rms\nT1,-1.0,1\n":        "is not a class",
		"tool,class,rms\nT1,3e9,1\n":         "is not a class",
	} {
		if _, err := gather(func(s sink) error { return scanCSV(strings.NewReader(in), "f.csv", nil, s) }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}
