package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/card"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/event/labels"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
	"github.com/rs/zerolog"
)

// kafkaFlags name windows on Kafka.
type kafkaFlags struct {
	cli.Broker
	Source string `name:"from" enum:"auto,windows,features" default:"auto" placeholder:"KIND" help:"What to read on Kafka: windows, which are kept for days; features, which are kept for months, and are all that a gateway in mode edge sends; or auto: windows where they are, and features of all other windows (default: auto). All three give the same model. Features are read much faster. Name --since: features of months may not fit in memory."`
	cli.Span
}

// What kafkaFlags.Source may be.
const (
	fromAuto     = "auto"
	fromWindows  = "windows"
	fromFeatures = "features"
)

// topicReader reads the windows of topics once: the windows themselves, or their features.
type topicReader struct {
	cfg      bus.Config
	flag     string   // that names the configuration
	topics   []string // in the order in which they are read
	part     bus.Range
	from, to time.Time // of windows; zero: no bound
	log      zerolog.Logger
	files    []string // of an archive, instead of Kafka, by day
	large    bool     // they are of more windows than memory is for

	codec *window.Codec
	form  *window.Form // of features that the model takes
	ours  bool         // the form is the one that gateways and monitors extract

	seen    map[windowKey]string // by window, the topic that it came from; empty: it is out of bounds
	streams map[stream]*numbers  // of all windows that could be read
	used    map[rename]int       // windows before their machine was renamed
	raw     map[string]time.Time // start of the newest window, by machine
	judged  map[string]time.Time // of features that a monitor made of windows that were not read, the oldest
	ids     []string             // with checksums
	offsets []model.OffsetRange
	refused []refusal
	lives   labels.Lives
}

// windowKey says which window it is.
type windowKey struct {
	machine    string
	epoch, seq uint64
}

// refusal is why messages of a topic are left out.
type refusal struct {
	topic, what string
	messages    int
	machines    map[string]bool
	first       error
}

// reader returns what reads the windows.
func (f kafkaFlags) reader(flag string, log zerolog.Logger) (r *topicReader, err error) {
	r = &topicReader{flag: flag, log: log, from: f.Since.Time, to: f.Until.Time}
	if r.cfg, err = f.Bus("flank-trainer"); err != nil {
		return nil, err
	}
	if !r.from.IsZero() {
		r.part.Since = r.from.Add(-bus.ClockMargin) // Kafka got no window before it began
	}
	switch f.Source {
	case fromFeatures:
		r.topics = []string{bus.TopicFeatures}
	case fromWindows:
		r.topics = []string{bus.TopicWindows}
	default:
		r.topics = []string{bus.TopicWindows, bus.TopicFeatures}
	}
	return r, nil
}

// read is the Cut of a train.Input.
func (r *topicReader) read(ctx context.Context, m *model.Model, progress func(done, total int), visit func(*window.Features) error) (from model.DataSet, err error) {
	ctx, cancel := cli.WithPatience(ctx, &r.cfg)
	defer cancel(nil)
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	if err := r.prepare(m); err != nil {
		return from, err
	}
	if err := r.visitAll(ctx, progress, visit); err != nil {
		return from, err
	}
	if err := r.checkFound(m); err != nil {
		return from, err
	}
	slices.SortFunc(r.ids, cmp.Compare)
	h := sha256.Sum256([]byte(strings.Join(r.ids, "\n")))
	from = model.DataSet{SHA256: hex.EncodeToString(h[:]), Offsets: r.offsets, CutOff: r.cutOff()}
	var names []string
	for _, t := range from.Topics() {
		names = append(names, t.Topic)
	}
	from.Name = strings.Join(names, ", ")
	r.logFound(from.Topics())
	return from, nil
}

