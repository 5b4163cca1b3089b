// Package reference lists the keys of a configuration from the Go value that it is read
// into, for tests: they hold the pages of docs/reference to the code.
package reference

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/config"
)

// configKey is one key of a configuration.
type configKey struct {
	Name    string // from the top, as "source.kind" or, within a list, "routes[].name"
	Type    string // what it takes, in words
	Default string // empty: none
}

// Keys returns the keys of the configuration that defaults holds, in the order of its
// fields. Keys for which stop reports true are not descended into; stop may be nil.
func Keys(defaults any, stop func(key string) bool) []configKey {
	var all []configKey
	w := walker{stop: stop, add: func(k configKey) { all = append(all, k) }}
	w.walk("", reflect.ValueOf(defaults))
	return all
}

type walker struct {
	stop func(string) bool
	add  func(configKey)
}

func (w walker) walk(prefix string, of reflect.Value) {
	for i := range of.NumField() {
		f, v := of.Type().Field(i), of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Tag.Get("yaml") == ",inline":
			w.walk(prefix, v)
		case name == "-", !f.IsExported():
		default:
			w.key(prefix+name, v)
		}
	}
}

func (w walker) key(name string, v reflect.Value) {
	t := v.Type()
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		t = t.Elem()
		if v = v.Elem(); !v.IsValid() {
			v = reflect.Zero(t)
		}
	}
	list := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
	switch {
	case (list || t.Kind() == reflect.Struct) && w.stop != nil && w.stop(name):
		what := "keys"
		if list {
			what = "list"
		}
		w.add(configKey{Name: name, Type: what})
	case t.Kind() == reflect.Struct:
		w.walk(name+".", v)
	case list:
		w.walk(name+"[].", reflect.Zero(t.Elem()))
	default:
		w.add(configKey{name, words(t), value(v)})
	}
}

// words says what a value of a type is written as.
func words(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t.Name() == "Bytes":
		return "amount of data"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64, reflect.Float32:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "names with values"
	case reflect.Pointer, reflect.Struct:
		panic("reference: type " + t.String())
	}
	return "whole number"
}

// value returns a default as it is written in a configuration.
func value(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil(), (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0, v.Kind() == reflect.String && v.Len() == 0:
		return ""
	case v.Type() == reflect.TypeFor[time.Duration]():
		return config.Duration(v.Interface().(time.Duration))
	case v.Kind() == reflect.Slice:
		return strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ", ")
	}
	return fmt.Sprint(v.Interface())
}

// Table returns a table of the keys of a configuration, with a sentence for each. The
// sentences are by key. "….tls.ca" is a sentence for every key that ends so and has none
// of its own: they are one line, which says what … stands for. A sentence that begins
// with "default: " and a full stop says the default in words where the value does not. A
// key without a default has its type there. A list or a group of keys that has a sentence
// is one line. Table reports keys without a sentence, and sentences without a key.
func Table(t testing.TB, defaults any, sentences map[string]string) string {
	t.Helper()
	var lines []configKey
	above := make(map[string][]string) // by the name of a line: what its … stands for
	for _, k := range Keys(defaults, func(key string) bool { _, ok := sentences[key]; return ok }) {
		key := k.Name
		for _, ok := sentences[k.Name]; !ok; _, ok = sentences[k.Name] {
			_, rest, more := strings.Cut(strings.TrimPrefix(k.Name, "…."), ".")
			if k.Name = "…." + rest; !more {
				t.Errorf("key %s has no sentence", key)
				break
			}
		}
		if above[k.Name] == nil {
			lines = append(lines, k)
		}
		above[k.Name] = append(above[k.Name], strings.TrimSuffix(key, strings.TrimPrefix(k.Name, "…")))
	}
	var b strings.Builder
	b.WriteString("| key | default, or what it takes | |\n|---|---|---|\n")
	for _, k := range lines {
		s, shown := sentences[k.Name], k.Type
		if k.Default != "" {
			shown = "`" + k.Default + "`"
		}
		if said, ok := strings.CutPrefix(s, "default: "); ok {
			shown, s, _ = strings.Cut(said, ". ")
		}
		if strings.HasPrefix(k.Name, "…") {
			s += " For `" + strings.Join(above[k.Name], "`, `") + "`."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, shown, s)
	}
	for key := range sentences {
		if above[key] == nil {
			t.Errorf("there is a sentence for %s, and no such key", key)
		}
	}
	return b.String()
}
