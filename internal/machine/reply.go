package machine

import (
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/window"
)

// replyLog is a topic in which messages for machines come.
type replyLog int

// The logs of a partition.
const (
	WindowLog replyLog = iota
	FeatureLog
	CommandLog
	StateLog
)

// Position is what is to be read next, in the partition's windows, features and commands.
type Position struct {
	Windows, Features, Commands int64
}

// beyond reports whether all windows and features before an end were judged.
func (p Position) beyond(end Position) bool {
	return p.Windows >= end.Windows && p.Features >= end.Features
}

// nearer returns an end that was asked for again: the one of before, nil if there was none. What Kafka has lost since
// does not come any more.
func (p *Position) nearer(end Position) *Position {
	if p != nil {
		end.Windows, end.Features = min(end.Windows, p.Windows), min(end.Features, p.Features)
	}
	return &end
}

// Action is what an owner wants done. A [*Batch] is to be published.
//
//sumtype:decl
type Action interface{ action() }

type (
	Fence        struct{}             // take the partition over, so that its previous owner can publish nothing, and read the group's position after that
	LoadState    struct{}             // read the partition's state records
	ReadWindows  struct{ From int64 } // read windows from that offset on; the answer may take as long as none come
	ReadFeatures struct{ From int64 } // read features, likewise
	ReadCommands struct{ From int64 } // and commands
	AskEnd       struct{}             // ask Kafka how far the windows and features of the partition go
)

func (Fence) action()        {}
func (LoadState) action()    {}
func (ReadWindows) action()  {}
func (ReadFeatures) action() {}
func (ReadCommands) action() {}
func (AskEnd) action()       {}
func (*Batch) action()       {}

// Reply is what came of an action, or something that happened. A [Tick], an [End], an [EvidenceOf], a [*Build] and a [*Fleet], which says
// what judges which machine from now on, are replies, too.
//
//sumtype:decl
type Reply interface{ reply() }

type (
	Fenced struct {
		At          Position // the group's; -1 where it has none
		CommandsEnd int64    // the offset behind the newest command
	}
	Loaded []event.StateRecord // the last record of every key
	Read   struct {            // windows, or features
		Log    replyLog
		Inputs []Input
		rest   bool // the other ones of the answer follow
	}
	FeaturesPassed int64     // offset before which all features were given to the owner; what transactions leave takes offsets, too
	CommandsRead   []Command // commands that wait for the windows which Kafka got before them
	CommandsDue    []Command // those whose time has come: an owner makes it of commands that were read
	Published      struct{}
	Lost           struct{} // another monitor may have the partition; nothing more may be published
)

func (Fenced) reply()         {}
func (Loaded) reply()         {}
func (Read) reply()           {}
func (FeaturesPassed) reply() {}
func (CommandsRead) reply()   {}
func (CommandsDue) reply()    {}
func (Published) reply()      {}
func (Lost) reply()           {}
func (Tick) reply()           {}
func (End) reply()            {}
func (EvidenceOf) reply()     {}
func (*Build) reply()         {}
func (*Fleet) reply()         {}

// Input is a message of the windows or the features topic. Open stores the features of its
// window, reusing the memory of into, or returns why the message is not a window: then it goes
// to the dead letters. A *Refusal is an advisory of its machine, too. It is called once.
type Input struct {
	Offset int64
	At     time.Time                         // when Kafka got it
	Open   func(into *window.Features) error // nil: a copy of a window, or features whose window the owner reads: not to be judged

	Ledger *event.SourceLedger // in place of a window; nil: none
}

// End answers AskEnd.
type End struct {
	Windows, Features Bounds
	Known             bool // false: the broker did not answer
}

// Bounds are the offsets of the oldest message and behind the newest. The zero value is that
// of a topic that is not read.
type Bounds struct{ First, End int64 }

// reach returns the offset up to which all must be judged.
func (b Bounds) reach() int64 {
	if b.First == b.End {
		return math.MinInt64 // nothing lies there
	}
	return b.End
}

// EvidenceOf is evidence of a machine that was written.
type EvidenceOf struct {
	Machine string
	EvidenceDone
}

// Batch is what is to be published at once: readers see all of it or nothing.
type Batch struct {
	Of       Reply // that it follows from; nil: the state that was loaded
	Position Position
	State    []event.StateRecord
	Events   []Output
	Letters  []Letter
	Lines    []machineLine

	Judged, Late, Repeats uint64
	Unwatched             uint64 // windows for whose machine no model is deployed, or one that cannot judge them
	Panics                uint64 // messages that a machine could not take, because of a defect

	passed bool      // all that was read are features for others
	now    time.Time // by the clock of the monitor
}

// empty reports whether there is nothing in it to publish.
func (b *Batch) empty() bool {
	return len(b.State) == 0 && len(b.Events) == 0 && len(b.Letters) == 0 && len(b.Lines) == 0
}

// Output is an event that is published: for the results, the alerts or the shadows topic.
//
//sumtype:decl
type Output interface{ output() }

type (
	Result struct { // what the champion says of a window
		*event.Result
		Missing uint64 // windows that had not come when its one did
	}
	Alert        struct{ *event.Alert }    // a change of an alarm, or the answer to a command
	Advisory     struct{ *event.Advisory } // a change of another condition
	Evidence     struct{ *event.Evidence } // what became of a waveform that an alert has announced
	ShadowResult struct{ *event.Result }   // what a shadow says of a window
	ShadowAlert  struct{ *event.Alert }    // a change of what its alarm would be
)

func (Result) output()       {}
func (Alert) output()        {}
func (Advisory) output()     {}
func (Evidence) output()     {}
func (ShadowResult) output() {}
func (ShadowAlert) output()  {}

// Letter is a message that is set aside, and why.
type Letter struct {
	Log     replyLog
	Key     string // of a command or a record
	Offset  int64
	Reason  string
	Err     error
	Unknown bool // a command for a machine of which nothing is known
	Advised bool // an advisory of the window's machine says it
}

// machineLine is a line for the log about a machine.
type machineLine struct {
	Machine string
	Line
}
