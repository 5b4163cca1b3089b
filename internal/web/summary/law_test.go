package summary

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/event"
)

// sent is one message of a topic, in the order in which Kafka got all of them.
type sent struct {
	topic     string
	partition int
	Message
}

// drawStream draws what monitors publish about three machines of two partitions: windows that
// come late or again, also of shadows, tools that change, alarms, machines that get another name or are retired.
func drawStream(t *rapid.T) (stream []sent) {
	seqs, shadows, next := make(map[string]uint64), make(map[string]uint64), make(map[string]int64)
	at := t0
	for i := range rapid.IntRange(1, 60).Draw(t, "messages") {
		at = at.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
		n := rapid.IntRange(0, 2).Draw(t, "machine")
		m := sent{partition: n % 2}
		m.At, m.topic = at, "results"
		name := fmt.Sprintf("m%d", n)
		switch kind := rapid.IntRange(0, 21).Draw(t, "kind"); {
		case kind < 14:
			m.Result = drawResult(t, name, at, seqs)
			m.Result.Model = rapid.SampledFrom([]string{"old", "new"}).Draw(t, "model")
		case kind < 17:
			m.topic = "alerts"
			m.Alert = alertAt(name, i, rapid.SampledFrom(event.AlertStates).Draw(t, "state"), rapid.SampledFrom([]string{"", "A-" + name, "B-" + name}).Draw(t, "incident"))
			m.Alert.Was = fmt.Sprintf("m%d", rapid.IntRange(0, 2).Draw(t, "was"))
			if rapid.IntRange(0, 4).Draw(t, "again") == 0 {
				m.Alert.ID = name + "/again"
			}
		case kind < 18:
			m.topic = "alerts"
			m.Evidence = &event.Evidence{ID: fmt.Sprint(i), Machine: name, Incident: "A-" + name}
		case kind < 20:
			m.topic = "shadow"
			m.Shadow = drawResult(t, name, at, shadows)
			m.Shadow.Model = rapid.SampledFrom([]string{"new", "newer"}).Draw(t, "shadow")
			m.Shadow.Champion = &event.Champion{Model: "old", Verdict: event.Healthy}
		default:
			m.topic = "alerts"
			state := rapid.SampledFrom([]event.AlertState{event.Raised, event.Cleared}).Draw(t, "advised")
			m.Advisory = &event.Advisory{ID: fmt.Sprint(i), Machine: name, Kind: event.SensorAdvisory, Subject: "ch1", State: state, Since: at, At: at}
		}
		key := fmt.Sprint(m.topic, m.partition)
		next[key] += int64(rapid.IntRange(1, 2).Draw(t, "offset")) // the end of a transaction takes one
		m.Offset = next[key]
		stream = append(stream, m)
	}
	return stream
}

func drawResult(t *rapid.T, name string, at time.Time, seqs map[string]uint64) *event.Result {
	seqs[name]++
	r := result(name, seqs[name], rapid.SampledFrom(append(event.Verdicts, "later_release")).Draw(t, "verdict"))
	r.Start, r.End = at.Add(-1100*time.Millisecond), at.Add(-100*time.Millisecond)
	r.Tool = rapid.SampledFrom([]string{"", "T1", "T2"}).Draw(t, "tool")
	r.Hole = rapid.SampledFrom([]string{"", "H1", "H2", "H3"}).Draw(t, "hole")
	r.Score = float64(rapid.IntRange(0, 1000).Draw(t, "score")) / 1000
	if r.Verdict == event.Learning {
		low := float32(rapid.IntRange(-9, 0).Draw(t, "low"))
		r.Ranges = []event.Range{{Channel: rapid.SampledFrom([]string{"ch1", "ch2"}).Draw(t, "channel"), Low: low, High: low + 5}}
	}
	if rapid.Bool().Draw(t, "worn") {
		um := float64(rapid.IntRange(0, 300).Draw(t, "wear"))
		r.Wear = &event.Wear{WearUM: um, WearLowUM: um - 10, WearHighUM: um + 10}
	}
	switch rapid.IntRange(0, 9).Draw(t, "order") {
	case 0: // again
		r.Seq = max(r.Seq, 4) - 3
	case 1: // late, of a window before
		r.Late, r.Start, r.End = true, r.Start.Add(-2*time.Hour), r.End.Add(-2*time.Hour)
	}
	return r
}

// foldAll folds a stream from where the store left off.
func foldAll(t testing.TB, s *Store, stream []sent) {
	for _, m := range stream {
		if from, _ := s.Begin(m.topic, m.partition, [16]byte{}, false); m.Offset < from {
			continue
		}
		if err := s.Fold(Position{Topic: m.topic, Partition: m.partition}, m.Offset+1, []Message{m.Message}); err != nil {
			t.Fatal(err)
		}
	}
}

