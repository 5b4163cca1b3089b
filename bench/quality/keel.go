package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/flank-tcm/flank/bench/keel"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/score"
)

// keelSets are small, hard sets of different kinds, to see that what is good on
// tools ruins nothing elsewhere.
var keelSets = []string{
	"abalone9-18", "cleveland-0-vs-4", "ecoli3", "glass0", "glass1", "glass2", "glass4", "haberman",
	"new-thyroid1", "pima", "yeast-1-vs-7", "yeast-2-vs-8",
}

// keelScore is the mean G-mean over KEEL's five folds.
type keelScore struct {
	set      string
	standard float64
	bins     float64
}

func measureKEEL(ctx context.Context, dir string, log io.Writer) ([]keelScore, map[string]map[string]float64, error) {
	peers, err := readPeers(filepath.Join(dir, "peers.csv"))
	if err != nil {
		return nil, nil, err
	}
	var all []keelScore
	for _, set := range keelSets {
		s, err := keel.Load(dir, set)
		if err != nil {
			return nil, nil, err
		}
		entry := keelScore{set: set}
		for encoding, to := range map[classify.Encoding]*float64{classify.Standard: &entry.standard, classify.Bins: &entry.bins} {
			v, err := classify.CrossValidateTable(ctx, &classify.Table{X: s.X, Y: s.Y}, classify.Settings{Encoding: encoding, Seed: 1}, s.Folds)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", set, err)
			}
			for _, f := range s.Folds {
				m := score.NewConfusion(2)
				for _, i := range f.Test {
					m.Add(s.Y[i], v.Decision[i])
				}
				*to += m.GMean() / keel.Folds
			}
		}
		fmt.Fprintf(log, "%s: G-mean %.3f, bins %.3f\n", set, entry.standard, entry.bins)
		all = append(all, entry)
	}
	return all, peers, nil
}

// readPeers returns the mean G-mean over folds by set and method.
func readPeers(path string) (map[string]map[string]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	at := func(name string) int { return slices.Index(lines[0], name) }
	set, method, gmean := at("dataset"), at("method"), at("gmean")
	peers := make(map[string]map[string]float64)
	for _, line := range lines[1:] {
		if peers[line[set]] == nil {
			peers[line[set]] = make(map[string]float64)
		}
		g, _ := strconv.ParseFloat(line[gmean], 64) // a fit that failed scores 0
		peers[line[set]][line[method]] += g / 5
	}
	return peers, nil
}
