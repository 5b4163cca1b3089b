// Package credential reads what a program proves itself with to others: a [Secret]
// is a word that both sides know, [TLS] are the files of encrypted connections.
// Both are read again whenever they are needed and kept nowhere, so that they are
// renewed by replacing a file, and no log line holds one.
package credential

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret says where a secret is: in a file, or in an environment variable. The
// zero Secret is none.
type Secret struct {
	File string `yaml:"file"`
	Env  string `yaml:"env"`
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// Lines returns the lines of the secret that are not empty, without blanks around
// them: a file may hold the old secret below the new one while both are good. It
// reports a secret that cannot be read or is empty, and never what it holds.
func (s Secret) Lines() ([]string, error) {
	if s.File != "" && s.Env != "" {
		return nil, fmt.Errorf("file %s and environment variable %s: name one of them", s.File, s.Env)
	}
	text := os.Getenv(s.Env)
	if s.File != "" {
		b, err := os.ReadFile(s.File)
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

// TLS names the files of encrypted connections to a server. Empty names are
// nothing: the certificates of the system, no certificate of this program's.
type TLS struct {
	CA         string `yaml:"ca"`          // certificates that may sign the server's
	Cert       string `yaml:"cert"`        // this program's certificate
	Key        string `yaml:"key"`         // its key
	ServerName string `yaml:"server_name"` // name in the server's certificate; empty: the host that is dialled
}

// Client reads the files. It takes TLS 1.2 and newer, which is what servers of a
// plant speak. A nil t is a TLS without files.
func (t *TLS) Client() (*tls.Config, error) {
	if t == nil {
		t = new(TLS)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate: name `cert` and `key`, or neither")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", t.Cert, t.Key, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("certificates to trust: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", t.CA)
		}
	}
	return cfg, nil
}
