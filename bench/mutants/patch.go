package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is one planted fault: a patch in the unified format behind a header of lines "Name: text".
type mutant struct {
	Name       string // of its file, without the ending
	Breaks     string // what goes wrong with it
	Law        string // promise that it breaks, and the document that gives it
	Room       string // folder of the package whose tests must kill it
	Simulation string // "yes", or "no: " and why the simulation cannot reach the place
	patch      string
}

// reachable reports whether the simulation can reach the place.
func (m *mutant) reachable() bool { return m.Simulation == "yes" }

// number is what -only takes.
func (m *mutant) number() string { n, _, _ := strings.Cut(m.Name, "-"); return n }

// form is what a patch looks like. Editors take the space off an empty line.
var form = regexp.MustCompile(`^(--- a/.+\n\+\+\+ b/.+\n(@@ -\d+(,\d+)? \+\d+(,\d+)? @@.*\n(([ +-].*)?\n)+)+)+$`)

var changes = regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`)

// files returns the names of the files that the patch changes, from the root of the repository.
func (m *mutant) files() (names []string) {
	for _, found := range changes.FindAllStringSubmatch(m.patch, -1) {
		names = append(names, found[1])
	}
	return names
}

// parse reads a patch.
func parse(name, text string) (*mutant, error) {
	head, body, _ := strings.Cut(text, "\n\n")
	m := &mutant{Name: name, patch: body}
	fields := map[string]*string{"Breaks": &m.Breaks, "Law": &m.Law, "Room": &m.Room, "Simulation": &m.Simulation}
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
	if !form.MatchString(body) {
		return nil, fmt.Errorf("%s: behind its header and an empty line there is no patch in the unified format", name)
	}
	return m, nil
}

// apply writes the files that the patch changes to a folder. git finds the lines nearest to where they were.
func (m *mutant) apply(root, folder string) error {
	for _, file := range m.files() {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			err = os.MkdirAll(filepath.Join(folder, filepath.Dir(file)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, file), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	git := exec.Command("git", "apply", "--recount", "--unidiff-zero")
	git.Dir, git.Stdin = folder, strings.NewReader(m.patch)
	if out, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not apply: plant it where its law is kept now: %s: %w\n%s", m.Name, m.Law, err, out)
	}
	return nil
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
