package cli

import (
	"encoding/json"
	"io"
)

// Listing is the flag of commands that print a table: for people, or for programs. The tag `set` may give other "formats".
type Listing struct {
	Format string `short:"o" enum:"${formats}" default:"text" help:"Form of what is printed: ${enum} (default: ${default})."`
}

// Past is the flag of a list that also has alarms and labels that no longer count.
type Past struct {
	All bool `help:"Also list closed alarms, or revoked labels."`
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
