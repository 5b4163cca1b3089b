package credential

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Blocks of PEM files, as OpenSSL names them.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// NewSigningKey makes a key for signing (Ed25519) from random bytes. It writes the private
// key to a file that only its owner may read, and the public key to another one. Neither
// file may be there before.
func NewSigningKey(random io.Reader, private, public string) (ed25519.PublicKey, error) {
	pub, priv, err := ed25519.GenerateKey(random)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, err
	}
	open, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, err
	}
	for _, file := range []string{private, public} {
		if _, err := os.Lstat(file); err == nil {
			return nil, fmt.Errorf("%s is there already, and is not overwritten: a lost private key cannot be made again; name another place", file)
		}
	}
	if err := writeKey(private, 0o600, privateBlock, secret); err != nil {
		return nil, err
	}
	return pub, writeKey(public, 0o644, publicBlock, open)
}

// writeKey writes a new PEM file.
func writeKey(file string, mode fs.FileMode, block string, der []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}))
	return errors.Join(err, f.Sync(), f.Close())
}

// ReadSigningKey reads a private key for signing. It refuses a file that others may read.
// No error quotes the file.
func ReadSigningKey(file string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); hasModes && mode&0o077 != 0 {
		return nil, fmt.Errorf("%s: others may read this private key (mode %04o): run `chmod 600 %s`, and make a new key if they did", file, mode, file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, _ := pem.Decode(b)
	if p != nil && p.Type == publicBlock {
		return nil, fmt.Errorf("%s holds a public key: name the private one", file)
	}
	if p != nil && p.Type == privateBlock {
		key, _ := x509.ParsePKCS8PrivateKey(p.Bytes) // nil if it cannot be parsed
		if private, ok := key.(ed25519.PrivateKey); ok {
			return private, nil
		}
	}
	return nil, fmt.Errorf("%s holds no private key for signing (Ed25519, PEM): make one with `trainer keys new`", file)
}

// ReadPublicKeys reads a file with one or more public keys for checking signatures.
func ReadPublicKeys(file string) ([]ed25519.PublicKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var keys []ed25519.PublicKey
	for {
		p, rest := pem.Decode(b)
		if p == nil {
			break
		}
		if b = rest; p.Type == privateBlock {
			return nil, fmt.Errorf("%s holds a private key, which belongs only where models are signed: name the public one", file)
		}
		key, err := x509.ParsePKIXPublicKey(p.Bytes)
		public, ok := key.(ed25519.PublicKey)
		if err != nil || !ok || p.Type != publicBlock {
			return nil, fmt.Errorf("%s: block %d is not a public key for signatures (Ed25519): copy the .pub file that `trainer keys new` wrote", file, len(keys)+1)
		}
		keys = append(keys, public)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no public key (Ed25519, PEM): copy the .pub file that `trainer keys new` wrote", file)
	}
	return keys, nil
}
