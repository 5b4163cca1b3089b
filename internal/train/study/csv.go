package study

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/pkg/classify"
	"github.com/flank-tcm/flank/pkg/dbn"
)

// CSV says how a table of one's own is to be read.
type CSV struct {
	Path   string
	Label  string   // the column of the class, which has two values
	Group  string   // the column of what rows have in common, such as the tool; empty: folds are by row
	Ignore []string // columns that are not features; * stands for any characters
	Keep   []string // columns that are, also if their name or table.Leak says why not

	// LimitUM, if not 0, turns the column of the label, which holds wear, into the class: 1 from
	// this wear on.
	LimitUM float64
}

const (
	leftOut   = 10 // groups, at most, that are left out one by one; more are left out in so many parts
	rowFolds  = 5  // folds of a table without groups
	maxValues = 30 // of a column of words, which becomes a column for each
)

// Load reads the table. The rarer class is 1; a column of words becomes a column
// of 0 and 1 for each of them; an empty field, or NaN, is a missing value. Folds
// leave out one group after the other, or ten parts of the groups if these are more.
func (c CSV) Load() (*Set, error) {
	f, err := os.Open(c.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := c.read(f)
	if err != nil {
		return nil, err
	}
	s.Name = strings.TrimSuffix(filepath.Base(c.Path), filepath.Ext(c.Path))
	return s, s.Check()
}

// csvColumns says what the columns of a table are.
type csvColumns struct {
	names        []string
	label, group int // group is −1 without groups
	features     []int
}

// csvRows are the fields of a table, without white space around them.
type csvRows struct {
	fields         [][]string
	labels, groups []string
	lines          []int // of each row
}

func (c CSV) read(r io.Reader) (*Set, error) {
	lines := table.NewTextReader(r, c.Path)
	columns, err := c.header(lines)
	if err != nil {
		return nil, err
	}
	rows, err := c.rows(lines, columns)
	if err != nil {
		return nil, err
	}
	s := &Set{Groups: rows.groups, Kind: strings.ToLower(c.Group)}
	if c.LimitUM > 0 {
		s.Y, s.Rare, err = c.worn(rows)
	} else {
		s.Y, s.Rare, err = c.classes(rows.labels)
	}
	if err != nil {
		return nil, err
	}
	var all [][]float32
	for _, j := range columns.features {
		more, err := c.column(columns.names[j], rows.fields, j, rows.lines)
		if err != nil {
			return nil, err
		}
		if why := leakOf(columns.names[j], columns.names, more, rows.groups); why != "" && !slices.Contains(c.Keep, columns.names[j]) {
			s.Left = append(s.Left, fmt.Sprintf("%s, since %s", columns.names[j], why))
			continue
		}
		s.Columns = append(s.Columns, columns.names[j])
		all = append(all, more...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no column is left to learn from; name one with --keep. Left out are %s", c.Path, strings.Join(s.Left, "; "))
	}
	s.X = dbn.NewMatrix(len(rows.fields), len(all))
	for j, column := range all {
		for i, v := range column {
			s.X.Row(i)[j] = v
		}
	}
	return s, c.fold(s)
}

// leakOf says why a column seems to be no measurement, by its name among all names, and by its numbers unless it is of words; empty if it may be one.
func leakOf(name string, names []string, columns [][]float32, groups []string) string {
	if says := source.SaysLabel(name, names); says != "" {
		return "its name says " + says
	}
	if len(columns) != 1 {
		return ""
	}
	var l table.Leak
	for i, v := range columns[0] {
		l.Add(float64(v), groups != nil && i > 0 && groups[i] != groups[i-1])
	}
	return l.Why()
}

// header reads the line of column names.
func (c CSV) header(lines *table.TextReader) (*csvColumns, error) {
	err := lines.Header()
	if err == io.EOF {
		return nil, fmt.Errorf("%s: the file is empty: a table begins with a line of column names", c.Path)
	}
	if err != nil {
		return nil, err
	}
	names := slices.Clone(lines.Row)
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		if slices.Contains(names[:i], names[i]) {
			return nil, fmt.Errorf("%s:1: two columns are called %q: rename one, or remove it", c.Path, names[i])
		}
	}
	if len(names) == 1 && strings.ContainsAny(names[0], ";\t") {
		return nil, fmt.Errorf("%s:1: semicolons or tabs are between the columns: save the table with commas", c.Path)
	}
	find := func(flag, name string) (int, error) {
		i := slices.Index(names, name)
		if i < 0 {
			return 0, fmt.Errorf("%s: no column %q for %s: there are %s", c.Path, name, flag, strings.Join(names, ", "))
		}
		return i, nil
	}
	out := &csvColumns{names: names, group: -1}
	if out.label, err = find("--label", c.Label); err != nil {
		return nil, err
	}
	if c.Group != "" {
		if out.group, err = find("--group", c.Group); err != nil {
			return nil, err
		}
		if out.group == out.label {
			return nil, fmt.Errorf("%s: --label and --group are one column, %s: a group, such as a tool, has rows of either class", c.Path, c.Label)
		}
	}
	for _, name := range c.Keep {
		if _, err := find("--keep", name); err != nil {
			return nil, err
		}
	}
	ignored, err := c.ignored(names)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if i != out.label && i != out.group && !ignored[name] {
			out.features = append(out.features, i)
		}
	}
	return out, nil
}

