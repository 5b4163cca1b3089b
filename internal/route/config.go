package route

import (
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
)

// Config is a route as it stands under `alerts: routes:` in monitor.yaml. One
// receiver is named.
type Config struct {
	Name      string `yaml:"name"`
	Filter    `yaml:",inline"`
	Timeout   time.Duration `yaml:"timeout"` // of one attempt; 0 means 10 s
	Receivers `yaml:",inline"`
}

// Receivers are the receivers that a route can name, each with a key of its own. A new
// receiver is a file with its receiverConfig and a field here. Its key, errors, checks
// and paths follow from the field.
type Receivers struct {
	Kafka        *kafkaConfig        `yaml:"kafka"`
	Webhook      *Webhook            `yaml:"webhook"`
	Alertmanager *alertmanagerConfig `yaml:"alertmanager"`
	MQTT         *mqttConfig         `yaml:"mqtt"`
	SMTP         *smtpConfig         `yaml:"smtp"`
	OPCUA        *opcuaConfig        `yaml:"opcua"`
}

// receiverConfig is what the configuration says about one receiver.
type receiverConfig interface {
	// check reports a value that cannot be used, as a config.KeyError.
	check() error
	// resolve makes paths begin at the folder of a configuration file.
	resolve(file string)
	// target says what the receiver is and where, without anything secret.
	target() string
	// open returns the receiver. It connects to nothing yet.
	open(r *Route) (receiver, error)
}

// namedReceiver is a receiver with its key in the configuration.
type namedReceiver struct {
	key string
	receiverConfig
}

// list returns the keys of all receivers, and those receivers that the route names.
func (r *Receivers) list() (keys []string, named []namedReceiver) {
	for of, field := range reflect.ValueOf(r).Elem().Fields() {
		key := of.Tag.Get("yaml")
		keys = append(keys, key)
		if !field.IsNil() {
			named = append(named, namedReceiver{key, field.Interface().(receiverConfig)})
		}
	}
	return keys, named
}

const defaultTimeout = 10 * time.Second

// Resolve makes paths begin at the folder of the configuration file. Other copies of the Config keep
// their receivers as they are.
func (c *Config) Resolve(file string) {
	for _, field := range reflect.ValueOf(&c.Receivers).Elem().Fields() {
		if !field.IsNil() {
			own := reflect.New(field.Type().Elem())
			own.Elem().Set(field.Elem())
			field.Set(own)
			own.Interface().(receiverConfig).resolve(file)
		}
	}
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// check returns the route's filter and receiver. It reports a value that cannot be
// used.
func (c *Config) check() (f filter, to namedReceiver, err error) {
	if !validName.MatchString(c.Name) {
		return f, to, badKey("name", "%q: give each route a name of its own: up to 40 small letters, digits, - and _", c.Name)
	}
	keys, named := c.list()
	if len(named) != 1 {
		last := len(keys) - 1
		return f, to, fmt.Errorf("route %s names %d receivers: name one of %s and %s", c.Name, len(named), strings.Join(keys[:last], ", "), keys[last])
	}
	if f, err = c.compile(); err != nil {
		return f, to, err
	}
	if c.Timeout < 0 {
		return f, to, badKey("timeout", "%v: must be the longest time of one attempt, such as 10s", c.Timeout)
	}
	to = named[0]
	return f, to, config.Under(to.key, to.check())
}

// checkUnfiltered refuses filters that would hide from a stateReceiver how an alarm
// ends.
func (c *Config) checkUnfiltered(receiver string) error {
	for _, one := range []struct {
		key string
		set bool
	}{{"severity", c.Severity != ""}, {"states", len(c.States) > 0}, {"hours", c.Hours != ""}} {
		if one.set {
			return badKey(one.key, "%s shows the state of machines, and with this filter it would never learn that an alarm has ended: remove it, and filter in %[1]s", receiver)
		}
	}
	return nil
}

// host returns the part of a URL that is not secret: URLs of webhooks may hold tokens.
func host(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "an address from a file"
	}
	return u.Scheme + "://" + u.Host
}

// checkLogin reports a login that is incomplete or cannot be read. It accepts that
// there is none.
func checkLogin(l credential.Login) error {
	if l.IsZero() {
		return nil
	}
	return l.Check()
}

// checkFiles reports files of TLS that cannot be read.
func checkFiles(t *credential.TLS) error {
	_, err := t.Client()
	return config.Under("tls", err)
}