// visitAll visits the windows of the topics, or of the files. It reports that there are none.
func (r *topicReader) visitAll(ctx context.Context, progress func(done, total int), visit func(*window.Features) error) error {
	if len(r.files) > 0 {
		if err := r.readFiles(ctx, progress, visit); err != nil || len(r.ids)+len(r.refused) > 0 {
			return err
		}
		return fmt.Errorf("%d files of an archive have no windows: name other machines or days with --table", len(r.files))
	}
	parts, err := r.parts(ctx)
	if err != nil {
		return err
	}
	if r.lives, err = labels.ReadLives(ctx, r.cfg); err != nil && ctx.Err() == nil {
		r.log.Warn().Err(err).Msgf("cannot read %s: a tool that was declared new at a monitor counts as one with the tool before it, and one that was in when its machine was renamed counts as new: give the trainer Read on that topic", bus.TopicAlerts)
	}
	if !r.from.IsZero() && !r.to.IsZero() && !r.from.Before(r.to) {
		return r.nothing(ctx, parts)
	}
	if err := r.readParts(ctx, parts, progress, visit); err != nil || len(r.ids)+len(r.refused) > 0 {
		return err
	}
	return r.nothing(ctx, parts)
}

// prepare makes what opens messages for the model, and forgets what was read before.
func (r *topicReader) prepare(m *model.Model) (err error) {
	r.seen, r.raw, r.ids, r.offsets, r.refused = make(map[windowKey]string), make(map[string]time.Time), nil, nil, nil
	r.judged, r.streams, r.used = make(map[string]time.Time), make(map[stream]*numbers), make(map[rename]int)
	if r.codec, err = window.NewCodec(m.Layout, m.Window); err != nil {
		return err
	}
	if r.form, err = m.Form(); err != nil {
		return err
	}
	std, err := window.NewForm(m.Layout, m.Window, signal.FeatureSpec{}, nil)
	r.ours = err == nil && std.Fingerprint() == r.form.Fingerprint()
	if err == nil && !r.ours && len(m.Features.Set) > 0 && !slices.Contains(r.topics, bus.TopicWindows) {
		return errors.New(noSet(r.flag))
	}
	return err
}

// part is a partition of a topic, with the offsets of its first message and behind its last one.
type part struct {
	topic      string
	partition  int
	first, end int64
}

// parts returns the partitions of the topics that there are.
func (r *topicReader) parts(ctx context.Context) (all []part, err error) {
	missing := 0
	for _, topic := range r.topics {
		n, err := bus.Partitions(ctx, r.cfg, topic)
		if errors.Is(err, bus.ErrNoTopic) && missing < len(r.topics)-1 {
			missing++
			r.log.Warn().Err(err).Msg("reads the other topic alone")
		} else if err != nil {
			return nil, err
		}
		for p := range n {
			part := part{topic: topic, partition: p}
			part.first, part.end, _ = bus.Bounds(ctx, r.cfg, topic, p) // for people: who reads asks again
			all = append(all, part)
		}
	}
	return all, nil
}

// readParts visits the windows of partitions, one after the other, and says how many offsets of all it has read.
func (r *topicReader) readParts(ctx context.Context, parts []part, progress func(done, total int), visit func(*window.Features) error) error {
	var w window.Features
	done, total := 0, 0
	for _, p := range parts {
		total += int(p.end - p.first)
	}
	for _, p := range parts {
		err := bus.ReadRange(ctx, r.cfg, p.topic, p.partition, r.part, func(msg bus.Message) error {
			progress(min(done+int(msg.Offset+1-p.first), total), total)
			return r.take(p.partition, &msg, &w, visit)
		})
		if err != nil {
			return err
		}
		done += int(p.end - p.first)
		progress(done, total)
	}
	return nil
}

