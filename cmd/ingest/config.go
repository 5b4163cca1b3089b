package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/credential"
	"github.com/flank-tcm/flank/internal/gateway"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// settings is ingest.yaml: one machine, or several under `machines`.
type settings struct {
	Kafka         bus.Settings `yaml:"kafka"`
	Retain        retainConfig `yaml:"retain"`  // what `topics apply` has Kafka keep
	Metrics       string       `yaml:"metrics"` // address of metrics and health; empty: none
	MQTT          *mqttConfig  `yaml:"mqtt"`
	machineConfig `yaml:",inline"`
	Machines      []listed `yaml:"machines"`

	file string // that it was read from
}

// machineConfig is what is said of one machine.
type machineConfig struct {
	Machine string       `yaml:"machine"`
	Layout  string       `yaml:"layout"` // empty: the gun drill's 14 channels
	Window  windowConfig `yaml:"window"`
	Spool   string       `yaml:"spool"`
	Full    string       `yaml:"spool_full"` // "block" or "drop_oldest"; empty: the first for recordings, the second for live sources
	MiB     int64        `yaml:"spool_mib"`
	Sync    int          `yaml:"spool_sync"` // windows that share one sync to disk; 0: 1, and 64 at speed 0
	Source  sourceConfig `yaml:"source"`
}

type windowConfig struct {
	Length time.Duration `yaml:"length"`
	Hop    time.Duration `yaml:"hop"`
}

type sourceConfig struct {
	Kind  string  `yaml:"kind"`  // "simulate", "file", "folder", "tcp" or "mqtt"; "csv" is another word for "file"
	File  string  `yaml:"file"`  // of file
	Speed float64 `yaml:"speed"` // times as fast as a live sensor; 0: as fast as possible. Of simulate, file and folder

	// of folder
	Folder  string        `yaml:"folder"`
	Pattern string        `yaml:"pattern"` // names of recordings, such as "*.tdms"
	Settle  time.Duration `yaml:"settle"`  // for how long a file must not have changed to be complete

	// of simulate
	Seed     uint64        `yaml:"seed"`
	ToolLife time.Duration `yaml:"tool_life"`
	Tools    int           `yaml:"tools"`  // 0: until stopped
	Faults   []string      `yaml:"faults"` // as `ingest simulate --fault` has them

	// of tcp
	Listen string          `yaml:"listen"`
	TLS    *credential.TLS `yaml:"tls"`

	Timeout time.Duration `yaml:"timeout"` // of tcp and mqtt: how long the other side may be silent
}

type mqttConfig struct {
	Broker string           `yaml:"broker"`
	Prefix string           `yaml:"prefix"` // of topics; empty: flank
	Login  credential.Login `yaml:",inline"`
	TLS    *credential.TLS  `yaml:"tls"`
}

// defaults returns what holds where the configuration is silent.
func defaults() machineConfig {
	return machineConfig{
		Window: windowConfig{Length: window.DefaultSpec.Length}, Spool: defaultSpool, MiB: 8192,
		Source: sourceConfig{
			Kind: "simulate", Speed: 1, Seed: 1, ToolLife: 80 * time.Second, Pattern: "*", Settle: 10 * time.Second, Timeout: 10 * time.Second,
		},
	}
}

const defaultSpool = "flank-data/spool"

// listed is a machine of several.
type listed machineConfig

// UnmarshalYAML begins with the defaults. The spool's is a folder of its own.
func (l *listed) UnmarshalYAML(decode func(any) error) error {
	m := defaults()
	m.Spool = ""
	err := decode(&m)
	if m.Spool == "" {
		m.Spool = filepath.Join(defaultSpool, filepath.FromSlash(m.Machine))
	}
	*l = listed(m)
	return err
}

func load(path string) (settings, error) {
	c := settings{machineConfig: defaults(), file: path}
	if err := config.Load(path, &c); err != nil {
		return c, err
	}
	if _, err := c.Retain.topics(); err != nil {
		return c, config.Locate(path, err)
	}
	_, err := c.Kafka.Load(path, "")
	return c, err
}

// all returns the machines.
func (c settings) all() []machineConfig {
	if len(c.Machines) == 0 {
		return []machineConfig{c.machineConfig}
	}
	var ms []machineConfig
	for _, m := range c.Machines {
		ms = append(ms, machineConfig(m))
	}
	return ms
}

// find returns the machine of a path; an empty path finds the only one.
func (c settings) find(path string) (machineConfig, error) {
	ms := c.all()
	if path == "" && len(ms) == 1 {
		return ms[0], nil
	}
	for _, m := range ms {
		if m.Machine == path {
			return m, nil
		}
	}
	if path == "" {
		return machineConfig{}, fmt.Errorf("%s: has %d machines: name one by --machine", c.file, len(ms))
	}
	return machineConfig{}, fmt.Errorf("%s: no machine %q: correct --machine, or add it under `machines`", c.file, path)
}