// ignored returns the names that --ignore leaves out. Each pattern must match one.
func (c CSV) ignored(names []string) (map[string]bool, error) {
	ignored := make(map[string]bool)
	for _, pattern := range c.Ignore {
		some := false
		for _, name := range names {
			ok, err := table.MatchColumn(pattern, name)
			if err != nil {
				return nil, fmt.Errorf("--ignore %s: not a pattern: write * for any characters", pattern)
			}
			if ok {
				some, ignored[name] = true, true
			}
		}
		if !some {
			return nil, fmt.Errorf("%s: no column %q for --ignore: there are %s", c.Path, pattern, strings.Join(names, ", "))
		}
	}
	return ignored, nil
}

// worn returns 1 for each row whose wear is the limit or more, and what that is called.
func (c CSV) worn(rows *csvRows) (y []int, rare string, err error) {
	y = make([]int, len(rows.labels))
	n, most := 0, math.Inf(-1)
	for i, text := range rows.labels {
		um, err := strconv.ParseFloat(text, 64)
		if err != nil || !(um >= 0 && um <= math.MaxFloat64) {
			return nil, "", fmt.Errorf("%s:%d: %s %q is not a wear in µm: correct it, or leave the row out", c.Path, rows.lines[i], c.Label, text)
		}
		if most = max(most, um); um >= c.LimitUM {
			y[i] = 1
			n++
		}
	}
	switch {
	case len(y) == 0:
		return nil, "", fmt.Errorf("%s: no rows follow the column names", c.Path)
	case n == 0 && most <= 10:
		return nil, "", fmt.Errorf("%s: %s is %.4g at most, below the limit of %.4g µm: is the column in mm? Then give --vb-max-um in mm too", c.Path, c.Label, most, c.LimitUM)
	case n == 0:
		return nil, "", fmt.Errorf("%s: %s is %.4g µm at most, below the limit of %.4g µm: there must be worn rows; lower --vb-max-um, or add tools until they are worn", c.Path, c.Label, most, c.LimitUM)
	case n == len(y):
		return nil, "", fmt.Errorf("%s: %s is %.4g µm or more in every row: there must be healthy rows; raise --vb-max-um, or add tools while they are new", c.Path, c.Label, c.LimitUM)
	}
	return y, fmt.Sprintf("%s from %.4g on", c.Label, c.LimitUM), nil
}

// rows reads the lines that follow the header.
func (c CSV) rows(lines *table.TextReader, columns *csvColumns) (*csvRows, error) {
	out := &csvRows{}
	for {
		err := lines.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		row, n := slices.Clone(lines.Row), lines.Line
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if row[columns.label] == "" {
			return nil, fmt.Errorf("%s:%d: the label %s is empty: fill it in, or leave the row out", c.Path, n, c.Label)
		}
		if columns.group >= 0 {
			if row[columns.group] == "" {
				return nil, fmt.Errorf("%s:%d: the group %s is empty: fill it in, for rows of one group must not part", c.Path, n, c.Group)
			}
			out.groups = append(out.groups, row[columns.group])
		}
		out.fields, out.labels, out.lines = append(out.fields, row), append(out.labels, row[columns.label]), append(out.lines, n)
	}
}

