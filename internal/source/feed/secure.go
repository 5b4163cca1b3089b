package feed

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/flank-tcm/flank/internal/credential"
)

// TLS names the files of an encrypted connection. They are read again for every
// connection, so a certificate is renewed by replacing them.
type TLS struct {
	CAFile     string // certificates that may sign the other side's
	CertFile   string // this program's certificate
	KeyFile    string // its key
	ServerName string // name in the broker's certificate; empty: the host that is dialled
}

// Login is a user with a password, read for every connection and kept nowhere.
type Login struct {
	User         string
	PasswordFile string // a file with nothing else; line breaks at its end do not count
	PasswordEnv  string // or an environment variable
}

// Check reports files that are missing or cannot be used. A server needs a
// certificate.
func (t *TLS) Check(server bool) error {
	if server && t.CertFile == "" {
		return errors.New("feed: TLS: a server has a certificate: name `cert` and `key`")
	}
	_, err := t.config()
	return err
}

// config returns what both sides need: a server asks for certificates that CAFile
// vouches for.
func (t *TLS) config() (*tls.Config, error) {
	files := credential.TLS{CA: t.CAFile, Cert: t.CertFile, Key: t.KeyFile, ServerName: t.ServerName}
	cfg, err := files.Client()
	if err != nil {
		return nil, fmt.Errorf("feed: TLS: %w", err)
	}
	if cfg.RootCAs != nil {
		cfg.ClientCAs, cfg.ClientAuth = cfg.RootCAs, tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

// Check reports what cannot work, before anything is dialled.
func (l *Login) Check() error {
	if l.User == "" || (l.PasswordFile == "") == (l.PasswordEnv == "") {
		return errors.New("feed: a login needs `user`, and either `password_file` or `password_env`")
	}
	_, err := l.password()
	return err
}

func (l *Login) password() ([]byte, error) {
	text := os.Getenv(l.PasswordEnv)
	if l.PasswordFile != "" {
		b, err := os.ReadFile(l.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("feed: password of %s: %w", l.User, err)
		}
		text = strings.TrimRight(string(b), "\r\n")
	}
	if text == "" {
		return nil, fmt.Errorf("feed: password of %s: %s is empty", l.User, l.PasswordFile+l.PasswordEnv)
	}
	return []byte(text), nil
}
