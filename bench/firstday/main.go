// Firstday measures what can be said of tools while no worn one was ever seen: Flank's level of the leading sensor
// (pkg/score) next to one-class methods, cumulative sums, and limits that are taught in from the first tool.
//
//	firstday splits --tables FOLDER
//	firstday page --tables FOLDER --cells ../docs/figures/unseen/cells.csv --out ../docs/figures/first-day.md
//
// The first writes the splits, for bench/peers/unseen/firstday.py. The second measures and writes the page. `make bench-firstday` calls them.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/flank-tcm/flank/bench/bootstrap"
	"github.com/flank-tcm/flank/bench/columns"
	"github.com/flank-tcm/flank/bench/command"
	"github.com/flank-tcm/flank/bench/document"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/pkg/score"
)

func main() { command.Main("firstday", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		args = []string{""}
	}
	flags := command.Flags("firstday "+args[0], stderr)
	tables := flags.String("tables", "../flank-data/unseen", "`folder` of feature tables, made by `unseen tables`")
	cells := flags.String("cells", "../docs/figures/unseen/cells.csv", "`file` of the cells of tools never seen")
	out := flags.String("out", "../docs/figures/first-day.md", "`file` of the page; -: print it")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "splits":
		return writeSplits(*tables)
	case "page":
		p, err := measure(ctx, *tables, *cells)
		if err != nil {
			return err
		}
		if *out == "-" {
			_, err := io.WriteString(stdout, p.markdown())
			return err
		}
		return config.WriteFile(*out, []byte(p.markdown()))
	}
	return fmt.Errorf("%q: say splits or page", args[0])
}

//go:embed page.md.tmpl
var pageText string

type page struct {
	Compared []row // on all data sets
	Own      []row // with the settings that are best on the turning tools themselves
	Lives    []row // by how many healthy lives teach
	Labelled []row // by how many tools have labels
	Tools    []toolRow
	Nested   []row // by the choice that is best on the other turning tools
	Goals    []string
	Bound    float64 // of the rate of false alarms if there was none, at 95 %; 0: there was one

	groups []group
}

type row struct {
	Name    string
	Setting string
	Of      []figures // by data set
}

// toolRow says at which wear a turning tool was warned of.
type toolRow struct {
	Tool, Worst, Least, Median, Greatest, None string
}

func (p *page) markdown() string { return document.Fill(pageText, p, nil) }

// measure makes all figures. A cancelled context ends it between methods.
func measure(ctx context.Context, folder, cells string) (*page, error) {
	said, err := loadPeers(folder)
	if err != nil {
		return nil, err
	}
	data := make(map[string]*set)
	for _, name := range sets {
		if data[name], err = load(folder, name); err != nil {
			return nil, err
		}
	}
	p := &page{}
	ms := methods(said)
	var chosen setting
	for i := range ms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if t := p.compare(data, &ms[i]); i == 0 {
			chosen = t
		}
	}
	p.lives(data, &ms[0], chosen)
	p.alarms(data[turning], &ms[0], chosen)
	for _, g := range p.groups {
		p.Nested = append(p.Nested, row{Name: g.name, Of: []figures{sum(nested(data[turning], g.of), true)}})
	}
	p.goals()
	return p, p.labelled(cells, data)
}

// compare adds the rows of a method, and returns the setting that drills chose.
func (p *page) compare(data map[string]*set, m *method) setting {
	of := make(map[string][]taughtSplit)
	for _, name := range sets {
		of[name] = learn(data[name], m, data[name].splits(data[name].taughtBy()))
	}
	chosen := best(choices(data[drill], of[drill], m.settings()), nil).setting
	add := func(name string, t setting) {
		r := row{Name: name, Setting: t.words(m)}
		for _, set := range sets {
			r.Of = append(r.Of, sum(judge(data[set], of[set], t), true))
		}
		p.Compared = append(p.Compared, r)
	}
	add(m.name, chosen)
	if m.name == ownName {
		eight := chosen
		eight.k, eight.n = 5, 8
		add(ownName+", k of n as alarms have it", eight)
	}
	all := choices(data[turning], of[turning], m.settings())
	t := best(all, nil)
	p.Own = append(p.Own, row{Name: m.name, Setting: t.words(m), Of: []figures{sum(t.of, false)}})
	p.group(m.group, all)
	return chosen
}

// group adds choices to the choices of methods of a kind.
func (p *page) group(name string, of []choice) {
	if n := len(p.groups); n == 0 || p.groups[n-1].name != name {
		p.groups = append(p.groups, group{name: name})
	}
	g := &p.groups[len(p.groups)-1]
	g.of = append(g.of, of...)
}

// group is the choices of methods of a kind, on the turning tools.
type group struct {
	name string
	of   []choice
}

func (t setting) words(m *method) string {
	out := fmt.Sprintf("%v × what healthy lives reached", t.share)
	if !math.IsInf(t.least, -1) {
		least := fmt.Sprintf("%.2f", t.least)
		if t.least == score.LeastDifferent {
			least = "ln 2"
		}
		out += ", at least " + least
	}
	if !m.whole {
		out = fmt.Sprintf("%d of %d; %s", t.k, t.n, out)
	}
	return out
}

