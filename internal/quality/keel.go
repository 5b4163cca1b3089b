package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
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
		t, folds, err := readKEEL(dir, set)
		if err != nil {
			return nil, nil, err
		}
		score := keelScore{set: set}
		for encoding, to := range map[classify.Encoding]*float64{classify.Standard: &score.standard, classify.Bins: &score.bins} {
			v, err := classify.CrossValidate(ctx, t.x, t.y, nil, classify.Settings{Encoding: encoding, Seed: 1}, folds)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", set, err)
			}
			for _, f := range folds {
				m := classify.NewConfusion(2)
				for _, i := range f.Test {
					m.Add(t.y[i], v.Decision[i])
				}
				*to += m.GMean() / float64(len(folds))
			}
		}
		fmt.Fprintf(log, "%s: G-mean %.3f, bins %.3f\n", set, score.standard, score.bins)
		all = append(all, score)
	}
	return all, peers, nil
}

// readKEEL reads the test parts of the set's five folds, which together are the
// set. The class with fewer rows is 1; a nominal column becomes one of 0 and 1
// for each of its values.
func readKEEL(dir, set string) (*rows, []classify.Fold, error) {
	var cells [][]string
	var fold []int
	for f := range 5 {
		path := filepath.Join(dir, set, fmt.Sprintf("%s-5-%dtst.dat", set, f+1))
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			line := strings.TrimSpace(lines.Text())
			if line == "" || line[0] == '@' {
				continue
			}
			parts := strings.Split(line, ",")
			for j := range parts {
				parts[j] = strings.TrimSpace(parts[j])
			}
			cells, fold = append(cells, parts), append(fold, f)
		}
		file.Close()
		if err := lines.Err(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	var columns [][]float32
	last := len(cells[0]) - 1
	for j := range last {
		column := make([]float32, len(cells))
		var names []string
		for i, row := range cells {
			v, err := strconv.ParseFloat(row[j], 64)
			if column[i] = float32(v); err != nil && !slices.Contains(names, row[j]) {
				names = append(names, row[j])
			}
		}
		if len(names) == 0 {
			columns = append(columns, column)
		}
		for _, name := range names {
			column := make([]float32, len(cells))
			for i, row := range cells {
				if row[j] == name {
					column[i] = 1
				}
			}
			columns = append(columns, column)
		}
	}
	t := &rows{x: dbn.NewMatrix(len(cells), len(columns)), y: make([]int, len(cells))}
	ones := 0
	for i, row := range cells {
		for j := range columns {
			t.x.Row(i)[j] = columns[j][i]
		}
		if row[last] != cells[0][last] {
			t.y[i] = 1
			ones++
		}
	}
	if 2*ones > len(cells) {
		for i := range t.y {
			t.y[i] = 1 - t.y[i]
		}
	}
	folds := make([]classify.Fold, 5)
	for i, held := range fold {
		for f := range folds {
			if f == held {
				folds[f].Test = append(folds[f].Test, i)
			} else {
				folds[f].Train = append(folds[f].Train, i)
			}
		}
	}
	return t, folds, nil
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
