// Command trainer builds and examines models of tool condition.
package main

import "github.com/flank-tcm/flank/cmd/internal/cli"

func main() { cli.Main("trainer", run) }
