// Command standalone runs all of Flank in one process: broker, gateway,
// monitor and dashboard.
package main

import "github.com/flank-tcm/flank/cmd/internal/cli"

func main() { cli.Main("standalone", run) }
