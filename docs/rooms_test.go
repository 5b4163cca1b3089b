package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const module = "github.com/flank-tcm/flank/"

// room is a row of the table of rooms in architecture.md.
type room struct {
	names []string // folders, such as internal/config; cmd/* is every folder of cmd
	holds string
	ours  []string // the column "imports of ours"
}

var (
	quoted      = regexp.MustCompile("`([^`]+)`")
	parentheses = regexp.MustCompile(`\([^)]*\)`)
)

// readRooms reads the table of rooms. In a row that names several folders, a name
// without a slash is next to the first one.
func readRooms(t *testing.T) []room {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| room | holds | imports of ours | home of |\n|---|---|---|---|\n")
	if !ok {
		t.Fatal("architecture.md: no table of rooms")
	}
	var rooms []room
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			break
		}
		r := room{holds: cells[2]}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			name := m[1]
			if !strings.Contains(name, "/") && len(r.names) > 0 {
				name = path.Join(path.Dir(r.names[0]), name)
			}
			r.names = append(r.names, name)
		}
		for name := range strings.SplitSeq(parentheses.ReplaceAllString(cells[3], ""), ",") {
			if name = strings.TrimSpace(name); name != "" && name != "–" {
				r.ours = append(r.ours, name)
			}
		}
		rooms = append(rooms, r)
	}
	return rooms
}

// owns says how the row names a package: by a folder of its own, or as a folder
// below one of them that the column "holds" names.
func (r room) owns(pkg string) (itself, below bool) {
	for _, name := range r.names {
		if ok, _ := path.Match(name, pkg); ok {
			return true, false
		}
		if strings.HasPrefix(pkg, name+"/") {
			for _, m := range quoted.FindAllStringSubmatch(r.holds, -1) {
				below = below || strings.HasSuffix(pkg, "/"+m[1])
			}
		}
	}
	return false, below
}

// imports resolves one name of the column "imports of ours" to packages.
func (r room) imports(name string, packages map[string][]string) []string {
	var under []string
	switch name {
	case "any but figures":
		under = []string{"cmd/internal/", "internal/", "pkg/"}
	case "any pkg":
		under = []string{"pkg/"}
	default:
		for _, dir := range []string{"", "internal/", "pkg/", "internal/source/"} {
			if _, ok := packages[dir+name]; ok {
				return []string{dir + name}
			}
		}
	}
	var found []string
	for pkg := range packages {
		if slices.ContainsFunc(under, func(prefix string) bool { return strings.HasPrefix(pkg, prefix) }) {
			found = append(found, pkg)
		}
	}
	return found
}

// rule is one rule of depguard in .golangci.yml.
type rule struct {
	Mode  string   `yaml:"list-mode"`
	Files []string `yaml:"files"`
	Allow []string `yaml:"allow"`
	Deny  []any    `yaml:"deny"`
}

