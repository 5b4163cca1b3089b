// Package command is what the programs of this module have in common.
package command

import (
	"context"
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

// List returns the parts of a list with commas, none of an empty one.
func List(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
