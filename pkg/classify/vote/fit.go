package vote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/flank-tcm/flank/internal/kernel"
	"github.com/flank-tcm/flank/pkg/dbn"
	"github.com/flank-tcm/flank/pkg/score"
)

// Table is what a guard is fitted to. Nothing of it is kept or changed. Of very many rows some,
// evenly spread over each tool, will do: all are in memory, and fitted to once for each tool.
type Table struct {
	// X has the rows that the network learns from, relative to the references of their
	// tools, N×P; NaN is missing. Rows of one tool are in the order of time.
	X      dbn.Matrix
	Y      []int    // of each row: 0 healthy, 1 worn
	Groups []string // of each row: its tool

	// Wear is how worn the tool was in each row, in units of the wear from which on rows are worn; nil if that is not known.
	// Experts then learn from how much it is, see levels; otherwise from Y alone.
	Wear []float64

	// Whole is all rows of the tools, those without a class among them, if X is not. What tools do by nature
	// is learnt from them: largest steps, and how still a sensor is that is not stuck.
	Whole *Whole

	// Log says of each of the P columns whether it is the logarithm of a ratio to the
	// reference, as columns that are positive are in the mode "log" of the reference, and
	// sizes in the mode "kind". Sensors are compared with each other on these alone: with
	// none, or nil, as in the modes "ratio", "difference" and "off", each expert has one sensor.
	Log []bool

	Sensors []Sensor

	// Weights returns by how much each of the P columns counts, from 0 on, according to
	// all tools but the given ones, see score.Columns.Without. It is nil where columns
	// are not weighed.
	Weights func(without []string) []float64
}

// Whole is all rows of tools, prepared as a Table's are.
type Whole struct {
	Row   func(i int) []float32
	Lives []score.Life
}

// Settings says how a guard is fitted. A zero field takes the default that its comment names.
type Settings struct {
	Bound float64 // how far the guarded margin may be from the vote's; default defaultBound
	Steps bool    // look for steps of gains
}

// levels are the wear, in units of the wear from which on rows are worn, at which experts learn to part rows besides that one. How
// far each row is on either side holds more of what a sensor does as a tool wears than the class alone does.
var levels = [...]float64{2. / 3, 5. / 6, 7. / 6, 4. / 3}

// Report says what a guard is made of, or why there is none.
type Report struct {
	Off string `json:"off,omitempty"` // why there is no guard, in words; empty if there is one

	Worn    int            `json:"worn"`              // tools with worn rows
	Sensors []SensorReport `json:"sensors,omitempty"` // kept, the one that counts most first
	Experts []expertReport `json:"experts,omitempty"`
	Cut     float64        `json:"cut"` // log odds of the vote

	StepsOff string `json:"steps_off,omitempty"` // why steps of gains are not looked for, in words; empty if they are, or were not asked for

	// Held has of each row the vote while its tool was held out, the mean over the three
	// deals. It is the caller's. What is calibrated on rows held out goes by it.
	Held []float64 `json:"-"`
}

// SensorReport is a sensor that is kept.
type SensorReport struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit,omitempty"`
	Share float64 `json:"share"`          // of Σw², in [0, 1]
	With  string  `json:"with,omitempty"` // the sensor that it shares an expert with, as the two change alike
	// Change is by how much the logarithm of its level changes over the life of a worn tool,
	// the mean of absolute values; 0 without a column that is a logarithm.
	Change float64 `json:"change"`
	// Step is from which factor on a step of its gain is taken out, above 1; 0: none is.
	Step float64 `json:"step,omitempty"`
}

// expertReport is an expert.
type expertReport struct {
	Sensors   []string `json:"sensors"`
	Ratio     bool     `json:"ratio,omitempty"`     // of the first sensor to the second
	Columns   []int    `json:"columns"`             // of the first sensor, if it is a ratio
	Threshold float64  `json:"threshold,omitempty"` // from the median of the others, beyond which it names its sensor
}

