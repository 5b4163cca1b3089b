package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// A topic that is missing, or that the program has no right to, is passed over in favour of the other one, and the log
// says so. Without any there is an error.
func TestMissingTopics(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	cfg := b.Config("test")
	if _, err := bus.Apply(t.Context(), cfg, 2, 1); err != nil {
		t.Fatal(err)
	}
	m := &model.Model{Layout: signal.GunDrill(), Window: window.DefaultSpec}
	form, err := m.Form()
	if err != nil {
		t.Fatal(err)
	}
	w := &window.Window{Context: signal.Context{Machine: "m", Tool: "T"}, Start: time.Unix(1.7e9, 0), Length: time.Second, Quality: make([]signal.Quality, 14)}
	for _, c := range m.Layout.Channels() {
		w.Samples = append(w.Samples, make([]float32, int(c.Rate)))
	}
	var f window.Features
	form.NewExtractor().Extract(w, &f)
	e, err := form.Seal(&f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	if err := out.Send(t.Context(), []bus.Message{envelope.Features(e, envelope.Gateway, 0)}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		topics []string
		log    string
		fails  bool
	}{
		"both":     {[]string{bus.TopicWindows, bus.TopicFeatures}, "", false},
		"one":      {[]string{"tcm.absent", bus.TopicFeatures}, "reads the other topic alone", false},
		"the last": {[]string{bus.TopicFeatures, "tcm.absent"}, "reads the other topic alone", false},
		"none":     {[]string{"tcm.absent", "tcm.none"}, "", true},
		"alone":    {[]string{"tcm.absent"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for topics that are not there
			var log bytes.Buffer
			r := &topicReader{cfg: cfg, topics: tc.topics, log: zerolog.New(&log)}
			n := 0
			var far []string
			from, err := r.read(t.Context(), m, func(done, total int) { far = append(far, fmt.Sprintf("%d/%d", done, total)) }, func(*window.Features) error { n++; return nil })
			switch {
			case tc.fails:
				if !errors.Is(err, bus.ErrNoTopic) {
					t.Error(err)
				}
			case err != nil || n != 1 || !slices.Contains(far, "0/1") && !slices.Contains(far, "1/1") || far[len(far)-1] != "1/1" || from.Name != bus.TopicFeatures || !strings.Contains(log.String(), tc.log) || tc.log == "" && strings.Contains(log.String(), "alone"):
				t.Errorf("%d windows of %q, %v\n%s", n, from.Name, err, &log)
			}
		})
	}
}

// Both topics are read, unless one is named.
func TestTopicsToRead(t *testing.T) {
	for want, all := range map[string][]kafkaFlags{
		bus.TopicWindows + " " + bus.TopicFeatures: {{}, {Source: fromAuto}, {Span: cli.Span{Until: cli.Instant{Time: time.Unix(1.8e9, 0)}}}},
		bus.TopicWindows:  {{Source: fromWindows}},
		bus.TopicFeatures: {{Source: fromFeatures}},
	} {
		for _, f := range all {
			f.Broker = cli.Broker{Brokers: []string{"127.0.0.1:1"}}
			r, err := f.reader("--config", zerolog.Nop())
			if err != nil || strings.Join(r.topics, " ") != want || !r.to.Equal(f.Until.Time) {
				t.Errorf("%+v reads %q until %v, %v, want %s", f, r.topics, r.to, err, want)
			}
		}
	}
}

// Windows of a machine are gone where Kafka lacks some that are older than others that it has. Features of windows that
// came while it was read, and of gateways that send no windows, are of nothing that is gone.
func TestMachinesOfWhichWindowsAreGone(t *testing.T) {
	const topics = 2
	form, err := window.NewForm(signal.GunDrill(), window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sent := func(by envelope.Extractor, second int) bus.Message {
		f := &window.Features{Window: window.Window{Context: signal.Context{Machine: "m", Tool: "T"}, Seq: uint64(second), Start: time.Unix(1.7e9+int64(second), 0), Length: time.Second, Quality: make([]signal.Quality, 14)}}
		f.Form, f.Values, f.Frames = form, make([]float32, len(form.Names())), make([]float32, 30)
		e, err := form.Seal(f)
		if err != nil {
			t.Fatal(err)
		}
		return envelope.Features(e, by, int64(second))
	}
	for name, tc := range map[string]struct {
		by     envelope.Extractor
		second int
		raw    bool
		gone   string
		none   string
	}{
		"older than a window":    {envelope.Monitor, 5, true, "m", ""},
		"newer than all windows": {envelope.Monitor, 15, true, "", ""},
		"of a gateway":           {envelope.Gateway, 5, true, "", ""},
		"without any window":     {envelope.Monitor, 5, false, "", "m"},
	} {
		var log bytes.Buffer
		r := &topicReader{topics: make([]string, topics), log: zerolog.New(&log)}
		if err := r.prepare(&model.Model{Layout: signal.GunDrill(), Window: window.DefaultSpec}); err != nil {
			t.Fatal(err)
		}
		if tc.raw {
			r.raw["m"] = time.Unix(1.7e9+10, 0)
		}
		msg := sent(tc.by, tc.second)
		if err := r.take(0, &msg, new(window.Features), func(*window.Features) error { return nil }); err != nil {
			t.Fatal(err)
		}
		r.logFound([]model.OffsetRange{{Topic: bus.TopicFeatures, Windows: 1}})
		if want := fmt.Sprintf(`"some_windows_gone":%q,"no_windows":%q`, tc.gone, tc.none); !strings.Contains(log.String(), want) {
			t.Errorf("%s: %s, want %s", name, &log, want)
		}
	}
}
