package trend

import (
	"fmt"
	"reflect"
	"testing"
)

// Of five tools that are left out one after the other, trees learn from each four, from each three, and in the end from all: 5, 10
// and 1. What is shared changes nothing.
func TestShared(t *testing.T) {
	shared(t, lives(5, 40), 5+10+1)
	// Of three tools each fold that leaves one out has two, of which the model is made by rule, with another penalty than
	// the two have that the choice for all three leaves.
	shared(t, lives(3, 40), 3+3+3+1)
}

func shared(t *testing.T, rows *Rows, fits int) {
	t.Helper()
	want, err := CrossValidate(t.Context(), rows, Settings{Seed: 3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	model, choice, err := Fit(t.Context(), rows, Settings{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := Settings{Seed: 3, Shared: NewShared()}
	for _, workers := range []int{1, 4} {
		m, c, err := Fit(t.Context(), rows, s)
		if err != nil || !reflect.DeepEqual(m, model) || !reflect.DeepEqual(c, choice) {
			t.Errorf("%d workers: another model: %v", workers, err)
		}
		got, err := CrossValidate(t.Context(), rows, s, workers)
		if err != nil || fmt.Sprint(got.Estimates) != fmt.Sprint(want.Estimates) {
			t.Errorf("%d workers: other estimates: %v", workers, err)
		}
		if n := len(s.Shared.known); n != fits {
			t.Errorf("%d workers: %d fits, want %d", workers, n, fits)
		}
	}
}

// Rows of one tool are taken with references or without by whether any of the tools has one: what was fitted to them in one way
// is not taken for the other.
func TestSharedWhereOneToolHasAReference(t *testing.T) {
	rows := lives(3, 40)
	rows.Reference = make([][]float32, len(rows.Tool))
	for i := range rows.Tool {
		if rows.Tool[i] == "A" {
			rows.Reference[i] = []float32{1, 2, 3}
		}
	}
	s := Settings{Seed: 3, Shared: NewShared()}
	for _, held := range []string{"A", "B", "C"} { // the first one leaves tools without a reference
		some := rows.Without(map[string]bool{held: true})
		want, _, err := Fit(t.Context(), some, Settings{Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := Fit(t.Context(), some, s)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("without %s, and with what was fitted before: another model: %v", held, err)
		}
	}
}
