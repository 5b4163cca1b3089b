package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/pkg/signal"
)

// arrowRows is how many rows make a record batch, or a block if it has more.
const arrowRows = 1 << 14

// arrowFile is an Arrow IPC file, compressed by LZ4, with the columns and types
// of parquetFile. The metadata of a channel's column state its unit and rate.
type arrowFile struct {
	file *os.File
	out  *ipc.FileWriter
	rate float64
	rows *array.RecordBuilder
	n    int // rows in it
}

func newArrow(f *os.File, channels []signal.Channel) (*arrowFile, error) {
	types := map[string]arrow.DataType{
		"time": &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, "spindle_rpm": arrow.PrimitiveTypes.Float64,
		"vb_mean_um": arrow.PrimitiveTypes.Float64, "vb_max_um": arrow.PrimitiveTypes.Float64,
	}
	var fields []arrow.Field
	fact := func(name string) {
		f := arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: name != "time"}
		if t, ok := types[name]; ok {
			f.Type = t
		}
		fields = append(fields, f)
	}
	for _, name := range before {
		fact(name)
	}
	for _, c := range channels {
		fields = append(fields, arrow.Field{Name: c.Name, Type: arrow.PrimitiveTypes.Float32, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{
			"unit": c.Unit, "rate": strconv.FormatFloat(c.Rate, 'g', -1, 64),
		})})
	}
	for _, name := range behind {
		fact(name)
	}
	schema := arrow.NewSchema(fields, nil)
	out, err := ipc.NewFileWriter(f, ipc.WithSchema(schema), ipc.WithLZ4())
	if err != nil {
		return nil, fmt.Errorf("record: %w", errors.Join(err, f.Close()))
	}
	return &arrowFile{file: f, out: out, rate: channels[0].Rate, rows: array.NewRecordBuilder(memory.DefaultAllocator, schema)}, nil
}

func (a *arrowFile) write(b *source.Block) error {
	col := 0
	next := func() array.Builder {
		col++
		return a.rows.Field(col - 1)
	}
	words := func(of func(i int) string) {
		to := next().(*array.StringBuilder)
		for i := range b.Len() {
			if s := of(i); s != "" {
				to.Append(s)
			} else {
				to.AppendNull()
			}
		}
	}
	numbers := func(of func(i int) float64) {
		to := next().(*array.Float64Builder)
		for i := range b.Len() {
			if v := of(i); v == v {
				to.Append(v)
			} else {
				to.AppendNull()
			}
		}
	}
	times := next().(*array.TimestampBuilder)
	for i := range b.Len() {
		times.Append(arrow.Timestamp(at(b, i, a.rate).UnixNano()))
	}
	words(func(int) string { return b.Machine })
	words(func(int) string { return b.Tool })
	words(func(int) string { return b.Hole })
	speed := b.SpindleSpeed
	if speed == 0 { // not known
		speed = math.NaN()
	}
	numbers(func(int) float64 { return speed })
	for _, x := range b.Samples {
		to := next().(*array.Float32Builder)
		for _, v := range x {
			if v == v {
				to.Append(v)
			} else {
				to.AppendNull()
			}
		}
	}
	numbers(func(i int) float64 { return truth(b, i).VBMeanUM })
	numbers(func(i int) float64 { return truth(b, i).VBMaxUM })
	words(func(i int) string { return truth(b, i).State })
	words(func(i int) string { return truth(b, i).Phase })
	if a.n += b.Len(); a.n >= arrowRows {
		return a.flush()
	}
	return nil
}

// flush writes a record batch.
func (a *arrowFile) flush() error {
	batch := a.rows.NewRecord()
	defer batch.Release()
	a.n = 0
	if err := a.out.Write(batch); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

func (a *arrowFile) close() error {
	var err error
	if a.n > 0 {
		err = a.flush()
	}
	a.rows.Release()
	if err = errors.Join(err, a.out.Close(), a.file.Close()); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
