// Command ingest streams the windows of machines to Kafka.
package main

import "github.com/flank-tcm/flank/cmd/internal/cli"

func main() { cli.Main("ingest", run) }
