package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/labels"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// topic is a topic that is archived: a row here is all that another one takes.
type topic struct {
	folder, name string
	columns      []table.SheetColumn // taken out of a message of JSON; features have their own
	compacted    bool
}

const (
	text    = table.SheetText
	unique  = table.SheetUnique
	integer = table.SheetInteger
	number  = table.SheetNumber
	single  = table.SheetSingle
	at      = table.SheetTime
)

const featuresFolder = "features"

var topics = []topic{
	{folder: featuresFolder, name: bus.TopicFeatures},
	{folder: "results", name: bus.TopicResults, columns: []table.SheetColumn{
		{Name: "group", Kind: text}, {Name: "epoch", Kind: text}, {Name: "seq", Kind: integer}, {Name: "tool", Kind: text}, {Name: "tool_life", Kind: text}, {Name: "hole", Kind: text},
		{Name: "programme", Kind: text}, {Name: "material", Kind: text}, {Name: "start", Kind: at}, {Name: "end", Kind: at}, {Name: "verdict", Kind: text}, {Name: "class", Kind: text},
		{Name: "unknown_reason", Kind: text}, {Name: "cutting_state", Kind: text}, {Name: "score", Kind: number}, {Name: "threshold", Kind: number}, {Name: "novelty", Kind: number},
		{Name: "model", Kind: text}, {Name: "alarm", Kind: text}, {Name: "incident", Kind: text}, {Name: "wear_um", Kind: number}, {Name: "wear_low_um", Kind: number}, {Name: "wear_high_um", Kind: number},
	}},
	{folder: "alerts", name: bus.TopicAlerts, columns: []table.SheetColumn{
		{Name: "group", Kind: text}, {Name: "tool", Kind: text}, {Name: "hole", Kind: text}, {Name: "state", Kind: text}, {Name: "alarm", Kind: text}, {Name: "incident", Kind: text},
		{Name: "severity", Kind: text}, {Name: "since", Kind: at}, {Name: "at", Kind: at}, {Name: "score", Kind: number}, {Name: "model", Kind: text}, {Name: "reason", Kind: text},
		{Name: "by", Kind: text}, {Name: "note", Kind: text}, {Name: "text", Kind: unique},
	}},
	{folder: "labels", name: bus.TopicLabels, compacted: true, columns: []table.SheetColumn{
		{Name: "tool", Kind: text}, {Name: "tool_life", Kind: text}, {Name: "hole", Kind: text}, {Name: "at", Kind: at}, {Name: "until", Kind: at}, {Name: "wear_um", Kind: number},
		{Name: "wear_mean_um", Kind: number}, {Name: "state", Kind: text}, {Name: "method", Kind: text}, {Name: "incident", Kind: text}, {Name: "by", Kind: text}, {Name: "note", Kind: text},
		{Name: "given", Kind: at},
	}},
}

// common are the columns before the others of every topic.
var common = []table.SheetColumn{
	{Name: "machine", Kind: text}, {Name: "kafka_partition", Kind: integer}, {Name: "kafka_offset", Kind: integer}, {Name: "kafka_time", Kind: at},
	{Name: "id", Kind: unique}, {Name: "type", Kind: text}, {Name: "time", Kind: at},
}

// facts are the columns between these and the features.
var facts = []table.SheetColumn{
	{Name: "tool", Kind: text}, {Name: "tool_life", Kind: text}, {Name: "hole", Kind: text}, {Name: "start", Kind: at}, {Name: "window.epoch", Kind: text}, {Name: "window.seq", Kind: integer},
	{Name: "window.session", Kind: integer}, {Name: "window.first", Kind: integer}, {Name: "window.rates", Kind: text}, {Name: "window.quality", Kind: text}, {Name: "window.level", Kind: number},
	{Name: "window.spindle_speed", Kind: number}, {Name: "window.feed_rate", Kind: number}, {Name: "window.programme", Kind: text}, {Name: "window.material", Kind: text},
	{Name: "window.extracted", Kind: text}, {Name: "window.offset", Kind: integer},
}

// kind is what the rows of a file have in common.
type kind struct {
	fingerprint string // of the columns; of features the fingerprint of their form
	columns     []table.SheetColumn
	form        *window.Form // nil: not features
	features    *form        // what a file says of it
}

// row is a message to be written.
type row struct {
	machine, day string
	offset       int64
	received     time.Time // by Kafka
	kind         *kind
	cells        []table.Cell
}

// reader makes rows of the messages of a topic.
type reader struct {
	topic   topic
	layouts []*signal.Layout
	kinds   map[string]*kind // by fingerprint
	json    *kind
	lives   labels.Lives
}

// unknownLayout is returned for features of which no layout is known.
type unknownLayout struct{ Machine, Layout, Why string }

func (u *unknownLayout) Error() string {
	return fmt.Sprintf("features of machine %s, layout %.32q: %s: name the machine's layout file with --layout, so that columns have names, or leave such messages out with --skip-unknown", u.Machine, u.Layout, u.Why)
}

func newReader(t topic, layouts []*signal.Layout) *reader {
	r := &reader{topic: t, layouts: layouts, kinds: make(map[string]*kind)}
	if t.columns == nil {
		return r
	}
	all := slices.Concat(common, t.columns, []table.SheetColumn{{Name: "message", Kind: unique}})
	sum := sha256.Sum256(fmt.Append(nil, all))
	r.json = &kind{fingerprint: hex.EncodeToString(sum[:8]), columns: all}
	return r
}

