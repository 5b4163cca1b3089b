// Package kafkatest runs Apache Kafka for tests: one node from the released jars, on
// loopback, with its own folder. A test can kill it, as a power cut would, and start it
// again on its data. The scripts in scripts/kafka fetch the jars and configure a broker.
//
// Tests run against Apache Kafka only where FLANK_KAFKA names a version, for
// example 4.3.1; elsewhere Version is empty and they use the embedded broker.
package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// patience bounds waits that usually take seconds. It does not measure speed.
const patience = 2 * time.Minute

// Version returns the version of Apache Kafka to test with, or "".
func Version() string { return os.Getenv("FLANK_KAFKA") }

// Broker is one node of Apache Kafka.
type Broker struct {
	Addr string // host:port for clients: plaintext, or SCRAM-SHA-512 over TLS if it is secure
	MTLS string // host:port for clients with a certificate; empty if it is not secure

	authority  *authority // nil if it is not secure
	dir        string
	controller string
	node       int    // in a cluster
	voters     string // of the cluster; empty: this node alone
	cmd        *exec.Cmd
	ended      chan struct{} // closed when cmd has ended
	meant      atomic.Bool   // the test ends it
	died       atomic.Value  // how it ended although no test meant it to, a string
}

// Start starts a broker, which ends with the test.
func Start(t testing.TB) *Broker { return begin(t, t.TempDir(), nil) }

// StartSecure starts a broker that lets clients in only with a password or a certificate.
// Without further rights only its administrator may do anything.
func StartSecure(t testing.TB) *Broker {
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, t.TempDir(), a)
}

