// Package cli is what the commands have in common: flags, configuration files,
// logs and progress.
package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

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
	yamlUnknown = regexp.MustCompile(`line (\d+): field (\S+) not found in type \S+`)
	yamlLine    = regexp.MustCompile(`line (\d+): `)
	yamlType    = regexp.MustCompile(`cannot unmarshal !!(\w+) (.*) into (\S+)`)
)

// LoadYAML reads the configuration file at path into the struct that into
// points to, which holds the defaults. Unknown keys are errors. Every error
// names the file and, where there is one, line and key.
func LoadYAML(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err = dec.Decode(into)
	if err == nil || errors.Is(err, io.EOF) {
		return nil // an empty file means the defaults
	}
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	msg = strings.TrimPrefix(msg, "unmarshal errors:\n")
	msg = yamlUnknown.ReplaceAllString(msg, "line $1: unknown key `$2`: remove it or correct its spelling")
	msg = yamlType.ReplaceAllString(msg, "$2 cannot be read as $3")
	var lines []string
	for line := range strings.Lines(msg) {
		lines = append(lines, yamlLine.ReplaceAllString(strings.TrimSpace(line), path+":$1: "))
	}
	return errors.New(strings.Join(lines, "\n"))
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
