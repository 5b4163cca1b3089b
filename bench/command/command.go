// Package command is what the programs of this module have in common.
package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

// Main runs a program until it ends or is interrupted, and names it in its error.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Flags returns the flags of a program, or of a part of it. What is wrong with them is printed to stderr.
func Flags(name string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	return flags
}

// List returns the parts of a list with commas, none of an empty one.
func List(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