// read makes a row of a message.
func (r *reader) read(m *bus.Message) (row, error) {
	happened := m.Time
	if t, err := time.Parse(time.RFC3339Nano, string(m.Header("ce_time"))); err == nil {
		happened = t
	}
	machine, _, _ := strings.Cut(m.Key, "\x1f") // a label's key goes on with its tool
	w := row{machine: machine, day: happened.UTC().Format(dayForm), offset: m.Offset, received: m.Time}
	switch {
	case w.machine == "":
		return w, errors.New("it names no machine")
	case len(escape(w.machine)) > maxFolder:
		return w, fmt.Errorf("the name of machine %.64q is too long for a folder", w.machine)
	case happened.UTC().Year() < 1678 || happened.UTC().Year() > 2261:
		return w, fmt.Errorf("its time %v is outside the years 1678 to 2261", happened)
	}
	w.cells = []table.Cell{
		table.TextCell(w.machine), table.IntegerCell(int64(m.Partition)), table.IntegerCell(m.Offset), timeCell(m.Time),
		table.TextCell(string(m.Header("ce_id"))), table.TextCell(string(m.Header("ce_type"))), timeCell(happened),
	}
	if r.json != nil {
		return w, r.readJSON(m, &w)
	}
	return w, r.readFeatures(m, &w)
}

func timeCell(t time.Time) table.Cell { return table.IntegerCell(t.UnixNano()) }

func (r *reader) readJSON(m *bus.Message, w *row) error {
	w.kind = r.json
	values := make(map[string]any)
	if m.Value != nil {
		if err := json.Unmarshal(m.Value, &values); err != nil {
			return fmt.Errorf("it is not JSON: %w", err)
		}
	}
	for _, c := range r.topic.columns {
		w.cells = append(w.cells, jsonCell(c.Kind, values[c.Name]))
	}
	w.cells = append(w.cells, table.TextCell(string(m.Value)))
	return nil
}

// jsonCell returns a value as a cell, null if it is not there or of another kind: the column message has it all.
func jsonCell(kind table.SheetKind, v any) (none table.Cell) {
	switch v := v.(type) {
	case float64:
		if kind == integer {
			return table.IntegerCell(int64(v))
		}
		if kind == number {
			return table.NumberCell(v)
		}
	case string:
		if kind == text || kind == unique {
			return table.TextCell(v)
		}
		if t, err := time.Parse(time.RFC3339Nano, v); kind == at && err == nil && t.Year() > 1677 && t.Year() < 2262 {
			return timeCell(t)
		}
	}
	return none
}

// errAnswer is returned for what gateways say to commands, among the features.
var errAnswer = errors.New("an answer to a command")

func (r *reader) readFeatures(m *bus.Message, w *row) error {
	if string(m.Header("ce_type")) == event.FetchedType {
		return errAnswer
	}
	e, err := envelope.Unpack(m)
	if err != nil {
		return err
	}
	if w.kind = r.kinds[e.Features]; w.kind == nil {
		if w.kind, err = r.kindOf(e); err != nil {
			return err
		}
		r.kinds[e.Features] = w.kind
	}
	var x window.Features
	if err := envelope.OpenFeatures(w.kind.form, m, &x); err != nil {
		return err
	}
	by, offset, err := envelope.Origin(m)
	if err != nil {
		return err
	}
	rates := make([]string, len(x.Rates))
	for i, v := range x.Rates {
		rates[i] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	w.cells = append(w.cells,
		table.TextCell(x.Tool), table.TextCell(r.lives.Of(x.Machine, x.Tool, x.ToolLife, x.Start)), table.TextCell(x.Hole), timeCell(x.Start), table.TextCell(x.EpochString()), table.IntegerCell(int64(x.Seq)),
		table.IntegerCell(x.Session), table.IntegerCell(x.First), table.TextCell(strings.Join(rates, " ")), table.TextCell(fmt.Sprintf("%x", x.Quality)), table.NumberCell(x.Level),
		table.NumberCell(x.SpindleSpeed), table.NumberCell(x.FeedRate), table.TextCell(x.Programme), table.TextCell(x.Material),
		table.TextCell(string(by)), table.IntegerCell(offset))
	for _, v := range x.Values {
		w.cells = append(w.cells, table.SingleCell(v))
	}
	for _, v := range x.Frames {
		w.cells = append(w.cells, table.SingleCell(v))
	}
	return nil
}

// kindOf finds the form of features by the layouts that are known, of any version of the list.
func (r *reader) kindOf(e window.Envelope) (*kind, error) {
	w, err := window.FactsOf(e)
	if err != nil {
		return nil, err
	}
	for _, l := range r.layouts {
		if l.Fingerprint() != e.Layout {
			continue
		}
		for version := signal.FeatureVersion; version > 0; version-- {
			form, err := window.NewForm(l, window.Spec{Length: w.Length}, signal.FeatureSpec{Version: version}, nil)
			if err == nil && form.Fingerprint() == e.Features {
				return kindOfForm(form), nil
			}
		}
		return nil, &unknownLayout{e.Machine, e.Layout, "another release extracted them, or other features than the default ones"}
	}
	return nil, &unknownLayout{e.Machine, e.Layout, "no layout that is named has this fingerprint"}
}

func kindOfForm(f *window.Form) *kind {
	l := f.Layout()
	k := &kind{
		fingerprint: f.Fingerprint(), form: f, columns: slices.Concat(common, facts),
		features: &form{l.Name(), l.Fingerprint(), l.Channels(), f.Length().Length, f.List().Version},
	}
	for _, n := range f.Names() {
		k.columns = append(k.columns, table.SheetColumn{Name: n, Kind: single})
	}
	for i := range f.Frames() {
		k.columns = append(k.columns, table.SheetColumn{Name: fmt.Sprintf("window.frame.%d", i), Kind: single})
	}
	return k
}
