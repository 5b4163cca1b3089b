package credential

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

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

// Renewed returns what a server without client certificates needs. It reads the
// certificate again when one of its files has changed. If it cannot, as while one file is
// replaced and the other is not, it goes on with the certificate that it has and calls
// failed, once for each change.
func (t *TLS) Renewed(failed func(error)) (*tls.Config, error) {
	r := &renewed{files: *t, failed: failed}
	if _, err := r.certificate(nil); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: r.certificate}, nil
}

// renewed is a certificate that is read again when its files change.
type renewed struct {
	files  TLS
	failed func(error)

	mu   sync.Mutex
	have *tls.Certificate
	seen [2]fs.FileInfo // when the files were read last
}

func (r *renewed) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var now [2]fs.FileInfo
	for i, file := range []string{r.files.Cert, r.files.Key} {
		if info, err := os.Stat(file); err == nil {
			now[i] = info
		}
	}
	if r.have != nil && same(r.seen[0], now[0]) && same(r.seen[1], now[1]) {
		return r.have, nil
	}
	r.seen = now
	pair, err := r.files.Certificate()
	switch {
	case err == nil:
		r.have = &pair
	case r.have == nil:
		return nil, err
	default:
		r.failed(err)
	}
	return r.have, nil
}

// same reports whether a file is as it was. Either may be nil: the file was not there.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Certificate reads this program's certificate and its key.
func (t *TLS) Certificate() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err == nil {
		err = checkPrivate(t.Key, "private key")
	}
	if err != nil {
		return pair, fmt.Errorf("certificate %s with key %s: %w", t.Cert, t.Key, err)
	}
	return pair, nil
}
