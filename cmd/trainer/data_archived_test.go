package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// cutOffOf returns of sorted windows which tools lack their beginning.
func cutOffOf(all []*window.Features) (cut []model.CutTool) {
	began := make(map[stream]time.Time)
	for _, w := range all {
		at := stream{w.Machine, w.Epoch}
		if t, known := began[at]; !known || w.Start.Before(t) {
			began[at] = w.Start
		}
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b *window.Features) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), began[stream{a.Machine, a.Epoch}].Compare(began[stream{b.Machine, b.Epoch}]), cmp.Compare(a.Seq, b.Seq))
	})
	lives := make(map[tool]*life)
	for i, w := range all {
		next := uint64(0)
		if i > 0 && all[i-1].Machine == w.Machine && all[i-1].Epoch == w.Epoch {
			next = all[i-1].Seq + 1
		}
		at := tool{w.Machine, w.Tool}
		if lives[at] == nil {
			lives[at] = &life{missing: int(w.Seq - next)}
		}
		lives[at].windows++
	}
	for at, l := range lives {
		if at.name != "" && float64(l.missing) > lostShare*float64(l.windows) {
			cut = append(cut, model.CutTool{Machine: at.machine, Tool: at.name, Missing: l.missing})
		}
	}
	slices.SortFunc(cut, func(a, b model.CutTool) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Tool, b.Tool))
	})
	return cut
}

// The numbers of windows say which tools lack their beginning, in any order they come.
func TestCutOff(t *testing.T) {
	empty := func() *topicReader { return &topicReader{streams: make(map[stream]*numbers)} }
	cut := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		archived := empty()
		tools := 2 + rng.IntN(4)
		lost := rng.Float64() * 0.3
		var all []*window.Features
		for machine := range 2 {
			for epoch := range 3 {
				for seq := range 60 {
					if rng.Float64() < lost || seed%3 == 0 && seq < rng.IntN(40) {
						continue
					}
					w := &window.Features{}
					w.Context = signal.Context{Machine: fmt.Sprint("m", machine), Tool: fmt.Sprint("T", (epoch*60+seq)*tools/180)}
					if rng.IntN(20) == 0 {
						w.Tool = ""
					}
					w.Epoch, w.Seq, w.Start = uint64(9-epoch), uint64(seq), time.Unix(int64(1.8e9+epoch*1000+seq), 0)
					all = append(all, w)
				}
			}
		}
		rng.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		for _, w := range all {
			archived.number(w)
		}
		want, got := cutOffOf(all), archived.cutOff()
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %+v, of sorted windows %+v", seed, got, want)
		}
		cut += len(want)
	}
	if cut < 100 {
		t.Errorf("only %d tools lack their beginning", cut)
	}
	in := empty()
	in.number(&window.Features{Window: window.Window{Context: signal.Context{Machine: "m", Tool: "T"}, Seq: 12}})
	if got, want := in.cutOff(), []model.CutTool{{Machine: "m", Tool: "T", Missing: 12}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
