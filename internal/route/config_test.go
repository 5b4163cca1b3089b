package route

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/flank-tcm/flank/internal/config"
)

// Every field of Receivers is a receiver that a configuration can name, and a route
// with an empty one is refused with an error about its key.
func TestEveryReceiverIsRegistered(t *testing.T) {
	fields := reflect.TypeFor[Receivers]()
	var want []string
	for i := range fields.NumField() {
		field := fields.Field(i)
		if !field.Type.Implements(reflect.TypeFor[receiverConfig]()) {
			t.Fatalf("%s is not a receiver", field.Name)
		}
		key := field.Tag.Get("yaml")
		want = append(want, key)
		var c Config
		if err := config.Decode([]byte("name: r\n"+key+": {}\n"), "monitor.yaml", &c); err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		keys, named := c.list()
		if len(named) != 1 || named[0].key != key || named[0].target() == "" || !slices.Contains(keys, key) {
			t.Errorf("%s: %q, %+v", key, keys, named)
		}
		_, err := New(c, Options{})
		if got, ok := keyOf(err); !ok || got[:len(key)+1] != key+"." {
			t.Errorf("an empty %s: %v, want an error about its keys", key, err)
		}
	}
	if keys, named := new(Receivers).list(); !slices.Equal(keys, want) || len(named) != 0 {
		t.Errorf("%q, %+v, want %q", keys, named, want)
	}
}

// Paths of every receiver begin at the folder of the configuration.
func TestResolve(t *testing.T) {
	const text = `
- {name: a, webhook: {url_file: u, secret: {file: s}, token: {file: t}, tls: {ca: c, cert: d, key: e}}}
- {name: b, alertmanager: {token: {file: t}, password_file: p, tls: {ca: c}}}
- {name: c, mqtt: {password_file: p, tls: {ca: c}}}
- {name: d, smtp: {password_file: p, tls: {ca: c}}}
- {name: e, opcua: {password_file: p, tls: {ca: c, cert: d, key: e}}}
`
	const want = `
- {name: a, webhook: {url_file: plant/u, secret: {file: plant/s}, token: {file: plant/t}, tls: {ca: plant/c, cert: plant/d, key: plant/e}}}
- {name: b, alertmanager: {token: {file: plant/t}, password_file: plant/p, tls: {ca: plant/c}}}
- {name: c, mqtt: {password_file: plant/p, tls: {ca: plant/c}}}
- {name: d, smtp: {password_file: plant/p, tls: {ca: plant/c}}}
- {name: e, opcua: {password_file: plant/p, tls: {ca: plant/c, cert: plant/d, key: plant/e}}}
`
	var got, wanted []Config
	if err := config.Decode([]byte(text), "monitor.yaml", &got); err != nil {
		t.Fatal(err)
	}
	if err := config.Decode([]byte(want), "monitor.yaml", &wanted); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Resolve("plant/monitor.yaml")
		if !reflect.DeepEqual(got[i], wanted[i]) {
			t.Errorf("%+v, want %+v", got[i], wanted[i])
		}
	}
}

// keyOf returns the key of a config.KeyError.
func keyOf(err error) (string, bool) {
	var key *config.KeyError
	if !errors.As(err, &key) {
		return "", false
	}
	return key.Key, true
}
