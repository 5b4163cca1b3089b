package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// System is the answer of /api/system: how the program and what it depends on are doing. What
// is not known is left out.
type System struct {
	Status
	Lag          []Lag         `json:"lag"`               // of the partitions that this program has
	Missing      *uint64       `json:"missing,omitempty"` // windows that have not come
	Dead         *Dead         `json:"dead,omitempty"`
	LatencyMS    *latency      `json:"latency_ms,omitempty"`
	Routes       []RouteLag    `json:"routes"`
	Certificates []Certificate `json:"certificates"`
	Disk         *Disk         `json:"disk,omitempty"`
	Ledgers      []ledger      `json:"ledgers"`  // at most 20, the one with the most lost samples first
	Problems     []Problem     `json:"problems"` // the worst first
}

// ledger is what became of the samples of a machine.
type ledger struct {
	Machine string `json:"machine"`
	event.Ledger
}

// lost returns the share of the samples of a machine that are in no window, repeats aside.
func (l *ledger) lost() float64 {
	var lost, all uint64
	for _, u := range l.Unused {
		if all += u.Samples; u.Reason != "repeat" {
			lost += u.Samples
		}
	}
	return float64(lost) / float64(max(1, all+l.InWindows))
}

// ledgers returns the ledgers of the machines that lose the most. h.mu must be held.
func (x *server) ledgers() []ledger {
	all := []ledger{}
	for _, m := range x.hub.machines {
		if m.ledger != nil {
			all = append(all, ledger{m.name, *m.ledger})
		}
	}
	slices.SortFunc(all, func(a, b ledger) int {
		return cmp.Or(cmp.Compare(b.lost(), a.lost()), cmp.Compare(a.Machine, b.Machine))
	})
	return all[:min(len(all), mostNeedy)]
}

// Lag is how many windows of a partition wait to be judged.
type Lag struct {
	Partition int   `json:"partition"`
	Windows   int64 `json:"windows"`
}

// Dead counts messages that were set aside on the dead-letter topic, and why.
type Dead struct {
	Count   uint64       `json:"count"`
	Reasons []DeadReason `json:"reasons"` // the most frequent first
}

// DeadReason is why messages were set aside.
type DeadReason struct {
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

// latency is the time from the end of a window to its result, as pages see it, of the last
// windows.
type latency struct {
	P50 float64 `json:"p50"` // milliseconds
	P99 float64 `json:"p99"`
}

// RouteLag is how many messages wait for the receiver of a route.
type RouteLag struct {
	Name    string  `json:"name"`
	Lag     int64   `json:"lag"`
	Seconds float64 `json:"seconds"`           // for how long the oldest of them has waited
	Problem string  `json:"problem,omitempty"` // what a person must end, although messages are taken
}

// Certificate is one of the connection to Kafka.
type Certificate struct {
	File string  `json:"file"` // or whose it is: the broker's has no file here
	Days float64 `json:"days"` // until it expires; negative if it has
}

// Disk is the disk that the program writes to.
type Disk struct {
	FreeBytes uint64 `json:"free_bytes"`
	UsedBytes uint64 `json:"used_bytes"` // by the program's own folders
}

// Problem is what a person should look at, and the command that helps.
type Problem struct {
	What    string `json:"what"`
	Command string `json:"command"`

	// Of a machine that is watched, its name and what to do, which a page words in its language.
	Machine     string   `json:"machine,omitempty"`
	Instruction *wording `json:"instruction,omitempty"`
}

// latencies are the last times from the end of a window to its result.
type latencies struct {
	last  [latencyWindow]float32 // milliseconds
	total int
}

const (
	latencyWindow = 512
	mostLatency   = time.Hour // more is a recording, or a clock that is wrong
)

// add notes that a result came at a time, of a window that ended at another.
func (l *latencies) add(end, at time.Time) {
	d := at.Sub(end)
	if d < 0 || d > mostLatency {
		return
	}
	l.last[l.total%latencyWindow] = float32(d.Seconds() * 1000)
	l.total++
}

// latency returns the median and the 99th percentile, nil if no result came.
func (l *latencies) latency() *latency {
	n := min(l.total, latencyWindow)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(l.last[:n]))
	at := func(share float64) float64 { return float64(sorted[min(n-1, int(share*float64(n)))]) }
	return &latency{at(0.5), at(0.99)}
}

// systemPage is an event of the page of the system.
type systemPage struct {
	pageHead
	System System `json:"system"`
}

// systemNow returns how the program is doing. Lists are never null.
func (x *server) systemNow(ctx context.Context) System {
	var s System
	if x.System != nil {
		s = x.System(ctx)
	}
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	s.Status, s.LatencyMS = x.hub.status, x.hub.latency.latency()
	s.Problems, s.Ledgers = slices.Concat(x.needy(), s.Problems), x.ledgers()
	s.Lag, s.Routes, s.Certificates, s.Problems = list(s.Lag), list(s.Routes), list(s.Certificates), list(s.Problems)
	if s.Dead != nil {
		s.Dead.Reasons = list(s.Dead.Reasons)
	}
	return s
}

const mostNeedy = 20 // machines that are named among the problems, or have their ledger on the page

// needy lists the machines that need a person, as their tiles say it: the worst first, then by name. x.hub.mu must be held.
func (x *server) needy() (all []Problem) {
	now := x.hub.now()
	var tiles []*Tile
	for _, m := range x.hub.machines {
		if t := m.tile(now); t.needsPerson() {
			tiles = append(tiles, t)
		}
	}
	slices.SortFunc(tiles, byRank)
	for i, t := range tiles {
		if i == mostNeedy {
			return append(all, Problem{What: fmt.Sprintf("%d more machines need a person", len(tiles)-i)})
		}
		all = append(all, x.hub.machines[t.Name].problem(t))
	}
	return all
}

// needsPerson reports whether a person should do something about the machine. A person has masked an alarm already, and
// an advisory that does not warn can wait.
func (t *Tile) needsPerson() bool {
	return t.Rank <= rankSensor && !masked(t.Alarm) || t.Rank == rankAdvisory && t.Advisories[0].Severity == "warning"
}

// problem words what is wrong with a machine that needs a person.
func (m *machine) problem(t *Tile) Problem {
	p := Problem{Machine: t.Name, Instruction: t.Instruction}
	switch a := m.unwatched(); {
	case t.Rank <= rankKnown:
		p.What = fmt.Sprintf("%s: the alarm %s is %s", t.Name, t.Incident, t.Alarm)
	case t.Rank == rankUnwatched:
		text, command, _ := strings.Cut(strings.TrimSuffix(a.Text, "`"), ": `")
		what := strings.TrimPrefix(text, event.ShortName(t.Name)+": ")
		return Problem{What: t.Name + ": " + what, Command: strings.ReplaceAll(command, "MACHINE", t.Name)}
	case t.Rank == rankWorn:
		p.What = fmt.Sprintf("%s: the wear of the tool is %v µm, its limit is %v µm", t.Name, *t.Wear.UM, *t.Wear.LimitUM)
	default:
		p.What = t.Name + ": " + strings.TrimPrefix(t.Advisories[0].Text, event.ShortName(t.Name)+": ")
	}
	return p
}

// list returns all, which is not nil: JSON has [] for it.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
