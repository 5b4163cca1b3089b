package web

import (
	"context"
	"fmt"
	"maps"
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
	LatencyMS    *Latency      `json:"latency_ms,omitempty"`
	Routes       []RouteLag    `json:"routes"`
	Certificates []Certificate `json:"certificates"`
	Disk         *Disk         `json:"disk,omitempty"`
	Problems     []Problem     `json:"problems"` // the worst first
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

// Latency is the time from the end of a window to its result, as pages see it, of the last
// windows.
type Latency struct {
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
func (l *latencies) latency() *Latency {
	n := min(l.total, latencyWindow)
	if n == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(l.last[:n]))
	at := func(share float64) float64 { return float64(sorted[min(n-1, int(share*float64(n)))]) }
	return &Latency{at(0.5), at(0.99)}
}

// systemPage is an event of the page of the system.
type systemPage struct {
	pageHead
	System System `json:"system"`
}

// systemNow returns how the program is doing. Lists are never null.
func (h *Hub) systemNow(ctx context.Context) System {
	var s System
	if h.system != nil {
		s = h.system(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Status, s.LatencyMS = h.status, h.latency.latency()
	s.Problems = slices.Concat(h.unwatched(), s.Problems)
	s.Lag, s.Routes, s.Certificates, s.Problems = list(s.Lag), list(s.Routes), list(s.Certificates), list(s.Problems)
	if s.Dead != nil {
		s.Dead.Reasons = list(s.Dead.Reasons)
	}
	return s
}

const mostUnwatched = 20 // machines that are named among the problems

// unwatched lists the machines that are not watched. h.mu must be held.
func (h *Hub) unwatched() (all []Problem) {
	more := 0
	for _, name := range slices.Sorted(maps.Keys(h.machines)) {
		a := h.machines[name].unwatched()
		switch {
		case a == nil:
		case len(all) == mostUnwatched:
			more++
		default:
			text, command, _ := strings.Cut(strings.TrimSuffix(a.Text, "`"), ": `")
			what := strings.TrimPrefix(text, event.ShortName(name)+": ")
			all = append(all, Problem{name + ": " + what, strings.ReplaceAll(command, "MACHINE", name)})
		}
	}
	if more > 0 {
		all = append(all, Problem{fmt.Sprintf("%d more machines are not watched", more), ""})
	}
	return all
}

// list returns all, which is not nil: JSON has [] for it.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
