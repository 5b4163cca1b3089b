package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// KeyError says why the value of a key cannot be used, where that takes more
// than its type to see.
type KeyError struct {
	Key string // from the top, as "network.hidden" or, within a list, "classes[0].name"
	Err error  // with the remedy
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("%s: %v", strings.ReplaceAll(e.Key, ".", ": "), e.Err)
}

func (e *KeyError) Unwrap() error { return e.Err }

// Wrong returns an error if something is wrong. cmp.Or takes the first of several: all that they
// look at is looked at, also after the first error.
func Wrong(is bool, format string, args ...any) error {
	if !is {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// Under returns an error about a value below the key entry. A KeyError of err then
// begins at entry. Under of nil is nil.
func Under(entry string, err error) error {
	var key *KeyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &key) && key.Key != "":
		return &KeyError{Key: entry + "." + key.Key, Err: key.Err}
	case key != nil:
		err = key.Err
	}
	return &KeyError{Key: entry, Err: err}
}

// Locate puts before an error the file that it is about and, if it is a
// KeyError, the line of the key, or of the nearest one above it that is there.
func Locate(path string, err error) error {
	var key *KeyError
	if errors.As(err, &key) {
		lines := Lines(path)
		for k := key.Key; k != ""; k = k[:max(0, strings.LastIndexAny(k, ".["))] {
			if line, ok := lines[k]; ok {
				return fmt.Errorf("%s:%d: %w", path, line, err)
			}
		}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Lines returns the line of every key in the file at path, in the spelling of
// KeyError. It is empty if the file cannot be read.
func Lines(path string) map[string]int {
	text, err := readFile(path)
	if err != nil {
		return make(map[string]int)
	}
	return LinesOf(text)
}

// LinesOf returns the line of every key in a text, as Lines does.
func LinesOf(text []byte) map[string]int {
	lines := make(map[string]int)
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil {
		return lines
	}
	var walk func(key string, n *yaml.Node)
	walk = func(key string, n *yaml.Node) {
		switch n.Kind {
		case yaml.DocumentNode:
			walk(key, n.Content[0])
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				name := n.Content[i].Value
				if key != "" {
					name = key + "." + name
				}
				lines[name] = n.Content[i].Line
				walk(name, n.Content[i+1])
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				name := fmt.Sprintf("%s[%d]", key, i)
				lines[name] = c.Line
				walk(name, c)
			}
		}
	}
	walk("", &doc)
	return lines
}
