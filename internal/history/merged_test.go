package history

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
)

// Messages of all partitions come in the order of their times, and those of a partition in its
// own order, also where that is another one.
func TestReadMerged(t *testing.T) {
	b, err := bus.StartBroker(t.TempDir(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cfg := b.Config("test")
	if _, err := bus.Apply(t.Context(), cfg, 3, 1); err != nil {
		t.Fatal(err)
	}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	shift := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	var msgs []bus.Message
	for i := range 400 {
		at := shift.Add(time.Duration(i) * 10 * time.Minute)
		for m := range 5 {
			msgs = append(msgs, bus.Message{Topic: bus.TopicFeatures, Key: fmt.Sprintf("m%d", m), Time: at.Add(time.Duration(m) * time.Second), Value: []byte(fmt.Sprint(i))})
		}
	}
	for some := range slices.Chunk(msgs, 20) { // the embedded broker finds a time only at the beginning of a batch
		if err := out.Send(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
	read := func(since, until time.Time, most int) (times []time.Time, err error) {
		next := make(map[string]string)
		err = ReadMerged(t.Context(), cfg, bus.TopicFeatures, since, until, func(m bus.Message) error {
			if want, ok := next[m.Key]; ok && want != string(m.Value) {
				t.Fatalf("%s: message %s, want %s", m.Key, m.Value, want)
			}
			var i int
			fmt.Sscan(string(m.Value), &i)
			next[m.Key] = fmt.Sprint(i + 1)
			if times = append(times, m.Time); len(times) == most {
				return errors.New("enough")
			}
			return nil
		})
		return times, err
	}
	times, err := read(time.Time{}, time.Time{}, 0)
	if err != nil || len(times) != len(msgs) || !slices.IsSortedFunc(times, time.Time.Compare) {
		t.Errorf("%d messages, %v", len(times), err)
	}
	from, to := shift.Add(10*time.Hour), shift.Add(20*time.Hour)
	times, err = read(from, to, 0)
	within := slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool { return at.Before(from) || !at.Before(to) })
	if err != nil || len(within) != 300 || times[0].Before(from.Add(-clockMargin)) || times[len(times)-1].After(to.Add(sendMargin)) {
		t.Errorf("%d messages, %d of the time, %v", len(times), len(within), err)
	}
	if times, err = read(time.Time{}, time.Time{}, 7); len(times) != 7 || err == nil || err.Error() != "enough" {
		t.Errorf("%d messages, %v", len(times), err)
	}
}
