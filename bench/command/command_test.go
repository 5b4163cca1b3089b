package command

import (
	"slices"
	"testing"
)

func TestList(t *testing.T) {
	for text, want := range map[string][]string{"": nil, "a": {"a"}, "a,b": {"a", "b"}, "a,,b,": {"a", "b"}} {
		if got := List(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
