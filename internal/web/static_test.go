package web

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// textLine is one text of a language file: each is a line of its own.
var textLine = regexp.MustCompile(`(?m)^ {2}"([^"]+)": "((?:[^"\\]|\\.)*)",$`)

// texts returns the texts of a language by key.
func texts(t *testing.T, language string) map[string]string {
	t.Helper()
	source := string(files()["text/"+language+".js"].content)
	all := make(map[string]string)
	for _, m := range textLine.FindAllStringSubmatch(source, -1) {
		if _, ok := all[m[1]]; ok {
			t.Errorf("text/%s.js has %q twice", language, m[1])
		}
		all[m[1]] = m[2]
	}
	if lines := strings.Count(source, "\n  "); lines != len(all) {
		t.Errorf("text/%s.js has %d lines with texts, %d could be read: write one a line, in double quotes", language, lines, len(all))
	}
	return all
}

// Both languages have the same keys, and their texts the same arguments and forms.
func TestTextsAgree(t *testing.T) {
	english, german := texts(t, "en"), texts(t, "de")
	argument := regexp.MustCompile(`\{\w+\}`)
	arguments := func(s string) []string {
		form := strings.SplitN(s, "|", 2)[0]
		found := argument.FindAllString(form, -1)
		slices.Sort(found)
		return found
	}
	for key, en := range english {
		de, ok := german[key]
		if !ok {
			t.Errorf("text/de.js does not have %q", key)
			continue
		}
		if !slices.Equal(arguments(en), arguments(de)) || strings.Count(en, "|") != strings.Count(de, "|") {
			t.Errorf("%q has other arguments or forms:\nen %s\nde %s", key, en, de)
		}
	}
	for key := range german {
		if _, ok := english[key]; !ok {
			t.Errorf("text/en.js does not have %q", key)
		}
	}
}

// Every key that a script uses exists, and scripts use every text.
func TestTextsAreUsed(t *testing.T) {
	var (
		have   = texts(t, "en")
		whole  = regexp.MustCompile(`\bt\("([^"]+)"`)
		prefix = regexp.MustCompile("`([a-z0-9_.]+)\\.\\$\\{")
		words  = regexp.MustCompile(`wordOf\("([^"]+)"`)
		quoted = regexp.MustCompile(`"([a-z0-9_]+(?:\.[a-z0-9_]+)*)"`)
		used   = make(map[string]bool)
	)
	root, err := fs.Sub(static, "static")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := fs.Glob(root, "*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	var prefixes []string
	for _, name := range scripts {
		source := string(files()[name].content)
		for _, m := range whole.FindAllStringSubmatch(source, -1) {
			if _, ok := have[m[1]]; !ok {
				t.Errorf("%s uses the text %q, which text/en.js does not have", name, m[1])
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(source, -1) {
			used[m[1]] = true
		}
		for _, r := range []*regexp.Regexp{prefix, words} {
			for _, m := range r.FindAllStringSubmatch(source, -1) {
				prefixes = append(prefixes, m[1]+".")
			}
		}
	}
	for key := range have {
		if !used[key] && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			t.Errorf("no script uses the text %q", key)
		}
	}
}

// Every name that a script imports is exported there: a browser shows nothing at all if one is
// missing.
func TestImportsExist(t *testing.T) {
	var (
		imports = regexp.MustCompile(`(?m)^import \{([^}]*)\} from "\./([^"]+)";$`)
		exports = regexp.MustCompile(`(?m)^export (?:async )?(?:const|let|function|class) (\w+)`)
		list    = regexp.MustCompile(`export\{([^}]*)\}`)
	)
	all := files()
	for name, f := range all {
		if !strings.HasSuffix(name, ".js") || strings.HasPrefix(name, "vendor/") {
			continue
		}
		for _, m := range imports.FindAllStringSubmatch(string(f.content), -1) {
			have := make(map[string]bool)
			source := string(all[m[2]].content)
			for _, e := range exports.FindAllStringSubmatch(source, -1) {
				have[e[1]] = true
			}
			for _, e := range list.FindAllStringSubmatch(source, -1) {
				for _, pair := range strings.Split(e[1], ",") {
					_, as, _ := strings.Cut(pair, " as ")
					have[as] = true
				}
			}
			for _, want := range strings.Split(m[1], ",") {
				if want = strings.TrimSpace(want); want != "" && !have[want] {
					t.Errorf("%s imports %s, which %s does not export", name, want, m[2])
				}
			}
		}
	}
}
