package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// manualFlag prints the manual page and ends the program.
type manualFlag bool

// BeforeReset is called by kong where the flag is given.
func (manualFlag) BeforeReset(app *kong.Kong) error {
	writeManual(app.Stdout, app.Model)
	app.Exit(0)
	return nil
}

// roff returns text as a line of a manual page that has no requests in it.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// paragraphs writes a description: lines that are indented are commands to type.
func paragraphs(w io.Writer, text string) {
	literal := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if indented := strings.HasPrefix(line, "  "); indented != literal && line != "" {
			literal = indented
			fmt.Fprintln(w, map[bool]string{true: ".RS\n.nf", false: ".fi\n.RE"}[literal])
		}
		if line == "" && !literal {
			fmt.Fprintln(w, ".PP")
			continue
		}
		fmt.Fprintln(w, roff(strings.TrimSpace(line)))
	}
	if literal {
		fmt.Fprintln(w, ".fi\n.RE")
	}
}

// writeManual writes the page of section 1 of a program: its commands with their flags and examples.
func writeManual(w io.Writer, app *kong.Application) {
	fmt.Fprintf(w, ".TH %s 1 \"\" %q\n.SH NAME\n", strings.ToUpper(app.Name), roff(Version()))
	first, rest, _ := strings.Cut(app.Help, "\n\n")
	fmt.Fprintf(w, "%s \\- %s\n.SH SYNOPSIS\n.B %s\n%s\n", roff(app.Name), roff(strings.ReplaceAll(strings.TrimSuffix(first, "."), "\n", " ")), app.Name,
		map[bool]string{true: "command [flags]", false: "[flags]"}[len(app.Children) > 0])
	if rest != "" {
		fmt.Fprintln(w, ".SH DESCRIPTION")
		paragraphs(w, rest)
	}
	manualFlags(w, app.Node, ".SH FLAGS")
	leaves := app.Leaves(true)
	if len(app.Children) > 0 {
		fmt.Fprintln(w, ".SH COMMANDS")
		for _, leaf := range leaves {
			fmt.Fprintf(w, ".SS %s\n", roff(strings.TrimPrefix(leaf.Summary(), app.Name+" ")))
			fmt.Fprintln(w, roff(leaf.Help))
			for at := leaf; at.Parent != nil; at = at.Parent {
				manualFlags(w, at, "")
			}
			if leaf.Detail != "" {
				fmt.Fprintln(w, ".PP")
				paragraphs(w, leaf.Detail)
			}
		}
	}
	fmt.Fprint(w, ".SH ENVIRONMENT\n.TP\n.B TCM_CONFIG\nThe configuration, where \\-\\-config is not given.\n.TP\n.B TCM_*\nKeys of the configuration: TCM_KAFKA_BROKERS is brokers below kafka.\n")
}

func manualFlags(w io.Writer, node *kong.Node, heading string) {
	for _, f := range node.Flags {
		if f.Hidden {
			continue
		}
		if heading != "" {
			fmt.Fprintln(w, heading)
			heading = ""
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", " + name
		}
		if !f.IsBool() {
			name += "=" + cmp.Or(f.PlaceHolder, strings.Trim(f.FormatPlaceHolder(), `"`))
		}
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(name), roff(f.Help))
	}
}