// nothing says that there are no windows within the bounds, and when the messages are of that Kafka has.
func (r *topicReader) nothing(ctx context.Context, parts []part) error {
	var oldest, newest time.Time
	for _, p := range parts {
		if p.first >= p.end {
			continue
		}
		first, _, err := timesIn(ctx, r.cfg, p.topic, p.partition, bus.Range{From: p.first, To: min(p.first+fewOffsets, p.end)})
		_, last, err2 := timesIn(ctx, r.cfg, p.topic, p.partition, bus.Range{From: max(p.first, p.end-fewOffsets), To: p.end})
		if err = cmp.Or(err, err2); err != nil {
			return err
		}
		if !first.IsZero() && (oldest.IsZero() || first.Before(oldest)) {
			oldest = first
		}
		if last.After(newest) {
			newest = last
		}
	}
	const text = "no windows between --since and --until: "
	if oldest.IsZero() {
		return errors.New(text + "Kafka has none at all; it keeps windows for days and features for months, which --from auto reads too")
	}
	return fmt.Errorf(text+"Kafka has windows from %s to %s; name a --since before a --until in that time; features are kept for longer than windows, and --from auto reads both",
		oldest.UTC().Format(time.RFC3339), newest.UTC().Format(time.RFC3339))
}

// open stores the window in a message in w. It has no form if it has samples.
func (r *topicReader) open(msg *bus.Message, w *window.Features) error {
	if msg.Topic == bus.TopicFeatures {
		return envelope.OpenFeatures(r.form, msg, w)
	}
	w.Form = nil
	return envelope.Open(r.codec, msg, &w.Window)
}

// hasWindow reports whether the window that the message has features of was read itself.
func (r *topicReader) hasWindow(msg *bus.Message) bool {
	e, err := envelope.Unpack(msg)
	return err == nil && r.seen[windowKey{e.Machine, e.Epoch, e.Seq}] == bus.TopicWindows
}

// take visits the window in a message, unless it is out of bounds or was visited.
func (r *topicReader) take(partition int, msg *bus.Message, w *window.Features, visit func(*window.Features) error) error {
	if envelope.IsLedger(msg) || string(msg.Header("ce_type")) == event.FetchedType {
		return nil
	}
	if msg.Topic == bus.TopicFeatures && r.hasWindow(msg) {
		return nil // features of any form: the window itself is there
	}
	if err := r.open(msg, w); err != nil {
		r.refuse(msg, fmt.Errorf("offset %d of partition %d: %w", msg.Offset, partition, err))
		return nil
	}
	if w.Tool != "" {
		w.Tool = wear.ToolOf(w.Tool, r.lives.Of(w.Machine, w.Tool, w.ToolLife, w.Start))
	}
	key := windowKey{w.Machine, w.Epoch, w.Seq}
	if _, again := r.seen[key]; again {
		return nil
	}
	r.number(w)
	if !r.wants(w.Start) {
		r.seen[key] = ""
		return nil
	}
	r.seen[key] = msg.Topic
	if w.Tool == "" {
		r.refuse(msg, &window.Mismatch{What: toolless, Text: fmt.Sprintf("offset %d of partition %d: the window names no tool", msg.Offset, partition)})
		return nil
	}
	if msg.Topic == bus.TopicWindows {
		if w.Start.After(r.raw[w.Machine]) {
			r.raw[w.Machine] = w.Start
		}
	} else if by, _, err := envelope.Origin(msg); err == nil && by == envelope.Monitor {
		if at, known := r.judged[w.Machine]; !known || w.Start.Before(at) {
			r.judged[w.Machine] = w.Start
		}
	}
	r.ids = append(r.ids, string(msg.Header("ce_id"))+" "+string(msg.Header("crc32c")))
	if n := len(r.offsets); n == 0 || r.offsets[n-1].Partition != partition || r.offsets[n-1].Topic != msg.Topic {
		r.offsets = append(r.offsets, model.OffsetRange{Topic: msg.Topic, Partition: partition, From: msg.Offset})
	}
	last := &r.offsets[len(r.offsets)-1]
	last.To = msg.Offset + 1
	last.Windows++
	return visit(w)
}

func (r *topicReader) wants(at time.Time) bool {
	return !(!r.from.IsZero() && at.Before(r.from)) && !(!r.to.IsZero() && !at.Before(r.to))
}

// Reasons of refusals, in addition to what a window.Mismatch names.
const (
	damaged  = "damaged" // the message cannot be read
	toolless = "no tool" // nothing tells the tools of its machine apart
)

