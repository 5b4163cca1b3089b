package main

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/source/sim"
)

// The same seed gives the same year, and what the page says of the machines is so.
func TestFleet(t *testing.T) {
	months := func() (all [][]*plan) {
		f := newFleet(full)
		for month := range full.months + 1 {
			all = append(all, f.plans(month))
		}
		return all
	}
	all := months()
	if !reflect.DeepEqual(all, months()) {
		t.Error("two years of one seed differ")
	}
	if len(all[0]) != full.first || len(all[1]) != full.machines*full.tools {
		t.Errorf("%d tools before the year and %d in a month", len(all[0]), len(all[1]))
	}
	names, looked, reground := make(map[string]bool), 0, 0
	for month, plans := range all {
		for i, p := range plans {
			if names[p.tool.Name] {
				t.Errorf("two tools are named %s", p.tool.Name)
			}
			names[p.tool.Name] = true
			if other := p.tool.SpeedRPM == steelSpeed; other != (month >= otherSteel && i/full.tools%2 == 1) {
				t.Errorf("month %d, %s: another material: %v", month, p.tool.Name, other)
			}
			if p.looks == atTheEnd {
				looked++
			}
			if strings.HasPrefix(p.tool.Geometry, "1380") {
				reground++
			}
			if len(p.gains) != 14 {
				t.Errorf("%s: gains of %d channels", p.tool.Name, len(p.gains))
			}
		}
	}
	if tools := full.machines * full.tools * full.months; looked < tools/8 || looked > tools/3 || reground < tools/8 || reground > tools/2 {
		t.Errorf("%d of %d tools are measured, %d reground", looked, tools, reground)
	}
	before, after := gain(all[remounted-1][0], "ch04"), gain(all[remounted][0], "ch04")
	if r := after / before; r > 0.7 {
		t.Errorf("the accelerometer that is mounted again reads %.2f times as much", r)
	}
}

func gain(p *plan, channel string) float64 {
	for _, g := range p.gains {
		if g.Kind == sim.Gain && g.Channel == channel {
			return g.Size
		}
	}
	return math.NaN()
}

func TestPage(t *testing.T) {
	tool := func(name string, first, again float64) *life {
		return &life{plan: &plan{tool: sim.Tool{Name: name}}, found: [2]finding{{alarmUM: first, unknown: 1, windows: 10}, {alarmUM: again, windows: 10}}}
	}
	never := math.NaN()
	y := &year{size: size{machines: 3, months: 2, tools: 2, first: 4}, learn: []int{4, 5}, lives: [][]*life{
		nil,
		{tool("a", 269, never), tool("b", 270, 300), tool("c", never, 310)},
		{tool("d", never, 280), tool("e", 100, 280), tool("f", never, never)},
	}}
	page, plot := y.page()
	for _, line := range []string{
		"| 1 | 3 | 4 | 1 | 2 | 1 | 0 | 10.0 % | 0.0 % |",
		"| 2 | 3 | 5 | 0 | 2 | 1 | 0 | 10.0 % | 0.0 % |",
		"| all | 6 |  | 1 | 4 | 2 | 0 | 10.0 % | 0.0 % |",
		"tools found by +0.500 (",
		"false alarm by -0.333 (",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("the page has no %q:\n%s", line, page)
		}
	}
	for _, s := range []string{"trained again", "Tools with a false alarm"} {
		if !strings.Contains(string(plot), s) {
			t.Errorf("the picture has no %q", s)
		}
	}
}
