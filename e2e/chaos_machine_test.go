//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// brokerName says which broker the rows run against.
func brokerName() string {
	if v := kafkatest.Version(); v != "" {
		return "Apache Kafka " + v
	}
	return "embedded"
}

// commit returns the commit under test.
func commit() string {
	text, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// load returns how many programs wanted a processor in the last minute.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// machineLine describes the machine and the versions.
func machineLine() string {
	model := field("/proc/cpuinfo", "model name")
	memory := "memory unknown"
	if kib, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		memory = fmt.Sprintf("%.0f GiB", kib/(1<<20))
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	java, _ := exec.Command("java", "-version").CombinedOutput()
	javaLine, _, _ := strings.Cut(string(java), "\n")
	return fmt.Sprintf("Machine: %d CPUs (%s), %s, Linux %s. %s, %s/%s; %s; %s.", runtime.NumCPU(), model, memory,
		strings.TrimSpace(string(kernel)), runtime.Version(), runtime.GOOS, runtime.GOARCH, brokerName(), strings.ReplaceAll(javaLine, `"`, ""))
}

// field returns the value of the first line `name : value` of a file, or "".
func field(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// status returns a figure of a running process in KiB, for example VmHWM, the most memory that
// it ever had.
func (p *process) status(name string) (kib int) {
	text := field(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid), name)
	kib, _ = strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(text, "kB")))
	return kib
}

// launch starts a program whose log goes to a file: the log may be long, and the test reads it
// while the program runs.
func (p *plant) launch(log, name string, args ...string) *process {
	p.t.Helper()
	f, err := os.OpenFile(p.file(log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	proc := &process{cmd: exec.Command(filepath.Join(bin, name), args...)}
	proc.cmd.Stdout, proc.cmd.Stderr = f, f
	if err := proc.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = proc.cmd.Process.Kill() })
	return proc
}

// log returns what programs wrote to a file of launch.
func (p *plant) log(name string) string {
	text, _ := os.ReadFile(p.file(name))
	return string(text)
}

// signal sends a signal to p.
func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// processor returns the processor time in seconds that p has taken.
func (p *process) processor() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest) // from the third on, see proc(5)
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100
}

// alive returns an error with the log if the process has ended.
func (p *process) alive() error {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil || strings.Contains(string(state), ") Z ") {
		return fmt.Errorf("%v has ended:\n%s", p.cmd.Args, &p.stderr)
	}
	return nil
}
