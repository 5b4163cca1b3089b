package cli

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
	if read, err := (Token{}).Reader(""); read != nil || err != nil {
		t.Errorf("a token from nowhere: %v", err)
	}
	write("0123456789abcdef\n")
	read, err := Token{File: "token"}.Reader(filepath.Join(dir, "monitor.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0123456789abcdef", "another-one-of-them"} {
		write(want + "\r\n") // replaced in place
		if got, err := read(); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	t.Setenv("PAGE_TOKEN", "from-the-environment")
	if read, err := (Token{Env: "PAGE_TOKEN"}).Reader(""); err != nil {
		t.Error(err)
	} else if got, _ := read(); got != "from-the-environment" {
		t.Errorf("%q", got)
	}
	for name, text := range map[string]string{"short": "0123456789abcde", "empty": "", "blank": "0123456789 abcdef", "two lines": "0123456789\nabcdef"} {
		write(text)
		if _, err := (Token{File: filepath.Join(dir, "token")}).Reader(""); err == nil || !strings.Contains(err.Error(), "openssl rand") || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Token{File: filepath.Join(dir, "absent")}).Reader(""); err == nil {
		t.Error("no file")
	}
}
