package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"strings"

	"github.com/flank-tcm/flank/bench/columns"
)

//go:embed names.csv
var namesFile []byte

// name is a method's title, and what it is if it is one of Python's classifiers.
type name struct{ title, peer string }

var names = readNames()

func readNames() map[string]name {
	all := make(map[string]name)
	f, err := columns.Read(bytes.NewReader(namesFile), "names.csv", "method", "title", "peer")
	if err == nil {
		err = f.Each(func(r *columns.Row) error {
			all[r.Text("method")] = name{r.Text("title"), r.Text("peer")}
			return nil
		})
	}
	if err != nil {
		panic("study: " + err.Error()) // it is a part of the program
	}
	return all
}

// title returns what pages call a method.
func title(method string) string { return cmp.Or(names[method].title, method) }

func isPeer(method string) bool { return names[method].peer != "" }

// ofPaper returns our method for a column of the paper's tables, with the
// study's settings.
func ofPaper(column string) string { return strings.ToLower(column) }

// atPaperSettings returns the same with the paper's settings.
func atPaperSettings(column string) string { return ofPaper(column) + "-paper" }
