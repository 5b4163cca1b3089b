package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/bench/study/stat"
)

// Summary is the findings, a line each.
func (p *pages) Summary() []string {
	g := p.all[GMean]
	place := slices.Index(g.methods, Control) + 1
	lines := []string{fmt.Sprintf("**ECS-DBN** with default settings, one set of them for all: mean G-mean **%s** at accuracy %s over %d sets; mean rank of G-mean %.2f, place %d of %d methods.",
		number(p.mean(Control, GMean)), number(p.mean(Control, Accuracy)), len(p.Sets), g.rank(Control), place, len(g.methods))}
	if f := p.first; f != nil {
		lines = append(lines, fmt.Sprintf("A mean of many trials is less a matter of luck than one trial. By the first trial of every method alone: mean G-mean %s, mean rank %.2f, place %d.",
			number(mean(f.values)), f.rank(Control), slices.Index(f.methods, Control)+1))
	}
	if p.BestPeer != "" {
		peer, top := p.BestPeer, p.BestPeer
		for _, m := range g.methods {
			if isPeer(m) && p.mean(m, GMean) > p.mean(top, GMean) {
				top = m
			}
		}
		v := g.against[peer]
		lines = append(lines, fmt.Sprintf("The best peer by rank is %s: G-mean %s, accuracy %s, rank %.2f. ECS-DBN wins %d sets, loses %d, draws %d; %s (signed-rank p = %s, unadjusted).",
			title(peer), number(p.mean(peer, GMean)), number(p.mean(peer, Accuracy)), g.rank(peer), v.win, v.lose, v.draw, v.found(), probability(v.pairsP)))
		if top != peer {
			lines = append(lines, fmt.Sprintf("The best peer by mean G-mean is %s: %s.", title(top), number(p.mean(top, GMean))))
		}
	}
	if s, ok := p.seven[GMean]; ok {
		shown := func(t postHoc) string {
			if not := s.notBeaten(t); len(not) > 0 {
				return "not shown to be better than " + strings.Join(not, ", ")
			}
			return "better than every other"
		}
		lines = append(lines, fmt.Sprintf("Among the paper's %d methods, by G-mean, ECS-DBN is %s by signed-rank tests over sets, and %s by the z-test of mean ranks, which asks for more (both Holm-adjusted, level %v).",
			len(s.methods), shown(signedRanks), shown(meanRanks), level))
	}
	return lines
}

// postHoc returns the adjusted p-value of one of the tests.
type postHoc func(versus) float64

func signedRanks(v versus) float64 { return v.pairsHolm }
func meanRanks(v versus) float64   { return v.rankHolm }

// notBeaten returns the titles of the methods that the control is not shown to be
// better than.
func (c *comparison) notBeaten(p postHoc) []string {
	var not []string
	for _, m := range c.methods {
		if v := c.against[m]; m != c.control && !(p(v) < level && c.rank(c.control) < c.rank(m) && v.biserial > 0) {
			not = append(not, title(m))
		}
	}
	return not
}

// budget is how many minutes of two cores the control may take for all sets, their
// folds and ten trials.
const budget = 30

// Goals says which goals are reached.
func (p *pages) Goals() string {
	g := p.all[GMean]
	top := slices.MaxFunc(g.methods, func(a, b string) int { return cmp.Compare(p.mean(a, GMean), p.mean(b, GMean)) })
	verdict := func(ok bool, but string) string {
		if ok {
			return "reached"
		}
		return "**not reached**" + but
	}
	value := p.mean(Control, GMean)
	rows := [][]string{
		{"best mean rank of G-mean of all methods", verdict(g.methods[0] == Control, fmt.Sprintf(": %s has %.2f, ECS-DBN %.2f", title(g.methods[0]), g.test.Ranks[0], g.rank(Control)))},
		{"best mean G-mean of all methods", verdict(top == Control, fmt.Sprintf(": %s has %s, ECS-DBN %s", title(top), number(p.mean(top, GMean)), number(value)))},
		{fmt.Sprintf("mean G-mean of %v", goal), verdict(value >= goal, ": "+number(value))},
		{fmt.Sprintf("mean G-mean of %v, if it can be had honestly", goalBeyond), verdict(value >= goalBeyond, ": "+number(value))},
	}
	if s, ok := p.seven[GMean]; ok {
		for _, t := range []struct {
			name string
			p    postHoc
		}{{"signed ranks", signedRanks}, {"mean ranks", meanRanks}} {
			not := s.notBeaten(t.p)
			rows = append(rows, []string{fmt.Sprintf("significantly better by G-mean than each of the paper's other methods: %s, Holm", t.name),
				verdict(len(not) == 0, ": not shown for "+strings.Join(not, ", "))})
		}
	}
	minutes := p.mean(Control, Seconds) * float64(len(p.Sets)*folds*10) / 2 / 60
	took := fmt.Sprintf(": %.1f minutes", minutes)
	rows = append(rows, []string{fmt.Sprintf("ECS-DBN on the %d sets in ten trials within %d minutes of two cores", len(p.Sets), budget), verdict(minutes <= budget, "") + took})
	return strings.Replace(table([]string{"goal", "reached?"}, rows), "---:|", "---|", 1)
}

