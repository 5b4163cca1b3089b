package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/ingest/gateway"
	"github.com/flank-tcm/flank/internal/source"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/internal/source/sim"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// Config is ingest.yaml: one machine, or several under `machines`. Use Load.
type Config struct {
	Kafka   bus.Settings `yaml:"kafka"`
	Retain  retainConfig `yaml:"retain"`  // what `ingest topics apply` makes Kafka keep
	Metrics string       `yaml:"metrics"` // address of metrics and health; empty: none
	MQTT    *mqttConfig  `yaml:"mqtt"`

	SpoolOnly bool `yaml:"spool_only"` // windows are kept, and none is sent

	Machine  `yaml:",inline"`
	Machines []listed `yaml:"machines"`

	file string // that it was read from
}

// Machine is the part of the configuration that is about one machine.
type Machine struct {
	Path   string       `yaml:"machine"` // by ISA-95
	Layout string       `yaml:"layout"`  // empty: the gun drill's 14 channels
	Window windowConfig `yaml:"window"`
	Spool  string       `yaml:"spool"`
	Full   string       `yaml:"spool_full"` // "block" or "drop_oldest"; empty: the first for recordings, the second for live sources
	MiB    int64        `yaml:"spool_mib"`
	Sync   int          `yaml:"spool_sync"` // windows that share one sync to disk; 0: 1, and 64 at speed 0
	Mode   string       `yaml:"mode"`       // "raw" or "edge"; empty: raw, or what is set for all machines
	Edge   edgeConfig   `yaml:"edge"`
	Source sourceConfig `yaml:"source"`

	Context *controlConfig `yaml:"context"` // who says which tool is in; nil: samples, MQTT and `ingest tool`

	file string // from whose folder the paths begin
}

// edgeConfig says which windows the spool keeps in mode edge, in which features are sent.
type edgeConfig struct {
	KeepHours float64 `yaml:"keep_hours"`
	KeepMiB   int64   `yaml:"keep_mib"` // 0: what the spool may take
	Sample    uint64  `yaml:"sample"`   // one window of so many is sent too; 0: none

	set bool // a key is there
}

// UnmarshalYAML notes that it is there: also the defaults may be set.
func (e *edgeConfig) UnmarshalYAML(decode func(any) error) error {
	type keys edgeConfig
	e.set = true
	return decode((*keys)(e))
}

// The modes.
const (
	modeRaw  = "raw"
	modeEdge = "edge"
)

// windowConfig says how windows are cut.
type windowConfig struct {
	Length time.Duration `yaml:"length"`
	Hop    time.Duration `yaml:"hop"`
}

// sourceConfig says where samples come from.
type sourceConfig struct {
	Kind  string  `yaml:"kind"`  // "simulate", "file", "folder", "tcp" or "mqtt"; "csv" is another word for "file"
	File  string  `yaml:"file"`  // of file
	Speed float64 `yaml:"speed"` // times as fast as a live sensor; 0: as fast as possible. Of simulate, file and folder
	Start string  `yaml:"start"` // RFC 3339, or "file-time": of file and folder, when recordings began that do not say it themselves; empty: their times are seconds from the start

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

	Insecure bool `yaml:"insecure"` // listen for other computers without TLS

	Timeout time.Duration `yaml:"timeout"`  // of tcp and mqtt: how long the other side may be silent
	MaxLost time.Duration `yaml:"max_lost"` // of tcp and mqtt: how long the samples of a minute may last that are in no window
}

// mqttConfig is the broker for samples and tools.
type mqttConfig struct {
	Broker string           `yaml:"broker"`
	Prefix string           `yaml:"prefix"` // of topics; empty: flank
	Login  credential.Login `yaml:",inline"`
	TLS    *credential.TLS  `yaml:"tls"`
}

const defaultSpool = "flank-data/spool"

// defaults returns the values of what a configuration leaves out.
func defaults() Machine {
	return Machine{
		Window: windowConfig{Length: window.DefaultSpec.Length}, Spool: defaultSpool, MiB: 8192, Edge: edgeConfig{KeepHours: 24},
		Source: sourceConfig{
			Kind: "simulate", Speed: 1, Seed: 1, ToolLife: 80 * time.Second, Pattern: "*", Settle: 10 * time.Second, Timeout: 10 * time.Second, MaxLost: 10 * time.Second,
		},
	}
}

