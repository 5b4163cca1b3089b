// Mutants plants faults in the code that ships, one at a time, and looks for what finds them: the tests of the room that
// keeps the promise, and the simulation. Tests that cannot fail prove nothing.
//
//	go run -C bench ./mutants -rooms -simulation 200 -report ../docs/figures/mutants.md
//	go run -C bench ./mutants -only 17 -rooms
//
// Each fault is a patch in bench/mutants/patches. The tree stays as it is: the go tool reads changed copies
// through -overlay. A patch that does not apply any more ends the program: a refactoring must move it to where its law
// is kept now. Scores are kept in bench/mutants/scores.json, so that a part of them can be measured
// again. `make mutants` calls it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/document"
)

const (
	repository = ".."
	patches    = "mutants/patches"
	kept       = "mutants/scores.json"
)

func main() { command.Main("mutants", start) }

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := command.Flags("mutants", stderr)
	only := flags.String("only", "", "numbers of mutants, with commas between them; none: all")
	rooms := flags.Bool("rooms", false, "run the tests of each mutant's room")
	seeds := flags.Int("simulation", 0, "run so many `seeds` of the simulation")
	report := flags.String("report", "", "`file` of the page whose tables are replaced, instead of printing them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := read(patches)
	if err != nil {
		return err
	}
	return run(ctx, all, command.List(*only), *rooms, *seeds, *report, stdout)
}

// score is what became of a mutant. An empty string: not measured; "-": it lives; else what found it.
type score struct {
	Room       string `json:"room,omitempty"`
	Oracle     string `json:"oracle,omitempty"`
	Simulation string `json:"simulation,omitempty"`
	Seeds      int    `json:"seeds,omitempty"` // of the simulation
}

// lives says in a score that nothing has found the mutant.
const lives = "-"

func killed(by string) bool { return by != "" && by != lives }

// survivor reports whether everything was asked and nothing found it.
func (s score) survivor() bool {
	return s.Room == lives && !killed(s.Oracle) && s.Simulation == lives
}

func run(ctx context.Context, all []*mutant, only []string, rooms bool, seeds int, report string, stdout io.Writer) error {
	chosen := slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool { return len(only) > 0 && !slices.Contains(only, m.number()) })
	if len(chosen) < len(only) {
		return fmt.Errorf("-only %s: there are %d of these", only, len(chosen))
	}
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	l := &lab{tmp: tmp, seeds: seeds}
	for _, m := range all {
		if _, err := l.overlay(m); err != nil {
			return err
		}
	}
	scores, err := readScores()
	if err != nil {
		return err
	}
	if rooms || seeds > 0 {
		if err := l.measure(ctx, chosen, scores, rooms); err != nil {
			return err
		}
	}
	if err := document.Put(stdout, report, "mutants", tables(all, scores)); err != nil {
		return err
	}
	var alive []string
	for _, m := range chosen {
		if scores[m.Name].survivor() {
			alive = append(alive, m.Name)
		}
	}
	if len(alive) > 0 {
		return fmt.Errorf("nothing finds %s: a law without a test", strings.Join(alive, ", "))
	}
	return nil
}

// measure asks the rooms and the simulation about each mutant, and keeps the scores as they come.
func (l *lab) measure(ctx context.Context, chosen []*mutant, scores map[string]score, rooms bool) error {
	if err := l.unchanged(ctx, chosen, rooms); err != nil {
		return err
	}
	for i, m := range chosen {
		s, began := scores[m.Name], time.Now()
		if err := l.judge(ctx, m, rooms, &s); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%d of %d, %s: room %s, oracle %s, simulation %s (%v)\n", i+1, len(chosen), m.Name, say(s.Room, "not asked"), say(s.Oracle, "not asked"), say(s.Simulation, "not asked"), time.Since(began).Round(time.Second))
		scores[m.Name] = s
		if err := writeScores(scores); err != nil {
			return err
		}
	}
	return nil
}

func readScores() (map[string]score, error) {
	scores := make(map[string]score)
	text, err := os.ReadFile(filepath.FromSlash(kept))
	if errors.Is(err, fs.ErrNotExist) {
		return scores, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &scores)
	}
	return scores, err
}

func writeScores(scores map[string]score) error {
	text, err := json.MarshalIndent(scores, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.FromSlash(kept), append(text, '\n'), 0o644)
}

// say returns an answer of a score in words.
func say(by, none string) string {
	if by == lives {
		return "**lives**"
	}
	return cmp.Or(by, none)
}

func tables(all []*mutant, scores map[string]score) string {
	var b strings.Builder
	var room, oracle, simulation, reachable, either, seeds int
	for _, m := range all {
		s := scores[m.Name]
		count := func(n *int, yes bool) {
			if yes {
				*n++
			}
		}
		seeds = max(seeds, s.Seeds)
		count(&room, killed(s.Room) || killed(s.Oracle))
		count(&oracle, killed(s.Oracle))
		count(&simulation, killed(s.Simulation))
		count(&reachable, m.reachable())
		count(&either, killed(s.Room) || killed(s.Oracle) || killed(s.Simulation))
	}
	fmt.Fprintf(&b, "\n| found by | mutants | of | goal |\n|---|---:|---:|---:|\n")
	fmt.Fprintf(&b, "| anything | %d | %d | 40 |\n| the tests of their rooms | %d | %d | 36 |\n", either, len(all), room, len(all))
	fmt.Fprintf(&b, "| `TestFollowsOracle`, which is one of these tests | %d | %d | |\n", oracle, len(all))
	if seeds > 0 {
		fmt.Fprintf(&b, "| %d seeds of the simulation, which can reach %d | %d | %d | 30 |\n\n", seeds, reachable, simulation, len(all))
	} else {
		fmt.Fprintf(&b, "| the simulation, which can reach %d | not measured | %d | 30 |\n\n", reachable, len(all))
	}
	b.WriteString("| mutant | breaks | law | test of the room | oracle | simulation |\n|---|---|---|---|---|---|\n")
	for _, m := range all {
		s := scores[m.Name]
		sim := say(s.Simulation, "")
		if why, no := strings.CutPrefix(m.Simulation, "no: "); no && !killed(s.Simulation) {
			sim = "cannot: " + why
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", m.Name, m.Breaks, m.Law, say(s.Room, ""), say(s.Oracle, ""), sim)
	}
	b.WriteString("\n")
	return b.String()
}
