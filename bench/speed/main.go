//go:build unix

// Command speed compares this project with its peers and writes
// docs/figures/performance.md. Run it by make peers-bench, which installs the peers.
//
// A peer is a process that is asked, over a pipe, to do something and to say how
// long it took. Both sides of a comparison are asked in turn, and what is quoted
// is the median of the rounds and the median of the ratios of a round. This
// program is a peer too, once for each family of kernels.
package main

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/bench/study/stat"
)

func main() { command.Main("speed", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if slices.Equal(args, []string{"worker"}) {
		return work(os.Stdin, stdout)
	}
	flags := command.Flags("speed", stderr)
	openblas := flags.String("openblas", "", "program made from openblas/peer.c")
	interpreter := flags.String("python", "", "Python with the packages of requirements.txt")
	script := flags.String("script", "speed/peer.py", "the Python peer")
	rounds := flags.Int("rounds", 5, "rounds of every race")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &bench{ctx: ctx, rounds: *rounds, log: stderr}
	defer func() {
		for _, p := range b.peers {
			p.stop()
		}
	}()
	if err := b.start(*openblas, *interpreter, *script); err != nil {
		return err
	}
	for _, section := range []func() error{b.gemm, b.training, b.costs, b.scale, b.online} {
		if err := section(); err != nil {
			return err
		}
	}
	return b.write(stdout)
}

// bench is a run: its peers and what it found.
type bench struct {
	ctx    context.Context
	rounds int
	log    io.Writer

	peers    map[string]*peer // by name
	versions []string

	goals  []goal
	tables strings.Builder // Markdown
}

type goal struct {
	What, Want, Got string
	Held            bool
}

// The peers: this program, by kernel family; OpenBLAS on one thread, on two, and on one with its Haswell kernels; and Python.
const (
	ours, oursAVX2, oursPortable    = "ours", "ours, AVX2", "ours, portable"
	openBLAS, openBLAS2, blasNarrow = "OpenBLAS", "OpenBLAS, 2 threads", "OpenBLAS, Haswell"
	python                          = "Python"
)

// start starts the peers whose programs are named, and asks for their versions.
func (b *bench) start(openblas, interpreter, script string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.peers = make(map[string]*peer)
	for _, p := range []struct {
		name    string
		env     []string
		command []string
	}{
		{ours, nil, []string{self, "worker"}},
		{oursAVX2, []string{"FLANK_KERNEL=avx2"}, []string{self, "worker"}},
		// gonum would spread products of more than a few blocks over all processors.
		{oursPortable, []string{"FLANK_KERNEL=go", "GOMAXPROCS=1"}, []string{self, "worker"}},
		{openBLAS, []string{"OPENBLAS_NUM_THREADS=1"}, []string{openblas}},
		{openBLAS2, []string{"OPENBLAS_NUM_THREADS=2"}, []string{openblas}},
		{blasNarrow, []string{"OPENBLAS_NUM_THREADS=1", "OPENBLAS_CORETYPE=Haswell"}, []string{openblas}},
		{python, []string{"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=2"}, []string{interpreter, script}},
	} {
		if b.peers[p.name], err = start(p.name, p.env, p.command...); err != nil {
			delete(b.peers, p.name)
			return err
		}
		version, err := b.peers[p.name].ask("version")
		if err != nil {
			return err
		}
		b.versions = append(b.versions, p.name+": "+version)
	}
	return nil
}

// race asks every contender in turn, for a number of rounds, so that other
// work on the machine slows all of them alike. It returns their times by the clock and of the processor.
func (b *bench) race(rounds int, contenders ...contender) (t [2]times, err error) {
	for _, c := range contenders {
		fmt.Fprintf(b.log, "  %s: %s\n", c.peer, c.request)
	}
	for range rounds {
		for i, c := range contenders {
			answer, err := b.peers[c.peer].time(c.request)
			if err = cmp.Or(b.ctx.Err(), err); err != nil {
				return t, err
			}
			for which := range t {
				if len(t[which]) <= i {
					t[which] = append(t[which], nil)
				}
				t[which][i] = append(t[which][i], answer[which])
			}
		}
	}
	return t, nil
}

func (b *bench) goal(held bool, what, want, format string, args ...any) {
	b.goals = append(b.goals, goal{what, want, fmt.Sprintf(format, args...), held})
}

// atMost notes a ratio and whether, as printed, it is at most limit.
func (b *bench) atMost(what string, limit, got float64) {
	b.goal(math.Round(100*got) <= 100*limit, what, fmt.Sprintf("≤ %.4g×", limit), "%.2f×", got)
}

// atLeast notes a ratio and whether it is at least limit.
func (b *bench) atLeast(what string, limit, got float64) {
	b.goal(got >= limit, what, fmt.Sprintf("≥ %.4g×", limit), "%.3g×", got)
}

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(&b.tables, format, args...) }

