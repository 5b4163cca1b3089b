package machinetool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopcua/opcua/ua"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/testkit/opcuatest"
)

// open opens a server and closes it with the test.
func open(t *testing.T, s Server) *Server {
	t.Helper()
	if s.Items == (Items{}) {
		s.Items = Items{Tool: opcuatest.Node("Tool")}
	}
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &s
}

// reads asks once, with patience.
func reads(t *testing.T, s *Server) (Reading, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return s.Read(ctx)
}

// Nodes become tool, hole and speed. One that is bad is not known, and one that cannot be used
// leaves the rest.
func TestOPCUA(t *testing.T) {
	t.Parallel()
	c := opcuatest.StartControl(t, opcuatest.Options{})
	c.Set("Tool", 8)
	c.Set("Programme", "O12")
	c.Set("Speed", -1649.5)
	c.Set("Offsets", []float64{1, 2, 3})
	s := open(t, Server{Endpoint: c.Endpoint(), Items: Items{Tool: opcuatest.Node("Tool"), Hole: opcuatest.Node("Programme"), SpindleSpeed: opcuatest.Node("Speed")}})
	for range 3 { // the session stays
		r, err := reads(t, s)
		if want := (Reading{Tool: "8", Hole: "O12", SpindleSpeed: 1649.5}); err != nil || r != want {
			t.Errorf("%v, %v; want %v", r, err, want)
		}
	}
	c.Set("Feed", 82.5)
	c.Set("Material", "42CrMo4")
	more := open(t, Server{Endpoint: c.Endpoint(), Items: Items{FeedRate: opcuatest.Node("Feed"), Programme: opcuatest.Node("Programme"), Material: opcuatest.Node("Material")}})
	if r, err := reads(t, more); err != nil || r != (Reading{FeedRate: 82.5, Programme: "O12", Material: "42CrMo4"}) {
		t.Errorf("%+v, %v", r, err)
	}
	c.Set("Material", "\x1b]0;owned\a")
	c.Set("Feed", 1e9+0.5)
	if r, err := reads(t, more); err != nil || r.Material != "" || r.FeedRate != 0 || r.Programme != "O12" || r.Problem == nil {
		t.Errorf("hostile: %+v, %v", r, err)
	}
	c.Bad("Tool")
	c.Bad("Speed")
	r, err := reads(t, s)
	if want := (Reading{Hole: "O12"}); err != nil || r != want {
		t.Errorf("%v, %v; want %v", r, err, want)
	}
	c.Set("Tool", 9)
	part := open(t, Server{Endpoint: c.Endpoint(), Items: Items{Tool: opcuatest.Node("Toll"), SpindleSpeed: opcuatest.Node("Programme"), Hole: opcuatest.Node("Tool")}})
	r, err = reads(t, part)
	if err != nil || r.Hole != "9" || r.Tool != "" || r.SpindleSpeed != 0 || r.Problem == nil ||
		!strings.Contains(r.Problem.Error(), "tool: the OPC UA server has no such variable: correct the node's id") || !strings.Contains(r.Problem.Error(), `spindle_speed: "O12" is not a number`) {
		t.Errorf("%v, %v, %v", r, err, r.Problem)
	}
	odd := open(t, Server{Endpoint: c.Endpoint(), Items: Items{Tool: opcuatest.Node("Offsets"), Hole: opcuatest.Node("Programme")}})
	if r, err = reads(t, odd); err != nil || r.Tool != "" || r.Hole != "O12" {
		t.Errorf("an array: %v, %v", r, err)
	}
}

