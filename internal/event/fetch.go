package event

import (
	"cmp"
	"errors"
	"time"

	"github.com/flank-tcm/flank/internal/config"
)

// FetchedType is the CloudEvents type of the answer to a command with action fetch.
const FetchedType = "io.tcm.fetched.v1"

// maxFetch is the most windows that one command can ask for, and MaxFetchWait how long
// after it was issued a gateway may still answer it.
const (
	maxFetch     = 100_000
	MaxFetchWait = 7 * 24 * time.Hour
)

// Wanted says which raw windows a command with action fetch asks for: those that overlap
// [From, To), or the windows of an epoch with seqs from First to Last. With times and an
// epoch, both must hold.
type Wanted struct {
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
	Epoch   string    `json:"epoch,omitempty"` // 16 hexadecimal digits
	First   uint64    `json:"first_seq,omitempty"`
	Last    uint64    `json:"last_seq,omitempty"`
	Windows int       `json:"windows"` // at most so many are sent, the oldest first
}

// Timed reports whether w names a range of time, not of seqs.
func (w Wanted) Timed() bool { return !w.From.IsZero() || !w.To.IsZero() }

// Check reports what is wrong with w.
func (w Wanted) Check() error {
	return cmp.Or(
		config.Wrong(w.Windows < 1 || w.Windows > maxFetch, "windows: %d: ask for 1 to %d", w.Windows, maxFetch),
		config.Wrong(w.Epoch != "" && !isEpoch(w.Epoch), "epoch %.32q: expected 16 hexadecimal digits", w.Epoch),
		config.Wrong(w.Timed() && (w.First != 0 || w.Last != 0), "from, first_seq: name a range of time or one of seqs, not both"),
		config.Wrong(w.From.IsZero() != w.To.IsZero(), "from, to: name both ends of the range of time"),
		config.Wrong(w.Timed() && !w.From.Before(w.To), "from %s to %s: the range of time must end after it begins", w.From.Format(time.RFC3339Nano), w.To.Format(time.RFC3339Nano)),
		config.Wrong(!w.Timed() && w.Epoch == "", "name a range of time, or an epoch with seqs"),
		config.Wrong(w.First > w.Last, "first_seq %d, last_seq %d: the first must not be above the last", w.First, w.Last))
}

// checkFetch reports what is wrong with a command that asks for windows.
func (c Command) checkFetch() error {
	if c.Action != Fetch {
		return config.Wrong(c.Wanted != nil, "wanted: goes with %s only", Fetch)
	}
	if c.Wanted == nil {
		return errors.New("fetch: name the windows in wanted")
	}
	wait := c.Until.Sub(c.Issued)
	bad := c.Wanted.Check()
	return cmp.Or(
		config.Wrong(wait <= 0 || wait > MaxFetchWait, "fetch: until: say until when a gateway may answer, at most %v after the command was issued", MaxFetchWait),
		config.Wrong(bad != nil, "fetch: wanted: %w", bad))
}

// Fetched is the answer of a gateway to a command with action fetch. It follows the
// windows, which are messages of the windows topic, and lies on the features topic. ID is
// the same when a gateway answers again after a restart.
type Fetched struct {
	ID      string    `json:"id"`      // command/fetched
	Command string    `json:"command"` // id of the command
	Machine string    `json:"machine"`
	At      time.Time `json:"at"`            // by the gateway's clock
	Windows int       `json:"windows"`       // that were sent
	From    time.Time `json:"from,omitzero"` // start of the first that was sent
	To      time.Time `json:"to,omitzero"`   // end of the last
	More    bool      `json:"more"`          // there may be more: the bound or the time was used up, or the disk could not be read
	Lost    int       `json:"lost"`          // windows of that time that the disk has lost

	Oldest time.Time `json:"oldest,omitzero"` // start of the oldest window that the gateway keeps; zero: it keeps none
	Gone   bool      `json:"gone"`            // the range begins before that: earlier windows are not kept any more, or there were none
	Text   string    `json:"text"`            // one line for a person
}