// Fit returns a guard for networks that learn from the rows of t, and what it is made of. If
// there cannot be one the guard is nil, and Report.Off says why in words: fewer than three
// tools with worn rows, more than two classes, no sensors, no weights, or too few experts.
//
// Sensors with 1 % of Σw² or more are kept. Two whose RMS changes from row to row alike, with a
// correlation of 0.95 or more over all tools, share an expert. Among sensors of one unit
// the one whose level changes least over the lives of worn tools is the denominator d: each other
// one s has a second expert, on the differences of RMS, Mean and Max of s and d.
//
// The vote's cut follows from rows that were held out, each worn tool in a fold of its own and
// healthy tools dealt to the folds, three times: half-way from the optimum of the smoothed
// G-mean to the inverse prior, ln(n1/n0), as pkg/classify chooses costs of two classes.
//
// It returns an error that wraps ErrSize, ErrSensors or ErrNotFinite, or the error of ctx. The result
// depends on t and s alone.
func Fit(ctx context.Context, t Table, s Settings) (*Guard, *Report, error) {
	s.Bound = cmp.Or(s.Bound, defaultBound)
	if err := t.check(); err != nil {
		return nil, nil, err
	}
	if !(s.Bound >= 0) || math.IsInf(s.Bound, 0) {
		return nil, nil, fmt.Errorf("vote: a bound of %v: must be positive and finite", s.Bound)
	}
	f := fitter{Table: t, lives: lives(t.Groups), report: &Report{}}
	if f.report.Off = f.off(); f.report.Off != "" {
		return nil, f.report, nil
	}
	f.weights = t.Weights(nil)
	if len(f.weights) != t.X.Cols {
		return nil, nil, fmt.Errorf("vote: %d weights of %d columns: %w", len(f.weights), t.X.Cols, ErrSize)
	}
	f.keep()
	f.merge()
	plans := f.plans()
	if len(plans) < leastExperts {
		f.report.Off = fmt.Sprintf("the columns that count belong to sensors for %d experts, and a vote takes %d", len(plans), leastExperts)
		return nil, f.report, nil
	}
	g := &Guard{columns: t.X.Cols, bound: s.Bound}
	seen := Whole{t.X.Row, f.lives}
	if t.Whole != nil {
		seen = *t.Whole
	}
	for _, k := range f.kept {
		watched := watchedColumns(k.Sensor)
		of := sensor{name: k.Name, watched: watched, repeats: seen.repeats(watched), levels: watched}
		if logs := f.sizes(k.Sensor); len(logs) > 0 {
			of.levels, of.still = logs, seen.still(logs)
		}
		g.sensors = append(g.sensors, of)
	}
	var err error
	if g.experts, err = fitExperts(ctx, &f.Table, everyRow(len(t.Y)), f.weights, plans, nil); err != nil {
		return nil, nil, err
	}
	if err := f.holdOut(ctx, g, plans); err != nil {
		var none *noRows
		if errors.As(err, &none) {
			f.report.Off = none.Error()
			return nil, f.report, nil
		}
		return nil, nil, err
	}
	if s.Steps {
		f.report.StepsOff = f.lookFor(g, seen)
	}
	f.describe(g)
	for e := range g.experts {
		g.experts[e].levels = nil
	}
	return g, f.report, nil
}

// when returns err if something is wrong. cmp.Or takes the first of several.
func when(is bool, err error) error {
	if !is {
		return nil
	}
	return err
}

// checkSizes reports parts of the table that differ in length.
func (t *Table) checkSizes() error {
	n, p := t.X.Rows, t.X.Cols
	return cmp.Or(
		when(n < 1 || p < 1 || len(t.X.Data) != n*p, fmt.Errorf("vote: %d values for %d rows of %d columns: %w", len(t.X.Data), n, p, ErrSize)),
		when(len(t.Y) != n || len(t.Groups) != n, fmt.Errorf("vote: %d rows, %d labels and %d tools: %w", n, len(t.Y), len(t.Groups), ErrSize)),
		when(t.Wear != nil && len(t.Wear) != n, fmt.Errorf("vote: %d rows, the wear of %d: %w", n, len(t.Wear), ErrSize)),
		when(t.Log != nil && len(t.Log) != p, fmt.Errorf("vote: %d columns, of %d of which is known whether they are logarithms: %w", p, len(t.Log), ErrSize)))
}

// checkWhole reports rows of whole lives that have other columns.
func (t *Table) checkWhole() error {
	if t.Whole == nil {
		return nil
	}
	for _, l := range t.Whole.Lives {
		for _, i := range l.Rows {
			if n, p := len(t.Whole.Row(i)), t.X.Cols; n != p {
				return fmt.Errorf("vote: a row of tool %q has %d columns, of %d: %w", l.Tool, n, p, ErrSize)
			}
		}
	}
	return nil
}

