package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/schemas"
)

const (
	lathe    = "acme/spore/bay2/line1/lathe"
	patience = await.Patience
)

var at = time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)

// command returns a command that asks for windows.
func command(id string) event.Command {
	return event.Command{
		ID: id, Machine: lathe, Action: event.Fetch, By: "kim", Issued: at, Until: at.Add(time.Hour),
		Wanted: &event.Wanted{From: at, To: at.Add(time.Minute), Windows: 60},
	}
}

// copyOf returns a message that stands for a window, for a command.
func copyOf(id string, seq int) bus.Message {
	return bus.Message{Topic: bus.TopicWindows, Key: lathe, Headers: []bus.Header{
		{Key: "ce_id", Value: []byte(fmt.Sprint(lathe, "/", seq))}, {Key: envelope.Copied, Value: []byte(id)},
	}}
}

func newBus(t *testing.T) bus.Config {
	t.Helper()
	b := brokertest.Start(t)
	cfg := b.Config("test")
	if _, err := bus.Apply(t.Context(), cfg, 3, 1); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// gateway sends the messages that answer returns when a command comes.
func gateway(t *testing.T, cfg bus.Config, answer func(event.Command) []bus.Message) {
	t.Helper()
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = bus.ReadTopic(ctx, cfg, bus.TopicCommands, bus.FirstOffset, true, func(m bus.Message) error { // it ends with ctx
			if err := schemas.Validate(schemas.Command, m.Value); err != nil {
				t.Error(err)
			}
			return out.Send(ctx, answer(command(string(m.Header("ce_id")))))
		})
	}()
	t.Cleanup(func() { stop(); <-done; out.Close() })
}

// Ask returns when all windows that the answer counts are there, each once, in any order, also
// while windows and answers for others come.
func TestAsk(t *testing.T) {
	t.Parallel()
	cfg := newBus(t)
	gateway(t, cfg, func(c event.Command) []bus.Message {
		answer := AnswerMessage(event.Fetched{ID: c.ID + "/fetched", Command: c.ID, Machine: lathe, At: at, Windows: 3, Text: "sent 3 windows"})
		other := AnswerMessage(event.Fetched{ID: "x/fetched", Command: "x", Machine: lathe, At: at, Windows: 1, Text: "sent 1 window"})
		return []bus.Message{other, copyOf("x", 9), answer, copyOf(c.ID, 1), copyOf(c.ID, 1), copyOf("sample", 8), copyOf(c.ID, 2), copyOf(c.ID, 3)}
	})
	var got []string
	f, err := Ask(t.Context(), cfg, command("one"), patience, func(m bus.Message) error {
		got = append(got, strings.TrimPrefix(string(m.Header("ce_id")), lathe+"/"))
		return nil
	})
	if err != nil || f.Text != "sent 3 windows" || !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("windows %v, %+v, %v", got, f, err)
	}
	broken := errors.New("the disk is full")
	if _, err := Ask(t.Context(), cfg, command("two"), patience, func(bus.Message) error { return broken }); err != broken {
		t.Errorf("%v, want the error of the function", err)
	}
}

// A gateway that says nothing, or stops in the middle, is given up; an answer counts although
// Kafka has lost windows.
func TestSilence(t *testing.T) {
	t.Parallel()
	answer := AnswerMessage(event.Fetched{ID: "c/fetched", Command: "c", Machine: lathe, At: at, Windows: 2, Text: "sent 2 windows"})
	for name, tc := range map[string]struct {
		came    []bus.Message
		windows int
		err     error
	}{
		"nothing comes":       {nil, 0, ErrSilent},
		"no answer comes":     {[]bus.Message{copyOf("c", 1)}, 1, ErrSilent},
		"a window is lost":    {[]bus.Message{copyOf("c", 1), answer}, 1, nil},
		"all comes":           {[]bus.Message{answer, copyOf("c", 1), copyOf("c", 2)}, 2, nil},
		"one that came twice": {[]bus.Message{answer, copyOf("c", 1), copyOf("c", 1)}, 1, nil},
	} {
		a := &asking{command: command("c"), came: make(chan bus.Message, len(tc.came))}
		for _, m := range tc.came {
			a.came <- m
		}
		got := 0
		f, err := a.collect(t.Context(), 200*time.Millisecond, func(bus.Message) error { got++; return nil })
		if got != tc.windows || err != tc.err || (f.Windows == 2) != (err == nil) {
			t.Errorf("%s: %d windows, %+v, %v", name, got, f, err)
		}
	}
}

// A command that no gateway would read is not sent.
func TestBadCommand(t *testing.T) {
	c := command("one")
	c.Wanted.Windows = 0
	if _, err := Ask(t.Context(), bus.Config{Brokers: []string{"127.0.0.1:1"}}, c, time.Second, nil); err == nil || !strings.Contains(err.Error(), "windows: 0: ask for 1 to 100000") {
		t.Errorf("%v", err)
	}
}
