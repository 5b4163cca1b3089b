package route

import (
	"reflect"
	"testing"

	"github.com/flank-tcm/flank/internal/config/credential"
)

// A configuration with resolved paths leaves the one that it was copied from as it was: a program compares that
// with the file when it is asked to read it again.
func TestResolveLeavesCopies(t *testing.T) {
	read := func() []Config {
		return []Config{
			{Name: "kafka", Receivers: Receivers{Kafka: &kafkaConfig{Topic: "t"}}},
			{Name: "webhook", Receivers: Receivers{Webhook: &Webhook{URL: "https://a", Secret: credential.Secret{File: "secret"}}}},
			{Name: "alertmanager", Receivers: Receivers{Alertmanager: &alertmanagerConfig{Token: credential.Secret{File: "token"}}}},
			{Name: "mqtt", Receivers: Receivers{MQTT: &mqttConfig{Login: credential.Login{PasswordFile: "password"}}}},
			{Name: "smtp", Receivers: Receivers{SMTP: &smtpConfig{Login: credential.Login{PasswordFile: "password"}}}},
		}
	}
	all, want := read(), read()
	for i, c := range all {
		c.Resolve("/etc/flank/monitor.yaml")
		if reflect.DeepEqual(c, want[i]) {
			t.Errorf("%s: no path was resolved", c.Name)
		}
		if !reflect.DeepEqual(all[i], want[i]) {
			t.Errorf("%s: the configuration itself has changed", c.Name)
		}
		if again := c; i == 1 && again.Webhook.Secret.File != "/etc/flank/secret" {
			t.Errorf("secret %s", again.Webhook.Secret.File)
		}
	}
}
