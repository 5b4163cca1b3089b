package config

import (
	"errors"
	"fmt"
	"testing"
)

func TestLocate(t *testing.T) {
	write(t, "c.yaml", "a: 1\nb:\n  c: 2\n  d:\n    - {name: x}\n    - name: y\n      f: 3\n")
	cause := errors.New("too large: take less")
	for key, want := range map[string]string{
		"a":         "c.yaml:1: a: too large: take less",
		"b.c":       "c.yaml:3: b: c: too large: take less",
		"b.d[1].f":  "c.yaml:7: b: d[1]: f: too large: take less",
		"b.d[0].f":  "c.yaml:5: b: d[0]: f: too large: take less",
		"b.missing": "c.yaml:2: b: missing: too large: take less",
		"missing":   "c.yaml: missing: too large: take less",
	} {
		err := Locate("c.yaml", fmt.Errorf("%w", &KeyError{key, cause}))
		if err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
	if err := Locate("c.yaml", cause); err.Error() != "c.yaml: too large: take less" {
		t.Error(err)
	}
	if err := Locate("lost.yaml", &KeyError{"a", cause}); err.Error() != "lost.yaml: a: too large: take less" {
		t.Error(err)
	}
	for _, text := range []string{"", "a", "{", "- a: 1\n"} { // as far as it goes
		write(t, "c.yaml", text)
		Lines("c.yaml")
	}
}

func TestUnder(t *testing.T) {
	cause := errors.New("too large")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{cause, "a.b"},
		{&KeyError{Err: cause}, "a.b"},
		{&KeyError{Key: "c[1]", Err: cause}, "a.b.c[1]"},
		{fmt.Errorf("route: %w", &KeyError{Key: "c", Err: cause}), "a.b.c"},
	} {
		var key *KeyError
		if err := Under("a.b", tc.err); !errors.As(err, &key) || key.Key != tc.want || !errors.Is(err, cause) {
			t.Errorf("%v: %v, want key %s", tc.err, err, tc.want)
		}
	}
	if err := Under("a", nil); err != nil {
		t.Error(err)
	}
}
