package credential

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A secret or a key that everyone on the computer may read is refused, and the error says what
// to do. A group may read it.
func TestOpenSecretsAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "secret"), filepath.Join(dir, "link") // as Kubernetes mounts one
	if err := os.WriteFile(file, []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(dir, "page.pem"), filepath.Join(dir, "page.key")
	issue(t, "page", cert, key)
	uses := map[string]func(path string) error{
		"Lines":    func(path string) error { _, err := Secret{File: path}.Lines(); return err },
		"Token":    func(path string) error { _, err := Secret{File: path}.Token(); return err },
		"Check":    func(path string) error { return Secret{File: path}.Check() },
		"Password": func(path string) error { _, err := Login{User: "u", PasswordFile: path}.Password(); return err },
	}
	pair := TLS{Cert: cert, Key: key}
	ofKey := func(use func() error) func(string) error {
		return func(path string) error { // the key has the mode of the secret
			info, err := os.Stat(path)
			if err == nil {
				err = os.Chmod(key, info.Mode())
			}
			if err == nil {
				err = use()
			}
			if err != nil && strings.Contains(err.Error(), "run `chmod o= "+key+"`") {
				return errors.New("run `chmod o= " + path + "`")
			}
			return err
		}
	}
	uses["Certificate"] = ofKey(func() error { _, err := pair.Certificate(); return err })
	uses["Client"] = ofKey(func() error { _, err := pair.Client(); return err })
	uses["Server"] = ofKey(func() error { _, err := pair.Server(); return err })
	uses["Renewed"] = ofKey(func() error { _, err := pair.Renewed(func(error) {}); return err })
	for mode, open := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: false, 0o660: false, 0o644: true, 0o604: true, 0o602: true, 0o666: true} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		for name, use := range uses {
			for _, path := range []string{file, link} {
				err := use(path)
				if refused := err != nil && strings.Contains(err.Error(), "run `chmod o= "+path+"`"); refused != open {
					t.Errorf("%s, mode %04o: %v", name, mode, err)
				}
				if err != nil && strings.Contains(err.Error(), "0123456789abcdef") {
					t.Errorf("%s: the secret is in %v", name, err)
				}
			}
		}
	}
}
