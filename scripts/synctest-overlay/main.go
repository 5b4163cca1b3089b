// Synctest-overlay writes a Go runtime in which a testing/synctest bubble runs the same
// way every time, as files for `go build -overlay`. internal/testkit/simulation/nightly needs it.
//
// Each change replaces a text that must be in the runtime's source exactly once. The program
// refuses a new release of Go until a person has checked the changes and raised goRelease:
// the same text may have another meaning there.
//
//	go run ./scripts/synctest-overlay -o DIR
//
// writes DIR/overlay.json, the changed files, and DIR/hash, the SHA-256 of the changes.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goRelease is the release of Go that the changes were written and tested for.
const goRelease = "go1.26"

// change replaces text in a file of the runtime.
type change struct {
	file, why, old, new string
}

var changes = []change{
	{
		"synctest.go", "each bubble has its own random numbers, from the seed of the simulation",
		"	done    bool   // true if main has exited\n",
		"	done    bool   // true if main has exited\n" +
			"	random  uint64 // state of the bubble's random numbers; 0: it has none\n",
	},
	{
		"synctest.go", "the simulation seeds them",
		"// changegstatus is called when the non-lock status of a g changes.\n",
		`//go:linkname simulationSeed
func simulationSeed(seed uint64) { getg().bubble.random = seed | 1 }

// simulated is whether this process runs a simulation: then nothing but the program's own
// waiting takes a goroutine off the processor.
var simulated bool

//go:linkname simulationAlone
func simulationAlone() { simulated = true }

// nextRandom is SplitMix64.
//
//go:nosplit
func (bubble *synctestBubble) nextRandom() uint64 {
	bubble.random += 0x9e3779b97f4a7c15
	z := bubble.random
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// changegstatus is called when the non-lock status of a g changes.
`,
	},
	{
		"rand.go", "every process hashes strings in the same way",
		"	globalRand.state.Init(*seed)\n",
		"	*seed = [32]byte{1}\n	globalRand.state.Init(*seed)\n",
	},
	{
		"rand.go", "select, maps and math/rand draw from the bubble",
		"func rand() uint64 {\n",
		"func rand() uint64 {\n	if b := getg().bubble; b != nil && b.random != 0 {\n		return b.nextRandom()\n	}\n",
	},
	{
		"rand.go", "maps that were made outside the bubble are the same in every process",
		"func maps_rand() uint64 {\n",
		"func maps_rand() uint64 {\n	if getg().bubble == nil {\n		return 0x9e3779b97f4a7c15\n	}\n",
	},
	{
		"rand.go", "the scheduler and timers draw from the bubble",
		"func cheaprand() uint32 {\n",
		"func cheaprand() uint32 {\n	if b := getg().bubble; b != nil && b.random != 0 {\n		return uint32(b.nextRandom() >> 32)\n	}\n",
	},
	{
		"runtime2.go", "time goes on while a goroutine waits for a mutex that another goroutine holds during a call",
		"	waitReasonChanReceiveNilChan:    true,\n",
		"	waitReasonChanReceiveNilChan:    true,\n	waitReasonSyncMutexLock:         true,\n	waitReasonSyncRWMutexRLock:      true,\n	waitReasonSyncRWMutexLock:       true,\n",
	},
	{
		"sema.go", "unlocking a mutex hands it over: two goroutines that exchange a mutex must not starve a third",
		"func semrelease1(addr *uint32, handoff bool, skipframes int) {\n",
		"func semrelease1(addr *uint32, handoff bool, skipframes int) {\n	if b := getg().bubble; b != nil && b.random != 0 {\n		handoff = true\n	}\n",
	},
	{
		"proc.go", "no goroutine loses the processor because of real time",
		"func retake(now int64) uint32 {\n",
		"func retake(now int64) uint32 {\n	if simulated {\n		return 0\n	}\n",
	},
}

func main() {
	out := flag.String("o", "", "folder to write to")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "synctest-overlay:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	if out == "" {
		return fmt.Errorf("the folder is missing: set -o")
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	root, version, err := installed()
	if err != nil {
		return err
	}
	if err := checkRelease(version); err != nil {
		return err
	}
	dir := filepath.Join(root, "src", "runtime")
	changed, err := apply(changes, func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, file)) })
	if err != nil {
		return fmt.Errorf("%s: %w", version, err)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	replace := make(map[string]string)
	for file, text := range changed {
		to := filepath.Join(out, file)
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return err
		}
		replace[filepath.Join(dir, file)] = to
	}
	overlay, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "overlay.json"), overlay, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "hash"), []byte(hash(changes)), 0o644)
}

// installed returns the folder and the version of Go.
func installed() (root, version string, err error) {
	b, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return "", "", fmt.Errorf("go env: %w", err)
	}
	root, version, _ = strings.Cut(strings.TrimSpace(string(b)), "\n")
	return root, version, nil
}

// checkRelease returns an error for a release of Go that the changes were not tested with.
func checkRelease(version string) error {
	if version == goRelease || strings.HasPrefix(version, goRelease+".") {
		return nil
	}
	return fmt.Errorf("%s is installed, and the changes of the runtime were written for %s: look at each of them in scripts/synctest-overlay/main.go, then raise goRelease there", version, goRelease)
}

// apply makes changes in the files that read returns. It returns an error if a text does not
// occur exactly once.
func apply(changes []change, read func(file string) ([]byte, error)) (map[string]string, error) {
	changed := make(map[string]string)
	for _, c := range changes {
		text, ok := changed[c.file]
		if !ok {
			b, err := read(c.file)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, c.old); n != 1 {
			return nil, fmt.Errorf("runtime/%s: this text occurs %d times instead of once, for the change %q: correct the change in scripts/synctest-overlay/main.go\n%s", c.file, n, c.why, c.old)
		}
		changed[c.file] = strings.Replace(text, c.old, c.new, 1)
	}
	return changed, nil
}

// hash returns a hash that identifies a set of changes.
func hash(changes []change) string {
	h := sha256.New()
	for _, c := range changes {
		fmt.Fprintf(h, "%q %q %q\n", c.file, c.old, c.new)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
