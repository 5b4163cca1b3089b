// Command monitor judges windows and raises alerts.
package main

import "github.com/flank-tcm/flank/cmd/internal/cli"

func main() { cli.Main("monitor", run) }
