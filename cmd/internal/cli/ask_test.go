package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// What may be a mistake is asked about in a terminal, and refused elsewhere, unless --anyway is given.
func TestAsk(t *testing.T) {
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	was := answers
	defer func() { answers = was }()
	doubts := []string{"it falls", "no tool\x1b"}
	for _, tc := range []struct {
		doubts []string
		from   io.Reader
		anyway bool
		fails  string
		asks   bool
	}{
		{nil, none, false, "", false},
		{doubts, none, true, "", false},
		{doubts, none, false, "it falls; no tool\x1b: nothing is done: correct it, or give --anyway", false},
		{doubts, strings.NewReader("Y\n"), false, "", true},
		{doubts, strings.NewReader("yes"), false, "", true},
		{doubts, strings.NewReader("\n"), false, "nothing is done", true},
		{doubts, strings.NewReader(""), false, "nothing is done", true},
	} {
		var said bytes.Buffer
		answers = tc.from
		err := Doubted{Anyway: tc.anyway}.Ask(tc.doubts, Output{Stderr: &said})
		if (err == nil) != (tc.fails == "") || err != nil && err.Error() != tc.fails || tc.asks != strings.Contains(said.String(), "it falls\nno tool") || strings.Contains(said.String(), "\x1b") {
			t.Errorf("%v, %v: %v, %q", tc.doubts, tc.anyway, err, said.String())
		}
	}
}
