package operatorsday

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

const (
	root = "../../"
	page = root + "docs/how-to/operators-day.md"
)

// block is a block of commands of a page.
type block struct {
	line   int
	hosts  []string // empty where the page does not say
	wait   bool     // run again until it prints what the page shows
	text   string
	prints []string
}

var onHosts = regexp.MustCompile(`^# on: (.+)$`)

// blocks returns a page's blocks of commands. A block may name its hosts in its first line. Each line of a block text
// is one that the commands before it print on each host.
func blocks(page string) (all []block) {
	info, indent := "", ""
	for i, line := range strings.Split(page, "\n") {
		text := strings.TrimPrefix(line, indent)
		switch {
		case strings.HasPrefix(text, "```") && info != "":
			info, indent = "", ""
		case strings.HasPrefix(strings.TrimLeft(line, " "), "```"):
			text = strings.TrimLeft(line, " ")
			indent = line[:len(line)-len(text)]
			if info = cmp.Or(text[3:], "text of the page"); strings.HasPrefix(info, "sh") {
				all = append(all, block{line: i + 1, wait: info == "sh wait"})
			}
		case strings.HasPrefix(info, "sh"):
			b := &all[len(all)-1]
			if m := onHosts.FindStringSubmatch(text); m != nil && b.text == "" {
				b.hosts = strings.Fields(m[1])
			}
			b.text += text + "\n"
		case info == "text" && strings.TrimSpace(line) != "" && len(all) > 0:
			all[len(all)-1].prints = append(all[len(all)-1].prints, line)
		}
	}
	return all
}

// hereDoc begins text that goes on to a line of its own with the word.
var hereDoc = regexp.MustCompile(`<<'?([A-Z]+)'?`)

// command is a command of a page.
type command struct {
	shown    string // lines that go on are joined; of other lines the first, with " …"
	standsIn string // in words, the scripts in place of programs that tests do not have; empty if there are none
}

// elsewhere are programs that tests do not have.
var elsewhere = regexp.MustCompile(`\b(systemctl|journalctl|scp|kafka-[a-z-]+\.sh)\b`)

// commands returns the commands of a block.
func (b block) commands() (all []command) {
	open := "" // what ends the command that has begun; empty: its line does
	for _, line := range strings.Split(b.text, "\n") {
		text, _, _ := strings.Cut(line, " # ")
		text = strings.TrimSpace(text)
		switch {
		case open == "\\":
			all[len(all)-1].shown += " " + strings.TrimSuffix(text, "\\")
			if !strings.HasSuffix(text, "\\") {
				open = ""
			}
		case open != "":
			all[len(all)-1].noteStandIn(text)
			if line == open || open == "'" && strings.Contains(line, "'") {
				open = ""
			}
		case text == "" || strings.HasPrefix(text, "#"):
		default:
			switch doc := hereDoc.FindStringSubmatch(text); {
			case doc != nil:
				open = doc[1]
			case strings.HasSuffix(text, "\\"):
				open, text = "\\", strings.TrimSpace(strings.TrimSuffix(text, "\\"))
			case strings.HasPrefix(text, "for ") && !strings.HasSuffix(text, "done"):
				open = "done"
			case strings.Count(text, "'")%2 == 1:
				open = "'"
			}
			c := command{shown: text}
			c.noteStandIn(text)
			if open != "" && open != "\\" {
				c.shown += " …"
			}
			all = append(all, c)
		}
	}
	return all
}

// noteStandIn notes programs in a line of the command that tests do not have.
func (c *command) noteStandIn(line string) {
	for _, program := range elsewhere.FindAllString(line, -1) {
		if !strings.Contains(c.standsIn, program) {
			c.standsIn += ", with a script in place of `" + program + "`"
		}
	}
}

// tried says what runs commands of a page, or why nothing does.
type tried struct {
	page, begins string // of the commands; an empty beginning is of all others of the page
	how, by      string // one of kinds, and what runs them, or why nothing does
	used         bool
}

