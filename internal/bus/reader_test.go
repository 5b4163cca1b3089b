package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// A member reads the same partition of another topic from the position that it has published,
// sees committed messages only, and gives the memory back.
func TestReaderOfAnotherTopic(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	fetch := func(ctx context.Context, r *Reader, n int) (values []string) {
		t.Helper()
		for len(values) < n {
			msgs, err := r.Fetch(ctx, 2, time.Millisecond)
			if err != nil {
				t.Error(err)
				return values
			}
			for _, m := range msgs {
				values = append(values, fmt.Sprint(m.Offset, " ", string(m.Value)))
			}
		}
		return values
	}
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p, TopicFeatures)
		publish := func(position int64, values ...string) {
			t.Helper()
			var msgs []Message
			for _, v := range values {
				msgs = append(msgs, message(TopicFeatures, "m", v))
			}
			if err := txn.Publish(ctx, msgs, map[string]int64{TopicFeatures: position}); err != nil {
				t.Fatal(err)
			}
		}
		publish(0, "a", "b", "c")
		end := int64(-1)
		r := txn.Reader(TopicFeatures, txn.Position(TopicFeatures), func(e int64) { end = max(end, e) })
		if got, want := fetch(ctx, r, 3), []string{"0 a", "1 b", "2 c"}; !slices.Equal(got, want) || end < 3 || r.Next() < 3 {
			t.Errorf("%q up to %d, next %d, want %q", got, end, r.Next(), want)
		}
		publish(2)
		r.Close()
		if p.f.budget.free != p.f.budget.size {
			t.Errorf("%d bytes of %d are free", p.f.budget.free, p.f.budget.size)
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if msgs, err := r.Fetch(short, 1, 0); len(msgs) > 0 && msgs[0].Offset < 3 || err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end: %v, %v", msgs, err)
		}
		if _, last, err := Bounds(ctx, cfg, TopicFeatures, 0); err != nil || r.Next() != last {
			t.Errorf("next %d, the partition ends at %d, %v", r.Next(), last, err)
		}
		r.Close()
		owner := fence(t, ctx, p, TopicFeatures)
		again := owner.Reader(TopicFeatures, owner.Position(TopicFeatures), nil)
		if got := fetch(ctx, again, 1); len(got) == 0 || got[0] != "2 c" {
			t.Errorf("from the position on: %q", got)
		}
		again.Close()
	})
}
