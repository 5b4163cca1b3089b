package classify

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The pages of the algorithm say the thresholds in the words behind them, and these words say the value.
func TestThresholds(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "thresholds.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^[^;:"]+(; ([a-z-]+\.md): "([^"]+)")?\n$`)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || spec.Names[0].Obj.Kind != ast.Con {
			return true
		}
		name := spec.Names[0].Name
		said := form.FindStringSubmatch(spec.Comment.Text())
		value, err := types.Eval(fset, nil, token.NoPos, types.ExprString(spec.Values[0]))
		if said == nil || err != nil {
			t.Errorf("%s: %q: write // UNIT, or // UNIT; PAGE.md: \"its words\"; %v", name, spec.Comment.Text(), err)
			return true
		}
		if said[2] == "" {
			return true
		}
		onPage(t, said[2], said[3])
		if v, err := strconv.ParseFloat(value.Value.ExactString(), 64); err == nil && !says(said[3], v) || err != nil && !saysRatio(said[3], value.Value.ExactString()) {
			t.Errorf("%s is %s, and %s says %q", name, value.Value, said[2], said[3])
		}
		return true
	})
	page := "few-tools.md"
	for m, of := range few {
		if m > 0 {
			onPage(t, page, fmt.Sprintf("| %d | %s |", m, power(of.decay)))
		}
	}
	onPage(t, page, fmt.Sprintf("| %d or more | %s |", len(few), power(decays[Standard])))
	onPage(t, "network.md", fmt.Sprintf("(%s for bins", power(decays[Bins])))
}

// onPage reports words that a page of the algorithm does not have.
func onPage(t *testing.T, page, words string) {
	text, err := os.ReadFile(filepath.Join("../../docs/algorithm", page))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), words) {
		t.Errorf("%s does not say %q", page, words)
	}
}

var (
	numerals = map[float64]string{2: "two", 3: "three", 4: "four", 5: "fifth", 6: "six", 10: "ten", 0.5: "½"}
	digits   = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
)

// says reports whether words say a number: in digits, as a power of ten, or in letters.
func says(words string, v float64) bool {
	for _, d := range digits.FindAllString(words, -1) {
		if f, err := strconv.ParseFloat(d, 64); err == nil && f == v {
			return true
		}
	}
	n, ok := numerals[v]
	return ok && strings.Contains(words, n) || strings.Contains(words, strings.TrimPrefix(power(v), "1·"))
}

// saysRatio is says of an exact ratio, such as 1/20.
func saysRatio(words, ratio string) bool {
	a, b, _ := strings.Cut(ratio, "/")
	x, err := strconv.ParseFloat(a, 64)
	y, other := strconv.ParseFloat(b, 64)
	return err == nil && other == nil && says(words, x/y)
}

// power returns a small number as pages write it: 3·10⁻⁴.
func power(v float64) string {
	m, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e-0")
	return m + "·10⁻" + strings.NewReplacer("1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(exp)
}
