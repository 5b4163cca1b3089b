package cli

import (
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Bytes that one group of monitors writes for a window, as measured, and that alerts and
// commands of one machine add on a bad day.
const (
	resultBytes = 800        // of a window
	stateBytes  = 1_700      // of a window, on average, see TestRecordWeight of internal/machine
	alertBytes  = 40 * 6_500 // a day
	orderBytes  = 40 * 500   // of commands, a day

	compressedPercent = 80 // of features that are sent alone, see compressionOf in internal/bus; of many together it is 60
)

// Written is how many bytes a day are written to the topics, by their names. A topic
// that is not named gets none as a rule, and may get any number.
type Written map[string]int64

// Sampled returns what is written if only one raw window of so many is sent; none if
// every is 0.
func (w Written) Sampled(every uint64) Written {
	w = maps.Clone(w)
	if every == 0 {
		w[bus.TopicWindows] = 0
	} else {
		w[bus.TopicWindows] /= int64(min(every, math.MaxInt64))
	}
	return w
}

// MachineWrites returns what one machine that never stops writes, each of its windows
// as long as the layout and the spec make it.
func MachineWrites(layout *signal.Layout, spec window.Spec) (Written, error) {
	codec, err := window.NewCodec(layout, spec)
	if err != nil {
		return nil, err
	}
	channels := layout.Channels()
	w := &window.Window{Samples: make([][]float32, len(channels)), Quality: make([]signal.Quality, len(channels)), Start: time.Unix(0, 0), Length: spec.Length}
	w.Machine = "enterprise/site/area/line/machine"
	for i, c := range channels {
		w.Samples[i] = make([]float32, spec.Samples(c.Rate))
	}
	sealed, err := codec.Seal(w)
	if err != nil {
		return nil, err
	}
	features, err := featuresOf(layout, spec, w)
	if err != nil {
		return nil, err
	}
	windows := int64(24 * time.Hour / spec.Step())
	return Written{
		bus.TopicWindows: windows * sizeOf(envelope.Window(sealed)), bus.TopicFeatures: windows * sizeOf(features) * compressedPercent / 100, bus.TopicResults: windows * resultBytes, bus.TopicState: windows * stateBytes,
		bus.TopicAlerts: alertBytes, bus.TopicCommands: orderBytes,
	}, nil
}

// featuresOf returns the message of the features of a window.
func featuresOf(layout *signal.Layout, spec window.Spec, w *window.Window) (m bus.Message, err error) {
	form, err := window.NewForm(layout, spec, signal.FeatureSpec{}, nil)
	if err != nil {
		return m, err
	}
	var x window.Features
	form.NewExtractor().Extract(w, &x)
	sealed, err := form.Seal(&x)
	if err != nil {
		return m, err
	}
	return envelope.Features(sealed, envelope.Monitor, 0), nil
}

func sizeOf(m bus.Message) int64 {
	size := len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		size += len(h.Key) + len(h.Value)
	}
	return int64(size)
}

// diskUse is what one topic takes on the disks of all brokers.
type diskUse struct {
	written  int64 // a day
	machines int64 // of the machines that are known, each alone in its partition
	most     int64 // with any number of machines; bus.Unlimited: it grows with them
}

// useOf returns what a topic takes to which machines write these amounts.
func useOf(s bus.TopicStatus, machines []Written) diskUse {
	replicas, most := int64(s.Replicas), s.Most()
	u := diskUse{most: bus.Unlimited}
	if most != bus.Unlimited {
		u.most = most * replicas * int64(s.Partitions)
	}
	named := false
	for _, m := range machines {
		day, writes := m[s.Name]
		named = named || writes
		u.written += day
		kept := most
		if byTime := float64(day) * s.Retain.Time.Hours() / 24; !s.Compacted && s.Retain.Time >= 0 && (most == bus.Unlimited || byTime < float64(most)) {
			kept = int64(byTime)
		}
		if day > 0 && kept > 0 {
			u.machines += kept * replicas
		}
	}
	if u.most != bus.Unlimited {
		u.machines = min(u.machines, u.most) // where several machines share a partition
	}
	if len(machines) > 0 && !named && u.most > 0 { // no machine writes to it as a rule
		u.machines = u.most
	}
	return u
}

// diskSum is what one topic takes on disk, or several.
type diskSum struct {
	written, machines int64
	most, each        int64 // of any number of machines: at most, and each machine
	forever           bool  // nothing is ever removed
}

// sum returns what one topic takes, to which so many machines write.
func (u diskUse) sum(s bus.TopicStatus, machines int) diskSum {
	one := diskSum{machines: u.machines}
	switch {
	case u.most != bus.Unlimited:
		one.most = u.most
	case s.Retain.Time < 0:
		one.forever = true
	case machines > 0:
		one.each = u.machines / int64(machines)
	}
	return one
}

// String says what any number of machines take.
func (s diskSum) String() string {
	var parts []string
	if s.most > 0 {
		parts = append(parts, "at most "+bus.FormatBytes(s.most))
	}
	if s.each > 0 {
		parts = append(parts, bus.FormatBytes(s.each)+" a machine")
	}
	if s.forever {
		parts = append(parts, "grows without limit")
	}
	return strings.Join(parts, " + ")
}

// PrintDisk prints a line for each topic: what machines that never stop write to it in a
// day, what Kafka keeps of it, and what that takes on the disks of all brokers, replicas
// counted. Below it are the notes.
func PrintDisk(w io.Writer, status []bus.TopicStatus, machines []Written) error {
	ours := "1 machine"
	if n := len(machines); n != 1 {
		ours = fmt.Sprintf("%d machines", n)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "topic\tpartitions\treplicas\twritten a day\tkept\ton disk: %s\ton disk: any number\n", ours)
	var all diskSum
	for _, s := range status {
		partitions := fmt.Sprint(s.Partitions)
		if s.Created {
			partitions += " (new)"
		}
		u := useOf(s, machines)
		all.written += u.written
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t", s.Name, partitions, s.Replicas, amount(u.written))
		if !s.Known {
			fmt.Fprint(tw, "not known: this program may not read it\t\t\n")
			continue
		}
		kept := s.Retain.String()
		if s.Compacted {
			kept = "the last message of each key"
		}
		one := u.sum(s, len(machines))
		fmt.Fprintf(tw, "%s\t%s\t%s\n", kept, amount(one.machines), one)
		all.machines, all.most, all.each, all.forever = all.machines+one.machines, all.most+one.most, all.each+one.each, all.forever || one.forever
	}
	if len(status) > 1 {
		fmt.Fprintf(tw, "all\t\t\t%s\t\t%s\t%s\n", amount(all.written), amount(all.machines), all)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	printNotes(w, status)
	return nil
}

func printNotes(w io.Writer, status []bus.TopicStatus) {
	for _, s := range status {
		for _, note := range s.Notes {
			fmt.Fprintf(w, "%s: %s\n", s.Name, note)
		}
	}
}

func amount(n int64) string {
	if n == 0 {
		return "-"
	}
	return bus.FormatBytes(n)
}

// DiskLines is PrintDisk for a step of a check: lines behind a first one.
func DiskLines(status []bus.TopicStatus, machines []Written) string {
	var b strings.Builder
	if err := PrintDisk(&b, status, machines); err != nil {
		return ""
	}
	return "\n            " + strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", "\n            ")
}
