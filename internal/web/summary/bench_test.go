package summary

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// fill folds results of machines whose tools last four hours and that have an alarm each day:
// one result in so many seconds, and one each hour where minutes are not kept.
func fill(b *testing.B, s *Store, machines, days, every int) {
	b.Helper()
	begin := t0.AddDate(0, 0, -days)
	var msgs []Message
	cut := time.Hour // that a result stands for
	for second := 0; second < days*86400; {
		at := begin.Add(time.Duration(second) * time.Second)
		s.now = func() time.Time { return at }
		for m := range machines {
			r := result(fmt.Sprintf("plant/m%d", m), uint64(second), event.Healthy)
			r.Start, r.End, r.Tool, r.Hole = at.Add(-cut), at, fmt.Sprint("T", second/14400), fmt.Sprint("H", second/60%240)
			r.Wear = &event.Wear{WearUM: float64(second % 14400), WearLowUM: 1, WearHighUM: 2}
			msgs = append(msgs, Message{At: at, Result: r})
		}
		if second%86400 == 0 {
			for m := range machines {
				a := alertAt(fmt.Sprintf("plant/m%d", m), 0, event.Raised, fmt.Sprintf("A-%d-%08d", m, second))
				a.ID, a.At, a.Trace = fmt.Sprint(m, "/", second), at, make([]event.Point, event.MaxTrace)
				put(b, s, "alerts", Message{At: at, Alert: a})
			}
		}
		if len(msgs) >= 500 {
			put(b, s, "results", msgs...)
			msgs = msgs[:0]
		}
		if second += 3600; t0.Sub(at) < keepMinutes+time.Hour {
			second += every - 3600
			cut = time.Duration(every) * time.Second
		}
	}
	put(b, s, "results", msgs...)
	s.now = func() time.Time { return t0 }
}

// The history of 90 days, of a machine among ten.
func BenchmarkHistory90Days(b *testing.B) {
	s := open(b, b.TempDir())
	fill(b, s, 10, 90, 60)
	points := 0
	for b.Loop() {
		h, err := s.History("plant/m0", t0.AddDate(0, 0, -83), t0, time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		points = len(h.Points.T)
		if len(h.Alarms) < 80 || len(h.Tools) < 400 {
			b.Fatalf("%d alarms, %d tools", len(h.Alarms), len(h.Tools))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/query")
	b.ReportMetric(float64(points), "points")
}

// The same by hole, where the machine has as many holes as are kept.
func BenchmarkHoles90Days(b *testing.B) {
	s := open(b, b.TempDir())
	fill(b, s, 10, 90, 60)
	points := 0
	for b.Loop() {
		h, err := s.History("plant/m0", t0.AddDate(0, 0, -83), t0, ByHole)
		if err != nil {
			b.Fatal(err)
		}
		points = len(h.Points.T)
		if h.Holes < 15_000 || len(h.Alarms) < 80 {
			b.Fatalf("%d holes, %d alarms", h.Holes, len(h.Alarms))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/query")
	b.ReportMetric(float64(points), "points")
}

// What a result costs where 500 machines send one each second, with the writing.
func BenchmarkFold(b *testing.B) {
	s := open(b, b.TempDir())
	s.file.db.NoSync = false
	now := t0
	s.now = func() time.Time { return now }
	const machines = 500
	names := make([]string, machines)
	for m := range names {
		names[m] = fmt.Sprintf("plant/m%d", m)
	}
	holes := []string{"H1", "H2", "H3"}
	msgs := make([]Message, machines)
	seconds := uint64(0)
	for b.Loop() {
		now = t0.Add(time.Duration(seconds) * time.Second)
		for m := range msgs {
			r := result(names[m], seconds, event.Healthy)
			r.Wear, r.Hole = &event.Wear{WearUM: 1, WearLowUM: 1, WearHighUM: 2}, holes[seconds/60%uint64(len(holes))]
			msgs[m] = message(r, 0)
		}
		put(b, s, "results", msgs...)
		seconds++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/machines/1000, "µs/result")
}

// How large the file is when it holds all that it keeps of a machine: hours of 400 days,
// minutes of 15.
func BenchmarkSize(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		s := open(b, dir)
		fill(b, s, 4, 400, 60)
		s.pruned = time.Time{}
		if err := s.Tick(); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, File))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/4e6, "MB/machine")
	}
}