// Folding a stream in parts, with kills in between and other times of writing, leaves the same
// file as folding it at once: every result counts once.
func TestKillsChangeNothing(t *testing.T) {
	root := t.TempDir()
	tries := 0
	rapid.Check(t, func(rt *rapid.T) {
		tries++
		stream := drawStream(rt)
		dir := filepath.Join(root, fmt.Sprint(tries))
		whole := open(t, "")
		foldAll(t, whole, stream)
		want := dump(t, whole)
		parts := open(t, filepath.Join(dir, "parts"))
		for range rapid.IntRange(0, 3).Draw(rt, "kills") {
			foldAll(t, parts, stream[:rapid.IntRange(0, len(stream)).Draw(rt, "until")])
			switch rapid.IntRange(0, 2).Draw(rt, "end") {
			case 0:
				parts = parts.crash(t, filepath.Join(dir, "parts"))
			case 1:
				if err := parts.Flush(); err != nil {
					rt.Fatal(err)
				}
			case 2:
				if err := parts.Forget(); err != nil {
					rt.Fatal(err)
				}
			}
		}
		foldAll(t, parts, stream)
		if got := dump(t, parts); got != want {
			rt.Fatal(differ(got, want))
		}
		parts.Close()
		whole.Close()
		os.RemoveAll(dir)
	})
}

// The row of an hour is the sum of the rows of its minutes, and all rows together count every
// window once.
func TestHoursAreSumsOfMinutes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, _, err := Open("", group)
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		s.now = func() time.Time { return t0 }
		seqs := make(map[string]uint64)
		seen := make(map[uint64]bool)
		at := t0
		for i := range rapid.IntRange(1, 60).Draw(rt, "messages") {
			at = at.Add(time.Duration(rapid.IntRange(0, 600).Draw(rt, "seconds")) * time.Second)
			r := drawResult(rt, "m", at, seqs)
			seen[r.Seq] = true
			put(t, s, "results", Message{At: at, Offset: int64(i), Result: r})
		}
		minutes, hours := make(map[int64]*row), make(map[int64]*row)
		total := 0
		for t, r := range rowsOf(s, inMinutes) {
			into := minutes[floor(t, 3600)]
			if into == nil {
				into = new(row)
				minutes[floor(t, 3600)] = into
			}
			into.add(&r)
			total += r.windows()
		}
		for t, r := range rowsOf(s, inHours) {
			hours[t] = &r
			if minutes[t] == nil || *minutes[t] != r {
				rt.Fatalf("hour %d is %+v, its minutes %+v", t, r, minutes[t])
			}
		}
		if len(hours) != len(minutes) || total != len(seen) {
			rt.Fatalf("%d hours, minutes of %d hours; %d windows, want %d", len(hours), len(minutes), total, len(seen))
		}
	})
}

// Holes count every window that names one once. Windows that come too late for their hole are
// left out.
func TestHolesCountWindowsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, _, err := Open("", group)
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		s.now = func() time.Time { return t0 }
		seqs := make(map[string]uint64)
		want, late := make(map[uint64]bool), make(map[uint64]bool)
		seen := make(map[uint64]bool)
		at := t0
		for i := range rapid.IntRange(1, 60).Draw(rt, "messages") {
			at = at.Add(time.Duration(rapid.IntRange(1, 600).Draw(rt, "seconds")) * time.Second)
			r := drawResult(rt, "m", at, seqs)
			switch {
			case seen[r.Seq] || r.Hole == "":
			case r.Late:
				late[r.Seq] = true
			default:
				want[r.Seq] = true
			}
			seen[r.Seq] = true
			put(t, s, "results", Message{At: at, Offset: int64(i), Result: r})
		}
		h, err := s.History("m", t0.Add(-24*time.Hour), t0.Add(24*time.Hour), ByHole)
		if err != nil {
			rt.Fatal(err)
		}
		inTime := sum(h.Points.Windows) - sum(h.Points.Late)
		if inTime != len(want) || sum(h.Points.Late) > len(late) || h.Holes != len(h.Points.T) {
			rt.Fatalf("%d windows in time and %d late ones in %d holes; want %d and at most %d", inTime, sum(h.Points.Late), h.Holes, len(want), len(late))
		}
		for i, name := range h.Points.Hole {
			if name == "" || h.Points.End[i] < h.Points.T[i] {
				rt.Fatalf("hole %d is named %q, and is from %d to %d", i, name, h.Points.T[i], h.Points.End[i])
			}
		}
	})
}

// rowsOf returns the rows of machine m.
func rowsOf(s *Store, bucket []byte) map[int64]row {
	rows := make(map[int64]row)
	id := s.ids()["m"]
	_ = s.Flush()
	tx, err := s.file.db.Begin(false)
	if err != nil {
		panic(err)
	}
	defer tx.Rollback()
	c := bucketOf(tx, id, bucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		var r row
		if err := r.parse(v); err != nil {
			panic(err)
		}
		t, _ := keyTime(k)
		rows[t] = r
	}
	return rows
}
