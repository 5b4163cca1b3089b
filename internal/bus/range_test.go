package bus

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestReadRange(t *testing.T) {
	t.Parallel()
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	out := newProducer(t, cfg)
	send := func(values string) {
		var msgs []Message
		for _, v := range values {
			msgs = append(msgs, Message{Topic: TopicWindows, Key: "m", Value: []byte(string(v))})
		}
		if err := out.Send(t.Context(), msgs); err != nil {
			t.Fatal(err)
		}
	}
	send("01234")
	last := time.Now() // the broker has the same clock, and has these
	for time.Now().Before(last.Add(2 * time.Millisecond)) {
		time.Sleep(time.Millisecond) // Kafka's clock has ticks of that size
	}
	send("56789")
	for name, tc := range map[string]struct {
		r    Range
		want string
	}{
		"everything":              {Range{}, "0123456789"},
		"offsets":                 {Range{From: 3, To: 6}, "345"},
		"from an offset":          {Range{From: 8}, "89"},
		"to an offset":            {Range{To: 2}, "01"},
		"since long ago":          {Range{Since: last.Add(-time.Hour)}, "0123456789"},
		"since before all clocks": {Range{Since: time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)}, "0123456789"},
		"since a time":            {Range{Since: last.Add(time.Millisecond)}, "56789"},
		"since a time, to":        {Range{Since: last.Add(time.Millisecond), To: 7}, "56"},
		"since a time to come":    {Range{Since: last.Add(time.Hour)}, ""},
		"offsets that are beyond": {Range{From: 99, To: 120}, ""},
		"the wrong way round":     {Range{From: 6, To: 3}, ""},
	} {
		var got strings.Builder
		err := ReadRange(t.Context(), cfg, TopicWindows, 0, tc.r, func(m Message) error {
			got.Write(m.Value)
			return nil
		})
		if err != nil || got.String() != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, got.String(), err, tc.want)
		}
	}
	enough := errors.New("enough")
	if err := ReadRange(t.Context(), cfg, TopicWindows, 0, Range{}, func(Message) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("fn failed: %v", err)
	}
	if err := ReadRange(context.Background(), cfg, "absent", 0, Range{}, nil); !errors.Is(err, ErrNoTopic) {
		t.Errorf("a missing topic: %v", err)
	}
}