// kinds of tried: the commands themselves, with other arguments, not at all.
var kinds = []string{"run by ", "alike by ", "not run: "}

// ledger returns what testdata/commands.txt says of the commands of which pages.
func ledger(t *testing.T) (all []*tried, pages []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		begins, what, ok := strings.Cut(line, "\t")
		how := slices.IndexFunc(kinds, func(k string) bool { return strings.HasPrefix(what, k) })
		switch {
		case strings.HasPrefix(line, "#"):
		case !ok:
			pages = append(pages, line)
		case how < 0 || pages == nil:
			t.Fatalf("testdata/commands.txt:%d: want a page, or a beginning, a tab and one of %q", i+1, kinds)
		default:
			all = append(all, &tried{page: pages[len(pages)-1], begins: begins, how: kinds[how], by: what[len(kinds[how]):]})
		}
	}
	return all, pages
}

// Every command of the operators' pages is in the table of docs/figures/operators-commands.md: what runs it, or why
// nothing does. The tests and targets that it names are there.
func TestOperatorsCommands(t *testing.T) {
	rows, pages := ledger(t)
	var out bytes.Buffer
	count := make(map[string]int)
	for _, name := range pages {
		text, err := os.ReadFile(root + name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "\n## [%s](../../%s)\n\n| command | |\n|---|---|\n", name, name)
		for _, b := range blocks(string(text)) {
			for _, c := range b.commands() {
				var found *tried
				for _, r := range rows {
					if r.page == name && strings.HasPrefix(c.shown, r.begins) && (found == nil || len(r.begins) > len(found.begins)) {
						found = r
					}
				}
				if found == nil {
					t.Errorf("%s:%d: testdata/commands.txt does not say what runs it: %s", name, b.line, c.shown)
					continue
				}
				found.used = true
				count[found.how]++
				what := found.how + found.by
				if found.how == kinds[0] {
					what += c.standsIn
				}
				fmt.Fprintf(&out, "| `` %s `` | %s |\n", strings.ReplaceAll(c.shown, "|", "\\|"), what)
			}
		}
	}
	for _, r := range rows {
		if !r.used {
			t.Errorf("testdata/commands.txt: no command of %s begins with %q", r.page, r.begins)
		}
		checkNamed(t, r.by)
	}
	golden.Check(t, "../"+root+"docs/figures/operators-commands.md", fmt.Sprintf(`# Commands of the operators' pages

| commands | |
|---:|---|
| %d | run by a test, word for word but for addresses and folders |
| %d | run alike: with other arguments |
| %d | not run |

`+"`go test ./e2e/operatorsday -update` writes this page from the pages and from `e2e/operatorsday/testdata/commands.txt`. [What an operator's day cannot run](tried.md#an-operators-day).\n", count[kinds[0]], count[kinds[1]], count[kinds[2]])+out.String())
}

var named = regexp.MustCompile("`(make )?([A-Za-z0-9-]+)`")

// checkNamed reports a target or a test that is not there.
func checkNamed(t *testing.T, by string) {
	t.Helper()
	for _, m := range named.FindAllStringSubmatch(by, -1) {
		where, what := []string{root + "Makefile"}, "\n"+m[2]+":"
		switch {
		case m[1] == "" && !strings.HasPrefix(m[2], "Test"):
			continue
		case m[1] == "":
			what = "func " + m[2] + "("
			for _, pattern := range []string{"e2e/*_test.go", "cmd/*/*_test.go"} {
				some, _ := filepath.Glob(root + pattern)
				where = append(where, some...)
			}
		}
		if !slices.ContainsFunc(where, func(path string) bool {
			text, err := os.ReadFile(path)
			return err == nil && bytes.Contains(text, []byte(what))
		}) {
			t.Errorf("testdata/commands.txt: there is no %s", m[0])
		}
	}
}
