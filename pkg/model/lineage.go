package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// DataSet says what a model was trained on, or examined on: a recording, a table, or windows on Kafka.
// Models of older releases know the name, the checksum and the number of windows alone.
type DataSet struct {
	Name    string `json:"name"`
	SHA256  string `json:"sha256"` // of the file; of the ids and checksums of messages of Kafka; of the simulator's settings
	Windows int    `json:"windows"`

	Machines  []MachineTools `json:"machines,omitempty"`   // in the order of their names
	MoreTools int            `json:"more_tools,omitempty"` // that Machines does not name, because there are so many
	From      time.Time      `json:"from,omitzero"`        // start of the first window in UTC; zero if the windows have no clock
	To        time.Time      `json:"to,omitzero"`          // end of the last window
	Offsets   []OffsetRange  `json:"offsets,omitempty"`    // of windows on Kafka, by topic and partition
	CutOff    []CutTool      `json:"cut_off,omitempty"`    // tools whose beginning Kafka no longer had, or that lies before what was read
}

// CutTool is a tool of which windows from its beginning were not read.
type CutTool struct {
	Machine string `json:"machine"`
	Tool    string `json:"tool"`
	Missing int    `json:"missing"` // windows, at most
}

// MachineTools are the tools of one machine that windows are of.
type MachineTools struct {
	Machine string   `json:"machine"` // empty if not known
	Tools   []string `json:"tools"`   // in the order of their names
}

// OffsetRange says where in a partition of Kafka windows are: from the first one's offset to below To.
type OffsetRange struct {
	Topic     string `json:"topic,omitempty"` // empty in models of older releases, which took windows from tcm.windows.v1 alone
	Partition int    `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Windows   int    `json:"windows,omitempty"` // that were taken from there; 0 in models of older releases
}

// Tools returns the tools that the model was trained on, as MACHINE/TOOL, in the order of their names, and how many more
// there are. There are none if the model does not say.
func (p *Provenance) Tools() (names []string, more int) {
	for _, d := range p.Data {
		more += d.MoreTools
		for _, m := range d.Machines {
			for _, tool := range m.Tools {
				names = append(names, strings.TrimPrefix(m.Machine+"/"+tool, "/"))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), more
}

// LabelsFrom says in words how many labels came from where; empty if there are none.
func LabelsFrom(of map[string]int) string {
	var words []string
	for _, where := range slices.Sorted(maps.Keys(of)) {
		words = append(words, fmt.Sprintf("%d from %s", of[where], map[string]string{"file": "a file", "floor": "the floor", "alarms": "answers to alarms"}[where]))
	}
	return strings.Join(words, ", ")
}

// mostPartitions is how many partitions a line names.
const mostPartitions = 4

// String says on one line what the data are.
func (d DataSet) String() string {
	words := []string{d.Name, fmt.Sprintf("%d windows", d.Windows), fmt.Sprintf("SHA-256 %.16s…", d.SHA256)}
	if of := d.Of(); of != "" {
		words = append(words, of)
	}
	return strings.Join(words, ", ")
}

// Of says in words of which machines and tools the windows are, from when to when, and where on Kafka; empty if that is
// not known.
func (d DataSet) Of() string {
	var words []string
	tools := d.MoreTools
	for _, m := range d.Machines {
		tools += len(m.Tools)
	}
	switch of := fmt.Sprintf("%d tools", tools); {
	case len(d.Machines) > 1:
		words = append(words, fmt.Sprintf("%s of %d machines", of, len(d.Machines)))
	case len(d.Machines) == 1:
		if m := d.Machines[0]; tools == 1 && d.MoreTools == 0 {
			of = "tool " + m.Tools[0]
		}
		words = append(words, strings.TrimSuffix(of+" of "+d.Machines[0].Machine, " of "))
	}
	if !d.From.IsZero() {
		words = append(words, d.From.UTC().Format(time.RFC3339)+" to "+d.To.UTC().Format(time.RFC3339))
	}
	topics := d.Topics()
	if len(topics) > 1 {
		for _, t := range topics {
			words = append(words, fmt.Sprintf("%d from %s", t.Windows, t.Topic))
		}
	}
	if n := len(d.CutOff); n > 0 {
		words = append(words, fmt.Sprintf("%d tools without their beginning", n))
	}
	return strings.Join(append(words, d.places(len(topics) > 1)...), ", ")
}

// places returns in words which offsets were read, with their topics or without.
func (d DataSet) places(topics bool) (words []string) {
	if n := len(d.Offsets); n > mostPartitions {
		return []string{fmt.Sprintf("offsets of %d partitions", n)}
	}
	for _, o := range d.Offsets {
		place := fmt.Sprintf("offsets %d to %d of partition %d", o.From, o.To-1, o.Partition)
		if topics {
			place += " of " + o.Topic
		}
		words = append(words, place)
	}
	return words
}

// Topics returns how many windows came from each topic of Kafka, in the order of Offsets, as ranges without places.
func (d DataSet) Topics() (topics []OffsetRange) {
	for _, o := range d.Offsets {
		if n := len(topics); n == 0 || topics[n-1].Topic != o.Topic {
			topics = append(topics, OffsetRange{Topic: o.Topic})
		}
		topics[len(topics)-1].Windows += o.Windows
	}
	return topics
}
