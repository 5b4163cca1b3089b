//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/bench/study/stat"
)

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

// ask returns the line with which the peer answers.
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

// time returns the numbers with which the peer answers.
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

// contender is the name of a peer and what it is asked for.
type contender struct{ peer, request string }

// times holds the seconds of every contender in every round.
type times [][]float64

// median returns the median seconds of contender i.
func (t times) median(i int) float64 { return stat.Median(t[i]) }

// least returns the least seconds of contender i.
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
