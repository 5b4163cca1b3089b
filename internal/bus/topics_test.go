package bus

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/testkit/golden"
)

// statusOf returns the status of one topic.
func statusOf(t *testing.T, all []TopicStatus, name string) TopicStatus {
	t.Helper()
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no status of %s in %+v", name, all)
	return TopicStatus{}
}

func mustApply(t *testing.T, cfg Config, partitions int) []TopicStatus {
	t.Helper()
	status, err := Apply(testContext(t), cfg, partitions, 1)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestApply(t *testing.T) {
	cfg := anyBroker(t)
	createTopic(t, cfg, TopicState, 2, "max.message.bytes", "1000")
	for round, created := range []int{10, 0} {
		status := mustApply(t, cfg, 4)
		n := 0
		for _, s := range status {
			if s.Created {
				n++
			}
			want := map[string]int{TopicState: 2, TopicModels: 1, TopicLabels: 1, TopicAudit: 1, TopicDead: 1}[s.Name]
			if want == 0 {
				want = 4
			}
			if s.Partitions != want || s.Replicas != 1 || !s.Known {
				t.Errorf("round %d: %+v, want %d partitions with 1 replica", round, s, want)
			}
			notes := strings.Join(s.Notes, "; ")
			switch s.Name {
			case TopicState:
				if !strings.Contains(notes, "set it to 8388608") || !strings.Contains(notes, "set it to compact") {
					t.Errorf("round %d: notes on a topic of another program: %q", round, notes)
				}
			case TopicWindows:
				if !strings.Contains(notes, "tcm.windows.v1 has 4 partitions, tcm.state.v1 has 2 partitions") || !strings.Contains(notes, "`ingest topics grow --partitions 4`") {
					t.Errorf("round %d: notes on topics that do not agree: %q", round, notes)
				}
			default:
				if notes != "" {
					t.Errorf("round %d: %s: %s", round, s.Name, notes)
				}
			}
		}
		if len(status) != 11 || n != created {
			t.Errorf("round %d: %d topics, %d created, want 11 and %d", round, len(status), n, created)
		}
	}
	for _, bad := range [][2]int{{-1, 1}, {1, 0}} {
		if _, err := Apply(testContext(t), cfg, bad[0], bad[1]); err == nil {
			t.Errorf("no error for %d partitions with %d replicas", bad[0], bad[1])
		}
	}
}

// New topics of machines get 8 partitions, or as many as the existing ones have.
func TestApplyDefaultPartitions(t *testing.T) {
	cfg := anyBroker(t)
	for _, s := range mustApply(t, cfg, 0) {
		want := defaultPartitions
		if s.Name == TopicModels || s.Name == TopicLabels || s.Name == TopicAudit || s.Name == TopicDead {
			want = 1
		}
		if s.Partitions != want {
			t.Errorf("%s has %d partitions, want %d", s.Name, s.Partitions, want)
		}
	}
	_, cfg = startBroker(t)
	createTopic(t, cfg, TopicWindows, 3, "max.message.bytes", "8388608")
	for _, s := range mustApply(t, cfg, 0) {
		if s.Partitions != 3 && s.Partitions != 1 {
			t.Errorf("%s has %d partitions although the windows have 3", s.Name, s.Partitions)
		}
		if s.Name != TopicWindows && len(s.Notes) > 0 {
			t.Errorf("%s: %q", s.Name, s.Notes)
		}
	}
}

// The configuration's entries hold for new and for existing topics. Apply does not change a
// topic without an entry.
func TestRetain(t *testing.T) {
	cfg := anyBroker(t)
	cfg.Retain = nil
	plain := mustApply(t, cfg, 2)
	if s := statusOf(t, plain, TopicWindows); s.Retain != (Retain{7 * day, 250e9}) || s.Segment != 1<<30 || s.Most() != 250e9+1<<30 || len(s.Notes) > 0 {
		t.Errorf("windows without `retain`: %+v", s)
	}
	if s := statusOf(t, plain, TopicFeatures); s.Retain != (Retain{90 * day, 50e9}) {
		t.Errorf("features without `retain`: %+v", s)
	}
	if s := statusOf(t, plain, TopicDead); s.Retain != (Retain{30 * day, 10e9}) {
		t.Errorf("dead letters without `retain`: %+v", s)
	}
	if s := statusOf(t, plain, TopicResults); s.Retain != (Retain{30 * day, Unlimited}) || s.Most() != Unlimited {
		t.Errorf("results: %+v", s)
	}
	if s := statusOf(t, plain, TopicState); !s.Compacted || s.Most() != 48<<20 {
		t.Errorf("state: %+v", s)
	}

	cfg.Retain = map[string]Retain{TopicWindows: {Time: 36 * time.Hour, Bytes: 4e9}, TopicDead: {Bytes: Unlimited}}
	changed := mustApply(t, cfg, 2)
	s := statusOf(t, changed, TopicWindows)
	if s.Retain != (Retain{36 * time.Hour, 4e9}) || s.Segment != 500_000_000 ||
		strings.Join(s.Notes, ";") != "kept 7 days, at most 250 GB a partition; the configuration has changed that to 36h, at most 4 GB a partition" {
		t.Errorf("windows: %+v", s)
	}
	if s := statusOf(t, changed, TopicDead); s.Retain != (Retain{30 * day, Unlimited}) || len(s.Notes) != 1 {
		t.Errorf("dead letters: %+v", s)
	}
	for _, s := range mustApply(t, cfg, 2) {
		if len(s.Notes) > 0 {
			t.Errorf("the second time %s has notes %q", s.Name, s.Notes)
		}
	}

	cfg.Retain = nil // Apply keeps another program's settings, and notes them
	s = statusOf(t, mustApply(t, cfg, 2), TopicWindows)
	if s.Retain != (Retain{36 * time.Hour, 4e9}) || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "keeps 36h, at most 4 GB a partition; a new topic would keep 7 days") {
		t.Errorf("windows of another configuration: %+v", s)
	}
	described, err := Describe(testContext(t), cfg, TopicDead, TopicWindows)
	if err != nil || described[0].Name != TopicDead || described[1].Retain != s.Retain {
		t.Errorf("described: %+v, %v", described, err)
	}
	if _, err := Describe(testContext(t), cfg, "absent"); !errors.Is(err, ErrNoTopic) {
		t.Errorf("an absent topic: %v", err)
	}
}

