package main

import (
	"fmt"
	"net/url"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/pages"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/web/summary"
	"github.com/flank-tcm/flank/pkg/alarm"
)

// settings is monitor.yaml.
type settings struct {
	Kafka  bus.Settings   `yaml:"kafka"`
	Model  string         `yaml:"model"`
	Models modelSettings  `yaml:"models"`
	Group  string         `yaml:"group"`
	Alarm  alarm.Settings `yaml:"alarm"`
	Page   pages.Config   `yaml:"page"`

	Metrics string `yaml:"metrics"` // address of /metrics; empty: the page's

	Silence  time.Duration    `yaml:"silence"` // 0: never
	Alerts   pages.Alerts     `yaml:"alerts"`
	Shifts   string           `yaml:"shifts"` // when they begin, for reports
	Evidence evidenceSettings `yaml:"evidence"`
	History  historySettings  `yaml:"history"`

	PageToken credential.Secret `yaml:"page_token"` // that people share; see also Page.People

	file string // that it was read from
}

// defaults returns the settings of an empty file.
func defaults(file string) settings {
	return settings{
		Group: "tcm-monitor", Alarm: alarm.Default, Page: pages.Config{Listen: "127.0.0.1:9102", Read: pages.ReadOpen}, Silence: time.Minute, Shifts: "06-14-22",
		Evidence: evidenceSettings{Keep: evidence.DefaultKeep}, file: file,
	}
}

// load reads a configuration.
func load(file string) (settings, error) {
	c := defaults(file)
	err := config.Load(file, &c)
	return c, err
}

// loadBus reads a configuration and returns how to reach Kafka.
func loadBus(file string) (settings, bus.Config, error) {
	c, err := load(file)
	if err != nil {
		return c, bus.Config{}, err
	}
	to, err := c.Kafka.Load(file, "flank-monitor")
	return c, to, err
}

// pageAccess returns the page and the token that people share, with their paths resolved.
// It reports settings that cannot be used.
func (c settings) pageAccess() (pages.Config, credential.Secret, error) {
	page, token := c.Page.Resolve(c.file), c.PageToken.Resolve(c.file)
	if err := page.Check(token); err != nil {
		return page, token, config.Locate(c.file, err)
	}
	return page, token, nil
}

// checkPage reports a page that could not be served: settings, and files that cannot be used.
func (c settings) checkPage() error {
	page, token, err := c.pageAccess()
	if err != nil || page.Listen == "" {
		return err
	}
	if _, err := page.Guard(token, zerolog.Nop()); err != nil {
		return config.Locate(c.file, err)
	}
	return nil
}

// errNoModel reports a configuration that names no model.
func (c settings) errNoModel() error {
	return fmt.Errorf("%s: model: name the model file, train one with `trainer fit`; or name public keys in models.keys, and models come from tcm.models.v1, see `trainer publish`", c.file)
}

// historySettings says where the page's history of the machines is kept.
type historySettings struct {
	Dir string `yaml:"dir"` // empty: in memory, one day
}

// open opens the history of a group that the configuration in file names.
func (h historySettings) open(file, group string, log zerolog.Logger) (*summary.Store, error) {
	dir := h.Dir
	if dir != "" {
		dir = config.ResolvePath(file, dir)
	}
	store, err := pages.OpenHistory(dir, group, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return store, nil
}

// evidenceSettings says where the waveforms around alerts are kept.
type evidenceSettings struct {
	Dir  string `yaml:"dir"`  // empty: none is kept
	Keep int    `yaml:"keep"` // alerts
	URL  string `yaml:"url"`  // of the page, as receivers of alerts reach it
}

// host returns the host of the page as receivers of alerts reach it, "" if it is not known.
func (e evidenceSettings) host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// check reports an address of the page that cannot be one, of the configuration in file.
func (e evidenceSettings) check(file string) error {
	if u, err := url.Parse(e.URL); e.Dir != "" && (err != nil || e.URL != "" && (u.Scheme == "" || u.Host == "" || u.RawQuery != "")) {
		return fmt.Errorf("%s: evidence.url %q: must be the address of the page, for example http://usk25-monitor:9102", file, e.URL)
	}
	return nil
}

// open returns the store that the configuration in file names, nil if it names none.
func (e evidenceSettings) open(file string) (*evidence.Store, error) {
	if err := e.check(file); err != nil || e.Dir == "" {
		return nil, err
	}
	s, err := evidence.Open(config.ResolvePath(file, e.Dir), e.Keep)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}