// lives adds a row for each number of lives that may teach.
func (p *page) lives(data map[string]*set, m *method, t setting) {
	for n := 1; n <= 5; n++ {
		r := row{Name: strconv.Itoa(n)}
		for _, name := range sets {
			f := notMeasured
			if s := data[name]; n < len(s.lives) {
				f = sum(judge(s, learn(s, m, s.splits(n)), t), true)
			}
			r.Of = append(r.Of, f)
		}
		p.Lives = append(p.Lives, r)
	}
}

// alarms says at which wear turning tools are warned of.
func (p *page) alarms(s *set, m *method, t setting) {
	at := make(map[string][]float64)
	for _, of := range learn(s, m, s.splits(3)) {
		limit := t.limit(of.score, of.taught)
		for _, l := range of.judged {
			um := math.Inf(1)
			if i := score.FirstAbove(of.score(l), t.k, t.n, limit); i >= 0 {
				um = l.wear[i]
			}
			at[l.tool] = append(at[l.tool], um)
		}
	}
	for _, l := range s.lives {
		ums := slices.Sorted(slices.Values(at[l.tool]))
		never := 0
		for len(ums) > 0 && math.IsInf(ums[len(ums)-1], 1) {
			ums = ums[:len(ums)-1]
			never++
		}
		r := toolRow{Tool: l.tool, Worst: columns.Number(l.worst(), 0), Least: "–", Median: "–", Greatest: "–", None: fmt.Sprintf("%d of %d", never, never+len(ums))}
		if n := len(ums); n > 0 {
			r.Least, r.Median, r.Greatest = columns.Number(ums[0], 0), columns.Number(stat.Quantile(0.5, stat.Empirical, ums, nil), 0), columns.Number(ums[n-1], 0)
		}
		p.Tools = append(p.Tools, r)
	}
}

// goals says whether the bar is held: with drills' settings, against other methods at their best, and with settings of the other turning
// tools, against methods with theirs.
func (p *page) goals() {
	say := func(words string, own figures, others []row) {
		held := own.Warned >= 0.8 && own.False <= mostFalse && !slices.ContainsFunc(others, func(r row) bool {
			return !strings.HasPrefix(r.Name, ownName) && r.Of[0].False <= mostFalse && r.Of[0].Warned >= own.Warned
		})
		p.Goals = append(p.Goals, fmt.Sprintf("%s | %.2f of worn tools, false alarms in %.3f of lives | %s", words, own.Warned, own.False, document.Held(held)))
	}
	own := p.Compared[0].Of[0]
	say("one sensor; the rest chosen on drills", own, p.Own)
	say("everything chosen on the other turning tools", p.Nested[0].Of[0], p.Nested)
	if own.False == 0 {
		p.Bound = 1 - math.Pow(0.05, 1/float64(own.Tools))
	}
}

// labelledProtocols are the protocols of cells in which so many tools have labels, by data set.
var labelledProtocols = []struct {
	words string
	of    map[string]string
}{
	{"1, worn", map[string]string{turning: "few-1", drill: "few-1"}},
	{"2, worn", map[string]string{turning: "few-2", phm: "leave-one-out"}},
	{"3, worn", map[string]string{turning: "few-3", drill: "few-3"}},
	{"6, some of them worn", map[string]string{turning: "6/3"}},
	{"8, some of them worn", map[string]string{turning: "leave-one-out"}},
	{"16, worn", map[string]string{drill: "5-fold"}},
}

// labelled adds what the network does once worn tools were measured, of the cells of tools never seen.
func (p *page) labelled(path string, data map[string]*set) error {
	of := make(map[string][]outcome) // by data set and protocol
	if err := columns.Each(path, func(r *columns.Row) error {
		s := data[r.Text("data")]
		if s == nil || r.Text("variant") != "default" {
			return nil
		}
		o := outcome{tool: r.Text("tool"), worn: r.Number("worst_um") >= s.Limit}
		if um := r.Maybe("alarm_um"); um == um {
			w := um / s.Limit
			o.warned, o.false_, o.false9 = w <= late, w < soon, w < sooner
		}
		key := s.Name + " " + r.Text("protocol")
		of[key] = append(of[key], o)
		return nil
	}, "data", "protocol", "variant", "tool", "worst_um", "alarm_um"); err != nil {
		return err
	}
	p.Labelled = []row{{Name: "0, three healthy lives; PHM two", Of: p.Compared[1].Of}}
	for _, l := range labelledProtocols {
		r := row{Name: l.words}
		for _, name := range sets {
			if l.of[name] == "" {
				r.Of = append(r.Of, notMeasured)
				continue
			}
			os := of[name+" "+l.of[name]]
			if len(os) == 0 {
				return fmt.Errorf("%s: no cells of %s, %s: make them with `make unseen`", path, name, l.of[name])
			}
			r.Of = append(r.Of, sum(os, true))
		}
		p.Labelled = append(p.Labelled, r)
	}
	return nil
}

var notMeasured = figures{Warned: math.NaN(), False: math.NaN(), FalseNine: math.NaN(), WarnedIn: bootstrap.None, FalseIn: bootstrap.None}
