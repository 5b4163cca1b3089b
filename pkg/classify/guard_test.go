package classify

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/pkg/classify/vote"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// sensed is tools of which four sensors measure wear, each by two columns that are logarithms of ratios to the tool's reference:
// the level and, less steadily, the maximum. The last fifth of a life is worn.
func sensed(seed uint64, tools int) *Table {
	rng := rand.New(rand.NewPCG(seed, 9))
	const length, sensors = 60, 4
	x := dbn.NewMatrix(tools*length, 2*sensors)
	t := &Table{X: x, Ordered: true, Log: slices.Repeat([]bool{true}, 2*sensors)}
	for s := range sensors {
		t.Sensors = append(t.Sensors, vote.Sensor{Name: fmt.Sprint("s", s), Unit: fmt.Sprint("u", s), Columns: []int{2 * s, 2*s + 1}, Kinds: []vote.Kind{vote.RMS, vote.Max}})
	}
	for i := range x.Rows {
		age := float64(i%length) / length
		for s := range sensors {
			level := age*(0.5+0.3*float64(s)) + 0.03*rng.NormFloat64()
			x.Row(i)[2*s], x.Row(i)[2*s+1] = float32(level), float32(level+0.05*rng.NormFloat64())
		}
		class := 0
		if age >= 0.8 {
			class = 1
		}
		t.Y, t.Groups = append(t.Y, class), append(t.Groups, fmt.Sprint("T", i/length))
	}
	return t
}

func guarded() Settings {
	s := quick()
	s.Guard = GuardVote
	return s
}

