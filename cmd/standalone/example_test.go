package main

import (
	"context"
	"fmt"
	"os"
)

// The main job, once: monitor the life of one more tool, and print a
// summary as JSON. It takes seconds, so that go test only compiles it; make
// smoke runs it.
func Example() {
	dir, err := os.MkdirTemp("", "flank")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := run(context.Background(), []string{"--once", "--speed", "8", "--data-dir", dir}, os.Stdout, os.Stderr); err != nil {
		fmt.Println(err)
	}
}
