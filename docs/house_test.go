package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "lower what house.txt allows to what there is")

const houseHead = `# What rooms and programs may hold at most, checked by a test. Lines of Go without tests of each room, and packages of
# ours that each program links. Room for more is taken from another room: raise one number and lower another one, in
# the commit that needs it. ` + "`go test ./docs -run House -update`" + ` lowers what is too high.
`

// No room has more lines than house.txt allows, and no program links more packages of ours. With -v it prints what
// the house is as a whole.
func TestHouse(t *testing.T) {
	folders := []string{"cmd", "internal", "pkg", "figures", "schemas"}
	packages := readPackages(t, folders...)
	now := make(map[string]int)
	total, long := 0, 0
	for pkg := range packages {
		lines, functions := measure(t, pkg)
		now["lines "+pkg] = lines
		total, long = total+lines, long+functions
	}
	for pkg := range packages {
		if strings.HasPrefix(pkg, "cmd/") && !strings.HasPrefix(pkg, "cmd/internal/") {
			now["links "+pkg] = len(linkedTo(packages, pkg, make(map[string]bool))) - 1
		}
	}
	arrows := 0
	floors := make(map[string]int)
	for pkg := range packages {
		arrows += len(ours(packages, pkg))
		floor(packages, pkg, floors)
	}
	t.Logf("%d lines of Go without tests, %d rooms, %d floors, %d arrows, %d functions of more than 60 lines", total, len(packages), slices.Max(slices.Collect(maps.Values(floors))), arrows, long)

	allowed := readHouse(t)
	if *update {
		for name, n := range now {
			if most, ok := allowed[name]; ok {
				n = min(n, most)
			}
			allowed[name] = n
		}
		for name := range allowed {
			if _, there := now[name]; !there {
				delete(allowed, name)
			}
		}
		writeHouse(t, allowed)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		most, ok := allowed[name]
		switch {
		case !ok:
			t.Errorf("house.txt: it has no line for %s, which has %d", name, now[name])
		case now[name] > most:
			t.Errorf("house.txt: %s: %d, at most %d are allowed", name, now[name], most)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if _, there := now[name]; !there {
			t.Errorf("house.txt: %s: no such room", name)
		}
	}
}

// measure returns the lines of a package without tests, and how many functions have more than 60.
func measure(t *testing.T, pkg string) (lines, long int) {
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		lines += set.File(parsed.FileStart).LineCount() - 1 // the last one begins behind the last newline
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && set.Position(f.End()).Line-set.Position(f.Pos()).Line >= 60 {
				long++
			}
		}
	}
	return lines, long
}

// ours returns the packages of ours that a package imports.
func ours(packages map[string][]string, pkg string) map[string]bool {
	found := make(map[string]bool)
	for _, imported := range packages[pkg] {
		if name, ok := strings.CutPrefix(imported, module); ok {
			found[name] = true
		}
	}
	return found
}

// linkedTo returns the packages that a program links, itself among them.
func linkedTo(packages map[string][]string, pkg string, found map[string]bool) map[string]bool {
	if !found[pkg] {
		found[pkg] = true
		for imported := range ours(packages, pkg) {
			linkedTo(packages, imported, found)
		}
	}
	return found
}

// floor returns how many packages the longest way down from a package has.
func floor(packages map[string][]string, pkg string, floors map[string]int) int {
	if floors[pkg] == 0 {
		below := 0
		for imported := range ours(packages, pkg) {
			below = max(below, floor(packages, imported, floors))
		}
		floors[pkg] = below + 1
	}
	return floors[pkg]
}

func readHouse(t *testing.T) map[string]int {
	text, err := os.ReadFile("house.txt")
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	allowed := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] != "#" {
			n, err := strconv.Atoi(fields[2])
			if err != nil {
				t.Fatal(err)
			}
			allowed[fields[0]+" "+fields[1]] = n
		}
	}
	return allowed
}

func writeHouse(t *testing.T, allowed map[string]int) {
	text := houseHead
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		text += fmt.Sprintf("%-40s %6d\n", name, allowed[name])
	}
	if err := os.WriteFile("house.txt", []byte(text), fs.FileMode(0o644)); err != nil {
		t.Fatal(err)
	}
}
