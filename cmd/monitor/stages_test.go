package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
)

// One program extracts without a model and another judges what it extracts. Each checks what
// it needs, and says at the end what it did.
func TestRunStages(t *testing.T) {
	addr := startBroker(t, true)
	extract := "kafka: {brokers: [\"" + addr + "\"]}\npage: \"127.0.0.1:0\"\nstages: [extract]\n"
	bench(t, "judge.yaml", monitorYAML(addr, "127.0.0.1:0")+"stages: [judge]\nmetrics: \"127.0.0.1:0\"\n", "extract.yaml", extract, "bad.yaml", strings.Replace(extract, "[extract]", "[extract, judging]", 1))
	cfg := bus.Config{Brokers: []string{addr}, ClientID: "test"}
	out, err := bus.NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for seq := range uint64(4) {
		if err := out.Send(t.Context(), []bus.Message{windowMessage(t, layout(t, "force"), seq, 10)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	log, judging := &logtest.Buffer{}, &logtest.Buffer{}
	ready, metrics, own, page := "", "", "", ""
	go func() {
		defer stop()
		_ = bus.ReadTopic(ctx, cfg, bus.TopicResults, bus.FirstOffset, true, func(m bus.Message) error {
			if !strings.HasSuffix(string(m.Header("ce_id")), "/3/tcm-monitor") {
				return nil
			}
			url := after(log.String(), `"page":"`)
			ready, metrics = body(url+"/readyz"), body(url+"/metrics")
			own, page = body(after(judging.String(), `"url":"`)), body(after(judging.String(), `"page":"`)+"/metrics")
			return errors.New("enough")
		})
	}()
	ended := make(chan string)
	var extracted bytes.Buffer
	go func() {
		err := run(ctx, []string{"run", "--config", "extract.yaml"}, &extracted, log)
		if err != nil {
			extracted.WriteString(err.Error())
		}
		ended <- extracted.String()
	}()
	var judged bytes.Buffer
	if err := run(ctx, []string{"run", "--config", "judge.yaml"}, &judged, judging); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(own, "\ntcm_windows_judged_total ") || !strings.Contains(own, "\ngo_goroutines ") || strings.Contains(page, "tcm_") {
		t.Errorf("metrics at an address of their own: %.300q; at the page's: %.300q\n%s", own, page, judging)
	}
	if got, want := <-ended, "features of 4 windows published, 0 messages set aside\n"; got != want {
		t.Errorf("%q, want %q\n%s", got, want, log)
	}
	if want := "4 windows judged, 0 repeats dropped, 0 messages set aside, 0 alerts\n"; judged.String() != want {
		t.Errorf("%q, want %q", judged.String(), want)
	}
	if ready != "ok\n" || !strings.Contains(metrics, "tcm_features_published_total 4") || !strings.Contains(log.String(), `"group":"tcm-monitor-extract"`) {
		t.Errorf("ready: %q\n%s\n%s", ready, metrics, log)
	}
	for file, want := range map[string]string{"extract.yaml": "topics  ok", "judge.yaml": "state   ok"} {
		var found bytes.Buffer
		if err := run(t.Context(), []string{"check", "--config", file}, &found, io.Discard); err != nil || !strings.Contains(found.String(), want) {
			t.Errorf("%s: %v\n%s", file, err, found.String())
		}
	}
	err = run(t.Context(), []string{"run", "--config", "bad.yaml"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `bad.yaml: stages: "judging": choose from extract and judge`) {
		t.Error(err)
	}
}

// body returns what an address answers.
func body(url string) string {
	r, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return string(b)
}