// Averages is the table of all methods, the best mean rank of G-mean first.
func (p *pages) Averages() string {
	header := []string{"method", "by", "trials", "G-mean", "accuracy", "AUC", "F1", "MCC", "balanced accuracy", "rank of G-mean", "rank of accuracy", "s per fit"}
	var rows [][]string
	g, a := p.all[GMean], p.all[Accuracy]
	for _, m := range g.methods {
		bold := m == Control
		row := []string{title(m), by(m), fmt.Sprint(p.trials(m, p.Sets)), spreadOf(p.mean(m, GMean), p.spread(m, GMean)), spreadOf(p.mean(m, Accuracy), p.spread(m, Accuracy))}
		for _, metric := range []Metric{AUC, F1, MCC, Balanced} {
			row = append(row, number(p.mean(m, metric)))
		}
		row = append(row, fmt.Sprintf("%.2f", g.rank(m)), fmt.Sprintf("%.2f", a.rank(m)), fmt.Sprintf("%.2g", p.mean(m, Seconds)))
		for i := range row {
			row[i] = strong(bold, row[i])
		}
		rows = append(rows, row)
	}
	return strings.Replace(table(header, rows), "|---|---:|", "|---|---|", 1)
}

func by(method string) string {
	if isPeer(method) {
		return "Python"
	}
	return "Flank"
}

// Friedman is the test that any two methods differ, in words.
func (p *pages) Friedman() string {
	t := p.all[GMean].test
	return fmt.Sprintf("Friedman's χ² is %.1f with %d degrees of freedom (p = %s), Iman and Davenport's F %.2f (p = %s). Two mean ranks are told apart, all pairs compared (Nemenyi, level %v), from %.2f on.",
		t.ChiSquare, t.K-1, probability(t.P), t.F, probability(t.FP), level, t.CriticalDifference(level))
}

// HolmSeven compares the control with the paper's methods, by G-mean and by
// accuracy.
func (p *pages) HolmSeven() string {
	var parts []string
	for _, m := range []Metric{GMean, Accuracy} {
		if c, ok := p.seven[m]; ok {
			parts = append(parts, fmt.Sprintf("By %s:\n\n%s", m, c.holm()))
		}
	}
	return strings.Join(parts, "\n")
}

// HolmAll compares it with all methods, by G-mean.
func (p *pages) HolmAll() string {
	c := p.all[GMean]
	return c.holm()
}

func (c *comparison) holm() string {
	header := []string{"ECS-DBN against", "mean rank", "win–lose–draw", "of these clear", "ranks: p", "Holm", "signed ranks: p", "Holm", "rank-biserial", "Cliff's δ"}
	rows := [][]string{}
	for i, m := range c.methods {
		rank := fmt.Sprintf("%.2f", c.test.Ranks[i])
		if m == c.control {
			rows = append(rows, []string{"*ECS-DBN itself*", rank, "", "", "", "", "", "", "", ""})
			continue
		}
		v := c.against[m]
		clear := "–"
		if v.tested {
			clear = fmt.Sprintf("%d–%d", v.clearWin, v.clearLose)
		}
		rows = append(rows, []string{title(m), rank, fmt.Sprintf("%d–%d–%d", v.win, v.lose, v.draw), clear,
			probability(v.rankP), probability(v.rankHolm), probability(v.pairsP), probability(v.pairsHolm),
			fmt.Sprintf("%+.2f", v.biserial), fmt.Sprintf("%+.2f", v.cliff)})
	}
	return table(header, rows)
}

