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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "lower what house.txt allows to what there is")

const houseHead = `# What rooms and programs may hold at most, checked by a test. Lines of Go without tests of each room with the folders
# below it, packages of ours that each program links, and methods of each type that has more than 40. Walls are floors of rooms and arrows between
# them, where cmd, pkg and bench are one room each. Room for more is taken from another room:
# raise one number and lower another one, in the commit that needs it. ` + "`go test ./docs -run House -update`" + ` lowers what is too high.
`

// No room has more lines than house.txt allows, no program links more packages of ours, no type has more methods, and the house has no more
// floors and arrows. With -v it prints what the house is as a whole.
func TestHouse(t *testing.T) {
	packages := readPackages(t, "cmd", "internal", "pkg", "bench", "schemas")
	now := make(map[string]int)
	product, total, long := 0, 0, 0
	for pkg := range packages {
		lines, functions, methods := measure(t, pkg)
		for of, n := range methods {
			if n > mostMethods {
				now["methods "+pkg+"."+of] = n
			}
		}
		room := "bench"
		if !strings.HasPrefix(pkg, "bench/") {
			room, product = roomOf(pkg), product+lines
		}
		now["lines "+room] += lines
		total, long = total+lines, long+functions
	}
	for pkg := range packages {
		if strings.HasPrefix(pkg, "cmd/") && !strings.HasPrefix(pkg, "cmd/internal/") {
			now["links "+pkg] = len(linkedTo(packages, pkg, make(map[string]bool))) - 1
		}
	}
	t.Logf("lines of Go without tests: %d, of them in cmd, internal, pkg and schemas %d", total, product)
	rooms := inRooms(packages, largeRoomOf)
	now["walls floors"], now["walls arrows"] = walls(rooms)
	t.Logf("cmd and pkg as one room each, with bench: rooms %d, floors %d, arrows %d", len(rooms), now["walls floors"], now["walls arrows"])
	maps.DeleteFunc(packages, func(pkg string, _ []string) bool { return strings.HasPrefix(pkg, "bench/") })
	rooms = inRooms(packages, roomOf)
	floors, arrows := walls(rooms)
	t.Logf("rooms as in architecture.md: rooms %d, floors %d, arrows %d, packages %d", len(rooms), floors, arrows, len(packages))
	t.Logf("functions of more than 60 lines: %d", long)
	files := readSources(t)
	names := unused(files)
	t.Logf("exported names that no other package uses: %d: %s", len(names), strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	files = slices.DeleteFunc(files, func(f source) bool { return f.test })
	functions, above := branching(files)
	t.Logf("functions: %d, of cyclomatic complexity above 10: %d, in 1,000: %d", functions, above, 1000*above/functions)
	t.Logf("struct tags with help: in cmd: %d, keys of YAML in docs/reference: %d", tags(t), keys(t))
	t.Logf("words of documents without figures: %d", words(t))
	for _, pkg := range slices.Sorted(maps.Keys(now)) {
		if name, ok := strings.CutPrefix(pkg, "links "); ok {
			t.Logf("%s links %d packages of ours", name, now[pkg])
		}
	}

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
			t.Errorf("house.txt: %s: nothing has that name any more", name)
		}
	}
}

// mostMethods is how many methods a type may have without a line in house.txt.
const mostMethods = 40

// measure returns the lines of a package without tests, how many functions have more than 60, and how many methods
// each type has.
func measure(t *testing.T, pkg string) (lines, long int, methods map[string]int) {
	methods = make(map[string]int)
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
		lines += set.File(parsed.FileStart).LineCount()
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && set.Position(f.End()).Line-set.Position(f.Pos()).Line >= 60 {
				long++
			}
			if ok && f.Recv != nil {
				methods[receiver(f)]++
			}
		}
	}
	return lines, long, methods
}

// receiver returns the name of the type of a method.
func receiver(f *ast.FuncDecl) (name string) {
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return true
	})
	return name
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

