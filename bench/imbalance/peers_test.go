package imbalance

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var peersDir = flag.String("peers", "", "write resampled rows for bench/peers/study/resampled.py to this folder")

// TestForPeers writes a problem and the rows that each resampler makes up of it,
// in many trials.
func TestForPeers(t *testing.T) {
	if *peersDir == "" {
		t.Skip("-peers names no folder")
	}
	const trials = 200
	type made struct {
		Frequent, Rare, Columns, Trials int
		X                               []float32
		Y                               []int
		Rows                            map[string][]int     // made up, by resampler and trial
		Values                          map[string][]float32 // of all trials, row-major
	}
	var all []made
	for seed, p := range []made{{Frequent: 60, Rare: 12, Columns: 2}, {Frequent: 90, Rare: 25, Columns: 4}} {
		x, y := clouds(uint64(seed)+11, p.Frequent, p.Rare, p.Columns, 1)
		p.X, p.Y, p.Trials = x.Data, y, trials
		p.Rows, p.Values = map[string][]int{}, map[string][]float32{}
		for _, r := range resamplers {
			for trial := range trials {
				got, _ := r.resample(x, y, newRand(uint64(trial)))
				p.Rows[r.name] = append(p.Rows[r.name], got.Rows-x.Rows)
				p.Values[r.name] = append(p.Values[r.name], got.Data[len(x.Data):]...)
			}
		}
		all = append(all, p)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*peersDir, "resampled.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
}
