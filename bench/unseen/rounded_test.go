package main

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"testing"
)

// named returns the form of a name.
func named(name string) narrow {
	return narrows[slices.IndexFunc(narrows, func(n narrow) bool { return n.name == name })]
}

// Values between two numbers of a form go to the nearer one, ties to the even one. A missing value stays so.
func TestNarrowRounds(t *testing.T) {
	nan, tiny := float32(math.NaN()), float32(math.Ldexp(1, -24))
	for _, tc := range []struct {
		form    string
		x, want float32
		scale   int
	}{
		{"bfloat16", 1 + 1.0/256, 1, 0},
		{"bfloat16", -(1 + 3.0/256), -(1 + 1.0/64), 0},
		{"bfloat16", 1e-30, float32(math.Ldexp(162, -107)), 0},
		{"half", 1 + 1.0/2048, 1, 0},
		{"half", 1 + 3.0/2048, 1 + 1.0/512, 0},
		{"half", 2047.9, 2048, 0},
		{"half", 1e6, 65504, 0},
		{"half", 1.4 * tiny, tiny, 0},
		{"half", 0.4 * tiny, 0, 0},
		{"half-scaled", 1 << 20, 1 << 20, 20},
		{"6-and-9-bits", 1 + 1.0/1024, 1, 0},
		{"6-and-9-bits", 1 << 20, 1 << 20, 0},
		{"logarithm", -4, -4, 0},
		{"logarithm", 1.001, float32(math.Exp2(1.0 / 512)), 0},
		{"logarithm", 1e-20, float32(math.Exp2(-32)), 0},
		{"12-of-23-bits", 1 + 1.0/8192, 1, 0},
		{"12-of-23-bits", 1 + 1.0/4096, 1 + 1.0/4096, 0},
	} {
		if got := named(tc.form).round(tc.x, tc.scale); got != tc.want {
			t.Errorf("%s of %v: %v, want %v", tc.form, tc.x, got, tc.want)
		}
	}
	for _, n := range narrows {
		if got := n.round(nan, 3); got == got || n.round(0, 3) != 0 {
			t.Errorf("%s: a missing value is %v, and 0 is %v", n.name, got, n.round(0, 3))
		}
	}
}

// A split of a set has a line for float32, one for each form, and one more for a form that is trained with.
func TestRoundAll(t *testing.T) {
	folder := t.TempDir()
	s := small()
	s.Splits = s.Splits[:2]
	if err := s.write(folder); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := roundAll(t.Context(), folder, []string{"small"}, leaveOneOut, []string{"half"}, 1, &out); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1+1+len(narrows)+1 {
		t.Fatalf("%d lines:\n%v", len(lines), lines)
	}
	for _, line := range lines[1:] {
		if line[5] < "0.9" || line[12] == "" || (line[4] == "float32") == (line[11] == "") || line[3] == "float32" && (line[6] != "0.00000" || line[10] != "0") {
			t.Errorf("%v", line)
		}
	}
}