// listed is a machine of several.
type listed Machine

// UnmarshalYAML begins with the defaults. The spool's is a folder of its own.
func (l *listed) UnmarshalYAML(decode func(any) error) error {
	m := defaults()
	m.Spool = ""
	err := decode(&m)
	if m.Spool == "" {
		m.Spool = filepath.Join(defaultSpool, filepath.FromSlash(m.Path))
	}
	*l = listed(m)
	return err
}

// Load reads a configuration. It reports what cannot be used for any command; Check
// reports the rest.
func Load(path string) (Config, error) {
	c := Config{Machine: defaults(), file: path}
	if err := config.Load(path, &c); err != nil {
		return c, err
	}
	if _, err := c.Retain.Topics(); err != nil {
		return c, config.Locate(path, err)
	}
	_, err := c.Kafka.Load(path, "")
	return c, err
}

// Bus returns how the program called client reaches Kafka.
func (c Config) Bus(client string) (bus.Config, error) { return c.Kafka.Load(c.file, client) }

// All returns the machines.
func (c Config) All() []Machine {
	ms := []Machine{c.Machine}
	if len(c.Machines) > 0 {
		ms = nil
		for _, m := range c.Machines {
			m.Mode = cmp.Or(m.Mode, c.Mode)
			if !m.Edge.set {
				m.Edge = c.Edge
			}
			ms = append(ms, Machine(m))
		}
	}
	for i := range ms {
		ms[i].file = c.file
	}
	return ms
}

// Find returns the machine of a path. An empty path finds the only one.
func (c Config) Find(path string) (Machine, error) {
	ms := c.All()
	if path == "" && len(ms) == 1 {
		return ms[0], nil
	}
	for _, m := range ms {
		if m.Path == path {
			return m, nil
		}
	}
	if path == "" {
		return Machine{}, fmt.Errorf("%s: has %d machines: name one by --machine", c.file, len(ms))
	}
	return Machine{}, fmt.Errorf("%s: no machine %q: correct --machine, or add it under `machines`", c.file, path)
}

// Check reports a value that cannot be used.
func (c Config) Check() error {
	alone := c.Machine
	alone.Mode, alone.Edge = "", defaults().Edge // these are for all machines
	if len(c.Machines) > 0 && !reflect.DeepEqual(alone, defaults()) {
		return fmt.Errorf("%s: machines: keys of a machine are set next to the list: move machine, layout, window, spool and source into its entries (mode and edge may stay: they are for all)", c.file)
	}
	if err := c.checkMachines(); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	if c.MQTT != nil {
		if err := c.Broker("").Check(); err != nil {
			return fmt.Errorf("%s: mqtt: %w", c.file, err)
		}
	}
	return nil
}

