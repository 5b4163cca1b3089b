package columns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Table reads the feature table of a data set that `unseen tables` has made, and its facts.
func Table(folder, name string, facts any) (*table.Table, error) {
	text, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: make the tables with `unseen tables`", err)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, facts); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(folder, name+".json"), err)
	}
	f, err := Open(filepath.Join(folder, name+".csv"), "tool", "wear")
	if err != nil {
		return nil, err
	}
	t := table.New(f.Except("tool", "faulty", "wear"))
	return t, f.Each(func(r *Row) error {
		class := r.Whole("faulty", 0)
		if class > 1 {
			return fmt.Errorf("column \"faulty\": %d is neither 0 nor 1", class)
		}
		t.Append(table.Row{Tool: r.Text("tool"), Class: class, VBMaxUM: r.Maybe("wear"), Features: r.Numbers(t.Columns)})
		return nil
	})
}

// Layout returns the channels that the features of a data set are of.
func Layout(name string, features []string) (*signal.Layout, error) {
	if name == "drill" {
		return signal.GunDrill(), nil
	}
	return train.TableLayout(name, features, time.Second)
}

// Lines reads a file with a value as JSON in each line. Errors name file and line.
func Lines[T any](path string) (all []T, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var one T
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(all)+1, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// Deal returns the tools whose place is in, and the others.
func Deal(tools []string, in func(k int) bool) (some, others []string) {
	for k, tool := range tools {
		if in(k) {
			some = append(some, tool)
		} else {
			others = append(others, tool)
		}
	}
	return some, others
}
