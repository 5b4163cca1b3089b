package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train"
)

// narrow is a number with fewer bits than a float32: a sign, and exponent and mantissa of so many bits.
type narrow struct {
	name               string
	exponent, mantissa int  // without an exponent: the binary logarithm from -32 to 32, with so many bits behind the point
	scaled             bool // values are divided first by a power of two near the feature's median in training
}

var float32s = narrow{name: "float32", exponent: 8, mantissa: 23}

// narrows are compared with it; the last one is a float32 whose last 11 bits are zero.
var narrows = []narrow{
	{"bfloat16", 8, 7, false}, {"half", 5, 10, false}, {"half-scaled", 5, 10, true},
	{"6-and-9-bits", 6, 9, false}, {"logarithm", 0, 9, false}, {"12-of-23-bits", 8, 12, false},
}

// round returns x as its reader has it, divided on the way by 2^scale. What is too large becomes the largest number.
func (n narrow) round(x float32, scale int) float32 {
	v := math.Ldexp(float64(x), -scale)
	if n.exponent > 0 {
		least := 2 - 1<<(n.exponent-1) // of normal numbers
		e, most := max(math.Ilogb(v), least), math.Ldexp(2-math.Ldexp(1, -n.mantissa), 1-least)
		v = min(max(math.Ldexp(math.RoundToEven(math.Ldexp(v, n.mantissa-e)), e-n.mantissa), -most), most)
	} else if v != 0 {
		l := math.Ldexp(math.RoundToEven(math.Ldexp(math.Log2(math.Abs(v)), n.mantissa)), -n.mantissa)
		v = math.Copysign(math.Exp2(min(max(l, -32), 32)), v)
	}
	return float32(math.Ldexp(v, scale))
}

// rounded returns the set as its readers have it, with scales of the tools that a split learns from.
func (s *set) rounded(n narrow, p split) *set {
	out, scale := *s, make([]int, len(s.table.Columns))
	out.table = table.New(s.table.Columns)
	for c := range scale {
		var sizes []float64
		for i, tool := range s.table.Tool {
			if v := math.Abs(float64(s.table.Row(i).Features[c])); n.scaled && v > 0 && slices.Contains(p.Train, tool) {
				sizes = append(sizes, v)
			}
		}
		if slices.Sort(sizes); len(sizes) > 0 {
			scale[c] = math.Ilogb(sizes[len(sizes)/2])
		}
	}
	for i := range s.table.Rows() {
		r := s.table.Row(i)
		r.Features = slices.Clone(r.Features)
		for c, x := range r.Features {
			r.Features[c] = n.round(x, scale[c])
		}
		out.table.Append(r)
	}
	return &out
}

// roundAll judges the splits of a protocol by models of float32, and of the named forms, and writes a line for each form, kind of model and seed.
func roundAll(ctx context.Context, folder string, sets []string, protocol string, learnt []string, seeds int, out io.Writer) error {
	lines := [][]string{strings.Split("data,protocol,seed,form,model,gmean,change,low,high,auc,flips,posterior,alarms", ",")}
	for k := range len(sets) * seeds {
		s, err := loadSet(folder, sets[k/seeds])
		if err != nil {
			return err
		}
		var cells []cell
		most := make(map[string]float64) // by form: how far a posterior of the models of float32 moves
		for _, p := range s.Splits {
			if p.Protocol != protocol {
				continue
			}
			if cells, err = s.roundSplit(ctx, p, uint64(k%seeds+1), learnt, most, cells); err != nil {
				return fmt.Errorf("%s, %s: %w", s.Name, p.Name, err)
			}
		}
		all := tallies(cells, s.Name, protocol)
		for _, t := range all {
			lines = append(lines, append([]string{s.Name, protocol, strconv.Itoa(k%seeds + 1)}, t.roundLine(all[0], most[t.method])...))
		}
	}
	return csv.NewWriter(out).WriteAll(lines)
}

// roundSplit adds the cells of a split: their method is the form that is judged, and their variant the form that was learnt from.
func (s *set) roundSplit(ctx context.Context, p split, seed uint64, learnt []string, most map[string]float64, cells []cell) ([]cell, error) {
	withSeed := func(c *train.Config) { c.Seed = seed }
	m, err := s.fit(ctx, p, withSeed)
	if err != nil {
		return nil, err
	}
	var first []float64 // posteriors of float32
	for _, n := range append([]narrow{float32s}, narrows...) {
		r := s.rounded(n, p)
		cs, posteriors, err := r.judgeBy(m, p, float32s.name)
		if err == nil && slices.Contains(learnt, n.name) {
			own, failed := r.judge(ctx, p, n.name, withSeed)
			cs, err = append(cs, own...), failed
		}
		if err != nil {
			return nil, err
		}
		for i := range cs {
			cs[i].Method = n.name
		}
		cells = append(cells, cs...)
		if first == nil {
			first = posteriors
		}
		for i, v := range posteriors {
			most[n.name] = max(most[n.name], math.Abs(v-first[i]))
		}
	}
	return cells, nil
}

// roundLine returns the line of a tally after its seed; first is the tally of float32. Flips are windows by which the calls of a tool differ.
func (t *tally) roundLine(first *tally, most float64) []string {
	g, flips := t.figures(nil, false).GMean, 0.0
	_, lead := bootstrapTools(t, first)
	line := []string{t.method, t.variant}
	for _, v := range []float64{g, g - first.figures(nil, false).GMean, lead.Low, lead.High, t.auc()} {
		line = append(line, columns.Number(v, 5))
	}
	var alarms []string
	for i, c := range t.flank {
		flips += math.Abs(c.TP-first.flank[i].TP) + math.Abs(c.FP-first.flank[i].FP)
		alarms = append(alarms, c.Tool+":"+columns.Number(c.flank.AlarmUM, 1))
	}
	if t.variant != float32s.name {
		most = math.NaN()
	}
	return append(line, number(flips, 64), columns.Number(most, 4), strings.Join(alarms, " "))
}