// checkMachines reports a machine that cannot be ingested, or two that would use the
// same name, spool or address.
func (c Config) checkMachines() error {
	used, ids := map[string]string{}, map[string]string{}
	for i, m := range c.All() {
		err := m.check()
		for _, own := range [][2]string{{"machine", m.Path}, {"spool", m.SpoolDir()}, {"source: listen", m.Source.Listen}} {
			what, value := own[0], own[1]
			other, twice := used[what+value]
			if twice && err == nil && value != "" && !strings.HasSuffix(value, ":0") {
				err = fmt.Errorf("%s: %s is in use by machine %s already: give each machine its own", what, value, other)
			}
			used[what+value] = m.Path
		}
		if c.MQTT != nil && (m.Source.Kind == "mqtt" || m.Source.Kind == "tcp") {
			if other, twice := ids[m.clientID()]; twice && err == nil {
				err = fmt.Errorf("machine: %s and %s have the same client id on the MQTT broker, %s: rename one of them", m.Path, other, m.clientID())
			}
			ids[m.clientID()] = m.Path
		}
		if err == nil && m.Source.Kind == "mqtt" && c.MQTT == nil {
			err = errors.New("source: kind mqtt needs a broker: add `mqtt: {broker: \"mqtts://host:8883\"}`, next to `kafka`")
		}
		if err != nil && len(c.Machines) > 0 {
			return fmt.Errorf("machines: entry %d: %w", i+1, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clientID is how the machine logs in to the MQTT broker, which has one session for each.
func (m Machine) clientID() string { return "flank-ingest-" + strings.ReplaceAll(m.Path, "/", "-") }

func (m Machine) check() error {
	under := func(key string, err error) error {
		if err != nil {
			err = fmt.Errorf("%s: %w", key, err)
		}
		return err
	}
	return cmp.Or(
		under("machine", event.CheckMachine(m.Path)),
		config.Wrong(m.MiB < 0, "spool_mib: %d: must be the MiB the spool may take, or 0 for what the disk holds", m.MiB),
		config.Wrong(m.Sync < 0, "spool_sync: %d: must be the number of windows that share one sync to disk, or 0 for 1, and 64 at speed 0", m.Sync),
		config.Wrong(m.Full != "" && m.Full != "block" && m.Full != "drop_oldest", "spool_full: %q: choose block (acquisition waits) or drop_oldest (the oldest windows are given up)", m.Full),
		m.checkMode(),
		under("source", m.Source.check()),
		under("context", m.checkControl()))
}

// checkMode checks the mode and what is kept in mode edge.
func (m Machine) checkMode() error {
	e := m.Edge
	return cmp.Or(
		config.Wrong(m.Mode != "" && m.Mode != modeRaw && m.Mode != modeEdge, "mode: %q: choose raw (windows are sent) or edge (features are sent, windows stay in the spool)", m.Mode),
		config.Wrong(!(e.KeepHours > 0 && e.KeepHours <= maxKeepHours), "edge: keep_hours: %v: must be above 0 and at most %d", e.KeepHours, maxKeepHours),
		config.Wrong(e.KeepMiB < 0, "edge: keep_mib: %d: must be the MiB of delivered windows that stay, or 0 for what spool_mib leaves", e.KeepMiB),
		config.Wrong(m.Mode == modeEdge && m.MiB > 0 && e.KeepMiB > m.MiB,
			"edge: keep_mib: %d: spool_mib, %d, is the most that the whole spool may take: raise it, best to keep_mib and as much again as the windows of a long outage take", e.KeepMiB, m.MiB))
}

// maxKeepHours is ten years.
const maxKeepHours = 87_600

func (s sourceConfig) check() error {
	_, badStart := s.start()
	_, badFaults := s.faults()
	return cmp.Or(
		config.Wrong(!s.live() && !s.recording() && s.Kind != "simulate" && s.Kind != "folder", "kind %q: choose simulate, file, folder, tcp or mqtt", s.Kind),
		config.Wrong(!(s.Speed >= 0), "speed: %v: must be 1 for a live sensor, more for a faster one, or 0 for as fast as possible", s.Speed),
		s.checkRecordings(),
		badStart,
		config.Wrong(s.Kind != "simulate" && len(s.Faults) > 0, "faults: only a simulated source has them on request: set source.kind to simulate, or remove them"),
		s.checkListen(),
		config.Wrong(s.Timeout <= 0, "timeout: %v: must be positive, such as 10s", s.Timeout),
		config.Wrong(s.MaxLost <= 0 || s.MaxLost > lossWithin, "max_lost: %v: must be above 0 and at most %v, such as 10s: of the samples of a minute", s.MaxLost, lossWithin),
		badFaults)
}

// checkRecordings checks the keys of recordings and of the simulator.
func (s sourceConfig) checkRecordings() error {
	simulated := s.Kind == "simulate"
	return cmp.Or(
		config.Wrong(simulated && s.File != "", "file: %s would not be read: set source.kind to file, or remove it", s.File),
		config.Wrong(s.recording() && s.File == "", "file: name the recording"),
		config.Wrong(s.Kind == "folder" && (s.Folder == "" || s.Settle <= 0), "folder %q, settle %v: name the folder to watch, and for how long a file must not have changed, such as 10s", s.Folder, s.Settle),
		config.Wrong(s.Start != "" && !s.recording() && s.Kind != "folder", "start: %v: only recordings have a start: set source.kind to file or folder, or remove it", s.Start),
		config.Wrong(simulated && (s.Tools < 0 || s.ToolLife <= 0), "%d tools with a life of %v: tools must be 0 (until stopped) or more, and tool_life a duration such as 80s", s.Tools, s.ToolLife))
}

// start returns when recordings began.
func (s sourceConfig) start() (at signal.Start, err error) {
	if err = at.UnmarshalText([]byte(s.Start)); err != nil {
		err = fmt.Errorf("start: %w", err)
	}
	return at, err
}

// checkListen checks the keys of a source that listens for clients.
func (s sourceConfig) checkListen() error {
	if s.Kind != "tcp" {
		return config.Wrong(s.Listen != "" || s.TLS != nil || s.Insecure, "listen, tls and insecure are of kind tcp: set source.kind to tcp, or remove them")
	}
	host, _, err := net.SplitHostPort(s.Listen)
	return cmp.Or(
		config.Wrong(s.Listen == "", "listen: name the address that clients connect to, such as 127.0.0.1:9110"),
		config.Wrong(err == nil && s.TLS == nil && !s.Insecure && !credential.IsLocal(host),
			"listen %s: other computers reach this address, and without TLS anyone there may send samples: name `tls: {cert: FILE, key: FILE}`, with `ca` to let only clients with a certificate connect, or accept it with `insecure: true`", s.Listen))
}

// faults returns what goes wrong with a simulated source.
func (s sourceConfig) faults() ([]sim.Fault, error) {
	faults, err := sim.ParseFaults(s.Faults)
	if err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	return faults, nil
}

// live reports whether samples come from a network, as a rule without the tool's
// name.
func (s sourceConfig) live() bool { return s.Kind == "tcp" || s.Kind == "mqtt" }

// recording reports whether the source is one recording: it ends, and a second try
// reads the same.
func (s sourceConfig) recording() bool { return s.Kind == "file" || s.Kind == "csv" }

// SpoolDir returns the folder of the spool.
func (m Machine) SpoolDir() string { return config.ResolvePath(m.file, m.Spool) }

// edge returns how a gateway sends features; nil: it sends windows.
func (m Machine) edge() *gateway.Edge {
	if !m.SendsFeatures() {
		return nil
	}
	return &gateway.Edge{Keep: time.Duration(m.Edge.KeepHours * float64(time.Hour)), KeepBytes: m.Edge.KeepMiB << 20, Sample: m.Edge.Sample}
}

// SendsFeatures reports whether the machine is in mode edge.
func (m Machine) SendsFeatures() bool { return m.Mode == modeEdge }

// SendsFeatures reports whether a machine is in mode edge.
func (c Config) SendsFeatures() bool { return slices.ContainsFunc(c.All(), Machine.SendsFeatures) }

// Spec returns how windows are cut.
func (m Machine) Spec() window.Spec {
	return window.Spec{Length: m.Window.Length, Hop: m.Window.Hop}
}

// LoadLayout returns the layout of recordings and feeds, and how they are written.
func (m Machine) LoadLayout() (*signal.Layout, signal.Recording, error) {
	if m.Layout == "" {
		return signal.GunDrill(), signal.Recording{}, nil
	}
	return signal.LoadLayout(config.ResolvePath(m.file, m.Layout))
}

// recording returns what all recordings of the machine have in common.
func (m Machine) recording(warn func(text string)) (rec source.Recording, err error) {
	rec = source.Recording{Machine: m.Path, Warn: warn}
	if rec.Layout, rec.Columns, err = m.LoadLayout(); err != nil {
		return rec, err
	}
	if rec.Start, err = m.Source.start(); err != nil {
		err = fmt.Errorf("source: %w", err)
	}
	return rec, err
}

// Broker returns the MQTT broker, with the topic of a machine's context. The
// configuration must have one.
func (c Config) Broker(machine string) feed.MQTT {
	return feed.MQTT{
		Broker: c.MQTT.Broker, Login: c.MQTT.Login.Resolve(c.file), TLS: c.MQTT.TLS.Resolve(c.file), Context: feed.ContextTopic(c.prefix(), machine),
	}
}

func (c Config) prefix() string { return cmp.Or(c.MQTT.Prefix, "flank") }
