package summary

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/flank-tcm/flank/internal/event"
)

const group = "tcm-monitor"

var t0 = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// open opens a store whose clock stands at t0.
func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, notice, err := Open(dir, group)
	if err != nil || notice != "" {
		t.Fatal(err, notice)
	}
	s.now = func() time.Time { return t0 }
	s.file.db.NoSync = true // these tests end the program, not the computer
	t.Cleanup(func() { s.Close() })
	return s
}

// crash ends a store as SIGKILL does, and opens its file again.
func (s *Store) crash(t testing.TB, dir string) *Store {
	t.Helper()
	if err := s.file.db.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

// result is the result of the seq-th second of a machine.
func result(machine string, seq uint64, v event.Verdict) *event.Result {
	start := t0.Add(time.Duration(seq) * time.Second)
	r := &event.Result{Machine: machine, Epoch: "00000000000000aa", Seq: seq, Tool: "T1", Start: start, End: start.Add(time.Second), Verdict: v, Threshold: 0.5}
	if v == event.Healthy || v == event.Faulty {
		r.Posterior, r.Score = []float64{0.5, 0.5}, 0.25
	}
	return r
}

func message(r *event.Result, offset int64) Message {
	return Message{At: r.End.Add(100 * time.Millisecond), Offset: offset, Result: r}
}

// put folds messages as the next ones of partition 0 of a topic.
func put(t testing.TB, s *Store, topic string, msgs ...Message) {
	t.Helper()
	next, _ := s.Begin(topic, 0, [16]byte{}, false)
	if err := s.Fold(Position{Topic: topic}, next+int64(len(msgs)), msgs); err != nil {
		t.Fatal(err)
	}
}

func putResults(t testing.TB, s *Store, results ...*event.Result) {
	t.Helper()
	var msgs []Message
	for i, r := range results {
		msgs = append(msgs, message(r, int64(i)))
	}
	put(t, s, "results", msgs...)
}

// alertAt is an alert that Kafka got some seconds after t0.
func alertAt(machine string, second int, state event.AlertState, incident string) *event.Alert {
	at := t0.Add(time.Duration(second) * time.Second)
	word := "raised"
	switch state {
	case event.Cleared, event.Retired, event.Renamed, event.ToolIsNew:
		word = "normal"
	case event.Acknowledged:
		word = "acknowledged"
	}
	return &event.Alert{
		ID: fmt.Sprintf("%s/%d/%s", machine, second, state), Machine: machine, Tool: "T1", State: state, Incident: incident, Alarm: word,
		At: at, Since: at.Add(-5 * time.Second), Faulty: 5, Of: 8,
	}
}

func putAlerts(t testing.TB, s *Store, alerts ...*event.Alert) {
	t.Helper()
	var msgs []Message
	for i, a := range alerts {
		msgs = append(msgs, Message{At: a.At, Offset: int64(i), Alert: a})
	}
	put(t, s, "alerts", msgs...)
}

// windows returns how many windows the store counts in a machine's history, by minutes.
func windows(t testing.TB, s *Store, machine string) int {
	t.Helper()
	h, err := s.History(machine, t0.Add(-time.Hour), t0.Add(12*time.Hour), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return sum(h.Points.Windows)
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// dump returns everything in the file, a line for each key.
func dump(t testing.TB, s *Store) string {
	t.Helper()
	var b strings.Builder
	var walk func(prefix string, bucket *bbolt.Bucket) error
	walk = func(prefix string, bucket *bbolt.Bucket) error {
		return bucket.ForEach(func(k, v []byte) error {
			if v == nil {
				return walk(prefix+fmt.Sprintf("%q/", k), bucket.Bucket(k))
			}
			fmt.Fprintf(&b, "%s%q = %q\n", prefix, k, v)
			return nil
		})
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	err := s.file.db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error { return walk(string(name)+"/", bucket) })
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// differ returns the first lines in which two texts differ.
func differ(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d:\n%s\n%s", i, as[i], bs[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(as), len(bs))
}