// PaperAverages sets the paper's means and ranks next to ours.
func (p *pages) PaperAverages() string {
	var rows [][]string
	ranks := map[Metric][]float64{}
	for _, m := range []Metric{GMean, Accuracy} {
		ranks[m] = p.Paper.ranks(m)
	}
	for i, column := range p.Paper.Methods {
		name := ofPaper(column)
		row := []string{column}
		for _, m := range []Metric{GMean, Accuracy} {
			row = append(row, number(mean(p.Paper.Column(column, m))))
			row = append(row, p.ours(column, func(of string) string { return number(p.mean(of, m)) })...)
			row = append(row, fmt.Sprintf("%.2f", ranks[m][i]))
			if c, ok := p.seven[m]; ok && slices.Contains(c.methods, name) {
				row = append(row, fmt.Sprintf("%.2f", c.rank(name)))
			} else {
				row = append(row, "–")
			}
		}
		rows = append(rows, row)
	}
	return table([]string{"", "G-mean, paper", "ours", "ours, paper's settings", "rank, paper", "rank, ours", "accuracy, paper", "ours", "ours, paper's settings", "rank, paper", "rank, ours"}, rows)
}

// ours returns a cell of the study's method for a column of the paper's, and one of the method with the paper's settings, – where there is none.
func (p *pages) ours(column string, cell func(method string) string) []string {
	row := []string{"–", "–"}
	for i, of := range []string{ofPaper(column), atPaperSettings(column)} {
		if p.Has(of) {
			row[i] = cell(of)
		}
	}
	return row
}

// PaperTests are, for each of the paper's other methods, the p-values that its row "Holm" prints, from its own
// means, and the p-values of a true Holm procedure: by G-mean, then by accuracy.
func (p *pages) PaperTests() (rows [][]string) {
	control := p.Paper.Methods[0]
	for i, column := range p.Paper.Methods[1:] {
		row := []string{column}
		for _, m := range []Metric{GMean, Accuracy} {
			split := stat.SignedRankSplit(p.Paper.Column(control, m), p.Paper.Column(column, m), stat.Greater)
			row = append(row, fmt.Sprintf("%.5e", split.P), probability(p.Paper.holm(m)[i+1]))
		}
		rows = append(rows, row)
	}
	return rows
}

// Agreement is Spearman's correlation over the sets of the paper's G-mean of a
// column with ours.
func (p *pages) Agreement() string {
	var rows [][]string
	sets := p.known()
	for _, column := range p.Paper.Methods {
		if !p.Has(ofPaper(column)) {
			continue
		}
		row := []string{column}
		for _, m := range []Metric{GMean, Accuracy} {
			printed := p.Paper.column(column, m, sets)
			row = append(row, p.ours(column, func(of string) string { return correlation(stat.Spearman(printed, p.column(of, m, sets))) })...)
		}
		rows = append(rows, row)
	}
	return table([]string{"paper's column", "G-mean, ours", "ours, paper's settings", "accuracy, ours", "ours, paper's settings"}, rows)
}

// correlation writes one with two digits, – where a column is constant.
func correlation(r float64) string { return document.Figure("%.2f", r) }

// known are the sets that all methods have and the paper prints.
func (p *pages) known() []string {
	return slices.DeleteFunc(slices.Clone(p.Sets), func(set string) bool { return !slices.Contains(p.Paper.Sets, set) })
}

// Level is the tests' level, LeastPairs how many pairs they need.
func (p *pages) Level() float64  { return level }
func (p *pages) LeastPairs() int { return leastPairs }

// Majority is the mean accuracy of deciding for the larger class throughout.
func (p *pages) Majority() float64 {
	var v []float64
	for _, set := range p.known() {
		v = append(v, 1-p.Paper.Share[set])
	}
	return mean(v)
}

// TestCount is how many p-values the paper's two tables print.
func (p *pages) TestCount() int { return 2 * (len(p.Paper.Methods) - 1) }

// ControlSeconds is the mean time of one fit of the control.
func (p *pages) ControlSeconds() string { return fmt.Sprintf("%.2g", p.mean(Control, Seconds)) }

// Has reports whether there are cells of a method.
func (p *pages) Has(method string) bool { return slices.Contains(p.methods, method) }

// Peers are the methods of Python's that there are cells of.
func (p *pages) Peers() []string {
	return slices.DeleteFunc(slices.Clone(p.methods), func(m string) bool { return !isPeer(m) })
}

// MeanGMean is a method's mean G-mean.
func (p *pages) MeanGMean(method string) string { return number(p.mean(method, GMean)) }

