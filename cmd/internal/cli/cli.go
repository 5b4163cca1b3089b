// Package cli is what the commands have in common: flags, configuration files,
// logs and progress.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"
)

// errHelp stops Parse after help was printed.
var errHelp = errors.New("help")

// Parse reads args into the struct that flags points to, as kong does. It
// returns nil, nil after --help, which is printed to stdout.
func Parse(flags any, name, description string, args []string, stdout, stderr io.Writer) (ctx *kong.Context, err error) {
	parser, err := kong.New(flags,
		kong.Name(name), kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(int) { panic(errHelp) }))
	if err != nil {
		panic("cli: " + err.Error())
	}
	defer func() {
		if r := recover(); r != nil {
			if r != errHelp { //nolint:errorlint // our own panic, by identity
				panic(r)
			}
			ctx, err = nil, nil
		}
	}()
	ctx, err = parser.Parse(args)
	if err != nil {
		return nil, fmt.Errorf("%w (see %s --help)", err, name)
	}
	return ctx, nil
}

var (
	yamlLine    = regexp.MustCompile(`^line (\d+): (.*)$`)
	yamlUnknown = regexp.MustCompile(`^field (\S+) not found in type .+$`)
	yamlTwice   = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
	yamlType    = regexp.MustCompile(`^cannot unmarshal .* into (.+)$`)
)

// yamlWants says in words what a field of a Go type takes.
var yamlWants = map[string]string{
	"int": "a whole number", "uint64": "a whole number of 0 or more", "float64": "a number", "bool": "true or false",
	"time.Duration": "a duration, such as 500ms or 1s", "string": "text", "[]int": "a list of whole numbers", "[]string": "a list of words",
}

// LoadYAML reads the configuration file at path into the struct that into
// points to, which holds the defaults. Unknown keys are errors. Every error
// names the file and, where there is one, line and key.
func LoadYAML(path string, into any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("configuration: %w: name another file, or begin with one of the examples", err)
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err = dec.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil // an empty file means the defaults
	}
	if err == nil {
		if dec.Decode(new(any)) != io.EOF { //nolint:errorlint // yaml returns it as it is
			return fmt.Errorf("%s: holds more than one document: remove what follows the line `---`", path)
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
	for msg := range strings.Lines(msgs) {
		lines = append(lines, yamlError(path, strings.Split(string(text), "\n"), strings.TrimSpace(msg)))
	}
	return errors.New(strings.Join(lines, "\n"))
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

// Beside returns path, if it is relative, as seen from the folder of file.
func Beside(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Logger returns the program's logger: lines for people on a terminal, JSON
// elsewhere.
func Logger(w io.Writer, level zerolog.Level) zerolog.Logger {
	if IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05"}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

// Version returns the name and version of the program's module.
func Version() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return "flank " + version
}

// Await calls ready until it returns nil, for as long as patience lasts, and
// returns its last error.
func Await(ctx context.Context, patience time.Duration, ready func(context.Context) error) error {
	for deadline := time.Now().Add(patience); ; {
		err := ready(ctx)
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// OnRetry returns a callback for bus.Config that logs an outage of the broker,
// what it means, and its end.
func OnRetry(log zerolog.Logger, means string) func(error, time.Duration) {
	return func(err error, since time.Duration) {
		if err == nil {
			log.Info().Dur("after_ms", since).Msg("the broker answers again")
			return
		}
		log.Warn().Err(err).Dur("for_ms", since).Msg(means)
	}
}
