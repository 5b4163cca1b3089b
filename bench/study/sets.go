package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// tablesOf is what the page of one metric, set by set, shows.
type tablesOf struct {
	*pages
	Metric Metric
}

// WithPaper sets our numbers next to the paper's: a row for each set, and for
// each of the paper's columns "ours (paper's)". Ours are with the study's
// settings; a printed value that cannot be, see possible, has an asterisk.
func (t tablesOf) WithPaper() string {
	header := []string{"set", "rows", "minority"}
	var columns []string
	for _, column := range t.Paper.Methods {
		if t.Has(ofPaper(column)) {
			columns = append(columns, column)
			header = append(header, column)
		}
	}
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
			s := t.scores[pair{ofPaper(column), set}]
			printed := t.Paper.printed[paperKey{column, set, t.Metric}]
			mark := ""
			if slices.Contains(impossible[column], set) {
				mark = "*"
			}
			row = append(row, fmt.Sprintf("%s (%.3f%s)", strong(s.mean[t.Metric] >= best-drawWithin, spreadOf(s.mean[t.Metric], s.spread[t.Metric])), printed.mean, mark))
			sum[i] += s.mean[t.Metric]
			paper[i] += printed.mean
		}
		rows = append(rows, row)
	}
	last := []string{"*mean*", "", ""}
	for i := range columns {
		last = append(last, fmt.Sprintf("%s (%s)", number(sum[i]/float64(len(rows))), number(paper[i]/float64(len(rows)))))
	}
	return table(header, append(rows, last))
}

// AtPaperSettings is the same for the methods that were run with the paper's
// settings too.
func (t tablesOf) AtPaperSettings() string {
	header := []string{"set"}
	var columns []string
	for _, column := range t.Paper.Methods {
		if t.Has(atPaperSettings(column)) {
			columns = append(columns, column)
			header = append(header, column+", paper's settings", column+", default", column+", paper")
		}
	}
	if len(columns) == 0 {
		return ""
	}
	var rows [][]string
	for _, set := range t.known() {
		row := []string{set}
		for _, column := range columns {
			theirs, ours := t.scores[pair{atPaperSettings(column), set}], t.scores[pair{ofPaper(column), set}]
			printed := t.Paper.printed[paperKey{column, set, t.Metric}]
			row = append(row, spreadOf(theirs.mean[t.Metric], theirs.spread[t.Metric]), spreadOf(ours.mean[t.Metric], ours.spread[t.Metric]),
				spreadOf(printed.mean, printed.spread))
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
