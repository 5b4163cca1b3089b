package opcuatest

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopcua/opcua/ua"
)

// Peer returns the folder of asyncua's server, an absolute path, or "".
func Peer() string { return os.Getenv("FLANK_PEERS") }

// Certificate names the files of a certificate and its key.
type Certificate struct{ File, Key string }

// NewCertificate makes a certificate for a program, and writes NAME.pem and NAME.key into dir.
// It signs itself, for 127.0.0.1, until the time that is given. An empty uri leaves it out.
func NewCertificate(t testing.TB, dir, name, uri string, bits int, until time.Time) Certificate {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"Flank"}},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment | x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true,
	}
	if uri != "" {
		u, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = []*url.URL{u}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := Certificate{File: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key")}
	for file, block := range map[string]*pem.Block{c.File: {Type: "CERTIFICATE", Bytes: der}, c.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Options say how a server is spoken to.
type Options struct {
	Certificate Certificate // zero: in the clear; else Basic256Sha256, signed and encrypted, which needs Peer
	Trust       string      // folder with the certificates of clients, which needs Peer; empty: every client
	User        string      // empty: anonymous
	Password    string      // which only a Peer compares
}

// Control plays the server of a machine's control, with nodes in namespace 2: a [Server], or
// asyncua's, as a process of its own, if there is a [Peer].
type Control struct {
	t       testing.TB
	options Options
	port    int
	values  map[string]any // by the name of their node
	order   []string

	inner *Server // of this process

	// asyncua's.
	cmd     *exec.Cmd
	input   io.WriteCloser
	answers *bufio.Scanner
}

// StartControl starts a server on a free port. The test ends it.
func StartControl(t testing.TB, options Options) *Control {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Control{t: t, options: options, port: l.Addr().(*net.TCPAddr).Port, values: map[string]any{}}
	l.Close()
	s.start()
	t.Cleanup(s.Kill)
	return s
}

// Endpoint returns the server's address.
func (s *Control) Endpoint() string { return fmt.Sprintf("opc.tcp://127.0.0.1:%d", s.port) }

// Node returns the id of a node.
func Node(name string) string { return "ns=2;s=" + name }

func (s *Control) start() {
	s.t.Helper()
	if Peer() != "" {
		s.startPeer()
	} else {
		if s.options.Certificate != (Certificate{}) {
			s.t.Fatal("opcuatest: a control with certificates needs FLANK_PEERS: make opcua")
		}
		s.inner = Start(s.t, fmt.Sprintf("127.0.0.1:%d", s.port), map[string]any{})
	}
}

// Restart starts a killed server again, with the values that it had.
func (s *Control) Restart() {
	s.t.Helper()
	s.start()
	for _, name := range s.order {
		s.Set(name, s.values[name])
	}
}

// Kill ends the server without a word to its clients.
func (s *Control) Kill() {
	if s.inner != nil {
		s.inner.Stop()
		s.inner = nil
	}
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Set gives a node a value: a string, an int, a float64 or a slice of one of these.
func (s *Control) Set(name string, value any) {
	s.t.Helper()
	if _, known := s.values[name]; !known {
		s.order = append(s.order, name)
	}
	s.values[name] = value
	if s.cmd != nil {
		text, err := json.Marshal(value)
		if err != nil {
			s.t.Fatal(err)
		}
		s.tell("set %s %s", name, text)
		return
	}
	if n, ok := value.(int); ok {
		value = int32(n)
	}
	s.inner.Set(Node(name), value)
	s.inner.Refuse(Node(name), ua.StatusOK)
}

// Bad gives a node the status that the server cannot say its value now.
func (s *Control) Bad(name string) {
	s.t.Helper()
	if s.cmd != nil {
		s.tell("bad %s", name)
		return
	}
	s.inner.Refuse(Node(name), ua.StatusBadOutOfService)
}

func (s *Control) startPeer() {
	s.t.Helper()
	args := []string{filepath.Join(Peer(), "server.py"), fmt.Sprint(s.port)}
	for key, value := range map[string]string{"certificate": s.options.Certificate.File, "key": s.options.Certificate.Key, "trust": s.options.Trust, "user": s.options.User, "password": s.options.Password} {
		if value != "" {
			args = append(args, "--"+key, value)
		}
	}
	s.cmd = exec.Command(filepath.Join(Peer(), ".venv/bin/python"), args...)
	s.cmd.Stderr = os.Stderr
	var err error
	if s.input, err = s.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.answers = bufio.NewScanner(output)
	s.expect("ready")
}

// tell sends a command to the process, and waits until it is carried out.
func (s *Control) tell(format string, args ...any) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.input, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
	s.expect("ok")
}

func (s *Control) expect(word string) {
	s.t.Helper()
	if !s.answers.Scan() || s.answers.Text() != word {
		s.t.Fatalf("the server of asyncua says %q, want %q: see its log", s.answers.Text(), word)
	}
}
