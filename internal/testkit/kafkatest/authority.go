package kafkatest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// authority issues certificates.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Certificate is a certificate with its key, both in PEM.
type Certificate struct{ Cert, Key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kafkatest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{pem: block("CERTIFICATE", der), cert: cert, key: key}, err
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// issue returns a certificate for loopback, for servers and clients.
func (a *authority) issue(name string, notAfter time.Time) (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: notAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Certificate{}, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	return Certificate{block("CERTIFICATE", der), block("PRIVATE KEY", text)}, err
}

// clientConfig returns the TLS settings of a client with cert.
func (a *authority) clientConfig(cert Certificate) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(cert.Cert, cert.Key)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// CAFile returns the path of the certificate that signed the broker's.
func (b *Broker) CAFile() string { return filepath.Join(b.dir, "ca.pem") }

// Issue returns a certificate that the broker trusts, for the principal name.
func (b *Broker) Issue(t testing.TB, name string, notAfter time.Time) Certificate {
	t.Helper()
	c, err := b.authority.issue(name, notAfter)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// WriteFiles writes the certificate and its key as name.crt and name.key in dir,
// each in one step.
func (c Certificate) WriteFiles(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for path, text := range map[string][]byte{cert: c.Cert, key: c.Key} {
		if err := os.WriteFile(path+".tmp", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// User creates a user who may log in with the password, or changes it.
func (b *Broker) User(t testing.TB, name, password string) {
	t.Helper()
	salt := make([]byte, 16)
	rand.Read(salt)
	const iterations = 4096
	salted, err := pbkdf2.Key(sha512.New, password, salt, iterations, sha512.Size)
	if err != nil {
		t.Fatal(err)
	}
	b.admin(t, func(ctx context.Context, kc *kafka.Client) error {
		res, err := kc.AlterUserScramCredentials(ctx, &kafka.AlterUserScramCredentialsRequest{
			Upsertions: []kafka.UserScramCredentialsUpsertion{{
				Name: name, Mechanism: kafka.ScramMechanismSha512, Iterations: iterations, Salt: salt, SaltedPassword: salted,
			}},
		})
		if err != nil {
			return err
		}
		for _, r := range res.Results {
			if r.Error != nil {
				return r.Error
			}
		}
		return nil
	})
	b.admin(t, func(ctx context.Context, kc *kafka.Client) error {
		for { // the broker lets the user in a moment after it has said that it does
			res, err := kc.DescribeUserScramCredentials(ctx, &kafka.DescribeUserScramCredentialsRequest{Users: []kafka.UserScramCredentialsUser{{Name: name}}})
			if err != nil || len(res.Results) > 0 && res.Results[0].Error == nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// Grant lets principal do what the entries say; their principal is filled in.
func (b *Broker) Grant(t testing.TB, principal string, entries ...kafka.ACLEntry) {
	t.Helper()
	for i := range entries {
		entries[i].Principal, entries[i].Host, entries[i].PermissionType = "User:"+principal, "*", kafka.ACLPermissionTypeAllow
	}
	b.admin(t, func(ctx context.Context, kc *kafka.Client) error {
		res, err := kc.CreateACLs(ctx, &kafka.CreateACLsRequest{ACLs: entries})
		if err != nil {
			return err
		}
		for _, err := range res.Errors {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *Broker) admin(t testing.TB, f func(context.Context, *kafka.Client) error) {
	t.Helper()
	kc, done, err := b.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = f(ctx, kc)
	for ctx.Err() == nil && errors.Is(err, kafka.BrokerNotAvailable) { // a busy controller does not know its only broker for a moment
		time.Sleep(200 * time.Millisecond)
		err = f(ctx, kc)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Stranger returns a certificate from an authority that the broker does not know.
func Stranger() (Certificate, error) {
	a, err := newAuthority()
	if err != nil {
		return Certificate{}, err
	}
	return a.issue("ingest", time.Now().Add(time.Hour))
}