// refuse counts a message that is left out.
func (r *topicReader) refuse(msg *bus.Message, err error) {
	what := damaged
	var other *window.Mismatch
	if errors.As(err, &other) {
		what = other.What
	}
	i := slices.IndexFunc(r.refused, func(f refusal) bool { return f.topic == msg.Topic && f.what == what })
	if i < 0 {
		i, r.refused = len(r.refused), append(r.refused, refusal{topic: msg.Topic, what: what, machines: make(map[string]bool), first: err})
	}
	r.refused[i].messages++
	r.refused[i].machines[msg.Key] = true
}

// remedy says what to do about messages that are left out.
func (r *topicReader) remedy(f refusal) string {
	switch {
	case f.what == damaged:
		return "something else than Flank wrote them, or they were damaged"
	case f.what == toolless:
		return "without a name all tools of a machine would count as one: let its control or a person tell the ingester which tool is in (`context` in ingest.yaml)"
	case f.what == window.OtherFeatures && !r.ours:
		return noSet(r.flag)
	case f.topic == bus.TopicFeatures && (f.what == window.OtherFeatures || f.what == window.OtherSchema):
		return "another release extracted them: train with that release, or on windows with --from windows"
	}
	return "name the layout and the window of the ingester in " + r.flag
}

// noSet says what to do about features that the model takes and Kafka has windows of alone.
func noSet(flag string) string {
	return "`features.set` cannot be had from features on Kafka, which are the default ones: remove it from " + flag + ", or read windows alone with --from windows"
}

// checkFound reports topics without a window for the model, and logs messages that were left out.
func (r *topicReader) checkFound(m *model.Model) error {
	if len(r.ids) > 0 {
		for _, f := range r.refused {
			r.log.Warn().Str("topic", f.topic).Int("messages", f.messages).Str("because", f.what).Str("machines", card.Some(slices.Sorted(maps.Keys(f.machines)))).AnErr("first", f.first).Msg("left out messages: " + r.remedy(f))
		}
		return nil
	}
	all, why := 0, make([]string, len(r.refused))
	most := slices.MaxFunc(r.refused, func(a, b refusal) int { return cmp.Compare(a.messages, b.messages) })
	for i, f := range r.refused {
		all, why[i] = all+f.messages, fmt.Sprintf("%d of %s: %s", f.messages, f.topic, f.what)
	}
	what := "can be learnt from"
	if most.what == window.OtherLayout || most.what == window.OtherLength {
		what = fmt.Sprintf("is a window of layout %q with windows of %v", m.Layout.Name(), m.Window.Length)
	}
	return fmt.Errorf("none of %d messages %s (%s), of machines %s; the first is at %w: %s", all, what, strings.Join(why, ", "), card.Some(slices.Sorted(maps.Keys(most.machines))), most.first, r.remedy(most))
}

// logFound says how many windows came from where. Where both topics were read, it names the machines of which windows
// are gone, and the machines that sent none.
func (r *topicReader) logFound(topics []model.OffsetRange) {
	gone, none := make(map[string]bool), make(map[string]bool)
	for k, topic := range r.seen {
		if topic == bus.TopicFeatures && r.raw[k.machine].IsZero() {
			none[k.machine] = true
		}
	}
	for machine, at := range r.judged {
		gone[machine] = at.Before(r.raw[machine])
	}
	maps.DeleteFunc(gone, func(_ string, is bool) bool { return !is })
	where := "on Kafka"
	if len(r.files) > 0 {
		where = "of an archive"
	}
	for _, t := range topics {
		line := r.log.Info().Str("topic", t.Topic).Int("windows", t.Windows)
		if t.Topic == bus.TopicFeatures && len(r.topics) > 1 {
			line = line.Str("some_windows_gone", card.Some(slices.Sorted(maps.Keys(gone)))).Str("no_windows", card.Some(slices.Sorted(maps.Keys(none))))
		}
		line.Msg("read windows " + where)
	}
}