// The limit of the embedded broker holds for new and for existing topics.
func TestRetainEmbedded(t *testing.T) {
	_, cfg := startBroker(t)
	for range 2 {
		s := statusOf(t, mustApply(t, cfg, 1), TopicWindows)
		if keep := cfg.Retain[TopicWindows].Bytes; keep == 0 || s.Retain.Bytes != keep || s.Segment != keep/8 || len(s.Notes) > 0 {
			t.Errorf("%+v", s)
		}
	}
}

// A missing right is an error only where the right is needed.
func TestRetainWithoutRight(t *testing.T) {
	b, cfg := startBroker(t)
	cfg.Retain = nil
	mustApply(t, cfg, 1)
	var mayAlter, mayDescribe atomic.Bool
	b.cluster.ControlKey(int16(kmsg.IncrementalAlterConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if mayAlter.Load() {
			return nil, nil, false
		}
		res := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
		for _, r := range req.(*kmsg.IncrementalAlterConfigsRequest).Resources {
			one := kmsg.NewIncrementalAlterConfigsResponseResource()
			one.ResourceName, one.ResourceType, one.ErrorCode = r.ResourceName, r.ResourceType, kerr.TopicAuthorizationFailed.Code
			res.Resources = append(res.Resources, one)
		}
		return res, nil, true
	})
	b.cluster.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if mayDescribe.Load() {
			return nil, nil, false
		}
		res := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, r := range req.(*kmsg.DescribeConfigsRequest).Resources {
			one := kmsg.NewDescribeConfigsResponseResource()
			one.ResourceName, one.ResourceType, one.ErrorCode = r.ResourceName, r.ResourceType, kerr.TopicAuthorizationFailed.Code
			res.Resources = append(res.Resources, one)
		}
		return res, nil, true
	})
	for _, s := range mustApply(t, cfg, 1) { // nothing to change
		if s.Known || len(s.Notes) > 0 {
			t.Errorf("settings that may not be read: %+v", s)
		}
	}
	mayDescribe.Store(true)
	cfg.Retain = map[string]Retain{TopicWindows: {Time: time.Hour}}
	_, err := Apply(testContext(t), cfg, 1, 1)
	if err == nil || !strings.Contains(err.Error(), TopicWindows+": set what it keeps to 1h, at most 250 GB a partition") || !strings.Contains(err.Error(), "lacks the right") {
		t.Errorf("without the right to alter: %v", err)
	}
	mayAlter.Store(true)
	mayDescribe.Store(false)
	if s := statusOf(t, mustApply(t, cfg, 1), TopicWindows); strings.Join(s.Notes, ";") != "set to 1h, as the configuration says" {
		t.Errorf("altered without the right to read: %+v", s)
	}
	mayDescribe.Store(true)
	if s := statusOf(t, mustApply(t, cfg, 1), TopicWindows); s.Retain != (Retain{time.Hour, 250e9}) || len(s.Notes) > 0 {
		t.Errorf("what was altered without the right to read is now %+v", s)
	}
}