// What cannot be meant is refused before it is dialled. The error names the key.
func TestOPCUAOpen(t *testing.T) {
	t.Parallel()
	dir, soon := t.TempDir(), time.Now().Add(time.Hour)
	there := opcuatest.NewCertificate(t, dir, "server", "urn:server", 2048, soon)
	tls := func(name string, bits int, mode os.FileMode) *credential.TLS {
		c := opcuatest.NewCertificate(t, dir, name, "urn:flank:ingest", bits, soon)
		if err := os.Chmod(c.Key, mode); err != nil {
			t.Fatal(err)
		}
		return &credential.TLS{CA: there.File, Cert: c.File, Key: c.Key}
	}
	good := tls("good", 2048, 0o600)
	for name, c := range map[string]struct {
		s    Server
		want string
	}{
		"encrypted":               {Server{Endpoint: "opc.tcp://control:4840", TLS: good}, ""},
		"in the clear, here":      {Server{Endpoint: "opc.tcp://localhost"}, ""},
		"in the clear, IPv6":      {Server{Endpoint: "opc.tcp://[::1]:4840/x"}, ""},
		"in the clear, asked for": {Server{Endpoint: "opc.tcp://control", Insecure: true}, ""},
		"in the clear, there":     {Server{Endpoint: "opc.tcp://control"}, "endpoint: without certificates anyone on the way could change"},
		"a password in the clear": {Server{Endpoint: "opc.tcp://control", Insecure: true, Login: credential.Login{User: "flank", PasswordEnv: "HOME"}}, "user: without certificates anyone on the way could read the password"},
		"no scheme":               {Server{Endpoint: "control:4840"}, "endpoint: write the server's address"},
		"HTTPS":                   {Server{Endpoint: "opc.https://control:4840"}, "endpoint: write"},
		"a password in it":        {Server{Endpoint: "opc.tcp://me:secret@control"}, "without user and query"},
		"no host":                 {Server{Endpoint: "opc.tcp://:4840"}, "endpoint: write"},
		"half of the files":       {Server{Endpoint: "opc.tcp://control", TLS: &credential.TLS{CA: there.File}}, "tls: OPC UA needs all of `ca`, `cert` and `key`"},
		"a small key":             {Server{Endpoint: "opc.tcp://control", TLS: tls("small", 1024, 0o600)}, "OPC UA needs an RSA key of 2048 to 4096 bits"},
		"a key for all":           {Server{Endpoint: "opc.tcp://control", TLS: tls("open", 2048, 0o644)}, "chmod o= "},
		"no password":             {Server{Endpoint: "opc.tcp://localhost", Login: credential.Login{User: "flank"}}, "name either `password_file` or `password_env`"},
		"a type as a node":        {Server{Items: Items{Tool: "i=1", Hole: "Program"}}, `hole: "Program" is not the id of a node: write it as ns=2;s=Tool`},
		"a namespace too large":   {Server{Items: Items{Tool: "ns=70000;i=1"}}, `tool: "ns=70000;i=1" is not the id`},
		"a number that is none":   {Server{Items: Items{SpindleSpeed: "ns=2;i=x"}}, `spindle_speed: "ns=2;i=x" is not the id`},
		"a namespace by name":     {Server{Items: Items{Tool: "nsu=urn:x;s=Tool"}}, "is not the id"},
		"a long id":               {Server{Items: Items{Tool: "ns=2;s=" + strings.Repeat("x", maxNodeID)}}, "is not the id"},
	} {
		if c.s.Items == (Items{}) {
			c.s.Items.Tool = "ns=2;s=Channel;1=Tool"
		}
		err := c.s.Open()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := (&Server{Endpoint: "opc.tcp://localhost"}).Open(); err == nil || !strings.Contains(err.Error(), "nothing is asked for") {
		t.Errorf("%v", err)
	}
}

// needPeer skips a test of what only a server of another maker can do.
func needPeer(t *testing.T) {
	t.Helper()
	if opcuatest.Peer() == "" {
		t.Skip("needs a server that encrypts: make opcua")
	}
}

// pair makes certificates for a server and a client, and the client's configuration.
func pair(t *testing.T, serverBits, clientBits int) (opcuatest.Options, Server) {
	t.Helper()
	dir, soon := t.TempDir(), time.Now().Add(time.Hour)
	there := opcuatest.NewCertificate(t, dir, "server", "urn:freeopcua:python:server", serverBits, soon)
	here := opcuatest.NewCertificate(t, dir, "client", "urn:flank:ingest", clientBits, soon)
	return opcuatest.Options{Certificate: there}, Server{TLS: &credential.TLS{CA: there.File, Cert: here.File, Key: here.Key}}
}

// Encrypted, values arrive with keys of each size.
func TestOPCUASecure(t *testing.T) {
	needPeer(t)
	for name, bits := range map[string][2]int{"2048": {2048, 2048}, "server 4096": {4096, 2048}, "client 3072": {2048, 3072}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options, cfg := pair(t, bits[0], bits[1])
			c := opcuatest.StartControl(t, options)
			c.Set("Tool", "GD-1")
			cfg.Endpoint = c.Endpoint()
			s := open(t, cfg)
			for range 3 {
				if r, err := reads(t, s); err != nil || r != (Reading{Tool: "GD-1"}) {
					t.Fatalf("%v, %v", r, err)
				}
			}
		})
	}
}