// largeRoomOf returns the room of a package where cmd, pkg and bench are one each.
func largeRoomOf(pkg string) string {
	if room, _, _ := strings.Cut(pkg, "/"); room != "internal" {
		return room
	}
	return roomOf(pkg)
}

// walls returns how many floors rooms have, and how often one of them imports another.
func walls(rooms map[string][]string) (highest, arrows int) {
	floors := make(map[string]int)
	for room, below := range rooms {
		arrows += len(below)
		highest = max(highest, floor(rooms, room, floors))
	}
	return highest, arrows
}

func TestWalls(t *testing.T) {
	for name, tc := range map[string]struct {
		packages       map[string][]string
		floors, arrows int
	}{
		"none":               {nil, 0, 0},
		"one room":           {map[string][]string{"internal/a": {"fmt", module + "internal/a/b"}, "internal/a/b": nil}, 1, 0},
		"two ways down":      {map[string][]string{"internal/a": {module + "internal/b", module + "internal/c"}, "internal/b": {module + "internal/c/d"}, "internal/c/d": nil}, 3, 3},
		"programs are one":   {map[string][]string{"cmd/a": {module + "cmd/internal/b", module + "internal/c"}, "cmd/internal/b": {module + "internal/c"}, "internal/c": nil}, 2, 1},
		"bench is a room":    {map[string][]string{"bench/a": {module + "pkg/a", module + "pkg/b"}, "pkg/a": {module + "pkg/b"}, "pkg/b": {module + "internal/c"}, "internal/c": nil}, 3, 2},
		"an import is twice": {map[string][]string{"internal/a": {module + "pkg/b", module + "pkg/b"}, "pkg/b": nil}, 2, 1},
	} {
		if floors, arrows := walls(inRooms(tc.packages, largeRoomOf)); floors != tc.floors || arrows != tc.arrows {
			t.Errorf("%s: %d floors, %d arrows, want %d, %d", name, floors, arrows, tc.floors, tc.arrows)
		}
	}
}

// floor returns how many rooms the longest way down from a room has.
func floor(rooms map[string][]string, room string, floors map[string]int) int {
	if floors[room] == 0 {
		below := 0
		for _, other := range rooms[room] {
			below = max(below, floor(rooms, other, floors))
		}
		floors[room] = below + 1
	}
	return floors[room]
}

// words returns how many words the documents have, without the figures and the changelog.
func words(t *testing.T) int {
	n := 0
	for _, root := range []string{".", "../README.md", "../CONTRIBUTING.md", "../SECURITY.md"} {
		err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(file) != ".md" || strings.HasPrefix(file, "figures"+string(filepath.Separator)) {
				return err
			}
			text, err := os.ReadFile(file)
			n += len(strings.Fields(string(text)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// tags returns how many struct tags of the programs' flags have a help text: commands, arguments and flags.
func tags(t *testing.T) (n int) {
	err := filepath.WalkDir("../cmd", func(file string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		n += strings.Count(string(text), `help:"`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// keys returns how many rows the reference of the configurations has: tests of the programs compare it with the code.
func keys(t *testing.T) (n int) {
	for _, page := range []string{"ingest", "monitor", "training"} {
		text, err := os.ReadFile("reference/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), "\n| `")
	}
	return n
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

var required = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

// The measuring programs are a module of their own, which must have the same versions of other modules as the product:
// they would measure another program otherwise.
func TestModulesAgree(t *testing.T) {
	read := func(file string) map[string]string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		versions := make(map[string]string)
		for _, m := range required.FindAllStringSubmatch(string(text), -1) {
			versions[m[1]] = m[2]
		}
		return versions
	}
	product, both := read("../go.mod"), 0
	for name, version := range read("../bench/go.mod") {
		if want, ok := product[name]; ok {
			if both++; version != want {
				t.Errorf("bench/go.mod: %s %s, but go.mod has %s: go -C bench get %s@%s", name, version, want, name, want)
			}
		}
	}
	if both < 5 {
		t.Errorf("found %d modules of both only", both)
	}
}
