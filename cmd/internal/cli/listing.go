package cli

import (
	"encoding/json"
	"io"
)

// Listing is the flag of commands that print a table: for people, or for programs.
type Listing struct {
	Format string `short:"o" enum:"text,json" default:"text" help:"text or json (default: text)."`
}

// IsJSON reports whether a program reads the list.
func (l Listing) IsJSON() bool { return l.Format == "json" }

// PrintJSON prints a value as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
