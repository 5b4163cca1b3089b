package bus

import (
	"fmt"
	"slices"
	"testing"
)

// A record stays while a transaction that writes a newer one is open, and after the
// transaction is aborted.
func TestCompactionAndTransactions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  int
		want string
	}{
		"committed": {commitIt, "new"},
		"aborted":   {abortIt, "old"},
		"open":      {leaveOpen, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := StartBroker(t.TempDir(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			cfg := b.Config("test")
			apply(t, cfg, 1)
			write := func(id, value string, end int) {
				inTransaction(t, cfg, id, []Message{{Topic: TopicState, Key: "k", Value: []byte(value)}, {Topic: TopicState, Key: "other", Value: []byte(value)}}, end)
			}
			for i := range 3 {
				write("first", fmt.Sprint(i), commitIt)
			}
			write("first", "old", commitIt)
			write("second", "new", leaveOpen)
			if tc.end != leaveOpen {
				b.compact()
				readAll(t, cfg, TopicState) // requests, before which nothing may be compacted
				write("second", "new", tc.end)
			}
			b.compact()
			got := readAll(t, cfg, TopicState)["k"]
			if len(got) == 0 || got[len(got)-1] != tc.want {
				t.Errorf("the record is %q, want %q as the last", got, tc.want)
			}
			if tc.end != leaveOpen && slices.Contains(got, "0") {
				t.Errorf("nothing was compacted: %q", got)
			}
		})
	}
}

// A record stays visible if compaction has removed an earlier, aborted transaction of its
// producer together with the end marker.
func TestCompactedAbort(t *testing.T) {
	t.Parallel()
	b, err := StartBroker(t.TempDir(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cfg := b.Config("test")
	apply(t, cfg, 1)
	write := func(id, key, value string, end int) {
		inTransaction(t, cfg, id, []Message{{Topic: TopicState, Key: key, Value: []byte(value)}}, end)
	}
	write("second", "first of all", "kept", commitIt)
	write("first", "k", "aborted", abortIt)
	write("second", "other", "kept", commitIt)
	b.compact()
	readAll(t, cfg, TopicState) // a request, before which it is compacted
	write("first", "k", "new", commitIt)
	write("first", "k", "aborted later", abortIt)
	write("second", "last of all", "kept", commitIt)
	got := readAll(t, cfg, TopicState)
	if !slices.Equal(got["k"], []string{"new"}) || len(got["first of all"]) != 1 || len(got["last of all"]) != 1 {
		t.Errorf("read %q", got)
	}
}
