package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
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

// A room is a folder of cmd, internal or pkg with all that is below it, or schemas.
func roomOf(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

// row is a line of the table of rooms in architecture.md.
type row struct {
	room    string
	touches []string // rooms that it may import; with "any" at its end, every room of a folder
}

var (
	quoted      = regexp.MustCompile("`([^`]+)`")
	parentheses = regexp.MustCompile(`\([^)]*\)`)
)

func readRows(t *testing.T) []row {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "| room | holds | may touch |\n|---|---|---|\n")
	if !ok {
		t.Fatal("architecture.md: no table of rooms")
	}
	var rows []row
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			break
		}
		names := quoted.FindAllStringSubmatch(cells[1], -1)
		if names == nil {
			t.Fatalf("architecture.md: a row begins with %q, not with a folder in backquotes", cells[1])
		}
		var touches []string
		for name := range strings.SplitSeq(parentheses.ReplaceAllString(cells[3], ""), ",") {
			if name = strings.TrimSpace(name); name != "" && name != "–" {
				touches = append(touches, name)
			}
		}
		for _, name := range names {
			rows = append(rows, row{room: name[1], touches: touches})
		}
	}
	return rows
}

// allowed resolves what a row may touch to rooms.
func (r row) allowed(rooms map[string][]string) map[string]bool {
	found := make(map[string]bool)
	for _, name := range r.touches {
		for room := range rooms {
			folder, short := path.Split(room)
			if room == name || short == name && folder != "cmd/" || name == "any" && (folder == "internal/" || folder == "pkg/") {
				found[room] = true
			}
		}
	}
	delete(found, r.room)
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

// The table of rooms, the rules of depguard and the imports of the code agree: every room has one row, every package
// one strict rule, both allow the same rooms, and the code uses everything that they allow.
func TestRooms(t *testing.T) {
	packages := readPackages(t, "cmd", "internal", "pkg", "schemas")
	rooms := inRooms(packages, roomOf)
	rows, rules := readRows(t), readRules(t)
	rowOf := make(map[string]row)
	for _, r := range rows {
		if _, twice := rowOf[r.room]; twice {
			t.Errorf("architecture.md: two rows for %s", r.room)
		}
		rowOf[r.room] = r
	}
	for room := range rooms {
		if _, ok := rowOf[room]; !ok {
			t.Errorf("architecture.md: no row for %s", room)
		}
	}
	ruleOf := make(map[string]string) // package: name of its strict rule
	for pkg := range packages {
		var covering []string
		for name, r := range rules {
			if r.Mode == "strict" && r.covers(pkg) {
				covering = append(covering, name)
			}
		}
		if len(covering) != 1 {
			t.Errorf(".golangci.yml: %s: strict rules of depguard: %q; want one", pkg, covering)
			continue
		}
		ruleOf[pkg] = covering[0]
	}
	for _, r := range rows {
		checkRow(t, r, rooms, packages, rules, ruleOf)
	}
	for name, r := range rules {
		if r.Mode == "strict" {
			checkRule(t, name, r, ruleOf, packages)
		}
	}
}

// inRooms returns the rooms that each room imports.
func inRooms(packages map[string][]string, roomOf func(pkg string) string) map[string][]string {
	rooms := make(map[string][]string)
	for pkg := range packages {
		room := roomOf(pkg)
		if _, known := rooms[room]; !known {
			rooms[room] = nil // it may import none
		}
		for other := range ours(packages, pkg) {
			if to := roomOf(other); to != room && !slices.Contains(rooms[room], to) {
				rooms[room] = append(rooms[room], to)
			}
		}
	}
	return rooms
}

// checkRow checks that a room exists, that its row and the rules of its packages allow the same rooms, and that it
// imports every room that the row names.
func checkRow(t *testing.T, r row, rooms, packages map[string][]string, rules map[string]rule, ruleOf map[string]string) {
	imported, exists := rooms[r.room]
	if !exists {
		t.Errorf("architecture.md: %s: no such room", r.room)
	}
	allowed := r.allowed(rooms)
	for _, other := range imported {
		if !allowed[other] {
			t.Errorf("architecture.md: %s imports %s, which its row does not name", r.room, other)
		}
	}
	for _, name := range r.touches {
		one := row{room: r.room, touches: []string{name}}.allowed(rooms)
		if !slices.ContainsFunc(imported, func(other string) bool { return one[other] }) {
			t.Errorf("architecture.md: %s does not import %q, which its row names", r.room, name)
		}
	}
	for pkg := range packages {
		if roomOf(pkg) != r.room {
			continue
		}
		for other := range rooms {
			rule := slices.ContainsFunc(rules[ruleOf[pkg]].Allow, func(entry string) bool {
				return matches(entry, module+other) || strings.HasPrefix(entry, module+other+"/")
			})
			if other != r.room && rule != allowed[other] {
				t.Errorf("%s may import %s: %t in architecture.md, %t in rule %s of .golangci.yml", pkg, other, allowed[other], rule, ruleOf[pkg])
			}
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
