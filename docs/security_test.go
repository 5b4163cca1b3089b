package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every test that docs/reference/security.md names exists.
func TestSecurityTestsExist(t *testing.T) {
	page, err := os.ReadFile("reference/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 20 {
		t.Fatalf("the page names %d tests", len(named))
	}
	var sources strings.Builder
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range named {
		if !strings.Contains(sources.String(), "\nfunc "+n[1]+"(") {
			t.Errorf("reference/security.md names %s, which is not there", n[1])
		}
	}
}

// Each row of docs/reference/security.md that is met names a test or a make target, or says with a dash that
// it has none. The page says how many rows are met, partly met and not met.
func TestSecurityCounts(t *testing.T) {
	page, err := os.ReadFile("reference/security.md")
	if err != nil {
		t.Fatal(err)
	}
	evidence := regexp.MustCompile("`((Test|Fuzz)[A-Za-z0-9]+|make [a-z-]+)`")
	sections := strings.Split(string(page), "\n## ")
	if len(sections) != 3 {
		t.Fatalf("the page has %d sections, want two standards", len(sections)-1)
	}
	for _, section := range sections[1:] {
		title, _, _ := strings.Cut(section, "\n")
		rows, met, partly, not := 0, 0, 0, 0
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || rows == 0 && !strings.ContainsAny(cells[1], "0123456789") {
				continue
			}
			rows++
			switch last := cells[3]; {
			case strings.Contains(last, "Not met"):
				not++
			case strings.Contains(last, "Partly"):
				partly++
			default:
				met++
				if !evidence.MatchString(last) && strings.TrimSpace(last) != "–" {
					t.Errorf("%s: row %s is met, and names neither a test nor – for none", title, cells[1])
				}
			}
		}
		if want := fmt.Sprintf("\nOf %d rows %d are met, %d partly, %d not.\n", rows, met, partly, not); !strings.Contains(section, want) {
			t.Errorf("%s: the page does not say %q", title, strings.TrimSpace(want))
		}
	}
}

// SECURITY.md says which packages of Arrow are compiled into the programs. Parts that open
// connections, run code or unpack data are not among them.
func TestArrowPackages(t *testing.T) {
	const module = "github.com/apache/arrow/go/v15/"
	out, err := exec.Command("go", "list", "-deps", "../cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var compiled []string
	for pkg := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(pkg), module); ok {
			compiled = append(compiled, name)
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("SECURITY.md does not say that %s is compiled in", name)
			}
		}
	}
	if !slices.Contains(compiled, "arrow/ipc") {
		t.Fatalf("the programs have %q: this tests nothing", compiled)
	}
	_, list, ok := strings.Cut(string(text), "the programs contain ")
	list, _, _ = strings.Cut(list, ".\n")
	named := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1)
	if !ok || len(named) != len(compiled) {
		t.Errorf("SECURITY.md names %d packages, the programs have %d", len(named), len(compiled))
	}
	for _, n := range named {
		if !slices.Contains(compiled, n[1]) {
			t.Errorf("SECURITY.md says that %s is compiled in, and it is not", n[1])
		}
	}
	for _, never := range []string{"flight", "parquet", "cdata", "compute", "avro", "csv", "scalar"} {
		if i := slices.IndexFunc(compiled, func(p string) bool { return slices.Contains(strings.Split(p, "/"), never) }); i >= 0 {
			t.Errorf("%s is compiled in", compiled[i])
		}
	}
}

// Each package that a requirements.txt asks for stands in its requirements.lock in the same version, and
// each package there has a hash. `make python-lock` writes them.
func TestPythonIsLocked(t *testing.T) {
	var asked int
	for _, pattern := range []string{"../bench/peers/requirements.txt", "../bench/peers/*/requirements.txt", "../bench/*/requirements.txt", "../examples/*/requirements.txt", "../examples/*/*/requirements.txt"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lock, err := os.ReadFile(strings.TrimSuffix(file, "txt") + "lock")
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				asked++
				if !strings.Contains("\n"+strings.ToLower(string(lock)), "\n"+strings.ToLower(line)+" ") {
					t.Errorf("%s: %s is not in requirements.lock: run make python-lock", file, line)
				}
			}
			for _, block := range regexp.MustCompile(`(?m)^[A-Za-z0-9._-]+==`).Split(string(lock), -1)[1:] {
				if !strings.Contains(block, "--hash=sha256:") {
					t.Errorf("%s: a package of requirements.lock has no hash: run make python-lock", file)
				}
			}
		}
	}
	if asked < 20 {
		t.Fatalf("%d packages in all files", asked)
	}
}
