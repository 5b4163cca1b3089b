package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
)

// A monitor that runs refuses a configuration whose files cannot be used, which at its start it may wait for.
// An unchanged configuration is the same for it, also with routes that it has built.
func TestLoadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := credential.NewSigningKey(rand.Reader, filepath.Join(dir, "plant.key"), filepath.Join(dir, "plant.pub")); err != nil {
		t.Fatal(err)
	}
	f := &runCommand{ConfigFile: cli.ConfigFile{Config: filepath.Join(dir, "monitor.yaml")}}
	const kafka, keys = "kafka: {brokers: [\"127.0.0.1:9\"]}\n", "models: {keys: [plant.pub]}\n"
	for want, text := range map[string]string{
		"absent.flank":       "model: absent.flank\n",
		"absent.pub":         "models: {keys: [absent.pub]}\n",
		"evidence.url":       keys + "evidence: {dir: evidence, url: here}\n",
		"routes[0]: webhook": keys + "alerts: {routes: [{name: r, webhook: {url: \"ftp://a\"}}]}\n",
		"routes[1]: name":    keys + "alerts: {routes: [{name: r, kafka: {topic: t}}, {name: r, kafka: {topic: t}}]}\n",
	} {
		if err := os.WriteFile(f.Config, []byte(kafka+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.load(); err != nil {
			t.Errorf("%s: at the start: %v", want, err)
		}
		if _, err := f.loadAgain(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := kafka + keys + "alerts: {routes: [{name: r, kafka: {topic: t}}, {name: w, webhook: {url: \"http://127.0.0.1/\", secret: {file: secret}}}]}\n"
	if err := os.WriteFile(f.Config, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	routes, err := c.Alerts.Build(c.file, bus.Config{Brokers: []string{"127.0.0.1:9"}}, c.Group, false, zerolog.Nop())
	for _, r := range routes {
		r.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	next, err := f.load()
	if err != nil || !reflect.DeepEqual(c, next) {
		t.Errorf("%v: an unchanged configuration differs", err)
	}
}
