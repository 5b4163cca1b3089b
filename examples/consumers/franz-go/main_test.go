package main

import (
	"context"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Alerts of a transaction that was aborted, repeats and events of other types are left out.
func TestRead(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "tcm.alerts.v1"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	address := broker.ListenAddrs()[0]
	c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.TransactionalID("monitor"), kgo.DefaultProduceTopic("tcm.alerts.v1"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	write := func(end kgo.TransactionEndTry, kind string, ids ...string) {
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			r := &kgo.Record{Value: []byte(id), Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte(kind)}, {Key: "ce_id", Value: []byte(id)}}}
			if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	write(kgo.TryCommit, "io.tcm.alert.v1", "raised")
	write(kgo.TryAbort, "io.tcm.alert.v1", "never happened")
	write(kgo.TryCommit, "io.tcm.advisory.v1", "silence")
	write(kgo.TryCommit, "io.tcm.alert.v1", "raised", "cleared")

	ctx, stop := context.WithCancel(t.Context())
	var got []string
	_ = read(ctx, address, func(alert string) {
		if got = append(got, alert); alert == "cleared" {
			stop()
		}
	})
	if want := []string{"raised", "cleared"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}
