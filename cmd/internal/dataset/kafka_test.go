package dataset

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// A topic that is missing, or that the program has no right to, is passed over in favour of the other one, and the log
// says so. Without any there is an error.
func TestMissingTopics(t *testing.T) {
	b, err := broker.Start(t.TempDir(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
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
	defer out.Close()
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
		var log bytes.Buffer
		r := &topicReader{cfg: cfg, topics: tc.topics, log: zerolog.New(&log)}
		n := 0
		from, err := r.read(t.Context(), m, nil, func(*window.Features) error { n++; return nil })
		switch {
		case tc.fails:
			if !errors.Is(err, bus.ErrNoTopic) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil || n != 1 || from.Name != bus.TopicFeatures || !strings.Contains(log.String(), tc.log) || tc.log == "" && strings.Contains(log.String(), "alone"):
			t.Errorf("%s: %d windows of %q, %v\n%s", name, n, from.Name, err, &log)
		}
	}
}

// An offset is a place in one topic.
func TestTopicsToRead(t *testing.T) {
	for want, all := range map[string][]Kafka{
		bus.TopicWindows + " " + bus.TopicFeatures: {{}, {Source: fromAuto}, {From: "2026-11-02T06:00:00Z", To: "2026-11-03T06:00:00Z"}},
		bus.TopicWindows:  {{Source: fromWindows}, {From: "3"}, {Source: fromAuto, To: "9"}, {Source: fromWindows, From: "3"}},
		bus.TopicFeatures: {{Source: fromFeatures}, {Source: fromFeatures, From: "3", To: "9"}},
	} {
		for _, f := range all {
			f.Broker = cli.Broker{Brokers: []string{"127.0.0.1:1"}}
			var log bytes.Buffer
			r, err := f.reader("--config", zerolog.New(&log))
			if err != nil || strings.Join(r.topics, " ") != want {
				t.Errorf("%+v reads %q, %v, want %s", f, r.topics, err, want)
			}
			if said := strings.Contains(log.String(), "reads tcm.windows.v1 alone"); said != (want == bus.TopicWindows && f.Source != fromWindows) {
				t.Errorf("%+v: log %s", f, &log)
			}
		}
	}
}
