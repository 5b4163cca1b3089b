package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
)

// Token says where a page's token is. Without file and environment variable
// there is none.
type Token struct {
	File string `yaml:"file" placeholder:"FILE" help:"Holds the token with which the page takes commands."`
	Env  string `yaml:"env" placeholder:"NAME" help:"Environment variable that holds it instead."`
}

// minToken is the least length of a token: nobody guesses that many characters.
const minToken = 16

// Reader returns a function that reads the token, or nil if there is none. A file
// is read each time, so that it can be replaced in place; its path begins at the
// folder of the configuration file, if that is not empty. Reader reports a token
// that cannot be read, or that is too short.
func (t Token) Reader(configuration string) (func() (string, error), error) {
	if t.File == "" && t.Env == "" {
		return nil, nil
	}
	path := t.File
	if path != "" && configuration != "" {
		path = config.Beside(configuration, path)
	}
	read := func() (string, error) {
		token := os.Getenv(t.Env)
		if path != "" {
			b, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("token of the page: %w", err)
			}
			token = strings.TrimRight(string(b), "\r\n")
		}
		if len(token) < minToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", fmt.Errorf("token of the page: %s must hold at least %d characters of ASCII without blanks, for example what `openssl rand -hex 16` prints",
				cmp.Or(path, t.Env), minToken)
		}
		return token, nil
	}
	if _, err := read(); err != nil {
		return nil, err
	}
	return read, nil
}
