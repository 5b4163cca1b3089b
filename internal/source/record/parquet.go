package record

import (
	"errors"
	"os"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table/cells"
	"github.com/flank-tcm/flank/pkg/signal"
)

// parquetFile is a table of columns: time as a timestamp in nanoseconds, names as
// text, samples as numbers of 32 bits and the rest of 64. All but time may be null.
type parquetFile struct {
	file *os.File
	out  *cells.SheetWriter
	rate float64
	row  []cells.Cell
}

func newParquet(f *os.File, channels []signal.Channel) *parquetFile {
	var columns []cells.SheetColumn
	for _, name := range before {
		columns = append(columns, cells.SheetColumn{Name: name}) // of text
	}
	columns[0].Kind, columns[0].Whole, columns[len(before)-1].Kind = cells.SheetTime, true, cells.SheetNumber
	for _, c := range channels {
		columns = append(columns, cells.SheetColumn{Name: c.Name, Kind: cells.SheetSingle})
	}
	for i, name := range behind {
		columns = append(columns, cells.SheetColumn{Name: name, Kind: []cells.SheetKind{cells.SheetNumber, cells.SheetNumber, cells.SheetText, cells.SheetText}[i]})
	}
	return &parquetFile{file: f, rate: channels[0].Rate, out: cells.NewSheetWriter(f, "recording", columns)}
}

func (p *parquetFile) write(b *source.Block) error {
	var speed cells.Cell
	if b.SpindleSpeed != 0 {
		speed = cells.NumberCell(b.SpindleSpeed)
	}
	for i := range b.Len() {
		p.row = append(p.row[:0], cells.IntegerCell(at(b, i, p.rate).UnixNano()), cells.TextCell(b.Machine), cells.TextCell(b.Tool), cells.TextCell(b.Hole), speed)
		for _, x := range b.Samples {
			p.row = append(p.row, cells.SingleCell(x[i]))
		}
		t := truth(b, i)
		p.row = append(p.row, cells.NumberCell(t.VBMeanUM), cells.NumberCell(t.VBMaxUM), cells.TextCell(t.State), cells.TextCell(t.Phase))
		if err := p.out.Write(p.row); err != nil {
			return wrong(err)
		}
	}
	return nil
}

func (p *parquetFile) close() error {
	return wrong(errors.Join(p.out.Close("", ""), p.file.Close()))
}
