package bus

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Monitors start where the state of all machines lies where their windows go. Records of the
// release before are read, too.
func TestGrowthCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		record     string
		partitions int
		want       string // of the error
		had        []int
	}{
		{"", 64, "", []int{64}},
		{`{"had":[4],"growing":64}`, 4, "are getting 64 partitions", []int{4}},
		{`{"had":[4],"growing":64}`, 64, "are getting 64 partitions", []int{4, 64}},
		{`{"had":[4,64],"groups":{"tcm-monitor":4}}`, 64, "under another release", []int{4, 64}},
		{`{"had":[4,64],"state":64,"since":"2026-12-01T08:00:00Z"}`, 64, "", []int{4, 64}},
		{`{"had":[4,64],"state":64,"since":"2026-12-01T08:00:00Z"}`, 96, "lies where it was with 64", []int{4, 64, 96}},
	} {
		_, cfg := startBroker(t)
		apply(t, cfg, 4)
		if tc.record != "" {
			send(t, newProducer(t, cfg), []Message{{Topic: TopicModels, Key: growthKey, Value: []byte(tc.record)}})
		}
		g, err := NewGrowthReader(cfg).Read(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if g.Growing > 0 && time.Since(g.Since).Abs() > patience {
			t.Errorf("%s: since %v", tc.record, g.Since)
		}
		if got := g.With(tc.partitions); !slices.Equal(got, tc.had) {
			t.Errorf("%s: had %v, want %v", tc.record, got, tc.had)
		}
		switch err := g.Check(tc.partitions); {
		case tc.want == "" && err == nil:
		case tc.want == "" || err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "ingest topics grow --partitions "):
			t.Errorf("%s, %d partitions: %v, want %q", tc.record, tc.partitions, err, tc.want)
		}
	}
}

// A record that no program of ours wrote is an error, and writing it again corrects that.
func TestGrowthRecordIsWrittenAgain(t *testing.T) {
	_, cfg := startBroker(t)
	apply(t, cfg, 2)
	p := newProducer(t, cfg)
	send(t, p, []Message{{Topic: TopicModels, Key: growthKey, Value: []byte(`{"had":[0]}`)}})
	r := NewGrowthReader(cfg)
	if _, err := r.Read(testContext(t)); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("%v", err)
	}
	for _, g := range []Growth{{Had: []int{2, 4}, State: 4, Since: time.Unix(0, 0).UTC()}, {}} {
		if err := p.WriteGrowth(testContext(t), g); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Read(testContext(t)); err != nil || !slices.Equal(got.Had, g.Had) || got.State != g.State || !got.Since.Equal(g.Since) {
			t.Errorf("%+v, %v, want %+v", got, err, g)
		}
	}
}

// A reader that has read a topic notices that it was removed and made again.
func TestGrowthOfATopicMadeAgain(t *testing.T) {
	t.Parallel()
	_, cfg := startBroker(t)
	apply(t, cfg, 2)
	if err := newProducer(t, cfg).WriteGrowth(testContext(t), Growth{Had: []int{2, 4}, State: 4}); err != nil {
		t.Fatal(err)
	}
	r := NewGrowthReader(cfg)
	if g, err := r.Read(testContext(t)); err != nil || g.State != 4 {
		t.Fatalf("%+v, %v", g, err)
	}
	deleteTopic(t, cfg, TopicModels)
	if g, err := r.Read(testContext(t)); err != nil || g.State != 0 {
		t.Errorf("without the topic: %+v, %v", g, err)
	}
	apply(t, cfg, 2)
	if g, err := r.Read(testContext(t)); err != nil || g.State != 0 {
		t.Errorf("with another topic: %+v, %v", g, err)
	}
}
