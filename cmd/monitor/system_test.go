package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/web"
)

// Each problem says what is wrong, and names a command that there is.
func TestProblems(t *testing.T) {
	s := &system{c: defaults("monitor.yaml")}
	s.c.Evidence.Dir = "evidence"
	none, some := uint64(0), uint64(12)
	quiet := web.System{
		Lag: []web.Lag{{Partition: 0, Windows: muchLag}}, Missing: &none, Dead: new(web.Dead), Disk: &web.Disk{FreeBytes: littleDisk},
		Routes: []web.RouteLag{{Name: "mail", Lag: 3, Seconds: 60}}, Certificates: []web.Certificate{{File: "c.crt", Days: 31}},
	}
	if all := s.problems(&quiet, nil, nil); len(all) != 0 {
		t.Errorf("all is well: %+v", all)
	}
	bad := web.System{
		Lag: []web.Lag{{Partition: 3, Windows: muchLag + 1}}, Missing: &some, Dead: &web.Dead{Count: 2, Reasons: []web.DeadReason{{Reason: "not JSON", Count: 2}}},
		Disk: &web.Disk{FreeBytes: 5 << 20}, Routes: []web.RouteLag{{Name: "mail", Lag: 3, Seconds: 61}, {Name: "hmi", Problem: "another program connects"}},
		Certificates: []web.Certificate{{File: "c.crt", Days: 12}, {File: "broker kafka", Days: -1}},
	}
	var got []string
	for _, p := range s.problems(&bad, errors.New("no broker"), errors.New("no file")) {
		got = append(got, p.What+" → "+p.Command)
		words := strings.Fields(p.Command)
		if words[0] != "monitor" {
			continue
		}
		var help strings.Builder
		if err := run(t.Context(), append(words[1:slices.Index(words, "--config")], "--help"), &help, &help); err != nil || !strings.Contains(help.String(), "--config") {
			t.Errorf("%s: %v %s", p.Command, err, help.String())
		}
	}
	want := []string{
		"not ready: no broker → monitor check --config monitor.yaml",
		"partition 3: 201 windows wait to be judged: start another monitor, on another computer → monitor run --config monitor.yaml",
		"5 MB are free on the disk → du -sh evidence",
		"a certificate cannot be read: no file → monitor check --config monitor.yaml",
		"certificate c.crt expires in 12 days: replace its file, no restart is needed → monitor check --config monitor.yaml",
		"certificate broker kafka has expired: replace its file, no restart is needed → monitor check --config monitor.yaml",
		"route mail: 3 messages wait, the oldest for 1m1s → monitor alerts test --config monitor.yaml --route mail",
		"route hmi: another program connects → monitor alerts test --config monitor.yaml --route hmi",
		"12 windows have not come → ingest spool resend --config ingest.yaml --since 1h",
		"2 messages were set aside: not JSON → monitor dlq ls --config monitor.yaml",
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Dead letters are counted by reason also when more have come than are read at a time, until the
// topic has none of them any more.
func TestReadDead(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	s := &system{bus: b.Config("test")}
	if _, err := bus.Apply(t.Context(), s.bus, 1, 1); err != nil {
		t.Fatal(err)
	}
	out, err := bus.NewProducer(s.bus)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	send := func(n int, reason string) {
		t.Helper()
		var msgs []bus.Message
		for range n {
			msgs = append(msgs, bus.DeadLetter(bus.Message{Topic: bus.TopicWindows, Key: "m", Value: []byte("x")}, reason, time.Now()))
		}
		if err := out.Send(t.Context(), msgs); err != nil {
			t.Fatal(err)
		}
	}
	want := func(count uint64, reasons ...web.DeadReason) {
		t.Helper()
		d, err := s.readDead(t.Context())
		if err != nil || d.Count != count || !slices.Equal(d.Reasons, reasons) {
			t.Fatalf("%+v, %v, want %d: %+v", d, err, count, reasons)
		}
	}
	want(0)
	send(mostLetters+5, "checksum")
	want(mostLetters, web.DeadReason{Reason: "checksum", Count: mostLetters})
	send(400, "layout")
	want(mostLetters+400, web.DeadReason{Reason: "checksum", Count: mostLetters}, web.DeadReason{Reason: "layout", Count: 400})
	want(mostLetters+400, web.DeadReason{Reason: "checksum", Count: mostLetters}, web.DeadReason{Reason: "layout", Count: 400})
	for i := range mostReasons + 7 {
		s.read.add(fmt.Sprint(i))
	}
	if d := s.read.dead(); len(d.Reasons) != mostReasons+1 {
		t.Errorf("%d reasons", len(d.Reasons))
	}
	s.read.next += 1000 // the topic was made again
	want(mostLetters, web.DeadReason{Reason: "layout", Count: 400}, web.DeadReason{Reason: "checksum", Count: 100})
}

// A rate has three digits, so that pages do not wake for every window.
func TestRateOf(t *testing.T) {
	for _, tc := range []struct {
		before, now uint64
		want        float64
	}{{0, 0, 0}, {5, 6, 0.1}, {0, 123, 12.3}, {0, 5004, 500}, {0, 52_341, 5230}} {
		if got := rateOf(tc.before, tc.now, 10*time.Second); math.Abs(got-tc.want) > 1e-6 {
			t.Errorf("%d to %d: %v, want %v", tc.before, tc.now, got, tc.want)
		}
	}
}

// What takes long is looked for once at a time in the background, and the last answer stays
// when a newer one cannot be had.
func TestRecent(t *testing.T) {
	var r recent[int]
	answers, asked := make(chan int), make(chan struct{})
	find := func(context.Context) (int, error) {
		asked <- struct{}{}
		if v := <-answers; v > 0 {
			return v, nil
		}
		return 0, errors.New("not now")
	}
	idle := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !r.busy
	}
	for i, answer := range []int{7, 0, 8} {
		r.mu.Lock()
		r.at = time.Time{}
		r.mu.Unlock()
		before := r.get(find)
		<-asked
		if again := r.get(find); again != before {
			t.Errorf("answer %d came while it was looked for: %d", i, again)
		}
		answers <- answer
		await.Until(t, "it is done", idle)
	}
	if v := r.get(find); v != 8 {
		t.Errorf("the last answer is %d, want 8", v)
	}
}

func TestSpaceOf(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1234), 0o600); err != nil {
		t.Fatal(err)
	}
	free, used, err := spaceOf(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || used != 1234 || free == 0 {
		t.Errorf("%d bytes are free, %d used: %v", free, used, err)
	}
	if _, _, err := spaceOf(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has space")
	}
}
