package credential

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "token"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := Secret{File: "token"}.Resolve(filepath.Join(dir, "monitor.yaml"))
	for _, want := range []string{"0123456789abcdef", "another-one-of-them"} {
		write(want + "\r\n") // replaced in place
		if got, err := secret.Token(); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	t.Setenv("PAGE_TOKEN", "from-the-environment")
	if got, err := (Secret{Env: "PAGE_TOKEN"}).Token(); got != "from-the-environment" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for name, text := range map[string]string{"short": "0123456789abcde", "empty": "", "blank": "0123456789 abcdef", "two lines": "0123456789\nabcdef"} {
		write(text)
		if _, err := (Secret{File: filepath.Join(dir, "token")}).Token(); err == nil || !strings.Contains(err.Error(), "openssl rand") || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Secret{File: filepath.Join(dir, "absent")}).Token(); err == nil {
		t.Error("no file")
	}
}