// A user logs in with a password from a file, in the clear and encrypted. A wrong one is refused
// with a reason that says what to correct, and not the password.
func TestOPCUAUser(t *testing.T) {
	needPeer(t)
	password := func(text string) string {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good, wrong := password("a long secret"), password("another secret")
	for _, encrypted := range []bool{false, true} {
		t.Run(map[bool]string{false: "in the clear", true: "encrypted"}[encrypted], func(t *testing.T) {
			t.Parallel()
			options, cfg := opcuatest.Options{}, Server{}
			if encrypted {
				options, cfg = pair(t, 2048, 2048)
			}
			options.User, options.Password = "flank", "a long secret"
			c := opcuatest.StartControl(t, options)
			c.Set("Tool", "GD-1")
			cfg.Endpoint = c.Endpoint()
			cfg.Login = credential.Login{User: "flank", PasswordFile: good}
			if r, err := reads(t, open(t, cfg)); err != nil || r.Tool != "GD-1" {
				t.Errorf("%v, %v", r, err)
			}
			cfg.Login = credential.Login{}
			if _, err := reads(t, open(t, cfg)); err == nil || !strings.Contains(err.Error(), "name `user` and `password_file`") {
				t.Errorf("anonymous: %v", err)
			}
			cfg.Login = credential.Login{User: "flank", PasswordFile: wrong}
			if _, err := reads(t, open(t, cfg)); err == nil || !strings.Contains(err.Error(), "check the user and the password") || strings.Contains(err.Error(), "secret") {
				t.Errorf("wrong password: %v", err)
			}
		})
	}
}

// A server whose certificate is not named is refused; so is a client by a server that does not
// trust it.
func TestOPCUATrust(t *testing.T) {
	needPeer(t)
	t.Parallel()
	options, cfg := pair(t, 2048, 2048)
	other, _ := pair(t, 2048, 2048)
	options.Trust = filepath.Dir(other.Certificate.File) // and the client is not there
	c := opcuatest.StartControl(t, options)
	cfg.Endpoint = c.Endpoint()
	if _, err := reads(t, open(t, cfg)); err == nil || !strings.Contains(err.Error(), "let the server trust the certificate that `cert` of `tls` names") {
		t.Errorf("a client that is not trusted: %v", err)
	}
	cfg.TLS.CA = other.Certificate.File
	if _, err := reads(t, open(t, cfg)); err == nil || !strings.Contains(err.Error(), "the certificate itself, in `ca`") {
		t.Errorf("another server's certificate: %v", err)
	}
}

// After a restart of the server the next reading makes a new session.
func TestOPCUARestart(t *testing.T) {
	t.Parallel()
	c := opcuatest.StartControl(t, opcuatest.Options{})
	c.Set("Tool", "GD-1")
	s := open(t, Server{Endpoint: c.Endpoint()})
	now := time.Now()
	s.now = func() time.Time { return now }
	if _, err := reads(t, s); err != nil {
		t.Fatal(err)
	}
	c.Kill()
	c.Restart()
	c.Set("Tool", "GD-2")
	if r, err := reads(t, s); err != nil || r.Tool != "GD-2" {
		t.Errorf("after a restart: %v, %v", r, err)
	}
	c.Kill()
	_, away := reads(t, s)
	if away == nil || !strings.Contains(away.Error(), "check the address, and that the server runs") {
		t.Errorf("away: %v", away)
	}
	c.Restart()
	if _, err := reads(t, s); err == nil || err.Error() != away.Error() {
		t.Errorf("no wait between two attempts: %v", err)
	}
	now = now.Add(minWait)
	if r, err := reads(t, s); err != nil || r.Tool != "GD-2" {
		t.Errorf("after the wait: %v, %v", r, err)
	}
	now = now.Add(24 * time.Hour) // the channel is too old
	if r, err := reads(t, s); err != nil || r.Tool != "GD-2" {
		t.Errorf("a day later: %v, %v", r, err)
	}
}

// Attempts come after a second, then after twice as long each time, up to half a minute. A
// closed server says so.
func TestOPCUAWait(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	s := open(t, Server{Endpoint: "opc.tcp://" + l.Addr().String()})
	now, attempts := time.Now(), 0
	s.now = func() time.Time { return now }
	for second := range 300 {
		was := s.next
		if _, err := reads(t, s); err == nil {
			t.Fatalf("second %d: no error", second)
		}
		if s.next != was {
			attempts++
		}
		now = now.Add(time.Second)
	}
	if attempts != 5+9 { // at 0, 1, 3, 7, 15 s, then every 30 s from 31 s on
		t.Errorf("%d attempts in five minutes", attempts)
	}
	s.Close()
	if _, err := reads(t, s); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// What a server refuses says what to do about it, as far as the status tells.
func TestOPCUARemedy(t *testing.T) {
	t.Parallel()
	for status, want := range map[ua.StatusCode]string{
		ua.StatusBadTooManySessions:       "let the server have more sessions",
		ua.StatusBadCertificateURIInvalid: "let the server trust the certificate",
		ua.StatusBadTCPEndpointURLInvalid: "correct `endpoint`",
		ua.StatusBadShutdown:              "x: ",
	} {
		if err := withRemedy(fmt.Errorf("x: %w", status)); !errors.Is(err, status) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