// classes returns 1 for each label that is the rarer of two, and what that is
// called.
func (c CSV) classes(labels []string) (y []int, rare string, err error) {
	count := make(map[string]int)
	for _, l := range labels {
		count[l]++
	}
	values := slices.Sorted(maps.Keys(count))
	switch some := strings.Join(values[:min(len(values), 5)], ", "); len(values) {
	case 0:
		return nil, "", fmt.Errorf("%s: no rows follow the column names", c.Path)
	case 1:
		return nil, "", fmt.Errorf("%s: the label %s is %s in every row: there must be rows of two classes", c.Path, c.Label, some)
	case 2:
	default:
		return nil, "", fmt.Errorf("%s: the label %s has %d different values, %s among them: there must be two, the frequent and the rare class; if it is wear, give the limit from which on a tool is worn with --vb-max-um", c.Path, c.Label, len(values), some)
	}
	for l, n := range count {
		if rare == "" || n < count[rare] || n == count[rare] && l > rare {
			rare = l
		}
	}
	y = make([]int, len(labels))
	for i, l := range labels {
		if l == rare {
			y[i] = 1
		}
	}
	return y, c.Label + "=" + rare, nil
}

// column returns the numbers of a column, or one for each of its words. Rows are in
// the given lines.
func (c CSV) column(name string, rows [][]string, j int, line []int) ([][]float32, error) {
	numbers := make([]float32, len(rows))
	var words []string
	first := 0 // line of a word
	for i, row := range rows {
		v, err := strconv.ParseFloat(row[j], 32)
		switch {
		case missing(row[j]):
			numbers[i] = float32(math.NaN())
		case err == nil && !math.IsInf(v, 0):
			numbers[i] = float32(v)
		case !slices.Contains(words, row[j]):
			words = append(words, row[j])
			first = cmp.Or(first, line[i])
		}
		if len(words) > maxValues {
			return nil, fmt.Errorf("%s: column %s holds more than %d different words, such as %q: if it is not a feature, leave it out with --ignore %s", c.Path, name, maxValues, row[j], name)
		}
	}
	if len(words) == 0 {
		return [][]float32{numbers}, nil
	}
	var all [][]float32
	seen := make(map[string][]float32)
	for i, row := range rows {
		if missing(row[j]) {
			continue
		}
		if seen[row[j]] == nil {
			if len(all) > maxValues {
				return nil, fmt.Errorf("%s:%d: column %s holds %q here, and many numbers: mend it (a missing value is an empty field), or leave the column out with --ignore %s", c.Path, first, name, words[0], name)
			}
			seen[row[j]] = make([]float32, len(rows))
			all = append(all, seen[row[j]])
		}
		seen[row[j]][i] = 1
	}
	return all, nil
}

// missing reports whether a field holds nothing.
func missing(field string) bool { return field == "" || strings.EqualFold(field, "nan") }

// fold deals the rows out.
func (c CSV) fold(s *Set) error {
	if s.Groups == nil {
		if len(s.Y) < rowFolds {
			return fmt.Errorf("%s: %d rows are too few for %d folds", c.Path, len(s.Y), rowFolds)
		}
		s.Folds = classify.StratifiedKFold(s.Y, rowFolds, rand.New(rand.NewPCG(1, 0)))
		return nil
	}
	if err := s.LeaveGroupsOut(); err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	return nil
}

// LeaveGroupsOut deals the rows out by group: one group after the other, or ten parts of the
// groups if these are more.
func (s *Set) LeaveGroupsOut() error {
	_, groups := classify.NumberGroups(s.Groups)
	switch {
	case len(groups) < 2:
		return fmt.Errorf("all rows are of one %s: there must be two or more to leave one out", cmp.Or(s.Kind, "group"))
	case len(groups) <= leftOut:
		s.Folds = classify.LeaveOneGroupOut(s.Groups)
	default:
		s.Folds = classify.GroupKFold(s.Y, s.Groups, leftOut, rand.New(rand.NewPCG(1, 0)))
	}
	return nil
}
