package deploy

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/plain"
)

// Headers of a signed record.
const (
	headerKeyID     = "key_id"
	headerSignature = "signature"
)

// signDomain begins the bytes that are signed, so that a signature is good for nothing else.
const signDomain = "tcm.models.v1 record\x00"

// signedBytes returns the bytes that a signature is over: of the record's key too, so that
// a record cannot be moved to another key.
func signedBytes(key string, value []byte) []byte {
	b := append([]byte(signDomain), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[len(signDomain):], uint32(len(key)))
	return append(append(b, key...), value...)
}

// KeyID names a public key: 16 hexadecimal digits of its SHA-256.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// signer signs records. The zero one leaves them unsigned.
type signer struct{ private ed25519.PrivateKey }

// NewSigner returns what signs with a private key.
func NewSigner(private ed25519.PrivateKey) signer { return signer{private} }

// LoadSigner reads a private key as `trainer keys new` writes it.
func LoadSigner(file string) (signer, error) {
	private, err := credential.ReadSigningKey(file)
	return signer{private}, err
}

// Public returns the public key, or nil for the zero one.
func (s signer) Public() ed25519.PublicKey {
	if s.private == nil {
		return nil
	}
	return s.private.Public().(ed25519.PublicKey)
}

// sign returns the headers of a signature of a record.
func (s signer) sign(key string, value []byte) []bus.Header {
	if s.private == nil {
		return nil
	}
	sig := ed25519.Sign(s.private, signedBytes(key, value))
	return []bus.Header{
		{Key: headerKeyID, Value: []byte(KeyID(s.Public()))},
		{Key: headerSignature, Value: []byte(base64.StdEncoding.EncodeToString(sig))},
	}
}

// Keys says whose records a program accepts. The zero Keys accepts none.
type Keys struct {
	public   map[string]ed25519.PublicKey // by KeyID
	insecure bool
}

// NewKeys returns Keys that accept the records that one of the public keys has signed. With
// insecure they also accept records without a signature, and with one of a key that is not
// among them.
func NewKeys(insecure bool, public ...ed25519.PublicKey) Keys {
	k := Keys{insecure: insecure, public: make(map[string]ed25519.PublicKey)}
	for _, p := range public {
		k.public[KeyID(p)] = p
	}
	return k
}

// LoadKeys reads public keys as `trainer keys new` writes them. A file may hold several.
func LoadKeys(insecure bool, files ...string) (Keys, error) {
	var all []ed25519.PublicKey
	for _, f := range files {
		some, err := credential.ReadPublicKeys(f)
		if err != nil {
			return Keys{}, err
		}
		all = append(all, some...)
	}
	return NewKeys(insecure, all...), nil
}

// with returns k with the public key of a signer.
func (k Keys) with(s signer) Keys {
	all := slices.Collect(maps.Values(k.public))
	if p := s.Public(); p != nil {
		all = append(all, p)
	}
	return NewKeys(k.insecure, all...)
}

// equal reports whether both accept the same records.
func (k Keys) equal(other Keys) bool {
	return k.insecure == other.insecure && maps.EqualFunc(k.public, other.public, func(a, b ed25519.PublicKey) bool { return a.Equal(b) })
}

// errStranger is the kind of error of a record that may be good: it has no signature, or
// one of a key that is not known.
var errStranger = errors.New("signature cannot be checked")

// signature is what a record says of who signed it.
type signature struct {
	by       string // KeyID; empty: not signed
	unproved bool   // accepted although no known key signed it
}

// check returns who signed a record, or an error if k does not accept it.
func (k Keys) check(m bus.Message) (signature, error) {
	by, text := string(m.Header(headerKeyID)), m.Header(headerSignature)
	if by == "" && text == nil {
		if k.insecure {
			return signature{unproved: true}, nil
		}
		return signature{}, fmt.Errorf("%w: it is not signed: sign it (`trainer` with --key), or accept unsigned models (--insecure-models)", errStranger)
	}
	public, known := k.public[by]
	if !known {
		if k.insecure {
			return signature{by: printable(by), unproved: true}, nil
		}
		return signature{by: printable(by)}, fmt.Errorf("%w: it is signed with the key %s, and the public keys here are %s: add the public key, or sign it with another one",
			errStranger, printable(by), k)
	}
	sig, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || !ed25519.Verify(public, signedBytes(m.Key, m.Value), sig) {
		return signature{by: by}, fmt.Errorf("its signature with the key %s does not fit: it was changed or moved after it was signed", by)
	}
	return signature{by: by}, nil
}

// String lists the ids of the public keys.
func (k Keys) String() string {
	if len(k.public) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(k.public)), ", ")
}

// printable returns a text from outside for a message: short, and safe for a terminal.
func printable(s string) string { return plain.Short(s, 100) }
