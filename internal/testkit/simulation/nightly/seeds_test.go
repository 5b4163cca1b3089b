package nightly

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("seed", 1, "the first seed, or the one to run")
	seedsFlag   = flag.Int("seeds", 0, "how many seeds TestSeeds runs; 0: it is skipped")
	windowsFlag = flag.Int("windows", 300, "windows of each machine")
	overlayFlag = flag.String("overlay-hash", "unknown", "hash of the changes of the Go runtime, for the report of a seed that fails")
	mutantFlag  = flag.String("mutant", "", "name of the mutant that changes the protocol on the wire; empty: none")
	storyFlag   = flag.String("story", "", "file for everything that happens in the last run of a seed")
)

// TestSeed runs one seed in this process. TestSeeds starts a process for each run, so that two runs
// differ only in their seed.
func TestSeed(t *testing.T) {
	if !changedRuntime {
		t.Skip("needs a changed Go runtime: use `make simulate-real SEEDS=1 SEED=…`")
	}
	var all *bufio.Writer
	if *storyFlag != "" {
		f, err := os.Create(*storyFlag)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all = bufio.NewWriter(f)
		defer all.Flush()
	}
	began := time.Now()
	o := simulate(t, *seedFlag, *windowsFlag, mutantOf(t, *mutantFlag), all)
	fmt.Printf("%s%s%s%.1f s\n", outcomeMark, o, tookMark, time.Since(began).Seconds())
}

// A process prints the outcome of its seed between these marks.
const (
	outcomeMark = "outcome: "
	tookMark    = ", took "
)

// childFlags are the settings under which one seed gives one run.
var childFlags = []string{"GODEBUG=memprofilerate=0,asyncpreemptoff=1", "GOMAXPROCS=1", "GOGC=off"}

// seedPatience is how long a run may take before TestSeeds calls it stuck. It usually takes
// seconds.
const seedPatience = 10 * time.Minute

// TestSeeds runs every seed twice, each time in a new process, and compares the two runs. A seed
// that fails prints its story, and how to run it again.
func TestSeeds(t *testing.T) {
	if !changedRuntime || *seedsFlag == 0 {
		t.Skip("needs a changed Go runtime and -seeds: use `make simulate-real SEEDS=100`")
	}
	began, runs := time.Now(), *seedsFlag
	for seed := *seedFlag; seed < *seedFlag+uint64(runs); seed++ {
		var outcomes [2]string
		for i := range outcomes {
			out, err := runSeed(seed, *mutantFlag)
			if outcomes[i] = outcomeOf(out); err != nil || outcomes[i] == "" {
				t.Fatalf("%s\nseed %d: %v\n%s", out, seed, err, circumstances(seed))
			}
		}
		if outcomes[0] != outcomes[1] {
			t.Fatalf("seed %d gives two runs:\n%s\n%s\n%s", seed, outcomes[0], outcomes[1], circumstances(seed))
		}
		fmt.Printf("seed %d: %s\n", seed, outcomes[0])
	}
	took := time.Since(began)
	fmt.Printf("%d seeds hold, each run twice with equal stories: %.2f seeds/s in %v\n", runs, float64(runs)/took.Seconds(), took.Round(time.Second))
}

// runSeed runs a seed in a new process, with the mutant of that name if not empty, and returns its
// output.
func runSeed(seed uint64, mutant string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), seedPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", "^TestSeed$", "-test.timeout", "0", "-seed", fmt.Sprint(seed), "-windows", fmt.Sprint(*windowsFlag), "-mutant", mutant, "-story", *storyFlag)
	cmd.Env = append(os.Environ(), childFlags...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it prints the stacks of its goroutines
	cmd.WaitDelay = 10 * time.Second
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("it is stuck: no end within %v", seedPatience)
	}
	return string(b), err
}

// outcomeOf returns the line with the outcome of a run, without its duration; empty if there is
// none.
func outcomeOf(out string) string {
	for line := range strings.Lines(out) {
		if o, ok := strings.CutPrefix(line, outcomeMark); ok {
			o, _, _ = strings.Cut(o, tookMark)
			return o
		}
	}
	return ""
}

// circumstances returns the settings of a run and how to repeat it.
func circumstances(seed uint64) string {
	commit := "unknown"
	if b, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output(); err == nil {
		commit = strings.TrimSpace(string(b))
	}
	mutant := ""
	if *mutantFlag != "" {
		mutant = fmt.Sprintf(" MUTANT=%q", *mutantFlag)
	}
	return fmt.Sprintf("commit %s, %s, overlay %s, %s, -windows %d\nrun it again with: make simulate-real SEED=%d SEEDS=1%s",
		commit, runtime.Version(), *overlayFlag, strings.Join(childFlags, " "), *windowsFlag, seed, mutant)
}
