package main

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Of an archive the numbers of windows say which tools lack their beginning, as places do of Kafka.
func TestCutOffArchived(t *testing.T) {
	empty := func(files ...string) *topicReader {
		return &topicReader{files: files, names: make(map[string]string), seen: make(map[windowKey]string), streams: make(map[stream]*numbers)}
	}
	cut := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		onKafka, archived := empty(), empty("a file")
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
			onKafka.note(w, true)
			archived.number(w)
		}
		want, got := onKafka.cutOff(), archived.cutOff()
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %+v, of places %+v", seed, got, want)
		}
		cut += len(want)
		for of, n := range archived.streams {
			for i, s := range n.spans {
				if s.to < s.from || i > 0 && n.spans[i-1].to+1 >= s.from {
					t.Fatalf("seed %d: %v has spans %v", seed, of, n.spans)
				}
			}
		}
	}
	if cut < 100 {
		t.Errorf("only %d tools lack their beginning", cut)
	}
	in := empty("a file")
	in.number(&window.Features{Window: window.Window{Context: signal.Context{Machine: "m", Tool: "T"}, Seq: 12}})
	if got, want := in.cutOff(), []model.CutTool{{Machine: "m", Tool: "T", Missing: 12}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
