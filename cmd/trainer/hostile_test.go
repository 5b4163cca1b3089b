package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"strings"
	"testing"
	"unicode"
)

// Names that could move a cursor, forge a line or turn the direction of writing, and names that could
// become a link or a part of a page.
const (
	control = "\nFORGED line\r\x1b[2J\u009b31m\u202e"
	markup  = "<b>[x](https://evil.example)|"
)

// hostileTable is the table of a recording whose machine, tools and holes have such names.
func hostileTable(t *testing.T, evil string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(asTable("T")), "\n")
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for i, line := range lines {
		cells := strings.Split(line, ",")
		if i == 0 {
			cells = append(cells, "machine", "hole")
		} else {
			cells[0] += evil
			cells = append(cells, "m"+evil, "h"+evil)
		}
		if err := w.Write(cells); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	return b.String()
}

// Names from a table come raw into no listing, no report and no error. A table whose names have control
// characters is refused.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	dir := bench(t, "train.yaml", unscored, "t.csv", hostileTable(t, markup), "control.csv", hostileTable(t, control), "data.csv", strings.ReplaceAll(recording(), "rms,power", "\"rms\x1b[2J\",\"power\u202e<b>\""))
	shown := false
	for _, args := range []string{
		"fit --config train.yaml --model m.flank --table t.csv", "labels check --config train.yaml --table t.csv", "evaluate --config train.yaml --model m.flank --table t.csv",
		"evaluate --format json --config train.yaml --model m.flank --table t.csv", "inspect m.flank", "inspect -o json m.flank", "costs m.flank", "study --table t.csv --trials 1",
		"features --config train.yaml --data data.csv --out f.csv", "labels check --config train.yaml --data data.csv", "models diff m.flank m.flank", "init data.csv --out made",
		"fit --config train.yaml --model n.flank --table control.csv", "labels check --config train.yaml --table control.csv", "evaluate --config train.yaml --model m.flank --table control.csv",
		"study --table control.csv --trials 1",
	} {
		out, log, err := dir.trainer(t, args)
		text := out + log
		if err != nil {
			text += err.Error() + "\n"
		}
		if strings.Contains(args, "control.csv") && (err == nil || !strings.Contains(err.Error(), "control.csv") || !strings.Contains(err.Error(), "remove it")) {
			t.Errorf("%s: %v", args, err)
		}
		shown = shown || strings.Contains(text, "evil.example")
		checkPlain(t, args, text)
	}
	if !shown {
		t.Error("no command shows the names, so this tests nothing")
	}
	for _, name := range []string{"m.report.html", "m.report.json"} { // the model card
		page, err := os.ReadFile(dir.path(name))
		if err != nil {
			t.Error(err)
		} else {
			if strings.Contains(string(page), "<b>[x]") || strings.Contains(string(page), `href="https://evil`) {
				t.Errorf("%s has HTML of a name", name)
			}
			checkPlain(t, name, string(page))
		}
	}
}

// checkPlain reports characters that change how text is shown, and forged lines.
func checkPlain(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
			t.Errorf("%s: a line was forged:\n%s", what, text)
			return
		}
		if i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) }); i >= 0 {
			t.Errorf("%s: %q is raw in %q", what, line[i:min(i+4, len(line))], line)
			return
		}
	}
}
