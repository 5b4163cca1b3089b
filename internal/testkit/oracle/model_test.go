package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// measured is the value of a window of a form.
type measured struct {
	value float64
	form  string
}

// toy returns a model that learns from a tool's first windows, and then calls a window faulty that is
// half as much again.
func toy(id, print, form string, learns int) *Model {
	return &Model{
		ID: id, Print: print, Learns: learns, Covers: func(w *Window) bool { return w.Value.(measured).form == form },
		Judge: func(learnt, _ []*Window, w *Window) Verdict {
			if len(learnt) < learns {
				return Verdict{Outcome: "learning"}
			}
			sum := 0.0
			for _, l := range learnt {
				sum += l.Value.(measured).value
			}
			if w.Value.(measured).value >= 1.5*sum/float64(learns) {
				return Verdict{Outcome: "faulty", Score: 1}
			}
			return Verdict{Outcome: "healthy"}
		},
	}
}

// plant is a machine and the models that may be deployed for it. Words of its scripts:
//
//	T1:nnw    windows of T1: n as of a new tool, w of a worn one
//	b/T1:n    of epoch b; a-3/T1:n the window with number 3 of epoch a
//	s|T1:n    shorter windows
//	2|T1:n    windows of layout 2
//	=B        B is champion from the next tool on; =B! now; =B+C with shadow C; =- nothing is deployed
//	~         all builds that are due see the whole past of the tool; ~2 all but its first two windows
//	-A        monitors do not know model A any more
//	!new*T1, !rename
//
// Of each window it says which model judged and how: l learns, h, F, u waits for a model that has
// seen the tool's past, and - without a model.
type plant struct {
	m      *Machine
	models map[string]*Model
	now    time.Time
	number map[string]uint64
	sent   int
	out    []string
}

func (p *plant) play(words string) string {
	p.out = nil
	for _, word := range strings.Fields(words) {
		switch {
		case word[0] == '=':
			p.deploy(word[1:])
		case word[0] == '~':
			from, _ := strconv.Atoi(word[1:])
			for _, job := range p.m.Due() {
				n := min(from, len(p.m.Windows(job.Tool)))
				_, used := p.m.Built(p.models[job.Model], job, p.m.Windows(job.Tool)[n:])
				p.out = append(p.out, fmt.Sprintf("~%s:%v", job.Model, used))
			}
		case word[0] == '-':
			p.models[word[1:]].Gone = true
		case word == "!rename":
			p.sent++
			p.m, _ = Rename(p.m, fmt.Sprint("c", p.sent), p.now, p.now)
		case word[0] == '!':
			p.sent++
			p.m.Command(Command{ID: fmt.Sprint("c", p.sent), Action: "new_tool", Tool: word[5:], At: p.now, Issued: p.now})
		default:
			p.windows(word)
		}
	}
	return strings.Join(p.out, " ")
}

func (p *plant) deploy(word string) {
	p.m.Deployed = map[string]*Deployment{"2": {Champion: p.models["Z"]}}
	if word == "-" {
		return
	}
	id, shadow, shadowed := strings.Cut(word, "+")
	id, now := strings.CutSuffix(id, "!")
	d := &Deployment{Champion: p.models[id], Now: now}
	if shadowed {
		d.Shadows = []Shadow{{Model: p.models[shadow]}}
	}
	p.m.Deployed["1"] = d
}

func (p *plant) windows(word string) {
	form, of, found := strings.Cut(word, "|")
	if !found {
		form, of = "1", word
	}
	of, values, _ := strings.Cut(of, ":")
	epoch, tool, found := strings.Cut(of, "/")
	if !found {
		epoch, tool = "a", of
	}
	epoch, number, fixed := strings.Cut(epoch, "-")
	word = ""
	for _, v := range values {
		w := Window{Tool: tool, Epoch: epoch, Seq: p.number[epoch], Start: p.now, End: p.now.Add(time.Second), At: p.now, Now: p.now, Layout: "1", Value: measured{10, form}}
		if form == "2" {
			w.Layout = "2"
		}
		if v == 'w' {
			w.Value = measured{20, form}
		}
		if fixed {
			w.Seq, _ = strconv.ParseUint(number, 10, 64)
		} else {
			p.number[epoch]++
		}
		p.now = p.now.Add(time.Second)
		out := p.m.Window(w)
		word += said(out.Result)
		for _, r := range out.Trials {
			word += "/" + said(&r)
		}
		if len(out.Advisories) > 0 {
			p.out = append(p.out, word)
			word = ""
			p.advisories(out)
		}
	}
	if word != "" {
		p.out = append(p.out, word)
	}
}

func (p *plant) advisories(out Outcome) {
	for _, a := range out.Advisories {
		p.out = append(p.out, "["+a.Kind+" "+a.State+"]")
	}
}

