package record

import (
	"bufio"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// csvFile is a table of text: times in RFC 3339, a cell that is empty where a
// value is not known, numbers with as many digits as a float32 has. An infinity is
// written as +Inf or -Inf, which package source refuses as no number.
type csvFile struct {
	file *os.File
	out  *bufio.Writer
	rate float64
	row  []byte
}

func newCSV(f *os.File, channels []signal.Channel) *csvFile {
	c := &csvFile{file: f, out: bufio.NewWriterSize(f, 1<<16), rate: channels[0].Rate}
	_, _ = c.out.WriteString(joined(slices.Concat(before, names(channels), behind)) + "\n") // it keeps the error for Flush
	return c
}

func names(channels []signal.Channel) []string {
	var ns []string
	for _, c := range channels {
		ns = append(ns, c.Name)
	}
	return ns
}

// joined returns cells as they stand in the middle of a row.
func joined(cells []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(cells) // a builder takes all
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

func (c *csvFile) write(b *source.Block) error {
	context := joined([]string{b.Machine, b.Tool, b.Hole, known(b.SpindleSpeed, b.SpindleSpeed != 0)})
	last, label := source.Truth{}, ""
	for i := range b.Len() {
		if t := truth(b, i); i == 0 || t != last {
			last = t
			label = joined([]string{known(t.VBMeanUM, t.VBMeanUM == t.VBMeanUM), known(t.VBMaxUM, t.VBMaxUM == t.VBMaxUM), t.State, t.Phase})
		}
		c.row = at(b, i, c.rate).UTC().AppendFormat(c.row[:0], time.RFC3339Nano)
		c.row = append(append(append(c.row, ','), context...), ',')
		for _, x := range b.Samples {
			if v := x[i]; v == v {
				c.row = strconv.AppendFloat(c.row, float64(v), 'g', -1, 32)
			}
			c.row = append(c.row, ',')
		}
		c.row = append(append(c.row, label...), '\n')
		if _, err := c.out.Write(c.row); err != nil {
			return wrong(err)
		}
	}
	return nil
}

func (c *csvFile) close() error {
	return wrong(errors.Join(c.out.Flush(), c.file.Close()))
}

// at returns the sensor time of sample i of b.
func at(b *source.Block, i int, rate float64) time.Time {
	return b.Time.Add(time.Duration(math.Round(float64(i) / rate * 1e9)))
}

// truth returns what is known at sample i of b.
func truth(b *source.Block, i int) source.Truth {
	switch len(b.Truth) {
	case 0:
		return source.NoTruth
	case 1:
		return b.Truth[0]
	}
	return b.Truth[i]
}

// known returns v as text, and nothing if it is not known.
func known(v float64, is bool) string {
	if !is {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
