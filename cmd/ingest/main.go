// Command ingest streams the windows of a machine to Kafka.
package main

import "github.com/flank-tcm/flank/cmd/internal/cli"

func main() { cli.Main("ingest", run) }
