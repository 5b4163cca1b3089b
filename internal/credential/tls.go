package credential

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/flank-tcm/flank/internal/config"
)

// TLS names the files of encrypted connections. An empty CA means the certificates
// of the system. An empty Cert means that this program shows no certificate.
type TLS struct {
	CA         string `yaml:"ca"`          // certificates that may sign the certificate of the other side
	Cert       string `yaml:"cert"`        // this program's certificate
	Key        string `yaml:"key"`         // its key
	ServerName string `yaml:"server_name"` // name in the server's certificate; empty: the host that is dialled
}

// Resolve returns t with its paths as seen from the folder of a configuration file,
// nil if t is nil.
func (t *TLS) Resolve(file string) *TLS {
	if t == nil {
		return nil
	}
	return &TLS{
		CA: config.ResolvePath(file, t.CA), Cert: config.ResolvePath(file, t.Cert), Key: config.ResolvePath(file, t.Key), ServerName: t.ServerName,
	}
}

// Client reads the files for the side that dials. It takes TLS 1.2 and newer, which
// is what servers of a plant speak. A nil t is a TLS without files.
func (t *TLS) Client() (*tls.Config, error) {
	if t == nil {
		t = new(TLS)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate: name `cert` and `key`, or neither")
	}
	if t.Cert != "" {
		pair, err := t.Certificate()
		if err != nil {
			return nil, err
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

// Server reads the files for the side that listens. It needs a certificate. With a CA
// only clients whose certificate the CA signed may connect.
func (t *TLS) Server() (*tls.Config, error) {
	if t.Cert == "" {
		return nil, errors.New("a server has a certificate: name `cert` and `key`")
	}
	cfg, err := t.Client()
	if err != nil {
		return nil, err
	}
	if cfg.RootCAs != nil {
		cfg.ClientCAs, cfg.ClientAuth, cfg.RootCAs = cfg.RootCAs, tls.RequireAndVerifyClientCert, nil
	}
	return cfg, nil
}

// Certificate reads this program's certificate and its key.
func (t *TLS) Certificate() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return pair, fmt.Errorf("certificate %s with key %s: %w", t.Cert, t.Key, err)
	}
	return pair, nil
}
