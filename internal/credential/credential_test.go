package credential

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecret(t *testing.T) {
	t.Setenv("CREDENTIAL", "from-the-environment")
	t.Setenv("CREDENTIAL_EMPTY", "")
	for why, tc := range map[string]struct {
		s    Secret
		want []string // nil: an error
	}{
		"a file":                   {Secret{File: write(t, "new\n")}, []string{"new"}},
		"of another system":        {Secret{File: write(t, "new\r\n")}, []string{"new"}},
		"while it is renewed":      {Secret{File: write(t, "new\n\n old \n")}, []string{"new", "old"}},
		"the environment":          {Secret{Env: "CREDENTIAL"}, []string{"from-the-environment"}},
		"an empty file":            {Secret{File: write(t, "\n \n")}, nil},
		"an empty variable":        {Secret{Env: "CREDENTIAL_EMPTY"}, nil},
		"a variable that is unset": {Secret{Env: "CREDENTIAL_UNSET"}, nil},
		"no file":                  {Secret{File: filepath.Join(t.TempDir(), "absent")}, nil},
		"both":                     {Secret{File: write(t, "new"), Env: "CREDENTIAL"}, nil},
		"none":                     {Secret{}, nil},
	} {
		got, err := tc.s.Lines()
		if !slices.Equal(got, tc.want) || (err == nil) != (tc.want != nil) {
			t.Errorf("%s: %q, %v", why, got, err)
		}
		one, err := tc.s.Read()
		if len(tc.want) == 1 && (one != tc.want[0] || err != nil) || len(tc.want) != 1 && err == nil {
			t.Errorf("%s: one line %q, %v", why, one, err)
		}
		if err != nil && (strings.Contains(err.Error(), "new") || strings.Contains(err.Error(), "from-the")) {
			t.Errorf("%s: the secret is in %v", why, err)
		}
	}
	path := write(t, "before")
	s := Secret{File: path}
	if err := os.WriteFile(path, []byte("after"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(); got != "after" || err != nil {
		t.Errorf("replaced in place: %q, %v", got, err)
	}
}

func TestTLS(t *testing.T) {
	for why, files := range map[string]*TLS{
		"a certificate without its key": {Cert: "cert.pem"},
		"a key without its certificate": {Key: "key.pem"},
		"files that are not there":      {Cert: "absent.pem", Key: "absent.key"},
		"a CA that is not there":        {CA: "absent.pem"},
		"a CA that is none":             {CA: write(t, "no certificate")},
	} {
		if _, err := files.Client(); err == nil {
			t.Errorf("%s: no error", why)
		}
	}
	if cfg, err := (*TLS)(nil).Client(); err != nil || cfg.MinVersion != tls.VersionTLS12 || cfg.RootCAs != nil || cfg.InsecureSkipVerify {
		t.Errorf("no files: %+v, %v", cfg, err)
	}
}
