// Package docs holds tests of the documents.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// walk calls f for each file of the repository with one of the endings. Paths are
// relative to this folder.
func walk(t *testing.T, f func(path, text string), endings ...string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (path != ".." && strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "flank-data", "bin"}, name)):
			return filepath.SkipDir
		case !d.IsDir() && slices.Contains(endings, filepath.Ext(name)):
			text, err := os.ReadFile(path)
			if err == nil {
				f(path, string(text))
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pages returns the Markdown files of the repository by path.
func pages(t *testing.T) map[string]string {
	all := make(map[string]string)
	walk(t, func(path, text string) { all[path] = text }, ".md")
	return all
}

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inline  = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?m)^\[[^\]]+\]: (\S+)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// anchors returns the names by which GitHub lets the headings of a page be linked to.
func anchors(page string) map[string]bool {
	all, times := make(map[string]bool), make(map[string]int)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, linked.ReplaceAllString(m[1], "$1"))
		times[name]++
		if n := times[name]; n > 1 {
			name = fmt.Sprintf("%s-%d", name, n-1)
		}
		all[name] = true
	}
	return all
}

// Every relative link of a page leads to a file that is there, and to a heading of it. Every
// document is linked from somewhere.
func TestLinks(t *testing.T) {
	all, links, reached := pages(t), 0, make(map[string]bool)
	for path, text := range all {
		text = inline.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(target, "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
				reached[to] = true
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s: no such file", path, target)
			} else if page, ok := all[to]; anchor != "" && (!ok || !anchors(page)[anchor]) {
				t.Errorf("%s: %s: no such heading", path, target)
			}
		}
	}
	for path := range all {
		if strings.HasPrefix(path, "../docs/") && !strings.HasPrefix(path, "../docs/adr/") && !reached[path] {
			t.Errorf("%s: no page links to it", path)
		}
	}
	if links < 100 {
		t.Errorf("found %d links only", links)
	}
}

var document = regexp.MustCompile(`\bdocs/[\w./-]*\w\.(?:md|csv|svg|png)\b`)

// Every document that code, messages or configurations name is there.
func TestNamedDocuments(t *testing.T) {
	named := 0
	walk(t, func(path, text string) {
		for _, name := range document.FindAllString(text, -1) {
			named++
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("%s names %s: no such file", path, name)
			}
		}
	}, ".go", ".yaml", ".yml", ".json", ".py", ".md", ".txt", ".tmpl", "")
	if named < 50 {
		t.Errorf("found %d names only", named)
	}
}

// Programs write these pages, which may be long.
var generated = []string{
	"figures/mutants.md", "figures/operators-commands.md", "figures/performance.md", "figures/reliability.md", "figures/study/README.md", "figures/study/accuracy.md", "figures/study/drill/drill.md",
	"figures/study/gmean.md", "figures/unseen.md", "reference/features.md",
}

// A page that people write is read in one go: at most 1,500 words, without code and signs.
func TestPagesAreShort(t *testing.T) {
	checked := 0
	for path, text := range pages(t) {
		name, ours := strings.CutPrefix(path, "../docs/")
		if !ours || slices.Contains(generated, name) {
			continue
		}
		checked++
		words := 0
		for word := range strings.FieldsSeq(fenced.ReplaceAllString(text, "")) {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				words++
			}
		}
		if words > 1500 {
			t.Errorf("%s has %d words: make two pages of it", path, words)
		}
	}
	if checked < 30 {
		t.Errorf("found %d pages only", checked)
	}
}
