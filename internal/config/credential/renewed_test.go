package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// issue writes a certificate for a name with its key.
func issue(t *testing.T, name, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if file == "" {
			continue
		}
		// As tools replace files: another one under the name.
		if err := os.WriteFile(file+".new", pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate that is replaced is shown from the next connection on. While it does not
// fit its key, or is away, the old one is shown, and that is reported once.
func TestRenewed(t *testing.T) {
	dir := t.TempDir()
	files := TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	if _, err := files.Renewed(nil); err == nil {
		t.Error("no files, no error")
	}
	issue(t, "one.example", files.Cert, files.Key)
	failed := 0
	cfg, err := files.Renewed(func(err error) { failed++ })
	if err != nil || cfg.MinVersion != tls.VersionTLS12 {
		t.Fatalf("%+v, %v", cfg, err)
	}
	shows := func(name string, failures int) {
		t.Helper()
		for range 3 {
			c, err := cfg.GetCertificate(&tls.ClientHelloInfo{ServerName: name})
			if err != nil || c.Leaf.VerifyHostname(name) != nil || failed != failures {
				t.Fatalf("%v, %v, %d failures, want %s and %d", c.Leaf.DNSNames, err, failed, name, failures)
			}
		}
	}
	shows("one.example", 0)
	issue(t, "two.example", files.Cert, files.Key)
	shows("two.example", 0)
	issue(t, "three.example", files.Cert, "") // its key is not there yet
	shows("two.example", 1)
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	shows("two.example", 2)
	issue(t, "four.example", files.Cert, files.Key)
	shows("four.example", 2)
}
