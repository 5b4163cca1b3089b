// Package config reads configuration files: YAML in which an unknown key is an
// error, and errors that name file, line and key. It writes files that are there
// whole or not at all, also when the program or the machine dies meanwhile.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	yamlLine    = regexp.MustCompile(`^line (\d+): (.*)$`)
	yamlUnknown = regexp.MustCompile(`^field (\S+) not found in type .+$`)
	yamlTwice   = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
	yamlType    = regexp.MustCompile(`^cannot unmarshal .* into (.+)$`)
)

// yamlWants says in words what a field of a Go type takes.
var yamlWants = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of 0 or more", "float64": "a number", "bool": "true or false",
	"time.Duration": "a duration, such as 500ms or 1s", "string": "text", "[]int": "a list of whole numbers", "[]string": "a list of words",
}

// Load reads the file at path into the struct that into points to, see Decode, and then the
// environment, see Environment.
func Load(path string, into any) error {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("configuration: %w: name another file, or begin with one of the examples", err)
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := Decode(text, path, into); err != nil {
		return err
	}
	return environment(into, os.Environ())
}

// maxFile is how many bytes a configuration may have: the parser takes some hundred times as much memory.
const maxFile = 1 << 20

var errFile = fmt.Errorf("has more than %d MiB: no configuration of ours is so long, name another file", maxFile>>20)

// readFile reads a file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads a text of at most maxFile bytes for Decode; path names it in errors.
func Read(in io.Reader, path string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: %w", path, errFile)
	}
	return text, err
}

// Bounds on what the parser is given. It compares every key of a mapping with every other one.
const (
	mostKeys   = 5_000   // of one mapping; a list may have twice as many
	mostNodes  = 100_000 // of a file
	mostErrors = 20      // that are reported together
)

// checkSize reports a text with more keys and values than a configuration can have. It counts them.
func checkSize(n *yaml.Node, nodes *int) error {
	if *nodes++; *nodes > mostNodes {
		return fmt.Errorf("has more than %d keys and values: no configuration of ours is so large, name another file", mostNodes)
	}
	if len(n.Content) > 2*mostKeys {
		return fmt.Errorf("line %d has more than %d keys or values: no configuration of ours is so large, name another file", n.Line, mostKeys)
	}
	for _, c := range n.Content {
		if err := checkSize(c, nodes); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads text into the struct that into points to, which holds the
// defaults; path names it in errors. Unknown keys are errors. Every error names
// the file and, where there is one, line and key.
func Decode(text []byte, path string, into any) error {
	if len(text) > maxFile {
		return fmt.Errorf("%s: %w", path, errFile)
	}
	var doc yaml.Node
	_ = yaml.Unmarshal(text, &doc) // nothing if it is not YAML, which is reported below
	if err := checkSize(&doc, new(int)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil // an empty file means the defaults
	}
	if err == nil {
		if dec.Decode(new(any)) != io.EOF {
			return fmt.Errorf("%s: holds more than one document: remove what follows the line `---`", path)
		}
		if line := fraction(&doc, reflect.TypeOf(into)); line > 0 {
			return errors.New(yamlError(path, strings.Split(string(text), "\n"), fmt.Sprintf("line %d: cannot unmarshal !!float into int", line)))
		}
		return nil
	}
	msgs, typed := strings.CutPrefix(err.Error(), "yaml: unmarshal errors:\n")
	if !typed {
		msg := strings.TrimPrefix(err.Error(), "yaml: ")
		at := path + ": "
		if m := yamlLine.FindStringSubmatch(msg); m != nil {
			at, msg = path+":"+m[1]+": ", m[2]
		}
		return fmt.Errorf("%sis not YAML: %s: check colons, quotes and brackets, and indent with blanks, not tabs", at, msg)
	}
	var lines []string
	rows := strings.Split(string(text), "\n")
	for msg := range strings.Lines(msgs) {
		if len(lines) == mostErrors {
			lines = append(lines, path+": and more: correct these first")
			break
		}
		lines = append(lines, yamlError(path, rows, strings.TrimSpace(msg)))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// fraction returns the first line where a whole number is asked for and the text has a fraction, which package yaml would cut off; 0 if there is none.
func fraction(n *yaml.Node, t reflect.Type) int {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()) {
		return 0 // it reads its own text
	}
	if v, err := strconv.ParseFloat(n.Value, 64); err == nil && v != math.Trunc(v) && reflect.Int <= t.Kind() && t.Kind() <= reflect.Uint64 && n.ShortTag() == "!!float" {
		return n.Line
	}
	for part, of := range parts(n, t) {
		if line := fraction(part, of); line > 0 {
			return line
		}
	}
	return 0
}

// parts returns what a text and the type that it is read into have below them.
func parts(n *yaml.Node, t reflect.Type) iter.Seq2[*yaml.Node, reflect.Type] {
	return func(yield func(*yaml.Node, reflect.Type) bool) {
		for k, c := range n.Content {
			var of reflect.Type
			switch {
			case n.Kind == yaml.DocumentNode:
				of = t
			case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice, n.Kind == yaml.MappingNode && t.Kind() == reflect.Map && k%2 == 1:
				of = t.Elem()
			case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct && k%2 == 1:
				if of = fieldOf(t, n.Content[k-1].Value); of == nil {
					continue
				}
			default:
				continue
			}
			if !yield(c, of) {
				return
			}
		}
	}
}

// fieldOf returns the type of the field that a key is read into; nil if there is none.
func fieldOf(t reflect.Type, key string) reflect.Type {
	for _, f := range reflect.VisibleFields(t) {
		name, more, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == cmp.Or(name, strings.ToLower(f.Name)) {
			return f.Type
		}
		if more == "inline" && f.Type.Kind() == reflect.Struct {
			if in := fieldOf(f.Type, key); in != nil {
				return in
			}
		}
	}
	return nil
}

// yamlError puts an error of package yaml about one line of a file in words.
func yamlError(path string, text []string, msg string) string {
	m := yamlLine.FindStringSubmatch(msg)
	if m == nil {
		return path + ": " + msg
	}
	at, msg := path+":"+m[1]+": ", m[2]
	if m := yamlUnknown.FindStringSubmatch(msg); m != nil {
		return at + fmt.Sprintf("unknown key `%s`: remove it or correct its spelling", m[1])
	}
	if m := yamlTwice.FindStringSubmatch(msg); m != nil {
		return at + fmt.Sprintf("key `%s` is already on line %s: remove one of them", m[1], m[2])
	}
	t := yamlType.FindStringSubmatch(msg)
	n, err := strconv.Atoi(m[1])
	if t == nil || err != nil || n > len(text) {
		return at + msg
	}
	wants, ok := yamlWants[t[1]]
	if !ok {
		wants = "keys with values below it: see the examples"
	}
	return at + fmt.Sprintf("`%s`: must be %s", strings.TrimSpace(text[n-1]), wants)
}

// ResolvePath returns a path that a configuration file names: a relative one begins
// at the folder of the file. An empty path stays empty.
func ResolvePath(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
