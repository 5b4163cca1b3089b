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

// complete returns how the last of words may go on: commands, flags, or values of a flag that takes
// one of a few.
func complete(node *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	flags := slices.Clone(node.Flags)
	find := func(word string) *kong.Flag {
		for _, f := range flags {
			if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) || slices.ContainsFunc(f.Aliases, func(a string) bool { return word == "--"+a }) {
				return f
			}
		}
		return nil
	}
	var value *kong.Flag // whose value comes next
	for _, word := range words[:len(words)-1] {
		if value != nil {
			value = nil
			continue
		}
		if strings.HasPrefix(word, "-") {
			if f := find(word); f != nil && !f.IsBool() && !f.IsCounter() {
				value = f
			}
			continue
		}
		if i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == word }); i >= 0 {
			node = node.Children[i]
			flags = append(flags, node.Flags...)
		}
	}
	last, found := words[len(words)-1], []string{}
	offer := func(s string) {
		if strings.HasPrefix(s, last) {
			found = append(found, s)
		}
	}
	switch {
	case value != nil:
		for _, v := range value.EnumSlice() {
			offer(v)
		}
	case strings.HasPrefix(last, "-"):
		for _, f := range flags {
			if !f.Hidden {
				offer("--" + f.Name)
			}
		}
	default:
		for _, c := range node.Children {
			if !c.Hidden {
				offer(c.Name)
			}
		}
	}
	return found
}
