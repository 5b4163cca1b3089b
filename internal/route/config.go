package route

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/credential"
)

// Config is a route as it stands under `alerts: routes:` in monitor.yaml. One
// receiver is named.
type Config struct {
	Name    string `yaml:"name"`
	Filter  `yaml:",inline"`
	Timeout time.Duration `yaml:"timeout"` // of one attempt; 0 means 10 s

	Kafka        *Kafka        `yaml:"-"` // how clusters are named is not this package's to say
	Webhook      *Webhook      `yaml:"webhook"`
	Alertmanager *Alertmanager `yaml:"alertmanager"`
	MQTT         *MQTT         `yaml:"mqtt"`
	SMTP         *SMTP         `yaml:"smtp"`
}

const defaultTimeout = 10 * time.Second

// Beside makes paths of files begin where beside puts them.
func (c *Config) Beside(beside func(string) string) {
	files := func(t *credential.TLS) {
		if t != nil {
			t.CA, t.Cert, t.Key = beside(t.CA), beside(t.Cert), beside(t.Key)
		}
	}
	if w := c.Webhook; w != nil {
		w.URLFile, w.Secret.File, w.Token.File = beside(w.URLFile), beside(w.Secret.File), beside(w.Token.File)
		files(w.TLS)
	}
	if a := c.Alertmanager; a != nil {
		a.Token.File, a.PasswordFile = beside(a.Token.File), beside(a.PasswordFile)
		files(a.TLS)
	}
	if m := c.MQTT; m != nil {
		m.PasswordFile = beside(m.PasswordFile)
		files(m.TLS)
	}
	if s := c.SMTP; s != nil {
		s.PasswordFile = beside(s.PasswordFile)
		files(s.TLS)
	}
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

func (c *Config) check(alerts bus.Config) (f filter, timeout time.Duration, err error) {
	if !validName.MatchString(c.Name) {
		return f, 0, &config.KeyError{Key: "name", Err: fmt.Errorf("%q: give each route a name of its own: up to 40 small letters, digits, - and _", c.Name)}
	}
	f, w := c.compile()
	if w == nil && c.Timeout < 0 {
		w = bad("timeout", "%v: must be the longest time of one attempt, such as 10s", c.Timeout)
	}
	var named []string
	for _, one := range []struct {
		name  string
		there bool
		check func() *wrong
	}{
		{"kafka", c.Kafka != nil, func() *wrong { return c.Kafka.check(alerts) }},
		{"webhook", c.Webhook != nil, func() *wrong { return c.Webhook.check() }},
		{"alertmanager", c.Alertmanager != nil, func() *wrong { return c.Alertmanager.check() }},
		{"mqtt", c.MQTT != nil, func() *wrong { return c.MQTT.check() }},
		{"smtp", c.SMTP != nil, func() *wrong { return c.SMTP.check() }},
	} {
		if !one.there {
			continue
		}
		named = append(named, one.name)
		if w != nil {
			continue
		}
		if w = one.check(); w != nil {
			w.key = strings.TrimSuffix(one.name+"."+w.key, ".")
		} else if one.name == "alertmanager" || one.name == "mqtt" {
			w = c.onlyWhole(one.name)
		}
	}
	if len(named) != 1 && (w == nil || len(named) == 0) {
		return f, 0, fmt.Errorf("route %s names %d receivers: name one of kafka, webhook, alertmanager, mqtt and smtp", c.Name, len(named))
	}
	if w != nil {
		return f, 0, &config.KeyError{Key: w.key, Err: w.err}
	}
	if timeout = c.Timeout; timeout == 0 {
		timeout = defaultTimeout
	}
	return f, timeout, nil
}

// onlyWhole refuses filters that would hide how an alarm ends from a receiver that
// is shown how machines stand.
func (c *Config) onlyWhole(kind string) *wrong {
	for _, one := range []struct {
		key string
		set bool
	}{{"severity", c.Severity != ""}, {"states", len(c.States) > 0}, {"hours", c.Hours != ""}} {
		if one.set {
			return bad(one.key, "%s is shown how machines stand, from raised to cleared, and would never hear of the end: remove it, and filter there", kind)
		}
	}
	return nil
}

// receiver returns what the configuration names.
func (c *Config) receiver(r *Route) (receiver, error) {
	switch {
	case c.Kafka != nil:
		return newKafka(*c.Kafka, r)
	case c.Webhook != nil:
		return newWebhook(*c.Webhook, r), nil
	case c.Alertmanager != nil:
		return newAlertmanager(*c.Alertmanager, r), nil
	case c.MQTT != nil:
		return newMQTT(*c.MQTT, r), nil
	}
	return newSMTP(*c.SMTP, r), nil
}

// target says what the receiver is, without anything secret.
func (c *Config) target() string {
	switch {
	case c.Kafka != nil:
		return "Kafka, topic " + c.Kafka.Topic
	case c.Webhook != nil:
		return "a webhook at " + host(c.Webhook.URL)
	case c.Alertmanager != nil:
		return "Alertmanager at " + host(c.Alertmanager.URL)
	case c.MQTT != nil:
		return "MQTT at " + host(c.MQTT.Broker)
	}
	return "mail by way of " + c.SMTP.Server
}

// host returns the part of a URL that is no secret: webhooks have tokens in theirs.
func host(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "an address from a file"
	}
	return u.Scheme + "://" + u.Host
}

// checkURL reports a URL that cannot be meant. One that is used with a password or
// a token needs TLS, except on this machine.
func checkURL(text, plain, secure string, secret bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != plain && u.Scheme != secure {
		return fmt.Errorf("write a URL as in %s://%s.example", secure, map[string]string{"https": "receiver", "mqtts": "broker"}[secure])
	}
	if u.User != nil {
		return errors.New("a password does not belong in a URL: say from which file or environment variable it comes")
	}
	if secret && u.Scheme == plain && !loopback(u.Hostname()) {
		return fmt.Errorf("without TLS whoever listens reads the password: write %s://, or leave the password out", secure)
	}
	return nil
}

func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// checkLogin reports a login that is incomplete or cannot be read.
func checkLogin(user, file, env string) *wrong {
	switch {
	case user == "" && file+env == "":
		return nil
	case user == "":
		return bad("user", "a password needs a user")
	case (file == "") == (env == ""):
		return bad("user", "a user needs a password: name either `password_file` or `password_env`")
	}
	if _, err := (credential.Secret{File: file, Env: env}).Read(); err != nil {
		key := "password_file"
		if file == "" {
			key = "password_env"
		}
		return &wrong{key, err}
	}
	return nil
}

// checkFiles reports files of TLS that cannot be read.
func checkFiles(t *credential.TLS) *wrong {
	if _, err := t.Client(); err != nil {
		return &wrong{"tls", err}
	}
	return nil
}
