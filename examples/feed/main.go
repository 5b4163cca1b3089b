// Command feed sends samples to `ingest run` over TCP, as schemas/frame.md says.
//
//	go run ./examples/feed --to 127.0.0.1:9110 --rate 100 < table.csv
//
// The table has a line with the names of the channels and a line for each sample, separated
// by commas. In your own program, use Client and count the samples of your sensor.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	to := flag.String("to", "127.0.0.1:9110", "address of the machine")
	rate := flag.Float64("rate", 0, "samples a second")
	length := flag.Duration("frame", 100*time.Millisecond, "length of a frame")
	speed := flag.Float64("speed", 1, "times as fast as a live sensor; 0: as fast as possible")
	tool := flag.String("tool", "", "tool in use")
	flag.Parse()
	c := NewClient(*to)
	samples, err := send(c, os.Stdin, *rate, *length, *speed, *tool)
	left := c.Close(10 * time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, "feed:", err)
		os.Exit(1)
	}
	fmt.Printf("%d samples sent, %d frames not acknowledged\n", samples, left)
}

// send sends a table and returns how many samples it had.
func send(c *Client, in io.Reader, rate float64, length time.Duration, speed float64, tool string) (first int64, err error) {
	if !(rate > 0) {
		return 0, errors.New("--rate: must be positive")
	}
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return 0, errors.New("the table has no line of names")
	}
	names := strings.Split(lines.Text(), ",")
	size := max(1, int(rate*length.Seconds()))
	began := time.Now()
	columns := make([][]float32, len(names))
	flush := func() error {
		n := len(columns[0])
		if n == 0 {
			return nil
		}
		at := began.Add(time.Duration(float64(first) / rate * float64(time.Second)))
		frame, err := Frame(began.UnixNano(), first, at, tool, names, columns)
		if err != nil {
			return err
		}
		if err := c.Send(frame); err != nil {
			return err
		}
		first += int64(n)
		for i := range columns {
			columns[i] = columns[i][:0]
		}
		if speed > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(first) / rate / speed * float64(time.Second)))))
		}
		return nil
	}
	for lines.Scan() {
		cells := strings.Split(lines.Text(), ",")
		if len(cells) != len(names) {
			return first, fmt.Errorf("%q: %d values, there are %d names", lines.Text(), len(cells), len(names))
		}
		for i, cell := range cells {
			v, err := strconv.ParseFloat(cell, 32)
			if err != nil {
				return first, fmt.Errorf("%q is not a number", cell)
			}
			columns[i] = append(columns[i], float32(v))
		}
		if len(columns[0]) == size {
			if err := flush(); err != nil {
				return first, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return first, err
	}
	return first, flush()
}
