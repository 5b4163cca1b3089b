package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
)

// A dead letter is found, read and sent again as it was.
func TestDlq(t *testing.T) {
	addr := startBroker(t, true)
	cfg := bus.Config{Brokers: []string{addr}}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("monitor.yaml", []byte("kafka: {brokers: [\""+addr+"\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dlq := func(args string) (string, error) {
		var out, log bytes.Buffer
		err := run(t.Context(), strings.Fields("dlq "+args+" --config monitor.yaml"), &out, &log)
		return out.String(), err
	}
	if out, err := dlq("ls -o json"); err != nil || out != "[]\n" {
		t.Errorf("ls -o json: %v\n%s", err, out)
	}
	if out, err := dlq("ls"); err != nil || out != "no dead letters\n" {
		t.Errorf("ls: %v\n%s", err, out)
	}
	p, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	original := bus.Message{
		Topic: bus.TopicWindows, Partition: 0, Offset: 41, Key: "k", Time: time.Unix(1e9, 0).UTC(),
		Headers: []bus.Header{{Key: "seq", Value: []byte("7")}}, Value: []byte("poison \x1b[31m"),
	}
	stray := bus.Message{Topic: bus.TopicDead, Key: "stray", Value: []byte("x")}
	if err := p.Send(t.Context(), []bus.Message{bus.DeadLetter(original, "checksum differs", time.Now()), stray}); err != nil {
		t.Fatal(err)
	}
	if out, err := dlq("ls"); err != nil || !strings.Contains(out, "tcm.windows.v1/0@41") || !strings.Contains(out, "checksum differs") || !strings.Contains(out, "not written by a monitor") {
		t.Errorf("ls: %v\n%s", err, out)
	}
	var letters []map[string]any
	if out, err := dlq("ls -o json"); err != nil || json.Unmarshal([]byte(out), &letters) != nil || len(letters) != 2 || letters[0]["from_offset"] != 41.0 || letters[0]["reason"] != "checksum differs" || letters[0]["bytes"] != 12.0 {
		t.Errorf("ls -o json: %v\n%s", err, out)
	}
	if out, err := dlq("show 0"); err != nil || !strings.Contains(out, "header     seq: 7") || !strings.Contains(out, `poison \x1b[31m`) {
		t.Errorf("show: %v\n%s", err, out)
	}
	for args, want := range map[string]string{
		"show 9": "no dead letter at offset 9", "redrive": "--all", "redrive 9": "no dead letter at offset 9", "redrive 1": "not written by a monitor",
	} {
		if out, err := dlq(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q\n%s", args, err, want, out)
		}
	}
	for _, args := range []string{"redrive 0", "redrive --all"} { // the stray message keeps nothing back
		if out, err := dlq(args); err != nil || out != "1 dead letters sent again\n" {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	n := 0
	err = bus.ReadTopic(t.Context(), cfg, bus.TopicWindows, bus.FirstOffset, false, func(m bus.Message) error {
		n++
		if m.Key != "k" || string(m.Value) != string(original.Value) || len(m.Headers) != 1 || string(m.Header("seq")) != "7" {
			t.Errorf("sent again as %+v", m)
		}
		return nil
	})
	if err != nil || n != 2 {
		t.Errorf("%d windows, %v", n, err)
	}
}

// A letter that does not hold all of its message says so, and is not sent.
func TestDlqCut(t *testing.T) {
	addr := startBroker(t, true)
	cfg := bus.Config{Brokers: []string{addr}}
	bench(t, "monitor.yaml", "kafka: {brokers: [\""+addr+"\"]}\n")
	dlq := func(args string) (string, error) {
		var out, log bytes.Buffer
		err := run(t.Context(), strings.Fields("dlq "+args+" --config monitor.yaml"), &out, &log)
		return out.String(), err
	}
	p, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	large := bus.Message{Topic: bus.TopicWindows, Partition: 0, Offset: 41, Key: "k", Value: make([]byte, 966_000)}
	small := bus.Message{Topic: bus.TopicWindows, Partition: 0, Offset: 43, Key: "k", Value: []byte("v")}
	err = p.Send(t.Context(), []bus.Message{
		bus.CutLetter(large, "another layout", time.Now()),
		bus.BareLetter(bus.Message{Topic: bus.TopicWindows, Offset: 42}, -1, "130 MiB when unpacked", time.Now()),
		bus.DeadLetter(small, "checksum differs", time.Now()),
	})
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"ls":     {"65536 of 966000  another layout", "0 of ?", "tcm.windows.v1/0@42"},
		"show 0": {"the letter holds 65536 of the 966000 bytes", "topic tcm.windows.v1 partition 0 at offset 41", "value      65536 of 966000 bytes"},
		"show 1": {"the letter does not hold all of the message (value)", "at offset 42", "130 MiB when unpacked"},
	} {
		out, err := dlq(args)
		for _, w := range want {
			if err != nil || !strings.Contains(out, w) {
				t.Errorf("%s: %v, lacks %q\n%s", args, err, w, out)
			}
		}
	}
	out, err := dlq("redrive 0")
	if err == nil || !strings.Contains(err.Error(), "65536 of the 966000 bytes") || !strings.Contains(err.Error(), "at offset 41") || out != "0 dead letters sent again\n" {
		t.Errorf("redrive: %v\n%s", err, out)
	}
	out, err = dlq("redrive --all")
	if err == nil || !strings.Contains(err.Error(), "2 dead letters are not sent") || out != "1 dead letters sent again\n" {
		t.Errorf("redrive --all: %v\n%s", err, out)
	}
}
