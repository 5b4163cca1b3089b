package bus

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
)

// copyFolder copies a folder in the state in which a kill would leave it.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// After any number of kills with an open transaction, an embedded broker shows every
// message that is committed later and no message that was not committed.
func TestBrokerKilledInATransaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	for life := range 3 {
		b, err := StartBroker(dir, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		cfg := b.Config("test")
		apply(t, cfg, 1)
		withPartition(t, cfg, func(ctx context.Context, p *Partition) {
			txn := fence(t, ctx, p)
			for i := range 2 {
				value := fmt.Sprint(life, "/", i)
				if err := txn.Publish(ctx, []Message{message(TopicState, value, value), message(TopicResults, "k", value)}, nil); err != nil {
					t.Fatal(err)
				}
				want = append(want, value)
			}
			outs, err := txn.plan(ctx, []Message{message(TopicState, "open", "open"), message(TopicResults, "k", "open")})
			if err == nil {
				err = txn.write(ctx, outs, map[string]int64{TopicWindows: 0})
			}
			if err != nil {
				t.Fatal(err)
			}
			dir = copyFolder(t, dir)
		})
		if got := committed(t, cfg, TopicResults, 0); !slices.Equal(got, want) {
			t.Errorf("life %d, before the kill: %q, want %q", life, got, want)
		}
		b.Close()
	}
	b, err := StartBroker(dir, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, topic := range []string{TopicState, TopicResults} {
		if got := committed(t, b.Config("test"), topic, 0); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
	}
}
