package imbalance

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/internal/train/study"
	"github.com/flank-tcm/flank/pkg/score"
)

// paperDrills are the mean accuracy and G-mean that the paper prints for its own
// gun drills. Its weighted extreme learning machine does not say which weights.
//
// Source: C. Zhang et al., "A Cost-Sensitive Deep Belief Network for Imbalanced
// Classification", IEEE TNNLS 30(1), 2019, the tables of gun drilling.
var paperDrills = map[string][2]float64{
	"ecs-dbn":               {0.9960, 0.9946},
	"csdbn":                 {0.9957, 0.9916},
	"smote-svm-dbn":         {0.9961, 0.9858},
	"adasyn-dbn":            {0.9964, 0.9857},
	"smote-borderline2-dbn": {0.9962, 0.9852},
	"smote-borderline1-dbn": {0.9958, 0.9837},
	"smote-dbn":             {0.9959, 0.9837},
	"dbn":                   {0.9954, 0.9830},
	"welm-w1":               {0.7397, 0.7532},
	"welm-w2":               {0.7397, 0.7532},
	"eco-ensemble":          {0.9895, 0.9713},
}

//go:embed drill.md.tmpl
var drillIntroduction string

// DrillPage returns cells of a Drill as a page in Markdown: the paper's table, for
// each set, the best G-mean first.
func DrillPage(cells []Cell) string {
	cells = slices.Clone(cells)
	sortCells(cells)
	p := &drillPage{raw: make(map[string][]drillRow)}
	p.WriteString(drillIntroduction)
	for len(cells) > 0 {
		n := slices.IndexFunc(cells, func(c Cell) bool { return c.Dataset != cells[0].Dataset })
		if n < 0 {
			n = len(cells)
		}
		p.section(cells[:n])
		cells = cells[n:]
	}
	return strings.TrimSuffix(p.String(), "\n")
}

// drillPage is a page with the rows of sets whose tools are known.
type drillPage struct {
	strings.Builder
	raw map[string][]drillRow
}

// section writes what the sorted cells of a set say.
func (p *drillPage) section(cells []Cell) {
	set, rows := cells[0].Dataset, drillRows(cells)
	held, faulty, tools := 0, 0, 0
	for _, c := range rows[0].cells {
		if c.Trial == rows[0].Trial {
			held, faulty, tools = held+c.TP+c.FN+c.FP+c.TN, faulty+c.TP+c.FN, tools+len(c.Groups)
		}
	}
	if slices.ContainsFunc(cells, func(c Cell) bool { return c.Groups == nil }) {
		tools = 0 // they cannot be drawn
	} else {
		p.raw[set] = rows
	}
	fmt.Fprintf(p, "## %s\n\n%d test rows, %d of them faulty.", set, held, faulty)
	columns := p.leads(set, rows, tools)
	p.WriteString("\n\n| method | trials | accuracy | G-mean |")
	for _, c := range columns {
		fmt.Fprintf(p, " %s |", c.name)
	}
	fmt.Fprintf(p, " AUC by ranks | AUC of decisions | precision | recall | F1 | s to train | µs to judge a row | accuracy, paper | G-mean, paper |\n"+
		"|---|%s---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n", strings.Repeat("---:|", len(columns)))
	for _, r := range rows {
		p.row(r, columns)
	}
	p.WriteByte('\n')
}

// leads says which methods so many tools tell apart, and returns the columns of that.
func (p *drillPage) leads(set string, rows []drillRow, tools int) (columns []leadColumn) {
	control := slices.IndexFunc(rows, func(r drillRow) bool { return r.Method == study.Control })
	switch {
	case control < 0:
	case tools == 0:
		fmt.Fprintf(p, " By G-mean ECS-DBN has place %d of %d.", control+1, len(rows))
	default:
		ahead := leadsOver(rows, func(string) *drillRow { return &rows[control] })
		columns = append(columns, leadColumn{"G-mean less ECS-DBN's", ahead})
		p.WriteString(separated(rows, ahead, tools, "than ECS-DBN"))
	}
	if raw := p.raw[drillTools]; set == drillToolsGains && raw != nil {
		ahead := leadsOver(rows, func(method string) *drillRow {
			if i := slices.IndexFunc(raw, func(r drillRow) bool { return r.Method == method }); i >= 0 {
				return &raw[i]
			}
			return nil
		})
		columns = append(columns, leadColumn{"G-mean less " + drillTools + "'s", ahead})
		p.WriteString(separated(rows, ahead, tools, "with copies than without"))
	}
	return columns
}

func (p *drillPage) row(r drillRow, columns []leadColumn) {
	paper, micros, span := "– | –", "–", ""
	if v, ok := paperDrills[r.Method]; ok {
		paper = fmt.Sprintf("%.4f | %.4f", v[0], v[1])
	}
	if !math.IsNaN(r.Micros) {
		micros = fmt.Sprintf("%.1f", r.Micros)
	}
	if len(r.cells) > 1 {
		span = fmt.Sprintf(" (%.3f–%.3f)", r.least, r.most)
	}
	fmt.Fprintf(p, "| %s | %d | %.4f | %.4f%s |", r.Method, r.Trial, r.Accuracy, r.GMean, span)
	for _, c := range columns {
		text := "–"
		if l, ok := c.leads[r.Method]; ok {
			text = l.String()
		}
		fmt.Fprintf(p, " %s |", text)
	}
	fmt.Fprintf(p, " %.4f | %.4f | %.4f | %.4f | %.4f | %.1f | %s | %s |\n",
		r.AUC, r.BalancedAccuracy, r.Precision, r.Recall, r.F1, r.Seconds, micros, paper)
}

