package ingest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/source/feed"
	"github.com/flank-tcm/flank/internal/source/machinetool"
)

// controlConfig says how the machine's control is asked which tool is in.
type controlConfig struct {
	MTConnect *mtconnectConfig `yaml:"mtconnect"`
	OPCUA     *opcuaConfig     `yaml:"opcua"`

	NoTool []string `yaml:"no_tool"` // names that mean that no tool is in; nil: feed.DefaultNoTool

	machinetool.Items `yaml:",inline"`

	Interval time.Duration `yaml:"interval"` // between two readings; 0: 1 s
	Timeout  time.Duration `yaml:"timeout"`  // of a reading, and how long the last one holds; 0: 10 s
}

// mtconnectConfig is an agent of MTConnect.
type mtconnectConfig struct {
	URL    string          `yaml:"url"`
	Device string          `yaml:"device"` // name or uuid; empty: the agent has one
	TLS    *credential.TLS `yaml:"tls"`
}

// opcuaConfig is a server of OPC UA.
type opcuaConfig struct {
	Endpoint string           `yaml:"endpoint"`
	Insecure bool             `yaml:"insecure"` // without TLS beyond this computer
	Login    credential.Login `yaml:",inline"`
	TLS      *credential.TLS  `yaml:"tls"`
}

// The bounds of how often a control is asked.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Hour
)

// checkControl checks the key `context`. It does not connect.
func (m Machine) checkControl() error {
	c := m.Context
	if c == nil {
		return nil
	}
	between := func(d time.Duration, key string) error {
		return config.Wrong(d != 0 && (d < minInterval || d > maxInterval), "%s: %v: must be from %v to %v", key, d, minInterval, maxInterval)
	}
	asks := m.AsksControl()
	err := cmp.Or(
		config.Wrong(!m.Source.live(), "the source, %s, names its tools itself: set source.kind to tcp or mqtt, or remove `context`", m.Source.Kind),
		config.Wrong(!asks && (c.NoTool == nil || c.Items != (machinetool.Items{})), "says not whom to ask: add `mtconnect: {url: \"http://agent:5000\"}`, or `opcua`"), // else samples name the tools
		config.Wrong(c.MTConnect != nil && c.OPCUA != nil, "names two controls: remove `mtconnect` or `opcua`"),
		between(c.Interval, "interval"),
		between(c.Timeout, "timeout"))
	if err == nil && asks {
		_, err = m.openControl()
	}
	return err
}

// AsksControl reports whether a control is asked.
func (m Machine) AsksControl() bool {
	return m.Context != nil && (m.Context.MTConnect != nil || m.Context.OPCUA != nil)
}

// asked is a control that can be read.
type asked interface {
	fmt.Stringer // its address
	Open() error
	Read(context.Context) (machinetool.Reading, error)
	Close()
}

// openControl returns the control of the key `context`.
func (m Machine) openControl() (asked, error) {
	items := m.Context.Items
	var a asked
	key := "mtconnect"
	if to := m.Context.OPCUA; to != nil {
		key = "opcua"
		a = &machinetool.Server{
			Endpoint: to.Endpoint, Insecure: to.Insecure, Login: to.Login.Resolve(m.file), TLS: to.TLS.Resolve(m.file), Items: items,
		}
	} else {
		to := m.Context.MTConnect
		a = &machinetool.Agent{URL: to.URL, Device: to.Device, Items: items, TLS: to.TLS.Resolve(m.file), Timeout: m.Context.Timeout}
	}
	if err := a.Open(); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return a, nil
}

// ReadControl asks the control of a machine with a Context once. It returns a line that
// says what the control answered.
func (m Machine) ReadControl(ctx context.Context) (string, error) {
	a, err := m.openControl()
	if err != nil {
		return "", err
	}
	defer a.Close()
	r, err := a.Read(ctx)
	if err == nil {
		err = r.Problem
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.Path, err)
	}
	return fmt.Sprintf("%v, %s: %s", a, m.Path, r.Describe(m.Context.Items)), nil
}

// followControl asks the control again and again until the returned function is called.
func (m *machine) followControl() (stop func(), err error) {
	if !m.AsksControl() {
		return func() {}, nil
	}
	set, err := m.context()
	if err != nil {
		return nil, err
	}
	a, err := m.openControl()
	if err != nil {
		return nil, fmt.Errorf("context: %w", err)
	}
	f := machinetool.Follow(machinetool.Config{
		Read: a.Read, Items: m.Context.Items, Setting: set, Interval: m.Context.Interval, Timeout: m.Context.Timeout,
		Notify: m.notice, Peer: a.String(),
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.control = f
	return func() {
		f.Close()
		a.Close()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.control, m.answered = nil, m.answered.Add(f.Stats())
	}, nil
}

// controlStats returns the counts since the program began.
func (m *machine) controlStats() machinetool.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.control == nil {
		return m.answered.Add(machinetool.Stats{})
	}
	return m.answered.Add(m.control.Stats())
}

// refusalsEvery is how often the log has the refused frames of a machine, for each reason.
const refusalsEvery = time.Minute

// notice logs what a person should know of. Refused frames come as often as senders like: the log has the
// first of a minute, with how many came since the one before.
func (m *machine) notice(n feed.Notice) {
	line := m.log.Info()
	if n.Err != nil {
		line = m.log.Warn()
	}
	if n.Reason != feed.Taken {
		m.mu.Lock()
		frames, say := m.refusals[n.Reason].Note(time.Now(), refusalsEvery)
		m.mu.Unlock()
		if !say {
			return
		}
		line = line.Stringer("reason", n.Reason).Uint64("frames", frames)
	}
	line.Err(n.Err).Str("peer", n.Peer).Msg(n.Text)
}
