package record

import (
	"errors"
	"os"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
)

// parquetFile is a table of columns: time as a timestamp in nanoseconds, names as
// text, samples as numbers of 32 bits and the rest of 64. All but time may be null.
type parquetFile struct {
	file *os.File
	out  *table.SheetWriter
	rate float64
	row  []table.Cell
}

func newParquet(f *os.File, channels []signal.Channel) *parquetFile {
	var columns []table.SheetColumn
	for _, name := range before {
		columns = append(columns, table.SheetColumn{Name: name}) // of text
	}
	columns[0].Kind, columns[0].Whole, columns[len(before)-1].Kind = table.SheetTime, true, table.SheetNumber
	for _, c := range channels {
		columns = append(columns, table.SheetColumn{Name: c.Name, Kind: table.SheetSingle})
	}
	for i, name := range behind {
		columns = append(columns, table.SheetColumn{Name: name, Kind: []table.SheetKind{table.SheetNumber, table.SheetNumber, table.SheetText, table.SheetText}[i]})
	}
	return &parquetFile{file: f, rate: channels[0].Rate, out: table.NewSheetWriter(f, "recording", columns)}
}

func (p *parquetFile) write(b *source.Block) error {
	var speed table.Cell
	if b.SpindleSpeed != 0 {
		speed = table.NumberCell(b.SpindleSpeed)
	}
	for i := range b.Len() {
		p.row = append(p.row[:0], table.IntegerCell(at(b, i, p.rate).UnixNano()), table.TextCell(b.Machine), table.TextCell(b.Tool), table.TextCell(b.Hole), speed)
		for _, x := range b.Samples {
			p.row = append(p.row, table.SingleCell(x[i]))
		}
		t := truth(b, i)
		p.row = append(p.row, table.NumberCell(t.VBMeanUM), table.NumberCell(t.VBMaxUM), table.TextCell(t.State), table.TextCell(t.Phase))
		if err := p.out.Write(p.row); err != nil {
			return wrong(err)
		}
	}
	return nil
}

func (p *parquetFile) close() error {
	return wrong(errors.Join(p.out.Close("", ""), p.file.Close()))
}
