package bus

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// fiveMachines sends 400 messages of each of five machines.
func fiveMachines(t *testing.T) (cfg Config, sent int) {
	t.Helper()
	_, cfg = startBroker(t)
	apply(t, cfg, 3)
	out := newProducer(t, cfg)
	var msgs []Message
	for i := range 400 {
		for m := range 5 {
			msgs = append(msgs, Message{Topic: TopicFeatures, Key: fmt.Sprintf("m%d", m), Value: []byte(fmt.Sprint(i))})
		}
	}
	for some := range slices.Chunk(msgs, 500) {
		if err := out.Send(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
	return cfg, len(msgs)
}

// Messages of all partitions come in the order of their times, and messages of a partition in its
// own order, also where that is another one.
func TestReadMerged(t *testing.T) {
	cfg, sent := fiveMachines(t)
	read := func(since time.Time, beyond func(Message) bool, most int) (times []time.Time, err error) {
		next := make(map[string]string)
		err = ReadMerged(t.Context(), cfg, TopicFeatures, since, beyond, func(m Message) error {
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
	all := func(Message) bool { return false }
	times, err := read(time.Time{}, all, 0)
	if err != nil || len(times) != sent || !slices.IsSortedFunc(times, time.Time.Compare) {
		t.Errorf("%d messages, %v", len(times), err)
	}
	now := time.Now() // when the broker got them
	tenth := func(m Message) bool { return string(m.Value) == "10" }
	for name, tc := range map[string]struct {
		since  time.Time
		beyond func(Message) bool
		want   int
	}{
		"since before":         {now.Add(-time.Minute), all, sent},
		"within the margin":    {now.Add(ClockMargin - time.Minute), all, sent},
		"since a time to come": {now.Add(ClockMargin + time.Minute), all, 0},
		"up to a message":      {time.Time{}, tenth, 10 * 5},
	} {
		if times, err := read(tc.since, tc.beyond, 0); err != nil || len(times) != tc.want {
			t.Errorf("%s: %d messages, want %d, %v", name, len(times), tc.want, err)
		}
	}
	if times, err = read(time.Time{}, all, 7); len(times) != 7 || err == nil || err.Error() != "enough" {
		t.Errorf("%d messages, %v", len(times), err)
	}
}
