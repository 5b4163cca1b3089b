package credential

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flank-tcm/flank/internal/config"
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

// A password file means the same for every login.
func TestLogin(t *testing.T) {
	t.Setenv("CREDENTIAL", "from-the-environment")
	for why, tc := range map[string]struct {
		l    Login
		want string // the password
		key  string // of the error
	}{
		"a file":              {Login{User: "u", PasswordFile: write(t, "secret\n")}, "secret", ""},
		"blanks around it":    {Login{User: "u", PasswordFile: write(t, " two words \r\n")}, "two words", ""},
		"the environment":     {Login{User: "u", PasswordEnv: "CREDENTIAL"}, "from-the-environment", ""},
		"two lines":           {Login{User: "u", PasswordFile: write(t, "new\nold\n")}, "", "password_file"},
		"an empty file":       {Login{User: "u", PasswordFile: write(t, "\n")}, "", "password_file"},
		"an unset variable":   {Login{User: "u", PasswordEnv: "CREDENTIAL_UNSET"}, "", "password_env"},
		"a file and variable": {Login{User: "u", PasswordFile: write(t, "secret"), PasswordEnv: "CREDENTIAL"}, "", "user"},
		"no password":         {Login{User: "u"}, "", "user"},
		"no user":             {Login{PasswordEnv: "CREDENTIAL"}, "", "user"},
	} {
		err := tc.l.Check()
		var key *config.KeyError
		if (err == nil) != (tc.key == "") || err != nil && (!errors.As(err, &key) || key.Key != tc.key || strings.Contains(err.Error(), "new")) {
			t.Errorf("%s: %v, want an error about %q", why, err, tc.key)
		}
		if got, err := tc.l.Password(); tc.key == "" && (got != tc.want || err != nil) {
			t.Errorf("%s: %q, %v", why, got, err)
		}
	}
	if !(Login{}).IsZero() || (Login{User: "u"}).IsZero() {
		t.Error("IsZero")
	}
}

// Paths of a configuration begin at its folder.
func TestResolve(t *testing.T) {
	in := func(name string) string { return filepath.Join("plant", name) }
	const file = "plant/monitor.yaml"
	if got := (Secret{File: "s", Env: "E"}).Resolve(file); got != (Secret{File: in("s"), Env: "E"}) {
		t.Errorf("%+v", got)
	}
	if got := (Login{User: "u", PasswordFile: "p"}).Resolve(file); got != (Login{User: "u", PasswordFile: in("p")}) {
		t.Errorf("%+v", got)
	}
	files := &TLS{CA: "ca", Cert: "cert", Key: "key", ServerName: "name"}
	if got := files.Resolve(file); *got != (TLS{CA: in("ca"), Cert: in("cert"), Key: in("key"), ServerName: "name"}) || files.CA != "ca" {
		t.Errorf("%+v of %+v", got, files)
	}
	if (*TLS)(nil).Resolve(file) != nil {
		t.Error("TLS without files has some now")
	}
}

func TestSecretCheck(t *testing.T) {
	var key *config.KeyError
	for why, tc := range map[string]struct {
		s    Secret
		want string
	}{"absent": {Secret{File: "absent"}, "file"}, "unset": {Secret{Env: "CREDENTIAL_UNSET"}, "env"}} {
		if err := tc.s.Check(); !errors.As(err, &key) || key.Key != tc.want {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := (Secret{}).Check(); err != nil {
		t.Error(err)
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
	if _, err := (&TLS{CA: "ca.pem"}).Server(); err == nil || !strings.Contains(err.Error(), "a server has a certificate") {
		t.Errorf("a server without a certificate: %v", err)
	}
	if cfg, err := (*TLS)(nil).Client(); err != nil || cfg.MinVersion != tls.VersionTLS12 || cfg.RootCAs != nil || cfg.InsecureSkipVerify {
		t.Errorf("no files: %+v, %v", cfg, err)
	}
}
