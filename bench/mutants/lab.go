package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	oracle     = "TestFollowsOracle"
	oracleRoom = "internal/machine"
)

// lab runs the go tool with mutants planted.
type lab struct {
	tmp   string
	seeds int
}

// unchanged runs what is asked about mutants without any, which must hold.
func (l *lab) unchanged(ctx context.Context, chosen []*mutant, rooms bool) error {
	if rooms {
		seen := make(map[string]bool)
		for _, m := range chosen {
			if seen[m.Room] {
				continue
			}
			seen[m.Room] = true
			fmt.Fprintf(os.Stderr, "%s without a mutant\n", m.Room)
			switch by, out, err := l.test(ctx, m.Room, "", "-skip", "^"+oracle+"$"); {
			case err != nil:
				return err
			case by != lives:
				return fmt.Errorf("the tests of %s fail without a mutant, by %s:\n%s", m.Room, by, out)
			}
		}
	}
	if l.seeds > 0 {
		fmt.Fprintln(os.Stderr, "the simulation without a mutant")
		switch by, err := l.simulate(ctx, ""); {
		case err != nil:
			return err
		case by != lives:
			return fmt.Errorf("the simulation fails without a mutant: %s", by)
		}
	}
	return nil
}

func (l *lab) judge(ctx context.Context, m *mutant, rooms bool, s *score) error {
	overlay, err := l.overlay(m)
	if err != nil {
		return err
	}
	if rooms {
		if s.Room, _, err = l.test(ctx, m.Room, overlay, "-skip", "^"+oracle+"$"); err != nil {
			return err
		}
		if s.Oracle = ""; m.Room == oracleRoom || m.Room == "pkg/alarm" {
			if s.Oracle, _, err = l.test(ctx, oracleRoom, overlay, "-run", "^"+oracle+"$"); err != nil {
				return err
			}
			if s.Oracle == oracle {
				s.Oracle = "finds it"
			}
		}
	}
	if l.seeds > 0 {
		s.Seeds = l.seeds
		if s.Simulation, err = l.simulate(ctx, overlay); err != nil {
			return err
		}
	}
	return nil
}

// overlay writes the changed files of a mutant, and the list of them for the go tool.
func (l *lab) overlay(m *mutant) (string, error) {
	folder := filepath.Join(l.tmp, m.Name)
	if err := m.apply(repository, folder); err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for _, file := range m.files() {
		real, err := filepath.Abs(filepath.Join(repository, file))
		if err != nil {
			return "", err
		}
		replace[real] = filepath.Join(folder, file)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(l.tmp, m.Name+".json")
	return name, os.WriteFile(name, text, 0o644)
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: ([^\s/]+)`)

// test runs tests of a room, and returns the first one that fails, or lives, and what they print.
func (l *lab) test(ctx context.Context, room, overlay string, more ...string) (by, out string, err error) {
	args := append([]string{"test", "-count=1", "-short", "-failfast", "-vet=off", "-timeout=20m"}, more...)
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	out, err = goTool(ctx, append(args, "./"+room)...)
	switch first := failed.FindStringSubmatch(out); {
	case err == nil:
		return lives, out, nil
	case ctx.Err() != nil:
		return "", out, ctx.Err()
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return "", out, fmt.Errorf("it does not compile:\n%s", out)
	case first != nil:
		return first[1], out, nil
	case strings.Contains(out, "panic: "):
		return "a panic", out, nil
	}
	return "", out, fmt.Errorf("%w\n%s", err, out)
}

// simulate runs seeds of the simulation, and returns after how many one failed, or lives.
func (l *lab) simulate(ctx context.Context, overlay string) (string, error) {
	program := filepath.Join(l.tmp, "simulation"+strings.TrimSuffix(filepath.Base(overlay), ".json"))
	defer os.Remove(program)
	args := []string{"build", "-o", program}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if out, err := goTool(ctx, append(args, "./internal/testkit/simulation/run")...); err != nil {
		return "", fmt.Errorf("the simulation does not compile: %w\n%s", err, out)
	}
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	cmd := exec.CommandContext(ctx, program, "-seeds", fmt.Sprint(l.seeds))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	found := ""
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var first, last uint64
		var ran int
		if n, _ := fmt.Sscanf(lines.Text(), "seeds %d to %d: %d ran", &first, &last, &ran); n == 3 && ran < l.seeds {
			found = fmt.Sprintf("in %d seeds", ran)
			enough() // what follows reduces the seed to its faults, which takes longer
		}
	}
	err = cmd.Wait()
	switch {
	case found != "":
		return found, nil
	case err == nil:
		return lives, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case strings.Contains(stderr.String(), "panic: "):
		return "by a panic", nil
	case cmd.ProcessState.ExitCode() == 1:
		return fmt.Sprintf("in %d seeds", l.seeds), nil
	}
	return "", fmt.Errorf("the simulation: %w\n%s", err, stderr.String())
}

// goTool runs the go tool in the root of the repository, and returns what it prints.
func goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = repository
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}

// mutant is one planted fault: a patch in the unified format behind a header of lines "Name: text".
type mutant struct {
	Name       string // of its file, without the ending
	Breaks     string // what goes wrong with it
	Law        string // promise that it breaks, and the document that gives it
	Room       string // folder of the package whose tests must kill it
	Simulation string // "yes", or "no: " and why the simulation cannot reach the place
	patch      string
}

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