// Collapsed counts the sets on which a method's G-mean is below a limit.
func (p *pages) Collapsed(method string, limit float64) int {
	return len(slices.DeleteFunc(p.column(method, GMean, p.Sets), func(v float64) bool { return v >= limit }))
}

// tablesOf is what the page of one metric, set by set, shows.
type tablesOf struct {
	*pages
	Metric Metric
}

// WithPaper sets our numbers next to the paper's: a row for each set, and for
// each of the paper's columns "ours (paper's)". Ours are with the study's
// settings; a printed value that cannot be, see possible, has an asterisk.
func (t tablesOf) WithPaper() string {
	columns := t.ran(ofPaper)
	impossible := map[string][]string{}
	for _, column := range columns {
		impossible[column] = t.Paper.Impossible(column)
	}
	var rows [][]string
	sum, paper := make([]float64, len(columns)), make([]float64, len(columns))
	for _, set := range t.known() {
		row := []string{set, fmt.Sprint(t.Paper.Rows[set]), fmt.Sprintf("%.1f %%", 100*t.Paper.Share[set])}
		best := math.Inf(-1)
		for _, column := range columns {
			best = max(best, t.scores[pair{ofPaper(column), set}].mean[t.Metric])
		}
		for i, column := range columns {
			v := t.scores[pair{ofPaper(column), set}].mean[t.Metric]
			printed := t.Paper.printed[paperKey{column, set, t.Metric}]
			mark := ""
			if slices.Contains(impossible[column], set) {
				mark = "*"
			}
			row = append(row, fmt.Sprintf("%s (%.3f%s)", strong(v >= best-drawWithin, t.cell(ofPaper(column), set)), printed.mean, mark))
			sum[i] += v
			paper[i] += printed.mean
		}
		rows = append(rows, row)
	}
	last := []string{"*mean*", "", ""}
	for i := range columns {
		last = append(last, fmt.Sprintf("%s (%s)", number(sum[i]/float64(len(rows))), number(paper[i]/float64(len(rows)))))
	}
	return table(slices.Concat([]string{"set", "rows", "minority"}, columns), append(rows, last))
}

// ran returns the columns of the paper whose methods were run, by the names that a function gives them.
func (t tablesOf) ran(of func(column string) string) []string {
	return slices.DeleteFunc(slices.Clone(t.Paper.Methods), func(column string) bool { return !t.Has(of(column)) })
}

func (t tablesOf) cell(method, set string) string {
	s := t.scores[pair{method, set}]
	return spreadOf(s.mean[t.Metric], s.spread[t.Metric])
}

// AtPaperSettings is the same for the methods that were run with the paper's
// settings too.
func (t tablesOf) AtPaperSettings() string {
	columns := t.ran(atPaperSettings)
	if len(columns) == 0 {
		return ""
	}
	header := []string{"set"}
	for _, column := range columns {
		header = append(header, column+", paper's settings", column+", default", column+", paper")
	}
	var rows [][]string
	for _, set := range t.known() {
		row := []string{set}
		for _, column := range columns {
			printed := t.Paper.printed[paperKey{column, set, t.Metric}]
			row = append(row, t.cell(atPaperSettings(column), set), t.cell(ofPaper(column), set), spreadOf(printed.mean, printed.spread))
		}
		rows = append(rows, row)
	}
	return table(header, rows)
}

// All is a table of all methods, one column each, the best mean rank of the
// metric first, with the best of each set in bold.
func (t tablesOf) All() string {
	c := t.all[t.Metric]
	const perTable = 11
	var b strings.Builder
	for from := 0; from < len(c.methods); from += perTable {
		methods := c.methods[from:min(from+perTable, len(c.methods))]
		header := []string{"set"}
		for _, m := range methods {
			header = append(header, title(m))
		}
		var rows [][]string
		for _, set := range t.Sets {
			best := math.Inf(-1)
			for _, m := range c.methods {
				best = max(best, t.scores[pair{m, set}].mean[t.Metric])
			}
			row := []string{set}
			for _, m := range methods {
				v := t.scores[pair{m, set}].mean[t.Metric]
				row = append(row, strong(v >= best-drawWithin, number(v)))
			}
			rows = append(rows, row)
		}
		mean, rank := []string{"*mean*"}, []string{"*mean rank*"}
		for _, m := range methods {
			mean = append(mean, number(t.mean(m, t.Metric)))
			rank = append(rank, fmt.Sprintf("%.2f", c.rank(m)))
		}
		b.WriteString(table(header, append(rows, mean, rank)) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
