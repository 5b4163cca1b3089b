package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// environmentPrefix begins the names of environment variables that hold keys of a configuration.
const environmentPrefix = "TCM_"

// environment puts values of environment variables into the struct that into points to, over what a file
// said. The variable of the key brokers below kafka is TCM_KAFKA_BROKERS. Its value is YAML, as behind the
// colon in a file; a list, or keys with values below a key, are written in brackets. Variables that no key has
// are left alone: other programs may know them. Every error names the variable.
func environment(into any, environ []string) error {
	paths, set := map[string][]string{}, map[string]string{}
	variables(reflect.TypeOf(into).Elem(), nil, func(name string, path []string) { paths[name] = path })
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok && paths[name] != nil {
			set[name] = value
		}
	}
	// A key comes before the keys below it, which may correct a part of it.
	for _, name := range slices.Sorted(maps.Keys(set)) {
		var text strings.Builder
		for _, key := range paths[name] {
			fmt.Fprintf(&text, "{%s: ", key)
		}
		text.WriteString(set[name] + strings.Repeat("}", len(paths[name])))
		if err := Decode([]byte(text.String()), "environment variable "+name, into); err != nil {
			return err
		}
	}
	return nil
}

// variables calls add with the name of the variable and the path of every key of t, which has some if it is a struct.
func variables(t reflect.Type, path []string, add func(name string, path []string)) {
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		key, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if rest == "inline" { // a map of the keys of another program has none
			variables(of, path, add)
		}
		if key == "" || key == "-" || !f.IsExported() {
			continue
		}
		at := append(slices.Clone(path), key)
		add(environmentPrefix+strings.ToUpper(strings.Join(at, "_")), at)
		variables(of, at, add)
	}
}

// Distinct reports two keys of the struct that into points to that would have one environment variable.
func Distinct(into any) (err error) {
	seen := map[string][]string{}
	variables(reflect.TypeOf(into).Elem(), nil, func(name string, path []string) {
		if seen[name] != nil && err == nil {
			err = fmt.Errorf("%s is the variable of %v and of %v", name, seen[name], path)
		}
		seen[name] = path
	})
	return err
}