//go:embed performance.md.tmpl
var page string

func (b *bench) write(w io.Writer) error {
	_, err := io.WriteString(w, document.Fill(page, map[string]any{"Machine": machine(), "Versions": b.versions, "Goals": b.goals, "Tables": b.tables.String()}, nil))
	return err
}

// machine returns the day, and what this computer is and does.
func machine() string {
	text := fmt.Sprintf("%s, %d CPUs (%s), Go %s, %s/%s", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), cpuid.CPU.BrandName, strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS, runtime.GOARCH)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		text += fmt.Sprintf("; programs that wanted a CPU, mean of 1, 5 and 15 minutes: %s. Where that is well above 1, figures by the clock say little", strings.Join(strings.Fields(string(load))[:3], ", "))
	}
	return text
}

// peer is one side of a comparison: a process that answers each request, a line
// of words, with a line of numbers. The first two are the wall and the processor
// seconds of what was asked for; before the first answer to a request it makes
// its data, and does what was asked once without the clock.
type peer struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// start starts a peer with the given additions to the environment.
func start(name string, env []string, command ...string) (*peer, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &peer{name, cmd, in, bufio.NewReader(out)}, nil
}

func (p *peer) ask(request string) (string, error) {
	if _, err := fmt.Fprintln(p.in, request); err != nil {
		return "", fmt.Errorf("%s: %w", p.name, err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: no answer to %q: %w", p.name, request, err)
	}
	line = strings.TrimSpace(line)
	if text, ok := strings.CutPrefix(line, "error: "); ok {
		return "", fmt.Errorf("%s: %q: %s", p.name, request, text)
	}
	return line, nil
}

func (p *peer) time(request string) ([]float64, error) {
	line, err := p.ask(request)
	if err != nil {
		return nil, err
	}
	var numbers []float64
	for _, word := range strings.Fields(line) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: answer to %q: %w", p.name, request, err)
		}
		numbers = append(numbers, v)
	}
	if len(numbers) < 2 {
		return nil, fmt.Errorf("%s: answer to %q: %q has no two numbers", p.name, request, line)
	}
	return numbers, nil
}

// stop ends the peer, which does so when its input ends.
func (p *peer) stop() {
	p.in.Close()
	_ = p.cmd.Wait() // how it ends says nothing about what it measured
}

// Which of a peer's numbers counts.
const (
	wall = iota
	cpu
)

type contender struct{ peer, request string }

// times holds the seconds of every contender in every round.
type times [][]float64

func (t times) median(i int) float64 { return stat.Median(t[i]) }

func (t times) least(i int) float64 { return slices.Min(t[i]) }

// ratio returns the median over the rounds of the time of contender i divided by
// contender j's.
func (t times) ratio(i, j int) float64 {
	r := make([]float64, len(t[i]))
	for round := range r {
		r[round] = t[i][round] / t[j][round]
	}
	return stat.Median(r)
}
