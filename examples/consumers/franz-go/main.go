// Command franz-go prints each alert of a plant once: go run ./examples/consumers/franz-go localhost:9092
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	fmt.Fprintln(os.Stderr, read(context.Background(), os.Args[1], func(alert string) { fmt.Println(alert) }))
}

// read calls each with the JSON of every alert, in order of each machine, until ctx ends.
func read(ctx context.Context, broker string, each func(alert string)) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics("tcm.alerts.v1"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer c.Close()
	seen := make(map[string]bool) // a program that runs for years forgets the oldest
	for f := c.PollFetches(ctx); f.Err0() == nil; f = c.PollFetches(ctx) {
		for _, r := range f.Records() {
			h := make(map[string]string)
			for _, one := range r.Headers {
				h[one.Key] = string(one.Value)
			}
			if h["ce_type"] == "io.tcm.alert.v1" && !seen[h["ce_id"]] {
				seen[h["ce_id"]] = true
				each(string(r.Value))
			}
		}
	}
	return ctx.Err()
}
