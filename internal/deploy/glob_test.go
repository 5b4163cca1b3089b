package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseGlob(t *testing.T) {
	for text, want := range map[string]string{
		"acme/spore/bay2/line1/usk25": "", "acme/spore/bay2/**": "", "**": "", "*/**": "", "acme/*/bay*/*-1*": "", "a_b": "",
		"":                                   "it names no machine",
		"acme//bay2":                         "a level is empty",
		"acme/":                              "a level is empty",
		"/acme":                              "a level is empty",
		"acme/**/usk25":                      "can only be the last level",
		"acme/usk**":                         "** must be a level of its own",
		"Acme/**":                            "a-z, 0-9, - and _",
		"acme/us?":                           "a-z, 0-9, - and _",
		"acme/ü":                             "a-z, 0-9, - and _",
		strings.Repeat("a/", 16) + "b":       "17 levels, at most 16",
		"acme/" + strings.Repeat("a", 65):    "65 characters, at most 64",
		"acme/spore\n/x":                     "a-z, 0-9, - and _",
		strings.Repeat("a", 64) + "/" + "**": "",
	} {
		g, err := ParseGlob(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want == "" && g.String() != text:
			t.Errorf("%q became %q", text, g)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

func glob(t testing.TB, text string) Glob {
	t.Helper()
	g, err := ParseGlob(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestOne(t *testing.T) {
	for text, want := range map[string]bool{"acme/spore/bay2/line1/usk25": true, "acme/**": false, "**": false, "acme/spore/bay2/line1/usk*": false} {
		if got, one := glob(t, text).One(); one != want || one && got != text {
			t.Errorf("%s: %q, %t", text, got, one)
		}
	}
}

func TestMatch(t *testing.T) {
	const machine = "acme/spore/bay2/line1/usk25"
	for text, want := range map[string]bool{
		machine: true, "**": true, "acme/**": true, "*/*/*/*/*": true, "*/**": true, machine + "/**": true,
		"acme/spore/bay2/line1/usk*": true, "acme/spore/bay2/line1/*25": true, "acme/spore/bay2/line1/u*2*": true, "acme/spore/bay*2/**": true,
		"acme": false, "acme/*": false, "*/*/*/*": false, "*/*/*/*/*/*": false, "acme/spore/bay2/line1/usk2": false, "acme/spore/bay2/line1/usk*26": false,
		"acme/spore/bay2/line1/u*u*": false, "acme/spore/bay22*/**": false, machine + "/*": false, "b/**": false,
	} {
		if got := glob(t, text).Match(machine); got != want {
			t.Errorf("%s matches: %t", text, got)
		}
	}
	if glob(t, "**").Match("") != true || glob(t, "*").Match("") {
		t.Error("a machine without a name: only ** names it")
	}
}

// The order of the documentation.
func TestCompare(t *testing.T) {
	order := []string{
		"acme/spore/bay2/line1/usk25", "acme/spore/bay2/line1/usk2*", "acme/spore/bay2/line1/usk*", "acme/spore/bay2/line1/*s*k*", "acme/spore/bay2/line1/*",
		"acme/spore/bay2/**", "acme/spore/*/line1/usk25", "acme/**", "a*/spore/**", "*/spore/bay2/line1/usk25", "*/**", "**",
	}
	for i, a := range order {
		for j, b := range order {
			if got, want := glob(t, a).Compare(glob(t, b)), j-i; (got > 0) != (want > 0) || (got < 0) != (want < 0) {
				t.Errorf("Compare(%s, %s) = %d", a, b, got)
			}
		}
	}
}

// smallNames returns every text of at most n of some letters.
func smallNames(n int, letters string) []string {
	names := []string{""}
	for from := 0; n > 0; n-- {
		to := len(names)
		for _, name := range names[from:to] {
			for _, l := range letters {
				names = append(names, name+string(l))
			}
		}
		from = to
	}
	return names[1:]
}

// Within one level: what ties is exactly what a search over all short names finds, and the
// glob that names fewer is the more specific one.
func TestLevelsBruteForce(t *testing.T) {
	names := smallNames(5, "abc") // c is in no level
	var levels []Glob
	for _, text := range smallNames(3, "ab*") {
		if g, err := ParseGlob(text); err == nil && !g.open {
			levels = append(levels, g)
		}
	}
	named := make([]map[string]bool, len(levels))
	for i, g := range levels {
		named[i] = make(map[string]bool)
		for _, n := range names {
			if g.Match(n) {
				named[i][n] = true
			}
		}
	}
	ties, inside := 0, 0
	for i, a := range levels {
		for j, b := range levels {
			common := 0
			for n := range named[i] {
				if named[j][n] {
					common++
				}
			}
			if got, want := a.Ties(b), common > 0 && a.Compare(b) == 0; got != want {
				t.Errorf("%s and %s tie: %t, want %t", a, b, got, want)
			} else if got && i != j {
				ties++
			}
			if common == len(named[i]) && common < len(named[j]) {
				inside++
				if a.Compare(b) <= 0 {
					t.Errorf("%s names less than %s, and is not more specific", a, b)
				}
			}
		}
	}
	if ties < 10 || inside < 50 {
		t.Errorf("only %d ties and %d pairs of which one names less: the test looks at nothing", ties, inside)
	}
}

// drawGlob draws a glob of at most three levels over few names.
func drawGlob(t *rapid.T, label string) Glob {
	levels := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "*", "a*", "*a", "*b", "a*b", "*a*"}), 1, 3).Draw(t, label)
	if rapid.Bool().Draw(t, label+" open") {
		levels = append(levels[:len(levels)-1], "**")
	}
	g, err := ParseGlob(strings.Join(levels, "/"))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// fewMachines are all machines of at most three levels over few names.
var fewMachines = func() []string {
	var machines []string
	names := []string{"a", "b", "ab", "ba", "aa", "bab"}
	last := names
	for range 3 {
		machines = append(machines, last...)
		var next []string
		for _, m := range last {
			for _, n := range names {
				next = append(next, m+"/"+n)
			}
		}
		last = next
	}
	return machines
}()

func TestTiesBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawGlob(t, "a"), drawGlob(t, "b")
		i := slices.IndexFunc(fewMachines, func(m string) bool { return a.Match(m) && b.Match(m) })
		if got, want := a.Ties(b), i >= 0 && a.Compare(b) == 0; got != want {
			t.Fatalf("%s and %s tie: %t, want %t", a, b, got, want)
		}
		if a.Meets(b) != (i >= 0) || b.Meets(a) != (i >= 0) {
			t.Fatalf("%s and %s meet: %t and %t, want %t", a, b, a.Meets(b), b.Meets(a), i >= 0)
		}
		if a.Compare(b) != -b.Compare(a) {
			t.Fatalf("Compare(%s, %s) = %d, and %d the other way round", a, b, a.Compare(b), b.Compare(a))
		}
		if c := drawGlob(t, "c"); a.Compare(b) >= 0 && b.Compare(c) >= 0 && a.Compare(c) < 0 {
			t.Fatalf("%s, %s, %s: Compare is not an order", a, b, c)
		}
	})
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"acme/spore/bay2/**", "a*b*/c", "**", "*", "a//b"} {
		f.Add(s, "acme/spore/bay2/line1/usk25")
	}
	f.Fuzz(func(t *testing.T, text, machine string) {
		g, err := ParseGlob(text)
		if err != nil {
			return
		}
		if g.String() != text || g.Compare(g) != 0 || !g.Ties(g) {
			t.Errorf("%q is %q, differs from itself or does not tie with itself", text, g)
		}
		g.Match(machine)
		if !strings.Contains(text, "*") && !g.Match(text) {
			t.Errorf("%q does not name itself", text)
		}
	})
}

func ExampleGlob() {
	for _, text := range []string{"acme/spore/bay2/**", "acme/spore/bay2/line1/usk*"} {
		g, err := ParseGlob(text)
		fmt.Println(g, g.Match("acme/spore/bay2/line1/usk25"), err)
	}
	// Output:
	// acme/spore/bay2/** true <nil>
	// acme/spore/bay2/line1/usk* true <nil>
}
