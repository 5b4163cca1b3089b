package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/reference/log-events.md has every event that the programs log, and no other.
func TestLogEvents(t *testing.T) {
	page, err := os.ReadFile("reference/log-events.md")
	if err != nil {
		t.Fatal(err)
	}
	written := make(map[string]bool) // whether the source has it
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
				written[name[1]] = false
			}
		}
	}
	logged := regexp.MustCompile(`Str\("event", "([a-z_]+[a-z])"|\bLine\{(?:true|false), "([a-z_]+)"|\.(?:warn|line)\("([a-z_]+)"|name :?= "(partition_[a-z_]+)"`)
	walk(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "../internal/") && !strings.HasPrefix(path, "../cmd/") {
			return
		}
		for _, m := range logged.FindAllStringSubmatch(text, -1) {
			name := strings.Join(m[1:], "")
			if _, ok := written[name]; !ok {
				t.Errorf("%s logs the event %s: add it to reference/log-events.md", path, name)
			}
			written[name] = true
		}
	}, ".go")
	for name, ok := range written {
		if !ok {
			t.Errorf("reference/log-events.md has %s, which nothing logs", name)
		}
	}
}
