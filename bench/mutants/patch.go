package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is one planted fault: a patch in the unified format behind a header of lines "Name: text".
type mutant struct {
	Name       string // of its file, without the ending
	Breaks     string // what goes wrong with it
	Law        string // promise that it breaks, and the document that gives it
	Room       string // folder of the package whose tests must kill it
	Simulation string // "yes", or "no: " and why the simulation cannot reach the place
	files      []filePatch
}

// reachable reports whether the simulation can reach the place.
func (m *mutant) reachable() bool { return m.Simulation == "yes" }

// number is what -only takes.
func (m *mutant) number() string { n, _, _ := strings.Cut(m.Name, "-"); return n }

// filePatch is what a patch changes in one file.
type filePatch struct {
	file  string // from the root of the repository
	hunks []hunk
}

// hunk replaces lines by others.
type hunk struct {
	line     int // where the old lines were when the patch was made, from 1
	old, new []string
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@`)

// parse reads a patch.
func parse(name, text string) (*mutant, error) {
	m := &mutant{Name: name}
	fields := map[string]*string{"Breaks": &m.Breaks, "Law": &m.Law, "Room": &m.Room, "Simulation": &m.Simulation}
	head, body, _ := strings.Cut(text, "\n\n")
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		field := fields[key]
		if field == nil {
			return nil, fmt.Errorf("%s: line %q of its header: want Breaks, Law, Room or Simulation", name, line)
		}
		*field = value
	}
	for key, value := range fields {
		if *value == "" {
			return nil, fmt.Errorf("%s: its header has no %s", name, key)
		}
	}
	if !m.reachable() && !strings.HasPrefix(m.Simulation, "no: ") {
		return nil, fmt.Errorf("%s: Simulation: %q: want \"yes\", or \"no: \" and why", name, m.Simulation)
	}
	for line := range strings.Lines(body) {
		if err := m.add(strings.TrimSuffix(line, "\n")); err != nil {
			return nil, err
		}
	}
	if len(m.files) == 0 {
		return nil, fmt.Errorf("%s: it changes nothing", name)
	}
	return m, nil
}

// add takes the next line of the patch itself.
func (m *mutant) add(line string) error {
	if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
		m.files = append(m.files, filePatch{file: file})
		return nil
	}
	if strings.HasPrefix(line, "--- a/") {
		return nil
	}
	if len(m.files) == 0 {
		return fmt.Errorf("%s: line %q before the name of a file", m.Name, line)
	}
	f := &m.files[len(m.files)-1]
	if found := hunkHead.FindStringSubmatch(line); found != nil {
		f.hunks = append(f.hunks, hunk{})
		_, err := fmt.Sscan(found[1], &f.hunks[len(f.hunks)-1].line)
		return err
	}
	if len(f.hunks) == 0 {
		return fmt.Errorf("%s: line %q before the place of a change", m.Name, line)
	}
	h := &f.hunks[len(f.hunks)-1]
	kind, rest := " ", ""
	if line != "" { // editors take the space off an empty line
		kind, rest = line[:1], line[1:]
	}
	switch kind {
	case " ":
		h.old, h.new = append(h.old, rest), append(h.new, rest)
	case "-":
		h.old = append(h.old, rest)
	case "+":
		h.new = append(h.new, rest)
	default:
		return fmt.Errorf("%s: line %q is not of a patch", m.Name, line)
	}
	return nil
}

// apply returns the text of each file with the patch. The lines may have moved, but there must be one place only that
// is nearest to where they were.
func (m *mutant) apply(root string) (map[string]string, error) {
	changed := make(map[string]string)
	for _, f := range m.files {
		text, err := os.ReadFile(filepath.Join(root, f.file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		lines := strings.Split(string(text), "\n")
		for _, h := range slices.Backward(f.hunks) {
			at := find(lines, h)
			if at < 0 {
				return nil, fmt.Errorf("%s does not apply to %s, line %d: plant it where its law is kept now: %s", m.Name, f.file, h.line, m.Law)
			}
			lines = slices.Concat(lines[:at], h.new, lines[at+len(h.old):])
		}
		changed[f.file] = strings.Join(lines, "\n")
	}
	return changed, nil
}

// find returns where the old lines of a hunk are, nearest to where they were; -1 if they are not there.
func find(lines []string, h hunk) int {
	best, off := -1, 0
	for at := 0; at+len(h.old) <= len(lines); at++ {
		if d := max(at-h.line+1, h.line-1-at); slices.Equal(lines[at:at+len(h.old)], h.old) && (best < 0 || d < off) {
			best, off = at, d
		}
	}
	return best
}

// read reads all patches of a folder, in the order of their names.
func read(folder string) (all []*mutant, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(name), ".patch"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
