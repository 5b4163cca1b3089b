package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completions are the scripts that let a shell ask a program how a word may go on. Where the program
// knows nothing, the shell offers files.
var completions = map[string]string{
	"bash": `_%[1]s() {
	mapfile -t COMPREPLY < <(%[1]s --complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -o nosort -F _%[1]s %[1]s
`,
	"zsh": `#compdef %[1]s
_%[1]s() {
	local -a words_
	words_=(${(f)"$(%[1]s --complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
	if (( ${#words_} )); then compadd -V %[1]s -- $words_; else _files; fi
}
compdef _%[1]s %[1]s
`,
	"fish": `function __%[1]s_complete
	set -l words (commandline -opc) (commandline -ct)
	%[1]s --complete -- $words[2..-1] 2>/dev/null
end
complete -c %[1]s -k -a '(__%[1]s_complete)'
`,
}

// completionFlag prints the script of a shell and ends the program.
type completionFlag string

// BeforeReset is called by kong where the flag is given.
func (completionFlag) BeforeReset(app *kong.Kong, ctx *kong.Context) error {
	for _, p := range ctx.Path {
		if p.Flag != nil && p.Flag.Name == "completion" {
			shell := fmt.Sprint(ctx.FlagValue(p.Flag))
			script, ok := completions[shell]
			if !ok {
				return fmt.Errorf("--completion %s: must be bash, zsh or fish", shell)
			}
			fmt.Fprintf(app.Stdout, script, app.Model.Name)
			app.Exit(0)
		}
	}
	return nil
}

// Complete returns how the last of words may go on, which are typed after the name of a program: commands, flags, or values of a flag that takes
// one of a few.
func Complete(node *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	flags := slices.Clone(node.Flags)
	var value *kong.Flag // whose value comes next
	for _, word := range words[:len(words)-1] {
		if value != nil {
			value = nil
			continue
		}
		if i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return isNamed(f, word) }); i >= 0 && !flags[i].IsBool() && !flags[i].IsCounter() {
			value = flags[i]
		}
		if i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == word }); i >= 0 {
			node = node.Children[i]
			flags = append(flags, node.Flags...)
		}
	}
	last := words[len(words)-1]
	return slices.DeleteFunc(candidates(node, flags, value, last), func(s string) bool { return !strings.HasPrefix(s, last) })
}

// isNamed reports whether a word of a command line is the flag.
func isNamed(f *kong.Flag, word string) bool {
	return word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) || slices.ContainsFunc(f.Aliases, func(a string) bool { return word == "--"+a })
}

// candidates returns what may stand at the place of the last word: values of a flag, flags, or commands.
func candidates(node *kong.Node, flags []*kong.Flag, value *kong.Flag, last string) []string {
	found := []string{}
	switch {
	case value != nil:
		return value.EnumSlice()
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			if !f.Hidden {
				found = append(found, "--"+f.Name)
			}
		}
	default:
		for _, c := range node.Children {
			if !c.Hidden {
				found = append(found, c.Name)
			}
		}
	}
	return found
}
