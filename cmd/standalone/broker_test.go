package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
)

// The broker alone has all topics, says where it is and what to do next, and keeps what it
// got.
func TestBrokerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	start := func() (addr string, stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var out logtest.Buffer
		done := make(chan error, 1)
		go func() {
			done <- run(ctx, []string{"--broker-only", "--broker", "127.0.0.1:0", "--data-dir", dir}, &out, &out)
		}()
		for !strings.Contains(out.String(), "until Ctrl-C") {
			select {
			case err := <-done:
				t.Fatalf("%v\n%s", err, out.String())
			case <-time.After(5 * time.Millisecond):
			}
		}
		_, rest, _ := strings.Cut(out.String(), "broker    ")
		addr, _, _ = strings.Cut(rest, ",")
		for _, want := range []string{"ingest init --kafka " + addr + " ", "monitor run --config monitor.yaml"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, out.String())
			}
		}
		return addr, func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	addr, stop := start()
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "test"}
	for _, topic := range bus.MachineTopics() {
		if n, err := bus.Partitions(t.Context(), cfg, topic); err != nil || n != 1 {
			t.Errorf("%s: %d partitions, %v", topic, n, err)
		}
	}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Send(t.Context(), []bus.Message{{Topic: bus.TopicWindows, Key: "m", Value: []byte("kept")}}); err != nil {
		t.Fatal(err)
	}
	out.Close()
	stop()

	addr, stop = start()
	defer stop()
	enough := errors.New("enough")
	err = bus.ReadTopic(t.Context(), bus.Config{Brokers: []string{addr}, ClientID: "test"}, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		if string(m.Value) != "kept" {
			t.Errorf("%q", m.Value)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Errorf("nothing was kept: %v", err)
	}
}

func TestBrokerOnlyGoesAlone(t *testing.T) {
	for _, flag := range []string{"--once", "--replay=x", "--layout=x", "--model=x", "--results=x", "--start=file-time"} {
		var out logtest.Buffer
		name, _, _ := strings.Cut(flag, "=")
		if err := run(t.Context(), []string{"--broker-only", flag, "--data-dir", t.TempDir()}, &out, &out); err == nil || !strings.Contains(err.Error(), name+" goes without --broker-only") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// The broker does not listen for other computers.
func TestBrokerStaysOnThisComputer(t *testing.T) {
	for addr, local := range map[string]bool{"127.0.0.1:0": true, "localhost:0": true, "[::1]:0": true, "192.0.2.7:9092": false, "broker.plant.example:9092": false} {
		for _, args := range [][]string{{"--broker-only"}, {"--once"}} {
			f := flags{Broker: addr, BrokerOnly: args[0] == "--broker-only"}
			err := f.checkBroker()
			if local != (err == nil) {
				t.Errorf("%s: %v", addr, err)
			}
			if local {
				continue
			}
			var out bytes.Buffer
			if err := run(t.Context(), append(args, "--broker", addr, "--data-dir", t.TempDir()), &out, &out); err == nil || !strings.Contains(err.Error(), "use Apache Kafka") {
				t.Errorf("%s %s: %v", args[0], addr, err)
			}
		}
	}
}
