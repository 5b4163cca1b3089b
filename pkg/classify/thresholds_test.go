package classify

import (
	"fmt"
	"go/ast"
	"go/constant"
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
	form := regexp.MustCompile(`^[^;:"]+(; ([a-z-]+\.md): "([^"]+)")?\n$`)
	for _, path := range []string{"thresholds.go", "../score/thresholds.go", "vote/thresholds.go"} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		in, err := new(types.Config).Check(path, fset, []*ast.File{{Name: file.Name, Decls: constants(file)}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range constants(file) {
			for _, s := range d.(*ast.GenDecl).Specs {
				spec := s.(*ast.ValueSpec)
				name := spec.Names[0].Name
				value := in.Scope().Lookup(name).(*types.Const).Val()
				said := form.FindStringSubmatch(spec.Comment.Text())
				if len(spec.Names) != 1 || said == nil {
					t.Errorf("%s: %s: %q: write // UNIT, or // UNIT; PAGE.md: \"its words\"", path, name, spec.Comment.Text())
				} else if said[2] != "" {
					onPage(t, said[2], said[3])
					if v, _ := constant.Float64Val(value); !says(said[3], v) {
						t.Errorf("%s: %s is %s, and %s says %q", path, name, value, said[2], said[3])
					}
				}
			}
		}
	}
	page := "few-tools.md"
	for m, of := range few {
		if m > 0 {
			onPage(t, page, fmt.Sprintf("| %d | %s |", m, power(of.decay)))
		}
	}
	onPage(t, page, fmt.Sprintf("| %d or more | %s |", len(few), power(decays[Standard])))
	onPage(t, "network.md", fmt.Sprintf("(%s for bins", power(decays[Bins])))
}

// constants returns the declarations of constants in a file.
func constants(file *ast.File) (all []ast.Decl) {
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			all = append(all, d)
		}
	}
	return all
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
	numerals = map[float64]string{2: "two", 3: "three", 4: "four", 5: "fifth", 6: "six", 8: "eight", 9: "nine", 10: "ten", 0.5: "½", 0.25: "quarter", 0.125: "an eighth", 5e-4: "0.05 %"}
	digits   = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
)

// says reports whether words say a number: in digits, as a power of ten, or in letters.
func says(words string, v float64) bool {
	for _, d := range digits.FindAllString(strings.ReplaceAll(words, ",", ""), -1) {
		if f, err := strconv.ParseFloat(d, 64); err == nil && f == v {
			return true
		}
	}
	n, ok := numerals[v]
	return ok && strings.Contains(words, n) || strings.Contains(words, strings.TrimPrefix(power(v), "1·"))
}

// power returns a small number as pages write it: 3·10⁻⁴.
func power(v float64) string {
	m, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e-0")
	return m + "·10⁻" + strings.NewReplacer("1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(exp)
}
