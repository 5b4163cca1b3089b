package event

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/plain"
)

// LedgerType is the CloudEvents type of a SourceLedger.
const LedgerType = "io.tcm.ledger.v1"

// Ledger says what became of the samples that a machine's source sent in a span of time, of all channels
// together.
type Ledger struct {
	At        time.Time       `json:"at"`               // end of the span, by the gateway's clock
	Seconds   float64         `json:"seconds"`          // its length: an hour, or since the gateway was started
	Received  uint64          `json:"received"`         // samples that came
	InWindows uint64          `json:"in_windows"`       // samples that are in windows now; some may have come before the span
	Unused    []UnusedSamples `json:"unused,omitempty"` // the most first
}

// UnusedSamples are samples that are in no window. Of reason "repeat" nothing is lost.
type UnusedSamples struct {
	Reason  string `json:"reason"` // see docs/concepts/ledger.md
	Samples uint64 `json:"samples"`
}

// LostSamples are samples of the last minute that are in no window.
type LostSamples struct {
	Reason  string  `json:"reason"`
	Seconds float64 `json:"seconds"` // for which they would have lasted
}

// SumLost returns how many seconds of samples are lost together, and why, such as "counter 58 s, gap 2 s".
func SumLost(lost []LostSamples) (seconds float64, why string) {
	var each []string
	for _, l := range lost {
		seconds += l.Seconds
		each = append(each, fmt.Sprintf("%s %.0f s", l.Reason, l.Seconds))
	}
	return seconds, strings.Join(each, ", ")
}

// SourceLedger is what a gateway says of the samples of a machine once a minute, and at once when Lost, Idle or Silent
// begins or ends. It lies on the topic of windows, as gateways may write no other.
type SourceLedger struct {
	Machine string `json:"machine"`
	Ledger

	Lost []LostSamples `json:"lost,omitempty"`         // the most first, if together they are more than the bound of the gateway
	Idle float64       `json:"idle_seconds,omitempty"` // for how long no new sample has come, from 10 s on

	Repeating bool      `json:"repeating,omitempty"`       // samples that came before still come; with Idle
	Silent    []float64 `json:"silent_rates_hz,omitempty"` // rates of which no new sample comes while others do: no window can be cut
}

// RatesText names rates in Hz, such as "100 Hz and 20000 Hz".
func RatesText(rates []float64) string {
	var each []string
	for _, r := range rates {
		each = append(each, fmt.Sprintf("%v Hz", r))
	}
	return strings.Join(each, " and ")
}

// Bounds of a ledger from outside.
const (
	maxLedger  = 16 << 10 // bytes
	maxReasons = 64
	maxReason  = 64 // bytes
	maxRate    = 1e9
)

// ReadSourceLedger reads the value of a message. It reports what no gateway writes.
func ReadSourceLedger(value []byte) (SourceLedger, error) {
	var l SourceLedger
	if len(value) > maxLedger {
		return l, fmt.Errorf("ledger: %d bytes, at most %d", len(value), maxLedger)
	}
	if err := json.Unmarshal(value, &l); err != nil {
		return l, fmt.Errorf("ledger: %w", err)
	}
	err := cmp.Or(
		config.Wrong(l.Machine == "" || plain.Check(l.Machine) != nil, "ledger: machine %.64q: expected the path of a machine", l.Machine),
		config.Wrong(len(l.Unused) > maxReasons || len(l.Lost) > maxReasons, "ledger: %d and %d reasons, at most %d", len(l.Unused), len(l.Lost), maxReasons),
		config.Wrong(len(l.Silent) > maxReasons || slices.ContainsFunc(l.Silent, func(r float64) bool { return !(r > 0 && r <= maxRate) }), "ledger: silent_rates_hz: expected at most %d rates above 0 Hz", maxReasons),
		config.Wrong(l.Seconds < 0 || l.Idle < 0, "ledger: seconds, idle_seconds: must not be negative"),
		l.checkReasons())
	return l, err
}

func (l *SourceLedger) checkReasons() error {
	for _, one := range l.Lost {
		err := cmp.Or(config.Wrong(one.Seconds < 0 || one.Seconds > math.MaxInt32, "ledger: lost: %.64q: %g seconds", one.Reason, one.Seconds), checkReason(one.Reason))
		if err != nil {
			return err
		}
	}
	for _, one := range l.Unused {
		if err := checkReason(one.Reason); err != nil {
			return err
		}
	}
	return nil
}

func checkReason(reason string) error {
	return config.Wrong(reason == "" || len(reason) > maxReason || plain.Check(reason) != nil, "ledger: reason %.64q: expected 1 to %d bytes of plain text", reason, maxReason)
}