// A guard bounds what the classifier says of any row, in a table, in a scorer and after it was written and read; a
// classifier without one has the bytes that it had before there were guards.
func TestGuard(t *testing.T) {
	tb := sensed(1, 6)
	c, r := tableFitted(t, tb, guarded())
	if c.Guard() == nil || r.Guard.Off != "" || len(r.Guard.Experts) < 4 {
		t.Fatalf("%+v", r.Guard)
	}
	read := new(Classifier)
	if err := read.UnmarshalBinary(bytesOf(t, c)); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	rows := dbn.NewMatrix(300, 8)
	for i := range rows.Data {
		rows.Data[i] = float32(rng.NormFloat64())
		if rng.IntN(10) == 0 {
			rows.Data[i] = float32(math.NaN())
		}
	}
	scorer, again, votes := c.NewScorer(), read.NewScorer(), c.guard.NewScorer()
	err := c.eachPosterior(rows, func(i int, p []float64) {
		row := rows.Row(i)
		if q := scorer.Posterior(row); !slices.Equal(p, q) || !slices.Equal(q, again.Posterior(row)) {
			t.Fatalf("row %d: %v in a table, %v alone, %v after reading", i, p, q, again.Posterior(row))
		}
		j := votes.Judge(row, 0.5)
		odds := math.Log(c.Score(p)) - math.Log1p(-c.Score(p))
		if away := math.Abs(odds - (j.Vote - c.guard.Cut())); j.Voting > 0 && away > c.guard.Bound()+1e-9 || math.Abs(p[0]+p[1]-1) > 1e-12 {
			t.Fatalf("row %d: %v, %v away from the vote", i, p, away)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := tableFitted(t, tb, quick())
	if b := bytesOf(t, plain); b[4] != binaryVersion || plain.Guard() != nil {
		t.Errorf("version %d without a guard", b[4])
	}
	b := bytesOf(t, c)
	for n := range b {
		if err := new(Classifier).UnmarshalBinary(b[:n]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("the first %d bytes of %d: %v", n, len(b), err)
		}
	}
}

// Posteriors of rows held out are bounded by votes of rows held out, and columns that do not count have no part in a vote.
func TestGuardOfRowsHeldOut(t *testing.T) {
	tb := sensed(1, 6)
	s := guarded()
	c, r := tableFitted(t, tb, s)
	for i := range tb.Y {
		p := c.Score(r.Posterior[2*i : 2*i+2])
		if away := math.Abs(math.Log(p) - math.Log1p(-p) - (r.Guard.Held[i] - c.guard.Cut())); away > c.guard.Bound()+1e-9 {
			t.Fatalf("row %d is %v away from its vote", i, away)
		}
	}
	s.Exclude = []int{2, 3} // both of the second sensor
	_, without := tableFitted(t, tb, s)
	for _, x := range without.Guard.Experts {
		if slices.Contains(x.Sensors, "s1") {
			t.Errorf("an expert of a sensor without a column that counts: %+v", x)
		}
	}
	var few [2]float64
	for n, exclude := range [][]int{nil, {2}} {
		s.Exclude = exclude
		_, r := tableFitted(t, tb, s)
		few[n] = r.Guard.Cut
	}
	if few[0] == few[1] {
		t.Error("an excluded column has a part in the cut")
	}
}

// A guard keeps one sensor that changes its gain, or is lost, from turning verdicts on tools held out, and costs little on clean ones.
func TestGuardOnToolsHeldOut(t *testing.T) {
	tb := sensed(3, 8)
	x := tb.X.(dbn.Matrix)
	for _, guard := range []Guard{GuardOff, GuardVote} {
		s := quick()
		s.Guard = guard
		v, err := CrossValidateTable(t.Context(), tb, s, LeaveOneGroupOut(tb.Groups))
		if err != nil {
			t.Fatal(err)
		}
		if v.Pooled.GMean < 0.95 || v.Reports[0].Held.GMean < 0.95 {
			t.Errorf("guard %s: G-mean %v, %v where costs were chosen", guard, v.Pooled.GMean, v.Reports[0].Held.GMean)
		}
		worst := 1.0
		for sensor := range 4 {
			wrong := dbn.Matrix{Rows: x.Rows, Cols: x.Cols, Data: slices.Clone(x.Data)}
			for i := range x.Rows {
				wrong.Row(i)[2*sensor], wrong.Row(i)[2*sensor+1] = -0.7, -0.7
			}
			right := 0
			for i := range x.Rows {
				var score [1]float64
				v.Classifiers[v.Fold[i]].ScoreTo(score[:], dbn.Matrix{Rows: 1, Cols: x.Cols, Data: wrong.Row(i)})
				if (score[0] >= 0.5) == (tb.Y[i] == 1) {
					right++
				}
			}
			worst = min(worst, float64(right)/float64(x.Rows))
		}
		if bad := worst < 0.93; bad != (guard == GuardOff) {
			t.Errorf("guard %s: %.3f of the rows are judged rightly with the worst sensor", guard, worst)
		}
	}
}

// Where there cannot be a guard the report says why, and the classifier is the one without.
func TestGuardIsOff(t *testing.T) {
	for want, change := range map[string]func(*Table, *Settings){
		"columns are not grouped by sensor":                                     func(t *Table, _ *Settings) { t.Sensors = nil },
		"the rows have no order of time within a tool":                          func(t *Table, _ *Settings) { t.Ordered = false },
		"columns are not weighed by how steadily they follow the life of tools": func(_ *Table, s *Settings) { s.Stability = StabilityOff },
		"the rows are not in memory":                                            func(t *Table, _ *Settings) { t.X = onDiskRows(t.X.(dbn.Matrix)) },
	} {
		tb, s := sensed(1, 6), guarded()
		change(tb, &s)
		c, r := tableFitted(t, tb, s)
		if c.Guard() != nil || r.Guard == nil || r.Guard.Off != want {
			t.Errorf("%+v, want %q", r.Guard, want)
		}
		s.Guard = GuardOff
		plain, r := tableFitted(t, tb, s)
		if r.Guard != nil || !slices.Equal(bytesOf(t, c), bytesOf(t, plain)) {
			t.Errorf("%s: another classifier, report %+v", want, r.Guard)
		}
	}
	s := quick()
	s.Guard = "always"
	if _, _, err := FitTable(t.Context(), sensed(1, 3), s); !errors.Is(err, ErrSettings) {
		t.Error(err)
	}
}

// Steps by nature are looked for in rows without a class, too: a tool whose level jumps there turns the search for steps of gains off.
func TestGuardSeesRowsWithoutAClass(t *testing.T) {
	tb := sensed(1, 6)
	x := tb.X.(dbn.Matrix)
	labelled, more := dbn.Matrix{Cols: x.Cols}, dbn.Matrix{Cols: x.Cols}
	var y []int
	var groups []string
	for i, tool := range tb.Groups {
		row := slices.Clone(x.Row(i))
		if tool == "T1" && i%60 >= 20 && i%60 < 40 {
			if i%60 >= 30 {
				row[0], row[1] = row[0]+1, row[1]+1
			}
			more.Rows, more.Data = more.Rows+1, append(more.Data, row...)
			tb.Unlabelled.Groups, tb.Unlabelled.After = append(tb.Unlabelled.Groups, tool), append(tb.Unlabelled.After, len(y))
			continue
		}
		labelled.Rows, labelled.Data = labelled.Rows+1, append(labelled.Data, row...)
		y, groups = append(y, tb.Y[i]), append(groups, tool)
	}
	tb.X, tb.Y, tb.Groups, tb.Unlabelled.X = labelled, y, groups, more
	s := guarded()
	s.Guard = GuardVoteAndGains
	if _, r := tableFitted(t, tb, s); r.Guard == nil || r.Guard.Off != "" || r.Guard.StepsOff != "s0 of tool T1 changes as if its gain stepped, and no other tool's does" {
		t.Errorf("%+v", r.Guard)
	}
}
