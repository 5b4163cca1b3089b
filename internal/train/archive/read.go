package archive

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// HasFeatures reports whether the Parquet file at path has features that Run wrote, of how many windows and in how many columns.
func HasFeatures(path string) (has bool, windows, columns int, err error) {
	if !strings.HasSuffix(path, ending) {
		return false, 0, 0, nil
	}
	var wrong error
	err = table.ReadSheet(path, metaKey, func(text string, names []string) error {
		if has = text != ""; !has {
			return nil
		}
		m, err := parseMeta(text, names)
		windows, columns = m.Rows, len(names)
		if wrong = err; err == nil && m.Features == nil {
			wrong = fmt.Errorf("it has no features but messages of %s: name files below %s/", m.Topic, featuresFolder)
		}
		return nil
	}, nil)
	if err != nil || !has {
		return false, 0, 0, nil // it is for the reader of tables to say what is wrong with it
	}
	if wrong != nil {
		return false, 0, 0, fmt.Errorf("%s: %w", path, wrong)
	}
	return true, windows, columns, nil
}

// ReadFeatures calls each with the messages of features that the file at path was written of. Their bytes are the same as
// they were on Kafka, but for values that are not numbers.
func ReadFeatures(path string, each func(bus.Message) error) error {
	var r restorer
	rows := 0
	err := table.ReadSheet(path, metaKey, func(text string, columns []string) (err error) {
		m, err := parseMeta(text, columns)
		if err == nil {
			r.form, err = m.Features.open()
		}
		return err
	}, func(row []table.Cell) error {
		rows++
		msg, err := r.message(row)
		if err != nil {
			return fmt.Errorf("row %d: %w", rows, err)
		}
		return each(msg)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (f *form) open() (*window.Form, error) {
	if f == nil {
		return nil, errors.New("it has no features")
	}
	l, err := signal.NewLayout(f.Layout, f.Channels)
	if err != nil {
		return nil, err
	}
	return window.NewForm(l, window.Spec{Length: f.LengthNS}, signal.FeatureSpec{Version: f.Version}, nil)
}

// restorer makes messages of rows.
type restorer struct {
	form *window.Form
	x    window.Features
}

// message returns the message of a row. See common and facts for the order of cells.
func (r *restorer) message(row []table.Cell) (bus.Message, error) {
	want := len(common) + len(facts) + len(r.form.Names()) + r.form.Frames()
	if len(row) != want {
		return bus.Message{}, fmt.Errorf("it has %d cells, expected %d: another release wrote the file", len(row), want)
	}
	f := row[len(common):]
	text := func(i int) string { return string(f[i].ByteArray()) }
	whole := func(i int) int64 { return f[i].Int64() }
	x := &r.x
	*x = window.Features{Form: r.form, Values: x.Values[:0], Frames: x.Frames[:0]}
	x.Context = signal.Context{
		Machine: string(row[0].ByteArray()), Tool: text(0), ToolLife: text(1), Hole: text(2),
		SpindleSpeed: table.NumberIn(f[11]), FeedRate: table.NumberIn(f[12]), Programme: text(13), Material: text(14),
	}
	x.Start, x.Length, x.Seq, x.Session, x.First = time.Unix(0, whole(3)).UTC(), r.form.Length().Length, uint64(whole(5)), whole(6), whole(7)
	x.Level = table.NumberIn(f[10])
	var err error
	if x.Epoch, err = strconv.ParseUint(text(4), 16, 64); err != nil {
		return bus.Message{}, fmt.Errorf("column window.epoch: %w", err)
	}
	for s := range strings.FieldsSeq(text(8)) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return bus.Message{}, fmt.Errorf("column window.rates: %w", err)
		}
		x.Rates = append(x.Rates, v)
	}
	quality, err := hex.DecodeString(text(9))
	if err != nil || len(quality) != len(r.form.Layout().Channels()) {
		return bus.Message{}, fmt.Errorf("column window.quality is %q: expected two digits for each channel", text(9))
	}
	for _, q := range quality {
		x.Quality = append(x.Quality, signal.Quality(q))
	}
	for i, c := range f[len(facts):] {
		if i < len(r.form.Names()) {
			x.Values = append(x.Values, table.SingleIn(c))
		} else {
			x.Frames = append(x.Frames, table.SingleIn(c))
		}
	}
	e, err := r.form.Seal(x)
	if err != nil {
		return bus.Message{}, err
	}
	m := envelope.Features(e, envelope.Extractor(text(15)), whole(16))
	m.Partition, m.Offset, m.Time = int(row[1].Int64()), row[2].Int64(), time.Unix(0, row[3].Int64()).UTC()
	return m, nil
}
