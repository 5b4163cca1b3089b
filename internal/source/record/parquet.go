package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table/cells"
	"github.com/flank-tcm/flank/pkg/signal"
)

// parquetFile is a table of columns: time as a timestamp in nanoseconds, names as
// text, samples as numbers of 32 bits and the rest of 64. All but time may be null.
type parquetFile struct {
	file *os.File
	out  *parquet.GenericWriter[any]
	rate float64
	rows []parquet.Row
}

func newParquet(f *os.File, channels []signal.Channel) *parquetFile {
	g := parquet.Group{"time": parquet.Timestamp(parquet.Nanosecond)}
	for _, name := range []string{"machine", "tool", "hole", "state", "phase"} {
		g[name] = cells.ParquetText()
	}
	for _, name := range []string{"spindle_rpm", "vb_mean_um", "vb_max_um"} {
		g[name] = parquet.Optional(parquet.Leaf(parquet.DoubleType))
	}
	for _, c := range channels {
		g[c.Name] = parquet.Optional(parquet.Leaf(parquet.FloatType))
	}
	return &parquetFile{
		file: f, rate: channels[0].Rate,
		out: cells.ParquetWriter(f, "recording", g, slices.Concat(before, names(channels), behind), 1<<18),
	}
}

func (p *parquetFile) write(b *source.Block) error {
	columns := len(before) + len(b.Samples) + len(behind)
	for len(p.rows) < b.Len() {
		p.rows = append(p.rows, make(parquet.Row, columns))
	}
	for i, row := range p.rows[:b.Len()] {
		col := 0
		put := func(v parquet.Value, known bool) {
			cells.SetParquet(row, col, known, v)
			col++
		}
		word := func(s string) { put(parquet.ByteArrayValue([]byte(s)), s != "") }
		number := func(v float64) { put(parquet.DoubleValue(v), v == v) }
		row[0] = parquet.Int64Value(at(b, i, p.rate).UnixNano()).Level(0, 0, 0)
		col = 1
		word(b.Machine)
		word(b.Tool)
		word(b.Hole)
		if b.SpindleSpeed != 0 {
			number(b.SpindleSpeed)
		} else {
			number(math.NaN())
		}
		for _, x := range b.Samples {
			put(parquet.FloatValue(x[i]), x[i] == x[i])
		}
		t := truth(b, i)
		number(t.VBMeanUM)
		number(t.VBMaxUM)
		word(t.State)
		word(t.Phase)
	}
	if _, err := p.out.WriteRows(p.rows[:b.Len()]); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

func (p *parquetFile) close() error {
	if err := errors.Join(p.out.Close(), p.file.Close()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
