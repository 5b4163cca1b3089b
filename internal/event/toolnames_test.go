package event

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Names are those that were added last, each with the life that it had last, also after they were written.
func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var names ToolNames
		lives := make(map[string]string)
		tool := rapid.SampledFrom([]string{"", "T1", "T2", "T3"})
		life := rapid.SampledFrom([]string{"", "x", "y"})
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			name, of := tool.Draw(t, "tool"), life.Draw(t, "life")
			before := slices.Clone(names)
			was := names
			if rapid.Bool().Draw(t, "add") {
				names, lives[name] = names.With(name, of), of
			} else {
				names = names.Without(name)
				delete(lives, name)
			}
			if !slices.Equal(was, before) {
				t.Fatal("what was there has changed")
			}
			var again ToolNames
			if err := json.Unmarshal(JSON(names), &again); err != nil || !slices.Equal(again, names) {
				t.Fatalf("%v became %v: %v", names, again, err)
			}
			for _, name := range []string{"", "T1", "T2", "T3"} {
				for _, of := range []string{"", "x", "y"} {
					was, there := lives[name]
					if got, want := again.Has(name, of), there && (of == "" || of == was); got != want {
						t.Fatalf("%q of life %q: %v, want %v", name, of, got, want)
					}
				}
			}
		}
	})
}

// A plant may call each tool by a name of its own: none of them is taken for an earlier one, and a thousand are kept.
func TestNamesAreBounded(t *testing.T) {
	var names ToolNames
	for i := range 12_000 {
		name := fmt.Sprint("T", i)
		if names.Has(name, "") {
			t.Errorf("%s was there before", name)
		}
		names = names.With(name, "")
	}
	if n := len(JSON(names)); n > 11_000 {
		t.Errorf("%d bytes", n)
	}
	if names.Has("T10999", "") || !names.Has("T11000", "") || !names.Has("T11999", "") {
		t.Error("it is not the last thousand")
	}
}

// Any bytes are names.
func TestNamesOfAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := ToolNames(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
		if names.Has("T1", ""); !names.With("T1", "x").Has("T1", "x") && len(names)%8 == 0 || names.Without("T1").Has("T1", "") {
			t.Fatalf("% x", []byte(names))
		}
	})
}
