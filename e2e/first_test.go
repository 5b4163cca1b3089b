//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// firstPage is the page whose commands TestFirstDataSet runs.
const firstPage = "../docs/start/your-first-data-set.md"

// commands is a block of a page: commands of a shell, and lines that they print.
type commands struct {
	line     int    // of the page
	terminal bool   // they go on while the page goes on
	wait     bool   // until they print what they should, as the programs of other terminals take their time
	text     string // of the commands
	prints   []string
}

var fence = regexp.MustCompile("^```(.*)$")

// readCommands returns the blocks of a page that begin with ```sh. Of a block that begins
// with ```text, each line is one that the commands before it print. A line of three dots stands
// for lines that the page leaves out.
func readCommands(page string) []commands {
	var blocks []commands
	info, inside := "", false
	for i, line := range strings.Split(page, "\n") {
		if m := fence.FindStringSubmatch(line); m != nil {
			inside = !inside
			if info = m[1]; inside && strings.HasPrefix(info, "sh") {
				blocks = append(blocks, commands{line: i + 1, terminal: info == "sh terminal", wait: info == "sh wait"})
			}
			continue
		}
		if !inside || len(blocks) == 0 {
			continue
		}
		b := &blocks[len(blocks)-1]
		switch {
		case strings.HasPrefix(info, "sh"):
			b.text += line + "\n"
		case info == "text" && strings.TrimSpace(line) != "" && strings.TrimSpace(line) != "...":
			b.prints = append(b.prints, strings.Join(strings.Fields(line), " "))
		}
	}
	return blocks
}

// missing returns the first line of want that is not in output, in the order of want. Blanks count
// as one.
func missing(output string, want []string) (string, bool) {
	lines := strings.Split(output, "\n")
	for _, w := range want {
		for len(lines) > 0 && !strings.Contains(strings.Join(strings.Fields(lines[0]), " "), w) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return w, true
		}
	}
	return "", false
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) len() int {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Len()
}

// TestFirstDataSet runs every command of the page, in order, in one folder, and compares what
// they print with what the page shows. Ports are free ones of this computer.
func TestFirstDataSet(t *testing.T) {
	data := os.Getenv("FLANK_DATA")
	if data == "" {
		t.Skip("FLANK_DATA is not set: no recordings")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	page, err := os.ReadFile(firstPage)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(data, filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	ports := strings.NewReplacer("127.0.0.1:9092", freeAddr(t), "127.0.0.1:9101", freeAddr(t), "127.0.0.1:9102", freeAddr(t))
	shell := func(text string, out *buffer) *exec.Cmd {
		c := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", text)
		c.Dir, c.Stdout, c.Stderr = dir, out, out
		c.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		return c
	}
	for _, b := range readCommands(ports.Replace(string(page))) {
		out := new(buffer)
		if b.terminal {
			c := shell("exec "+strings.TrimSpace(b.text), out)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			for out.len() == 0 && ctx.Err() == nil { // a person waits for the first line, too
				time.Sleep(50 * time.Millisecond)
			}
			t.Cleanup(func() {
				_ = c.Process.Kill()
				_ = c.Wait()
				if t.Failed() {
					t.Logf("line %d: %s", b.line, out.String())
				}
			})
			continue
		}
		if err := runUntilPrinted(ctx, b, func() error { *out = buffer{}; return shell(b.text, out).Run() }, out); err != nil {
			t.Fatalf("%s:%d: %v\n%s%s", firstPage, b.line, err, b.text, out.String())
		}
		replacePorts(t, dir, ports)
	}
}

// replacePorts replaces the addresses in the configurations that commands have written.
func replacePorts(t *testing.T, dir string, ports *strings.Replacer) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		put(t, path, ports.Replace(string(read(t, path))))
	}
}

// runUntilPrinted runs the commands of a block, and again until they print what the page shows if
// they wait for other terminals.
func runUntilPrinted(ctx context.Context, b commands, run func() error, out *buffer) error {
	for {
		err := run()
		line, miss := missing(out.String(), b.prints)
		switch {
		case err == nil && !miss:
			return nil
		case err == nil:
			err = fmt.Errorf("the page shows %q, and this is not printed", line)
		}
		if !b.wait {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(2 * time.Second):
		}
	}
}