func begin(t testing.TB, dir string, a *authority) *Broker {
	t.Helper()
	b, err := newBroker(dir, a)
	if err == nil {
		t.Cleanup(b.Kill)
		err = b.start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newBroker(dir string, a *authority) (*Broker, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	b := &Broker{Addr: "127.0.0.1:" + ports[0], controller: ports[1], dir: dir, authority: a}
	if a != nil {
		b.MTLS = "127.0.0.1:" + ports[2]
		keystore, err := a.issue("broker1", time.Now().Add(time.Hour))
		if err != nil {
			return nil, err
		}
		for name, text := range map[string][]byte{"ca.pem": a.pem, "keystore.pem": append(keystore.Key, keystore.Cert...)} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// freePorts returns free ports of loopback. They lie below the ports that the system gives
// to clients: otherwise a client that keeps connecting while the broker is away could get
// the broker's port.
func freePorts(n int) (ports []string, err error) {
	for tries := 0; len(ports) < n; tries++ {
		port := strconv.Itoa(15000 + rand.N(15000))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			defer l.Close()
			ports = append(ports, port)
		} else if tries > 100 {
			return nil, err
		}
	}
	return ports, nil
}

// start starts the process and waits until it serves.
func (b *Broker) start() error {
	if err := b.launch(); err != nil {
		return err
	}
	return b.await(1)
}

// launch starts the process.
func (b *Broker) launch() error {
	script, err := modulePath("scripts", "kafka", "broker.sh")
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	_, port, _ := net.SplitHostPort(b.Addr)
	args := []string{Version(), b.dir, port, b.controller}
	if b.MTLS != "" {
		_, port, _ := net.SplitHostPort(b.MTLS)
		args = append(args, port)
	}
	b.cmd = exec.Command(script, args...)
	b.cmd.Stdout, b.cmd.Stderr = log, log
	b.cmd.Env = append(os.Environ(), "FLANK_KAFKA_OWNER="+strconv.Itoa(os.Getpid()))
	if b.voters != "" {
		b.cmd.Env = append(b.cmd.Env, "FLANK_KAFKA_NODE="+strconv.Itoa(b.node), "FLANK_KAFKA_VOTERS="+b.voters)
	}
	if err := b.cmd.Start(); err != nil {
		return err
	}
	cmd, ended := b.cmd, make(chan struct{})
	b.ended = ended
	b.meant.Store(false)
	go func() {
		_ = cmd.Wait()
		if !b.meant.Load() {
			b.died.Store(fmt.Sprintf("node %d ended by itself at %s: %s", b.node, time.Now().Format(time.TimeOnly), cmd.ProcessState))
		}
		close(ended)
	}()
	return nil
}

// await waits until the broker serves and knows so many brokers.
func (b *Broker) await(brokers int) error {
	cmd, ended := b.cmd, b.ended
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if b.ready(brokers) {
			return nil
		}
		select {
		case <-ended:
			b.cmd = nil
			return b.failed("ended: " + cmd.ProcessState.String())
		default:
		}
		if time.Now().After(deadline) {
			return b.failed("does not serve")
		}
	}
}

// Died returns nil, or an error with the end of the broker's log if the broker has ended although no test killed or
// stopped it: it crashed, or someone else on this machine killed it.
func (b *Broker) Died() error {
	if how, ok := b.died.Load().(string); ok {
		return b.failed(how)
	}
	return nil
}

func (b *Broker) failed(what string) error {
	text, _ := os.ReadFile(filepath.Join(b.dir, "log"))
	return fmt.Errorf("kafkatest: Kafka %s %s\n%s", Version(), what, text[max(0, len(text)-4096):])
}

// modulePath returns the path of a file of the module, from any folder in it.
func modulePath(parts ...string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	name := filepath.Join(parts...)
	for at := dir; ; at = filepath.Dir(at) {
		path := filepath.Join(at, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("kafkatest: no %s above %s", name, dir)
		}
	}
}

// ready reports whether the broker serves and knows at least so many brokers. It makes a new
// connection each time: an old one may remember a broker that was not ready.
func (b *Broker) ready(brokers int) bool {
	kc, done, err := b.Admin()
	if err != nil {
		return false
	}
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	meta, err := kc.Metadata(ctx, &kafka.MetadataRequest{})
	return err == nil && len(meta.Brokers) >= brokers
}

// Admin returns a client that has all rights, and a function that closes its connections.
func (b *Broker) Admin() (*kafka.Client, func(), error) {
	tr := &kafka.Transport{DialTimeout: time.Second, MetadataTTL: time.Second}
	addr := b.Addr
	if b.authority != nil {
		cert, err := b.authority.issue("admin", time.Now().Add(time.Hour))
		if err != nil {
			return nil, nil, err
		}
		if tr.TLS, err = b.authority.clientConfig(cert); err != nil {
			return nil, nil, err
		}
		addr = b.MTLS
	}
	return &kafka.Client{Addr: kafka.TCP(addr), Timeout: 10 * time.Second, Transport: tr}, tr.CloseIdleConnections, nil
}

// Kill ends the broker with SIGKILL and waits until it has ended. Its data stays.
func (b *Broker) Kill() { b.end(syscall.SIGKILL) }

// Stop shuts the broker down.
func (b *Broker) Stop() { b.end(syscall.SIGTERM) }

func (b *Broker) end(sig os.Signal) {
	if b.cmd == nil {
		return
	}
	b.meant.Store(true)
	_ = b.cmd.Process.Signal(sig)
	select {
	case <-b.ended:
	case <-time.After(10 * time.Second): // a broker may hang while it shuts down
		_ = b.cmd.Process.Kill()
		<-b.ended
	}
	b.cmd = nil
}

// Restart starts the broker again on its data, after Kill or Stop.
func (b *Broker) Restart(t testing.TB) {
	t.Helper()
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
}

// shared is a broker that the tests of a program use one after the other.
var shared struct {
	sync.Mutex
	b *Broker
}

// Shared returns a broker without topics and groups. Only one test has it at a time; the
// next one gets it when the test ends. Main ends it.
func Shared(t testing.TB) *Broker {
	t.Helper()
	shared.Lock()
	t.Cleanup(shared.Unlock)
	if shared.b == nil {
		dir, err := os.MkdirTemp("", "flank-kafka-")
		if err != nil {
			t.Fatal(err)
		}
		b, err := newBroker(dir, nil)
		if err == nil {
			err = b.start()
		}
		if err != nil {
			b.Kill()
			t.Fatal(err)
		}
		shared.b = b
		return b
	}
	if err := shared.b.reset(); err != nil {
		t.Fatal(err)
	}
	return shared.b
}

// Main runs the tests of a package and ends the shared broker. It returns the
// exit code.
func Main(m *testing.M) int {
	code := m.Run()
	if shared.b != nil {
		shared.b.Kill()
		_ = os.RemoveAll(shared.b.dir)
	}
	return code
}

// reset removes all topics and groups.
func (b *Broker) reset() error {
	kc, done, err := b.Admin()
	if err != nil {
		return err
	}
	defer done()
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		left, err := removeAll(kc)
		if err == nil && left == 0 {
			return nil
		}
		last = err
	}
	return fmt.Errorf("kafkatest: cannot remove the topics and groups of the last test: %w", last)
}

// removeAll asks once to remove all topics and groups, and returns how many there were.
func removeAll(kc *kafka.Client) (left int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	meta, err := kc.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return 0, err
	}
	var topics []string
	for _, t := range meta.Topics {
		if !t.Internal && !strings.HasPrefix(t.Name, "__") {
			topics = append(topics, t.Name)
		}
	}
	groups, err := kc.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return 0, err
	}
	var names []string
	for _, g := range groups.Groups {
		names = append(names, g.GroupID)
	}
	if len(names) > 0 {
		res, err := kc.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: names})
		if err != nil {
			return 0, err
		}
		for _, err := range res.Errors {
			if err != nil && !errors.Is(err, kafka.GroupIdNotFound) {
				return 0, err
			}
		}
	}
	if len(topics) > 0 {
		if _, err := kc.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: topics}); err != nil {
			return 0, err
		}
	}
	return len(topics) + len(names), nil
}

// DataDir returns the folder of the broker's topics. Copy or replace it only while the broker is stopped.
func (b *Broker) DataDir() string { return filepath.Join(b.dir, "data") }