type leadColumn struct {
	name  string
	leads map[string]lead
}

// leadsOver returns how far each method is ahead of the row to compare it with, unless this is its
// own or nil.
func leadsOver(rows []drillRow, other func(method string) *drillRow) map[string]lead {
	var names []string
	var pairs [][2][]Cell
	for i := range rows {
		if r := other(rows[i].Method); r != nil && r != &rows[i] {
			names, pairs = append(names, rows[i].Method), append(pairs, [2][]Cell{rows[i].cells, r.cells})
		}
	}
	all := make(map[string]lead)
	if len(pairs) > 0 {
		for i, l := range leads(pairs) {
			all[names[i]] = l
		}
	}
	return all
}

// separated says which methods so many tools show to be better, and which worse, than what they
// are compared with: their interval is above or below 0.
func separated(rows []drillRow, ahead map[string]lead, tools int, than string) string {
	var better, worse []string
	for _, r := range rows {
		switch l, ok := ahead[r.Method]; {
		case ok && l.over.Low > 0:
			better = append(better, r.Method)
		case ok && l.over.High < 0:
			worse = append(worse, r.Method)
		}
	}
	named := func(methods []string) string { return cmp.Or(strings.Join(methods, ", "), "none") }
	return fmt.Sprintf("\n\nAs far as %d tools show, better %s: %s. Worse: %s. The other %d do not separate.",
		tools, than, named(better), named(worse), len(ahead)-len(better)-len(worse))
}

// drillRow is the mean of the cells of a method over its folds and trials, with the
// least and the greatest G-mean. Its trial is the last.
type drillRow struct {
	Cell
	cells       []Cell
	least, most float64
}

// drillRows returns the rows of the sorted cells of a set, the best mean G-mean
// first.
func drillRows(cells []Cell) []drillRow {
	var rows []drillRow
	for from := 0; from < len(cells); {
		to := from
		for to < len(cells) && cells[to].Method == cells[from].Method {
			to++
		}
		r := drillRow{Cell: Cell{Key: cells[to-1].Key}, cells: cells[from:to], least: math.Inf(1), most: math.Inf(-1)}
		mean, share := r.Figures(), 1/float64(to-from)
		for _, c := range r.cells {
			for k, v := range c.Figures() {
				*mean[k] += share * *v
			}
			r.least, r.most = min(r.least, c.GMean), max(r.most, c.GMean)
		}
		rows = append(rows, r)
		from = to
	}
	slices.SortStableFunc(rows, func(a, b drillRow) int { return cmp.Compare(b.GMean, a.GMean) })
	return rows
}

// lead is how far the mean G-mean of some cells is ahead of the mean of others, and the 95 %
// interval of that over groups.
type lead struct {
	ahead float64
	over  bootstrap.Interval
}

func (l lead) String() string {
	return strings.ReplaceAll(fmt.Sprintf("%+.3f [%+.3f, %+.3f]", l.ahead, l.over.Low, l.over.High), "-", "−")
}

// heldOut names a group in two letters: the fold that holds it out, and its place in the fold's test part.
func heldOut(c *Cell, place int) string { return string([]rune{rune(c.Fold), rune(place)}) }

// leads returns, for each pair, how far its first cells are ahead of its second ones. All cells
// must be of the same groups and have Groups. Groups are drawn, the same for all cells, because
// rows of a group resemble each other. A cell of whose fold no group was drawn does not count.
func leads(pairs [][2][]Cell) []lead {
	once := make(map[string]float64)
	for _, c := range pairs[0][0] {
		for k := range c.Groups {
			once[heldOut(&c, k)] = 1
		}
	}
	ahead := func(times map[string]float64) (all []float64) {
		for _, pair := range pairs {
			all = append(all, drawnGMean(pair[0], times)-drawnGMean(pair[1], times))
		}
		return all
	}
	all := make([]lead, len(pairs))
	over := bootstrap.Tools(slices.Collect(maps.Keys(once)), len(pairs), ahead)
	for i, v := range ahead(once) {
		all[i] = lead{v, over[i]}
	}
	return all
}

// drawnGMean returns the mean of the G-means that cells have on groups, each of which counts so
// many times.
func drawnGMean(cells []Cell, times map[string]float64) float64 {
	var all []float64
	for _, c := range cells {
		sum := score.NewConfusion(2)
		for k, m := range c.Groups {
			drawn := int(times[heldOut(&c, k)])
			for truth, decided := range m {
				for decision, n := range decided {
					sum[truth][decision] += n * drawn
				}
			}
		}
		if g := float64(sum.Summary().GMean); g == g {
			all = append(all, g)
		}
	}
	return stat.Mean(all, nil)
}