// checkSensors reports columns that are not there, or of two sensors.
func (t *Table) checkSensors() error {
	of := make(map[int]string)
	for _, s := range t.Sensors {
		if len(s.Columns) != len(s.Kinds) {
			return fmt.Errorf("vote: sensor %q: %d columns of %d kinds: %w", s.Name, len(s.Columns), len(s.Kinds), ErrSize)
		}
		for _, j := range s.Columns {
			if j < 0 || j >= t.X.Cols {
				return fmt.Errorf("vote: sensor %q: column %d of %d: %w", s.Name, j, t.X.Cols, ErrSensors)
			}
			if other, taken := of[j]; taken {
				return fmt.Errorf("vote: sensors %q and %q both have column %d: %w", other, s.Name, j, ErrSensors)
			}
			of[j] = s.Name
		}
	}
	return nil
}

// check reports a table that cannot be fitted to.
func (t *Table) check() error {
	for _, check := range []func() error{t.checkSizes, t.checkWhole, t.checkSensors} {
		if err := check(); err != nil {
			return err
		}
	}
	for i, class := range t.Y {
		if class < 0 {
			return fmt.Errorf("vote: row %d: class %d: %w", i, class, ErrSize)
		}
	}
	for i, v := range t.X.Data {
		if math.IsInf(float64(v), 0) {
			return fmt.Errorf("vote: row %d, column %d: %v: %w", i/t.X.Cols, i%t.X.Cols, v, ErrNotFinite)
		}
	}
	return nil
}

// fitter is a fit at work.
type fitter struct {
	Table
	lives   []score.Life
	weights []float64
	kept    []keptSensor // by share, the greatest first
	report  *Report
}

type keptSensor struct {
	Sensor
	share  float64
	change float64
	first  int // index in fitter.kept of the sensor that counts most of those that it shares an expert with
}

func lives(groups []string) []score.Life {
	at := make(map[string]int)
	var out []score.Life
	for i, g := range groups {
		k, known := at[g]
		if !known {
			k = len(out)
			at[g] = k
			out = append(out, score.Life{Tool: g})
		}
		out[k].Rows = append(out[k].Rows, i)
	}
	return out
}

func (t *Table) worn(l score.Life) bool {
	return slices.ContainsFunc(l.Rows, func(i int) bool { return t.Y[i] == 1 })
}

// off returns why there is no guard, as far as that is known before sensors are kept.
func (f *fitter) off() string {
	for _, l := range f.lives {
		if f.worn(l) {
			f.report.Worn++
		}
	}
	switch classes := slices.Max(f.Y) + 1; {
	case classes > 2:
		return fmt.Sprintf("there are %d classes, and a vote is between two", classes)
	case len(f.Sensors) == 0:
		return "columns are not grouped by sensor"
	case f.Weights == nil:
		return "columns are not weighed by how steadily they follow the life of tools"
	case !slices.Contains(f.Y, 0):
		return "there are no healthy windows"
	case f.report.Worn < leastWorn:
		return fmt.Sprintf("%d of the tools have worn windows with a label, and it takes %d", f.report.Worn, leastWorn)
	}
	return ""
}

// keep finds the sensors that count.
func (f *fitter) keep() {
	for _, s := range f.Sensors {
		if share := (score.Sensor{Columns: s.Columns}).Share(f.weights); share >= score.LeastShare {
			f.kept = append(f.kept, keptSensor{Sensor: s, share: share, change: f.change(s)})
		}
	}
	slices.SortStableFunc(f.kept, func(a, b keptSensor) int { return cmp.Compare(b.share, a.share) })
}

// change returns the mean over worn tools of |level at the end − level at the beginning|, each
// over a tenth of the rows. The level is the mean of RMS, Mean and Max, of the columns that
// are logarithms. It is 0 without such a column.
func (f *fitter) change(s Sensor) float64 {
	columns := f.sizes(s)
	if len(columns) == 0 {
		return 0
	}
	var sum, tools float64
	for _, l := range f.lives {
		n := (len(l.Rows) + 9) / 10
		first, last := f.level(columns, l.Rows[:n]), f.level(columns, l.Rows[len(l.Rows)-n:])
		if d := math.Abs(last - first); f.worn(l) && d == d {
			sum, tools = sum+d, tools+1
		}
	}
	return sum / max(tools, 1)
}

// sizes returns the columns of a sensor that are logarithms of sizes.
func (f *fitter) sizes(s Sensor) []int {
	var out []int
	for i, j := range s.Columns {
		if s.Kinds[i] != Other && f.Log != nil && f.Log[j] {
			out = append(out, j)
		}
	}
	return out
}

