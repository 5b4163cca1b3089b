package columns

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A row has cells by the name of their column. What cannot be used ends the file, with its place.
func TestEach(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"all right":        {"b,n,a\n0.5,2,x\n,3,y\n", ""},
		"other order":      {"a,b,n\nx,0.5,2\ny,,3\n", ""},
		"no header":        {"", "t.csv: no header"},
		"no column":        {"a,b\nx,1\n", `t.csv:1: no column "n" among a, b`},
		"no number":        {"a,b,n\nx,one,2\n", `t.csv:2: column "b": "one" is not a number`},
		"infinite":         {"a,b,n\nx,Inf,2\n", `t.csv:2: column "b": "Inf" is not a number`},
		"a small number":   {"a,b,n\nx,1,0\n", `t.csv:2: column "n": "0" must be a whole number from 1 on`},
		"the first counts": {"a,b,n\nx,one,0\n", `column "b"`},
		"a short line":     {"a,b,n\nx,1\n", "t.csv: record on line 2: wrong number of fields"},
	} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte(tc.text), 0o644); err != nil {
			t.Fatal(err)
		}
		var texts string
		var numbers []float64
		f, err := Open(path, "n")
		if err == nil {
			err = f.Each(func(r *Row) error {
				texts += r.Text("a") + r.Text("none")
				numbers = append(numbers, r.Maybe("b"), float64(r.Whole("n", 1)), float64(r.Whole("none", 1)), float64(r.Numbers([]string{"n", "b"})[0]))
				return nil
			})
		}
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", name, err, tc.want)
			}
			continue
		}
		if err != nil || texts != "xy" || len(numbers) != 8 || numbers[0] != 0.5 || numbers[1] != 2 || numbers[2] != 0 || numbers[3] != 2 || !math.IsNaN(numbers[4]) || numbers[5] != 3 {
			t.Errorf("%s: %q, %v, %v", name, texts, numbers, err)
		}
		if got := f.Except("b"); len(got) != 2 {
			t.Errorf("%s: columns but b are %q", name, got)
		}
	}
}