func readRules(t *testing.T) map[string]rule {
	text, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]rule `yaml:"rules"`
				} `yaml:"depguard"`
			} `yaml:"settings"`
		} `yaml:"linters"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	return config.Linters.Settings.Depguard.Rules
}

// covers says whether the rule applies to the files of a package other than tests.
func (r rule) covers(pkg string) bool {
	covered := false
	for _, pattern := range r.Files {
		pattern, not := strings.CutPrefix(pattern, "!")
		if pattern == "$test" {
			continue
		}
		expr := strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(pattern))
		if !regexp.MustCompile("^" + expr + "$").MatchString("/flank/" + pkg + "/file.go") {
			continue
		}
		if not {
			return false
		}
		covered = true
	}
	return covered
}

// matches says whether an entry of a rule stands for an import, as depguard reads
// it: as a prefix, or with $ at its end as the whole path.
func matches(entry, imported string) bool {
	if exact, ok := strings.CutSuffix(entry, "$"); ok {
		return imported == exact
	}
	return strings.HasPrefix(imported, entry)
}

// readPackages returns the imports of every package of the folders, by path, over
// all files but tests, for any system.
func readPackages(t *testing.T, folders ...string) map[string][]string {
	packages := make(map[string][]string)
	for _, folder := range folders {
		err := filepath.WalkDir("../"+folder, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return nil
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			pkg := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file), ".."+string(filepath.Separator)))
			imports := packages[pkg]
			for _, spec := range parsed.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				imports = append(imports, imported)
			}
			packages[pkg] = imports
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return packages
}

// The table of rooms, the rules of depguard and the imports of the code agree: every
// package has one row and one strict rule, both allow the same packages of ours, and
// the code uses everything that they allow.
func TestRooms(t *testing.T) {
	packages := readPackages(t, "cmd", "internal", "pkg", "figures", "schemas")
	rooms, rules := readRooms(t), readRules(t)

	rowOf := make(map[string]int) // package: index of its row
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		var itself, below []int
		for i, r := range rooms {
			switch is, has := r.owns(pkg); {
			case is:
				itself = append(itself, i)
			case has:
				below = append(below, i)
			}
		}
		switch {
		case len(itself) == 1:
			rowOf[pkg] = itself[0]
		case len(itself) == 0 && len(below) == 1:
			rowOf[pkg] = below[0]
		default:
			t.Errorf("architecture.md: %s: %d rows have its name, and %d rows of folders above it; want one row", pkg, len(itself), len(below))
		}
	}
	ruleOf := make(map[string]string) // package: name of its strict rule
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		var covering []string
		for name, r := range rules {
			if r.Mode == "strict" && r.covers(pkg) {
				covering = append(covering, name)
			}
		}
		if len(covering) != 1 {
			slices.Sort(covering)
			t.Errorf(".golangci.yml: %s: strict rules of depguard: %q; want one", pkg, covering)
			continue
		}
		ruleOf[pkg] = covering[0]
	}
	if t.Failed() {
		return // what follows needs a row and a rule for each package
	}

	for i, r := range rooms {
		checkRoom(t, r, i, rowOf, packages)
	}
	for name, r := range rules {
		if r.Mode == "strict" {
			checkRule(t, name, r, ruleOf, packages)
		}
	}
	for pkg, row := range rowOf {
		var inTable []string
		for _, name := range rooms[row].ours {
			inTable = append(inTable, rooms[row].imports(name, packages)...)
		}
		for other := range packages {
			if rowOf[other] == row {
				continue // a room may import its own folders
			}
			table := slices.Contains(inTable, other)
			rule := slices.ContainsFunc(rules[ruleOf[pkg]].Allow, func(entry string) bool { return matches(entry, module+other) })
			if table != rule {
				t.Errorf("%s may import %s: %t in architecture.md, %t in rule %s of .golangci.yml", pkg, other, table, rule, ruleOf[pkg])
			}
		}
	}
}

// checkRoom checks that the folders of a row exist, that the row allows what they
// import, and that they import what it names.
func checkRoom(t *testing.T, r room, row int, rowOf map[string]int, packages map[string][]string) {
	for _, name := range r.names {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(packages)), func(pkg string) bool { ok, _ := path.Match(name, pkg); return ok }) {
			t.Errorf("architecture.md: %s: no such room", name)
		}
	}
	imported := make(map[string]bool) // packages of other rooms
	for pkg, imports := range packages {
		for _, path := range imports {
			if other, ok := strings.CutPrefix(path, module); ok && rowOf[pkg] == row && rowOf[other] != row {
				imported[other] = true
			}
		}
	}
	allowed := make(map[string]bool)
	for _, name := range r.ours {
		used := false
		for _, pkg := range r.imports(name, packages) {
			allowed[pkg] = true
			used = used || imported[pkg]
		}
		if !used {
			t.Errorf("architecture.md: %s does not import %q, which its row names", r.names, name)
		}
	}
	for pkg := range imported {
		if !allowed[pkg] {
			t.Errorf("architecture.md: %s imports %s, which its row does not name", r.names, pkg)
		}
	}
}

// checkRule checks that a strict rule covers a package, that its packages import
// every entry of it, and that it leaves out tests alone.
func checkRule(t *testing.T, name string, r rule, ruleOf map[string]string, packages map[string][]string) {
	covered := false
	used := make([]bool, len(r.Allow))
	for pkg, imports := range packages {
		if ruleOf[pkg] != name {
			continue
		}
		covered = true
		for i, entry := range r.Allow {
			used[i] = used[i] || entry == "$gostd" || slices.ContainsFunc(imports, func(path string) bool { return matches(entry, path) })
		}
	}
	if !covered {
		t.Errorf(".golangci.yml: rule %s covers no package", name)
		return
	}
	for i, entry := range r.Allow {
		if !used[i] {
			t.Errorf(".golangci.yml: rule %s allows %s, which no package under it imports", name, entry)
		}
	}
	if len(r.Deny) > 0 {
		t.Errorf(".golangci.yml: rule %s denies something: a strict rule only allows", name)
	}
}
