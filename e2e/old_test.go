//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// oldPrograms returns the folder of an older release's programs, from FLANK_OLD. The target
// old of the Makefile builds them from git.
func oldPrograms(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("FLANK_OLD")
	if dir == "" {
		t.Skip("FLANK_OLD names no folder with the programs of an older release: use make upgrade")
	}
	for _, name := range []string{"ingest", "monitor", "standalone", "trainer"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startFrom is start with a program from another folder.
func startFrom(t *testing.T, programs, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(filepath.Join(programs, name), args...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}