func said(r *Result) string {
	switch {
	case r == nil:
		return "-"
	case r.Verdict.Reason == ModelChanged:
		return r.Model + "u"
	case r.Verdict.Outcome == "faulty":
		return r.Model + "F"
	}
	return r.Model + r.Verdict.Outcome[:1]
}

func TestModels(t *testing.T) {
	for _, c := range []struct{ what, script, want string }{
		{"a tool's first windows are its reference", "=A T1:nnnw", "AlAlAhAF"},
		{"each tool has its own", "=A T1:nnn T2:wwn T1:w T2:w", "AlAlAh AlAlAh AF Ah"},

		// A new champion.
		{"judges from the next tool on", "=A T1:nnn =B T1:w T2:nnn", "AlAlAh AF BlBlBh"},
		{"has the reference of a tool that comes back, if it can use that", "=A T1:nnn =B T2:n T1:w", "AlAlAh Bl BF"},
		{"and the tool in the spindle keeps its model until it comes back", "=A T1:nnn =B T1:w T2:n T1:w", "AlAlAh AF Bl BF"},
		{"of other features: is shown the past of the tool in the spindle", "=A T1:nnn =C T1:w ~ T1:w T2:n T1:w", "AlAlAh AF ~C:true AF Cl CF"},
		{"and the tool goes on with the one before until then", "=A T1:nnn =C T2:n T1:w T1:w T2:n T1:w", "AlAlAh Cl AF AF Cl AF"},
		{"now: once it has seen all of the tool", "=A T1:nnn =B! T1:w ~ T1:ww", "AlAlAh AF ~B:true BFBF"},
		{"now: a seeded one has not", "=A T1:nnn =B! T1:ww", "AlAlAh AFAF"},
		{"now: windows come after it has seen the past", "=A T1:nn =C! T1:n ~ T1:nw", "AlAl Ah ~C:true ChCF"},
		{"its past is gone from Kafka: the one before goes on", "=A T1:nnn =C T1:w ~1 T1:w T2:n T1:w", "AlAlAh AF ~C:false AF Cl AF"},
		{"now, and its past is gone", "=A T1:nnn =C! T1:w ~1 T1:w", "AlAlAh AF ~C:false AF"},
		{"it is replaced before it has judged", "=A T1:nnn =C =B T1:w T2:n T1:w", "AlAlAh AF Bl BF"},

		// Rollback.
		{"the model before is still there", "=A T1:nnn =C T1:n ~ T2:n T1:w =A T2:n T1:w", "AlAlAh Ah ~C:true Cl CF Cl AF"},
		{"now: it has missed windows, and sees them first", "=A T1:nnn =C! T1:n ~ T1:w =A! T1:w ~ T1:w", "AlAlAh Ah ~C:true CF CF ~A:true AF"},
		{"two models before are still there", "=A T1:nnn =C T1:n ~ T2:n T1:n =D T1:n ~ T2:n T1:n =A T1:n T2:n T1:n", "AlAlAh Ah ~C:true Cl Ch Ch ~D:true Cl Dh Dh Cl Ah"},
		{"a third one is not", "=A T1:n =C T1:n ~ T2:n T1:n =D T1:n ~ T2:n T1:n =E T1:n ~ T2:n T1:n =A T1:n T2:n T1:n", "Al Al ~C:true Cl Cl Ch ~D:true Cl Dh Dh ~E:true Cl Eh Eh Ch Eh"},

		// No model can judge the tool's windows.
		{"the model is not known any more: the reference is used", "=A T1:nnn -A =B T1:w", "AlAlAh BF"},
		{"it is not, and features are others", "=A T1:nnn -A =C T1:w ~ T1:w", "AlAlAh Cu [model_changed raised] ~C:true CF [model_changed cleared]"},
		{"a reference of a used tool is used, too", "=A T1:nnn -A =C T1:n ~3 T1:nnn -C =F T1:w", "AlAlAh Cu [model_changed raised] ~C:true Cl [model_changed cleared] [used_reference raised] ClCh FF"},
		{"and the tool's past is gone", "=A T1:nnn -A =C T1:w ~3 T1:www", "AlAlAh Cu [model_changed raised] ~C:true Cl [model_changed cleared] [used_reference raised] ClCh"},
		{"a used reference lasts as long as the tool is in", "=A T1:nnn -A =C T1:w ~3 T1:w T2:n", "AlAlAh Cu [model_changed raised] ~C:true Cl [model_changed cleared] [used_reference raised] Cl [used_reference cleared]"},
		{"another tool ends the waiting", "=A T1:nnn -A =C T1:w T2:nn", "AlAlAh Cu [model_changed raised] Cl [model_changed cleared] Cl"},
		{"windows of another length", "=A T1:nnn s|T1:n T1:w =S T1:w s|T1:n ~ s|T1:nn", "AlAlAh - [windows_refused raised] AF AF Su [model_changed raised] ~S:true Sh [model_changed cleared] [used_reference raised] Sh"},

		// Layouts.
		{"a stray window of another layout changes nothing", "=A T1:nnn 2|b/T9:n T1:w", "AlAlAh Zl AF"},
		{"a model that waits does not take over behind them", "=A T1:nnn =B T1:n 2|T1:n T1:n T2:n T1:n", "AlAlAh Ah Zu [model_changed raised] Ah [model_changed cleared] Bl Bh"},
		{"a tool with windows of two layouts", "=A T1:nnn 2|T1:n ~ 2|T1:nn T1:w", "AlAlAh Zu [model_changed raised] ~Z:true Zl [model_changed cleared] [used_reference raised] Zh AF [used_reference cleared]"},

		// Deployments.
		{"nothing is deployed: nothing is known", "=- T1:n =A T1:nnw", "- [windows_refused raised] AlAlAF"},
		{"nothing is deployed any more: tools change all the same", "=A T1:nnn =- T2:n =A T2:n ~ T2:nw", "AlAlAh - [windows_refused raised] Au [model_changed raised] ~A:true Ah [model_changed cleared] AF"},
		{"a tool goes on", "=A T1:nnn =- T1:n =A T1:w", "AlAlAh - [windows_refused raised] AF"},
		{"a tool that is declared new", "=A T1:nnn !new*T1 T1:wwn", "AlAlAh AlAlAh"},
		{"a rename keeps references", "=A T1:nnn !rename T1:w =B T2:n T1:w", "AlAlAh AF Bl BF"},

		// Late windows.
		{"learn nothing", "=A+C T1:n a-9/T1:n a-3/T1:w a-4/T1:w a-10/T1:w a-10/T1:w", "Al/Cl Al/Cl AF/Cl AF/Cl AF/Cl -"},
		{"of a tool that is not remembered", "=A+C a-9/T1:n a-3/T2:w", "Al/Cl Al/Cl"},
		{"that no model can judge", "=A a-9/T1:n s|a-3/T1:n", "Al -"},
		{"before a model has seen the tool's past", "=A a-9/T1:n -A =C a-3/T1:n", "Al Cu"},

		// Shadows.
		{"a shadow judges the same windows", "=A+C T1:nnnw", "Al/ClAl/ClAh/ClAF/CF"},
		{"a shadow that begins later has the reference if it can use that", "=A T1:nnn =A+B T1:w", "AlAlAh AF/BF"},
		{"or sees the tool's past first", "=A T1:nnnn =A+C T1:w ~ T1:w", "AlAlAhAh AF ~C:true AF/CF"},
		{"a shadow becomes champion", "=A+B T1:nnn =B T1:w T2:n", "Al/BlAl/BlAh/Bh AF Bl"},
		{"the model before is a shadow, and goes on", "=A T1:nnn =B+A T1:n ~ T1:n T2:n T1:n", "AlAlAh Ah Ah Bl/Al Bh/Ah"},
		{"a shadow is not called twice", "=A+B T1:nn =B+B T1:w T2:n", "Al/BlAl/Bl AF/BF Bl"},
	} {
		p := &plant{
			m: &Machine{Settings: usual()}, now: noon, number: make(map[string]uint64),
			models: map[string]*Model{
				"A": toy("A", "1", "1", 2), "B": toy("B", "1", "1", 2), "C": toy("C", "3", "1", 3), "D": toy("D", "4", "1", 2), "E": toy("E", "5", "1", 2), "F": toy("F", "3", "1", 3), "S": toy("S", "s", "s", 2), "Z": toy("Z", "2", "2", 2),
			},
		}
		if got := p.play(c.script); got != c.want {
			t.Errorf("%s: %s\n got %q\nwant %q", c.what, c.script, got, c.want)
		}
	}
}

// A window leaves a tool what its champion, the model before and shadows know.
func TestFewJudgings(t *testing.T) {
	p := &plant{m: &Machine{Settings: usual()}, now: noon, number: make(map[string]uint64), models: make(map[string]*Model)}
	for i := range 20 {
		id := string(rune('a' + i))
		p.models[id] = toy(id, "1", "1", 2)
		p.models["Z"] = p.models[id]
		p.play("=" + id + " T1:n T2:n T1:n")
		if n := len(p.m.named("T1").judgings); n > 3 {
			t.Fatalf("%d models know the tool: %v", n, slices.Collect(func(yield func(string) bool) {
				for _, j := range p.m.named("T1").judgings {
					yield(j.model.ID)
				}
			}))
		}
	}
}