// The check of the right to write in transactions does not write: a producer that has the
// id goes on.
func TestStepsTransactional(t *testing.T) {
	b, cfg := startBroker(t)
	apply(t, cfg, 1)
	init := func() *kmsg.InitProducerIDResponse {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = kmsg.StringPtr(monitorNeeds.Transactional)
		req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 10_000, -1, -1
		return ask(t, cfg, req).(*kmsg.InitProducerIDResponse)
	}
	owner := init()
	checkStepsOf(t, cfg, monitorNeeds, "", "")
	if again := init(); again.ProducerID != owner.ProducerID || again.ProducerEpoch != owner.ProducerEpoch+1 {
		t.Errorf("producer %d epoch %d, then %d and %d: the check has taken the id", owner.ProducerID, owner.ProducerEpoch, again.ProducerID, again.ProducerEpoch)
	}

	answer := func(code int16) {
		b.cluster.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
			res := req.ResponseKind().(*kmsg.EndTxnResponse)
			res.ErrorCode = code
			return res, nil, true
		})
	}
	answer(kerr.TransactionalIDAuthorizationFailed.Code)
	checkStepsOf(t, cfg, monitorNeeds, "acl", "write in transactions as tcm-monitor-check: [53]")
	answer(kerr.UnknownServerError.Code)
	checkStepsOf(t, cfg, monitorNeeds, "acl", "transactional id tcm-monitor-check: ")
	checkStepsOf(t, cfg, monitorNeeds, "", "")
}

func TestFormat(t *testing.T) {
	var b strings.Builder
	for _, n := range []int64{0, 1, 999, 1000, 1234, 65_536, 999_499, 999_500, 966_123, 84_203_404_800, 250e9, 99_950_000_000_000, 1 << 60} {
		b.WriteString(FormatBytes(n) + "\n")
	}
	for _, r := range []Retain{{}, {-1, 0}, {time.Hour, Unlimited}, {36 * time.Hour, 4e9}, {day, 0}, {2 * day, 1}, {90 * time.Minute, 0}, {90 * time.Second, 0}} {
		b.WriteString(r.String() + "\n")
	}
	golden.Check(t, "retain.txt", b.String())
}
