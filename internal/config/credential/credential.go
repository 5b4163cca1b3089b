// Package credential is the only place that reads passwords, tokens, keys and
// certificates.
//
// A [Secret] is a text that both sides know. A [Login] is a user with such a secret
// as the password. [TLS] names the files of encrypted connections. All of them are
// read again whenever they are needed and kept nowhere: an operator renews one by
// replacing its file, and no log line holds one.
//
// Every secret file is read the same way: each line is one secret, blanks around it
// do not count, and neither do empty lines.
package credential

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/config"
)

// Secret says where a secret is: in a file, or in an environment variable. The
// zero Secret says that there is none.
type Secret struct {
	File string `yaml:"file"`
	Env  string `yaml:"env"`
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// Resolve returns s with its path as seen from the folder of a configuration file.
func (s Secret) Resolve(file string) Secret {
	s.File = config.ResolvePath(file, s.File)
	return s
}

// Check reports a secret that cannot be read, as a config.KeyError. It accepts the
// zero Secret.
func (s Secret) Check() error {
	if s.IsZero() {
		return nil
	}
	if _, err := s.Lines(); err != nil {
		key := "file"
		if s.File == "" {
			key = "env"
		}
		return &config.KeyError{Key: key, Err: err}
	}
	return nil
}

// Lines returns the lines of the secret: a file may hold the old secret below the
// new one while both are good. It reports a secret that cannot be read or is empty.
// No error quotes the secret.
func (s Secret) Lines() ([]string, error) {
	if s.File != "" && s.Env != "" {
		return nil, fmt.Errorf("file %s and environment variable %s: name one of them", s.File, s.Env)
	}
	text := os.Getenv(s.Env)
	if s.File != "" {
		b, err := readPrivate(s.File, "secret")
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s is empty", cmp.Or(s.File, s.Env, "the secret"))
	}
	return lines, nil
}

// readPrivate reads a file that holds a secret, a key for example. It refuses one that everyone on this
// computer may read or change. A group may: that is how a secret is shared with a service.
func readPrivate(file, what string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err == nil {
		err = checkPrivate(file, what)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

func checkPrivate(file, what string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); hasModes && mode&0o007 != 0 {
		return fmt.Errorf("%s: %w %s (mode %04o): run `chmod o= %s`, and replace the %s if someone did", file, errOpen, what, mode, file, what)
	}
	return nil
}

var errOpen = errors.New("everyone on this computer may read or change this")

// hasModes reports whether the modes of files mean something here.
const hasModes = runtime.GOOS != "windows"

// Read returns a secret that is one line.
func (s Secret) Read() (string, error) {
	lines, err := s.Lines()
	if err != nil {
		return "", err
	}
	if len(lines) > 1 {
		return "", fmt.Errorf("%s holds %d lines: leave one", cmp.Or(s.File, s.Env), len(lines))
	}
	return lines[0], nil
}

// minToken is the least number of characters of a token, too many to guess.
const minToken = 16

// Token returns a secret that a person types or a program sends as it is: one line
// of at least 16 characters of ASCII without blanks.
func (s Secret) Token() (string, error) {
	lines, err := s.Lines()
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), errors.Is(err, errOpen):
		return "", err
	case err != nil, len(lines) > 1, len(lines[0]) < minToken, strings.ContainsFunc(lines[0], func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s must hold one line of at least %d characters of ASCII without blanks, for example what `openssl rand -hex 16` prints",
			cmp.Or(s.File, s.Env), minToken)
	}
	return lines[0], nil
}

// Login is a user with a password. The zero Login says that no one logs in.
type Login struct {
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password_file"` // see Secret
	PasswordEnv  string `yaml:"password_env"`  // or an environment variable
}

// IsZero reports whether there is no login.
func (l Login) IsZero() bool { return l == Login{} }

// Resolve returns l with its path as seen from the folder of a configuration file.
func (l Login) Resolve(file string) Login {
	l.PasswordFile = config.ResolvePath(file, l.PasswordFile)
	return l
}

// Check reports a login that is incomplete or whose password cannot be read, as a
// config.KeyError.
func (l Login) Check() error {
	switch {
	case l.User == "":
		return &config.KeyError{Key: "user", Err: errors.New("a password needs a user: name the user, or remove the password")}
	case (l.PasswordFile == "") == (l.PasswordEnv == ""):
		return &config.KeyError{Key: "user", Err: errors.New("a user needs a password: name either `password_file` or `password_env`")}
	}
	if _, err := l.Password(); err != nil {
		key := "password_file"
		if l.PasswordFile == "" {
			key = "password_env"
		}
		return &config.KeyError{Key: key, Err: err}
	}
	return nil
}

// Password reads the password. Its errors name the user.
func (l Login) Password() (string, error) {
	text, err := Secret{File: l.PasswordFile, Env: l.PasswordEnv}.Read()
	if err != nil {
		return "", fmt.Errorf("password of %s: %w", l.User, err)
	}
	return text, nil
}

// IsLocal reports whether a host is this machine, the only one to which a password
// may travel without TLS.
func IsLocal(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// CheckURL reports a URL that cannot be used. With a password or a token it needs TLS,
// except on this machine. The address of a broker of MQTT has no path.
func CheckURL(text, plain, secure string, secret bool) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains([]string{plain, secure}, u.Scheme) || plain == "mqtt" && u.Path != "" {
		return fmt.Errorf("write a URL as in %s://%s.example", secure, map[string]string{"https": "receiver", "mqtts": "broker"}[secure])
	}
	if u.User != nil {
		return errors.New("a password does not belong in a URL: say from which file or environment variable it comes")
	}
	if secret && u.Scheme == plain && !IsLocal(u.Hostname()) {
		return fmt.Errorf("without TLS anyone on the network can read the password: write %s://, or leave the password out", secure)
	}
	return nil
}