// level returns the mean of some columns over some rows, NaN without a value.
func (f *fitter) level(columns, rows []int) float64 {
	var sum, n float64
	for _, i := range rows {
		for _, j := range columns {
			if v := f.X.Row(i)[j]; v == v {
				sum, n = sum+float64(v), n+1
			}
		}
	}
	return sum / n
}

// merge finds kept sensors whose RMS changes alike from row to row.
func (f *fitter) merge() {
	rms := func(s keptSensor) int {
		if i := slices.Index(s.Kinds, RMS); i >= 0 {
			return s.Columns[i]
		}
		return -1
	}
	for k := range f.kept {
		f.kept[k].first = k
		for of := range k {
			a, b := rms(f.kept[k]), rms(f.kept[of])
			if a >= 0 && b >= 0 && f.correlation(a, b) >= leastCorrelation {
				f.join(f.kept[of].first, k)
			}
		}
	}
}

// join lets kept sensor k, and those it shares an expert with, share it with others, the first
// of which is given.
func (f *fitter) join(first, k int) {
	low, high := min(first, f.kept[k].first), max(first, f.kept[k].first)
	for i := range f.kept[:k+1] {
		if f.kept[i].first == high {
			f.kept[i].first = low
		}
	}
}

// correlation returns Pearson's correlation of the changes from row to row of two columns,
// over all tools together; 0 if one does not change.
func (f *fitter) correlation(a, b int) float64 {
	var n, sa, sb, aa, bb, ab float64
	for _, l := range f.lives {
		for i := 1; i < len(l.Rows); i++ {
			before, now := f.X.Row(l.Rows[i-1]), f.X.Row(l.Rows[i])
			x, y := float64(now[a])-float64(before[a]), float64(now[b])-float64(before[b])
			if x == x && y == y {
				n, sa, sb, aa, bb, ab = n+1, sa+x, sb+y, aa+x*x, bb+y*y, ab+x*y
			}
		}
	}
	aa, bb, ab = aa-sa*sa/n, bb-sb*sb/n, ab-sa*sb/n
	if !(aa > 0 && bb > 0) {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// plan is an expert before it is fitted: its sensors and its inputs without numbers.
type plan struct {
	sensors []int
	pair    bool
	inputs  []input
}

// weight returns by how much an input counts, given the weights of columns.
func (in input) weightOf(weights []float64) float64 {
	if in.b < 0 {
		return weights[in.a]
	}
	return math.Sqrt(weights[in.a] * weights[in.b])
}

// plans returns the experts: one for each kept sensor, or those that share one, and then
// the ratios of sensors of one unit.
func (f *fitter) plans() []plan {
	var out []plan
	for k, s := range f.kept {
		if s.first != k {
			continue
		}
		var p plan
		for m, member := range f.kept {
			if member.first != k {
				continue
			}
			for _, j := range member.Columns {
				p.add(input{a: j, b: -1, sensor: len(p.sensors)}, f.weights)
			}
			p.sensors = append(p.sensors, m)
		}
		out = append(out, p)
	}
	for k, s := range f.kept {
		d := f.denominator(s.Unit)
		if s.first != k || d < 0 || d == k {
			continue
		}
		p := plan{sensors: []int{k, d}, pair: true}
		for _, kind := range []Kind{RMS, Mean, Max} {
			a, b := f.column(s.Sensor, kind), f.column(f.kept[d].Sensor, kind)
			if a >= 0 && b >= 0 {
				p.add(input{a: a, b: b}, f.weights)
			}
		}
		if len(p.inputs) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// add adds an input that counts.
func (p *plan) add(in input, weights []float64) {
	if in.weightOf(weights) > 0 {
		p.inputs = append(p.inputs, in)
	}
}

// denominator returns the index of the kept sensor of a unit whose level changes least; -1
// without one. Of sensors that share an expert only the first counts.
func (f *fitter) denominator(unit string) int {
	found := -1
	for k, s := range f.kept {
		if unit == "" || s.Unit != unit || s.first != k || len(f.sizes(s.Sensor)) == 0 {
			continue
		}
		if found < 0 || s.change < f.kept[found].change {
			found = k
		}
	}
	return found
}

// column returns the first column of a sensor that is the logarithm of the given kind; -1 without one.
func (f *fitter) column(s Sensor, k Kind) int {
	for i, j := range s.Columns {
		if s.Kinds[i] == k && f.Log != nil && f.Log[j] {
			return j
		}
	}
	return -1
}

func everyRow(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// fitExperts fits experts to some rows. One whose inputs do not count by the weights given has no
// inputs, so that it abstains. Experts of the same plans that were fitted to more rows, if not nil, are where the search begins.
func fitExperts(ctx context.Context, t *Table, rows []int, weights []float64, plans []plan, near []expert) ([]expert, error) {
	var square float64
	for _, w := range weights {
		square += w * w
	}
	unit := math.Sqrt(inputColumns / square)
	side, sides := t.sides(rows)
	out := make([]expert, len(plans))
	for e, p := range plans {
		x := expert{sensors: p.sensors, pair: p.pair}
		for _, in := range p.inputs {
			if w := in.weightOf(weights); w > 0 {
				in.mean, in.sd = moments(t, rows, in)
				in.weight = w * unit
				x.inputs = append(x.inputs, in)
			}
		}
		if len(x.inputs) > 0 {
			var start *dbn.Logistic
			if near != nil {
				start = near[e].modelFor(x.inputs)
			}
			if err := x.fit(ctx, t, rows, side, sides, start); err != nil {
				return nil, err
			}
		}
		out[e] = x
	}
	return out, nil
}

// sides returns of each of some rows whether it is worn, and whether it is at each other level or above, row by
// row, and how many levels there are. Levels of which rows are on one side only are left out.
func (t *Table) sides(rows []int) ([]int, int) {
	above := []func(i int) bool{func(i int) bool { return t.Y[i] == 1 }}
	if t.Wear != nil {
		for _, level := range levels {
			at := func(i int) bool { return t.Wear[i] >= level }
			if slices.ContainsFunc(rows, at) && slices.ContainsFunc(rows, func(i int) bool { return !at(i) }) {
				above = append(above, at)
			}
		}
	}
	var out []int
	for _, i := range rows {
		for _, at := range above {
			out = append(out, int(flag(at(i))))
		}
	}
	return out, len(above)
}

// moments returns the mean of an input over some rows and its population standard deviation,
// or 1 instead of one that is nothing but rounding.
func moments(t *Table, rows []int, in input) (mean, sd float64) {
	values := make([]float64, 0, len(rows))
	for _, i := range rows {
		if v := in.of(t.X.Row(i)); v == v {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, 1
	}
	mean, sd = kernel.MeanSD(values)
	if !(sd > 1e-9*math.Abs(mean)) {
		sd = 1
	}
	return mean, sd
}

// modelFor returns the regression by which x decides, on inputs that hold their scales: inputs of other columns weigh 0.
func (x *expert) modelFor(inputs []input) *dbn.Logistic {
	m := &dbn.Logistic{Bias: x.bias, Levels: x.levels, Weights: make([]float64, len(inputs))}
	for k, in := range inputs {
		for _, own := range x.inputs {
			if own.a == in.a && own.b == in.b {
				m.Weights[k] = own.weight / in.weight
			}
		}
	}
	return m
}

// fit fits bias and weights, which hold the scales of inputs before.
func (x *expert) fit(ctx context.Context, t *Table, rows, side []int, sides int, start *dbn.Logistic) error {
	z := dbn.NewMatrix(len(rows), len(x.inputs))
	for n, i := range rows {
		to := z.Row(n)
		for k := range x.inputs {
			in := &x.inputs[k]
			if v := in.of(t.X.Row(i)); v == v {
				to[k] = float32(in.weight * min(max((v-in.mean)/in.sd, -ClipInput), ClipInput))
			}
		}
	}
	m, err := dbn.FitLogisticLevels(ctx, z, side, sides, dbn.LogisticSettings{C: inverseDecay / float64(sides), Start: start})
	if err != nil {
		return fmt.Errorf("vote: %w", err)
	}
	x.bias, x.levels = m.Bias, m.Levels
	for k := range x.inputs {
		x.inputs[k].weight *= m.Weights[k]
	}
	return nil
}

// noRows: a class has no rows left while tools are held out.
type noRows struct{ tools []string }

func (e *noRows) Error() string {
	return fmt.Sprintf("no healthy windows are left to learn from while %v are held out", e.tools)
}

// holdOut chooses the cut and the thresholds of g on votes of rows that were held out.
func (f *fitter) holdOut(ctx context.Context, g *Guard, plans []plan) error {
	var worn, healthy []score.Life
	for _, l := range f.lives {
		if f.worn(l) {
			worn = append(worn, l)
		} else {
			healthy = append(healthy, l)
		}
	}
	var votes [2][]float64 // by class
	f.report.Held = make([]float64, len(f.Y))
	for deal := range deals {
		for k := range worn {
			held := []score.Life{worn[k]}
			for h := range healthy {
				if (h+deal)%len(worn) == k {
					held = append(held, healthy[h])
				}
			}
			if err := f.judgeHeld(ctx, g, plans, held, &votes); err != nil {
				return err
			}
		}
	}
	g.cut = cutOf(votes)
	return nil
}

// judgeHeld fits the experts without some tools, adds the votes of their rows, and raises thresholds to
// what experts differ by from the others there.
func (f *fitter) judgeHeld(ctx context.Context, g *Guard, plans []plan, held []score.Life, votes *[2][]float64) error {
	var tools []string
	for _, l := range held {
		tools = append(tools, l.Tool)
	}
	var rows []int
	var n [2]int
	for i, tool := range f.Groups {
		if !slices.Contains(tools, tool) {
			rows = append(rows, i)
			n[f.Y[i]]++
		}
	}
	if n[0] == 0 {
		return &noRows{tools}
	}
	weights := f.Weights(tools)
	if len(weights) != f.X.Cols {
		return fmt.Errorf("vote: %d weights of %d columns: %w", len(weights), f.X.Cols, ErrSize)
	}
	experts, err := fitExperts(ctx, &f.Table, rows, weights, plans, g.experts)
	if err != nil {
		return err
	}
	s := (&Guard{columns: g.columns, sensors: g.sensors, experts: experts}).NewScorer()
	for _, l := range held {
		apart := make([][]float64, len(experts))
		for _, i := range l.Rows {
			v := s.vote(f.X.Row(i))
			votes[f.Y[i]] = append(votes[f.Y[i]], v)
			f.report.Held[i] += v / deals
			for e, odds := range s.odds {
				d := 0.0
				if odds == odds {
					d = s.difference(e)
				}
				apart[e] = append(apart[e], d)
			}
		}
		for e := range g.experts {
			if !g.experts[e].pair {
				g.experts[e].threshold = max(g.experts[e].threshold, margin(thresholdMargin, len(f.lives))*lasting(apart[e]))
			}
		}
	}
	return nil
}

// margin returns by how many times a tool may exceed the largest value of n training tools: the given number or, with few tools,
// 1 + scarceTools/n, as the next one exceeds the largest of n with the probability 1/(n + 1).
func margin(least float64, n int) float64 { return max(least, 1+scarceTools/float64(n)) }

// lasting returns what NamedIn of any NamedOf values in a row do not all exceed: the greatest,
// over all stretches of NamedOf, of their NamedIn-th largest value. It is 0 of fewer than NamedIn.
func lasting(x []float64) float64 {
	most := 0.0
	sorted := make([]float64, 0, NamedOf)
	for to := NamedIn; to <= len(x); to++ {
		sorted = append(sorted[:0], x[max(0, to-NamedOf):to]...)
		slices.Sort(sorted)
		most = max(most, sorted[len(sorted)-NamedIn])
	}
	return most
}

// cutOf returns the cut of votes of two classes, each of which has some: half-way from the
// optimum of the smoothed G-mean to the inverse prior.
func cutOf(votes [2][]float64) float64 {
	limit := math.Log((1 - sure) / sure)
	prior := math.Log(float64(len(votes[1])) / float64(len(votes[0])))
	for _, v := range votes {
		for i := range v {
			v[i] = math.Exp(min(max(v[i], -limit), limit))
		}
	}
	pair := kernel.NewSortedOdds(votes[0], votes[1])
	if _, _, right := pair.Best(limit); right == 0 { // nothing to go by
		return prior
	}
	optimum := pair.SmoothedCut(limit, func(recall0, recall1 float64) float64 { return recall0 * recall1 })
	return (optimum + prior) / 2
}

// describe fills in the report of g.
func (f *fitter) describe(g *Guard) {
	for k, s := range f.kept {
		r := SensorReport{Name: s.Name, Unit: s.Unit, Share: s.share, Change: s.change}
		if len(g.sensors[k].sizes) > 0 {
			r.Step = math.Exp(g.sensors[k].least)
		}
		if s.first != k {
			r.With = f.kept[s.first].Name
		}
		f.report.Sensors = append(f.report.Sensors, r)
	}
	for _, x := range g.experts {
		r := expertReport{Ratio: x.pair, Threshold: x.threshold}
		for _, s := range x.sensors {
			r.Sensors = append(r.Sensors, f.kept[s].Name)
		}
		for _, in := range x.inputs {
			r.Columns = append(r.Columns, in.a)
		}
		f.report.Experts = append(f.report.Experts, r)
	}
	f.report.Cut = g.cut
}
