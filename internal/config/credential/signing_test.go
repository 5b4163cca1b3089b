package credential

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is written is read again, the private key by its owner only, and OpenSSL's forms of
// other keys are refused.
func TestSigningKey(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	made := make([]ed25519.PublicKey, 2)
	for i, name := range []string{"a", "b"} {
		public, err := NewSigningKey(rand.Reader, at(name+".key"), at(name+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		made[i] = public
		private, err := ReadSigningKey(at(name + ".key"))
		if err != nil || !public.Equal(private.Public()) {
			t.Errorf("%s: another key came back: %v", name, err)
		}
		info, err := os.Stat(at(name + ".key"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the private key has mode %v, %v", info.Mode(), err)
		}
		keys, err := ReadPublicKeys(at(name + ".pub"))
		if err != nil || len(keys) != 1 || !keys[0].Equal(public) {
			t.Errorf("%s: %v, %v", name, keys, err)
		}
	}
	if made[0].Equal(made[1]) {
		t.Error("two keys are equal")
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	write := func(name string, mode os.FileMode, b []byte) string {
		if err := os.WriteFile(at(name), b, mode); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	both, err := ReadPublicKeys(write("both.pub", 0o644, append(append(read("a.pub"), "# Bob\n"...), read("b.pub")...)))
	if err != nil || len(both) != 2 || !both[1].Equal(made[1]) {
		t.Errorf("%v, %v", both, err)
	}
	for name, want := range map[string]string{"c": "c.key is there already", "d": "d.pub is there already"} {
		write(map[string]string{"c": "c.key", "d": "d.pub"}[name], 0o600, nil)
		if _, err := NewSigningKey(rand.Reader, at(name+".key"), at(name+".pub")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(at("d.key")); err == nil {
		t.Error("half a key was written")
	}
	if _, err := NewSigningKey(rand.Reader, at("none/e.key"), at("e.pub")); err == nil {
		t.Error("a key in no folder")
	}
	rsaDER := x509.MarshalPKCS1PublicKey(&rsa.PublicKey{N: big.NewInt(3233), E: 17})
	for _, tc := range []struct {
		file    string
		private bool
		want    string
	}{
		{at("none"), true, "no such file"},
		{at("none"), false, "no such file"},
		{write("open.key", 0o644, read("a.key")), true, "chmod 600"},
		{write("public.key", 0o600, read("a.pub")), true, "holds a public key"},
		{write("text.key", 0o600, []byte("secret")), true, "holds no private key"},
		{write("cut.key", 0o600, pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: []byte("x")})), true, "holds no private key"},
		{at("a.key"), false, "holds a private key"},
		{write("text.pub", 0o644, []byte("text")), false, "holds no public key"},
		{write("rsa.pub", 0o644, append(read("a.pub"), pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: rsaDER})...)), false, "block 2 is not a public key"},
	} {
		var err error
		if tc.private {
			_, err = ReadSigningKey(tc.file)
		} else {
			_, err = ReadPublicKeys(tc.file)
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.file, err, tc.want)
		}
		if b, _ := os.ReadFile(tc.file); err != nil && len(b) > 100 && strings.Contains(err.Error(), string(bytes.Split(b, []byte("\n"))[1])) {
			t.Errorf("the error quotes the key: %v", err)
		}
	}
}
