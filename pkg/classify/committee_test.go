package classify

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/pkg/dbn"
)

// What a committee says is, by its report, the weighted product of what its
// members say that are fitted alone.
func TestCommitteeIsTheProductOfItsMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		rows       []int
		groups     []string
		posteriors posteriors
	}{
		"two classes":         {[]int{60, 20}, nil, OutOfFold},
		"three classes":       {[]int{50, 30, 20}, nil, OutOfFold},
		"held out by group":   {[]int{60, 20}, tools(80, 5), OutOfFold},
		"training posteriors": {[]int{60, 20}, nil, Training},
	} {
		x, y := clusters(30, 3, 1, tc.rows...)
		s := quick()
		s.Encoding, s.Costs.Posteriors = Committee, tc.posteriors
		c, r := fitted(t, x, y, tc.groups, s)
		if len(r.Members) != len(members) {
			t.Fatalf("%s: the report names %d members", name, len(r.Members))
		}
		k := len(tc.rows)
		logs := make([]float64, len(y)*k)
		var sum float64
		for _, m := range r.Members {
			alone := s
			alone.Encoding, alone.Balance, alone.Costs.Uncalibrated = m.Encoding, committeeBalance, true
			one, _ := fitted(t, x, y, tc.groups, alone)
			scorer := one.NewScorer()
			for i := range y {
				for j, p := range scorer.Posterior(x.Row(i)) {
					logs[i*k+j] += m.Share / m.Temperature / r.Costs.Temperature * math.Log(p)
				}
			}
			sum += m.Share
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: shares sum to %v", name, sum)
		}
		scorer := c.NewScorer()
		for i := range y {
			norm := logSum(logs[i*k : (i+1)*k])
			for j, got := range scorer.Posterior(x.Row(i)) {
				if want := math.Exp(logs[i*k+j] - norm); math.Abs(got-want) > 1e-4 {
					t.Fatalf("%s: row %d, class %d: %v, the product of the members is %v", name, i, j, got, want)
				}
			}
		}
	}
}

// No member alone, and no equal shares of ten, suit the rows better than the
// shares found.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		k, n := rapid.IntRange(2, 4).Draw(t, "classes"), rapid.IntRange(2, 30).Draw(t, "rows")
		y := make([]int, n)
		logs := make([][]float64, rapid.IntRange(1, 3).Draw(t, "members"))
		for i := range y {
			y[i] = rng.IntN(k)
		}
		for m := range logs {
			skill := 3 * rng.Float64()
			logs[m] = make([]float64, n*k)
			for i, label := range y {
				z := logs[m][i*k : (i+1)*k]
				for j := range z {
					z[j] = rng.NormFloat64()
				}
				z[label] += skill
				norm := logSum(z)
				for j := range z {
					z[j] -= norm
				}
			}
		}
		loss := func(shares []float64) float64 {
			all := make([]memberReport, len(shares))
			for m, s := range shares {
				all[m].Share = s
			}
			p := pool(logs, all, k)
			var sum float64
			for i, label := range y {
				sum -= math.Log(p[i*k+label])
			}
			return sum
		}
		found := shares(logs, y, k)
		var sum float64
		for m, s := range found {
			sum += s
			alone := make([]float64, len(logs))
			alone[m] = 1
			if loss(alone) < loss(found)-1e-9 {
				t.Errorf("shares %v have loss %v, member %d alone %v", found, loss(found), m, loss(alone))
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("shares %v sum to %v", found, sum)
		}
		if tenths := []float64{0.3, 0.3, 0.4}; len(logs) == 3 && loss(tenths) < loss(found)-1e-9 {
			t.Errorf("shares %v have loss %v, %v %v", found, loss(found), tenths, loss(tenths))
		}
	})
}

// A member that is sure and wrong gets no share and is left out of the
// classifier, encoder and all.
func TestMemberWithoutShareIsLeftOut(t *testing.T) {
	x, y := clusters(31, 2, 2, 30, 20)
	var all []member
	held := make([][]float64, len(members))
	for m, e := range members {
		encoder, err := FitEncoder(x, e, 4)
		if err != nil {
			t.Fatal(err)
		}
		network, _, err := dbn.Train(t.Context(), encoder.liveInputs([]float64{1, 1}).of(x), y, 2, dbn.Settings{Hidden: []int{3}, Visible: e.visible(), FineTune: dbn.FineTuneSettings{Epochs: 2}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, member{encoder: encoder, network: network})
		for i, label := range y {
			p := 0.9
			if e == Bins || i%5 == 0 && e == Standard || i%5 == 1 && e == NormalScore {
				p = 0.1
			}
			held[m] = append(held[m], p, 1-p)
			if label == 1 {
				slices.Reverse(held[m][2*i:])
			}
		}
	}
	var r Report
	c, joint := join(all, held, y, 2, false, &r)
	parts := c.Encoder().Parts()
	if len(parts) != 2 || parts[0].Encoding() != Standard || parts[1].Encoding() != NormalScore || r.Members[1].Share != 0 {
		t.Errorf("%d parts are left, members %+v", len(parts), r.Members)
	}
	if want := parts[0].Inputs() + parts[1].Inputs(); c.Network().Inputs() != want || c.Encoder().Inputs() != want || len(joint) != len(held[0]) {
		t.Errorf("a network of %d inputs and an encoder of %d, want %d", c.Network().Inputs(), c.Encoder().Inputs(), want)
	}
}

func TestVisibleUnitsOfACommittee(t *testing.T) {
	s := Settings{Encoding: Committee}
	s.Network.Visible = dbn.Gaussian
	if err := s.Check(2); !errors.Is(err, ErrSettings) {
		t.Errorf("visible units for all members: %v", err)
	}
}
