package main

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
)

// What init writes can be used as it is, and what it names are the defaults.
func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), strings.Fields("init --kafka broker:9093"), &out, &out); err != nil {
		t.Fatal(err)
	}
	c, to, err := loadBus("monitor.yaml")
	if err != nil || len(to.Brokers) != 1 || to.Brokers[0] != "broker:9093" {
		t.Fatalf("%v, %v", to.Brokers, err)
	}
	want := defaults("monitor.yaml")
	want.Kafka, want.Model, want.Evidence.Dir, want.History.Dir = c.Kafka, "model.flank", "flank-data/evidence", "flank-data/history"
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, want %+v", c, want)
	}
	if !strings.Contains(out.String(), "monitor run --config monitor.yaml") {
		t.Error(out.String())
	}
	before, _ := os.ReadFile("monitor.yaml")
	if err := run(t.Context(), []string{"init"}, &out, &out); err == nil || !strings.Contains(err.Error(), "monitor.yaml is there already, and is not overwritten") {
		t.Error(err)
	}
	if after, _ := os.ReadFile("monitor.yaml"); !bytes.Equal(after, before) {
		t.Error("it was overwritten")
	}
	if err := run(t.Context(), strings.Fields("init --config other.yaml --kafka broker"), &out, &out); err == nil || !strings.Contains(err.Error(), "write host:port") {
		t.Error(err)
	}
}