// check reports a value that cannot be meant.
func (c settings) check() error {
	if len(c.Machines) == 0 {
		if err := c.machineConfig.check(); err != nil {
			return err
		}
	} else if !reflect.DeepEqual(c.machineConfig, defaults()) {
		return errors.New("machines: what is said beside the list is of no machine: move machine, layout, window, spool and source into its entries")
	}
	used := map[string]string{}
	for i, m := range c.all() {
		err := m.check()
		for _, own := range [][2]string{{"machine", m.Machine}, {"spool", config.ResolvePath(c.file, m.Spool)}, {"source: listen", m.Source.Listen}} {
			what, value := own[0], own[1]
			other, twice := used[what+value]
			if twice && err == nil && value != "" && !strings.HasSuffix(value, ":0") {
				err = fmt.Errorf("%s: %s is that of %s too: give each its own", what, value, other)
			}
			used[what+value] = m.Machine
		}
		if err == nil && m.Source.Kind == "mqtt" && c.MQTT == nil {
			err = errors.New("source: kind mqtt needs a broker: add `mqtt: {broker: \"mqtts://host:8883\"}`, beside `kafka`")
		}
		if err != nil && len(c.Machines) > 0 {
			return fmt.Errorf("machines: entry %d: %w", i+1, err)
		}
		if err != nil {
			return err
		}
	}
	if c.MQTT != nil {
		if err := c.mqtt("").Check(); err != nil {
			return fmt.Errorf("mqtt: %w", err)
		}
	}
	return nil
}

func (m machineConfig) check() error {
	if err := gateway.CheckMachine(m.Machine); err != nil {
		return fmt.Errorf("machine: %w", err)
	}
	src := m.Source
	switch {
	case m.MiB < 0:
		return fmt.Errorf("spool_mib: %d: must be the MiB the spool may take, or 0 for what the disk holds", m.MiB)
	case m.Sync < 0:
		return fmt.Errorf("spool_sync: %d: must be the number of windows that share one sync to disk, or 0 for 1, and 64 at speed 0", m.Sync)
	case m.Full != "" && m.Full != "block" && m.Full != "drop_oldest":
		return fmt.Errorf("spool_full: %q: choose block (acquisition waits) or drop_oldest (the oldest windows are given up)", m.Full)
	case !(src.Speed >= 0):
		return fmt.Errorf("source: speed: %v: must be 1 for a live sensor, more for a faster one, or 0 for as fast as possible", src.Speed)
	case src.Kind == "simulate" && src.File != "":
		return fmt.Errorf("source: file: %s would not be read: set source.kind to file, or remove it", src.File)
	case src.Kind == "folder" && (src.Folder == "" || src.Settle <= 0):
		return fmt.Errorf("source: folder %q, settle %v: name the folder to watch, and for how long a file must not have changed, such as 10s", src.Folder, src.Settle)
	case src.Kind == "simulate" && (src.Tools < 0 || src.ToolLife <= 0):
		return fmt.Errorf("source: %d tools with a life of %v: tools must be 0 (until stopped) or more, and tool_life a duration such as 80s", src.Tools, src.ToolLife)
	case src.Kind != "simulate" && len(src.Faults) > 0:
		return errors.New("source: faults: only a simulated source has them on request: set source.kind to simulate, or remove them")
	case src.Kind == "tcp" && src.Listen == "":
		return errors.New("source: listen: name the address that clients connect to, such as 127.0.0.1:9110")
	case src.Kind != "tcp" && (src.Listen != "" || src.TLS != nil):
		return errors.New("source: listen and tls are of kind tcp: set source.kind to tcp, or remove them")
	case src.Timeout <= 0:
		return fmt.Errorf("source: timeout: %v: must be positive, such as 10s", src.Timeout)
	}
	_, err := src.faults()
	return err
}

// faults returns what goes wrong with a simulated source.
func (s sourceConfig) faults() (faults []sim.Fault, err error) {
	for _, text := range s.Faults {
		f, err := sim.ParseFault(text)
		if err != nil {
			return nil, fmt.Errorf("source: faults: %w", err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// live reports whether samples come from a network, without names of tools as a
// rule.
func (s sourceConfig) live() bool { return s.Kind == "tcp" || s.Kind == "mqtt" }

// layout returns the layout of recordings and feeds, and how they are written.
func (m machineConfig) layout(file string) (*signal.Layout, signal.Recording, error) {
	if m.Layout == "" {
		return signal.GunDrill(), signal.Recording{}, nil
	}
	return signal.LoadLayout(config.ResolvePath(file, m.Layout))
}

// mqtt returns the broker, and the topic of a machine's context.
func (c settings) mqtt(machine string) feed.MQTT {
	m := feed.MQTT{Broker: c.MQTT.Broker, TLS: c.MQTT.TLS.Resolve(c.file), Context: feed.ContextTopic(c.prefix(), machine)}
	if !c.MQTT.Login.IsZero() {
		login := c.MQTT.Login.Resolve(c.file)
		m.Login = &login
	}
	return m
}

func (c settings) prefix() string {
	if c.MQTT.Prefix == "" {
		return "flank"
	}
	return c.MQTT.Prefix
}
