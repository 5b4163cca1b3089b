package route

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopcua/opcua/ua"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/protocol/opcua"
	"github.com/flank-tcm/flank/internal/testkit/await"
)

// certificate writes a certificate that signs itself, and its key, as NAME.pem and NAME.key.
func certificate(t *testing.T, dir, name string, bits int) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		URIs: []*url.URL{{Scheme: "urn", Opaque: "flank:test:" + name}}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment | x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// peer is the server of bench/peers/opcua/route_server.py.
type peer struct {
	dir, port string
	URL       string
	cmd       *exec.Cmd
}

func (p *peer) start(t *testing.T) {
	t.Helper()
	folder := os.Getenv("FLANK_PEERS")
	p.cmd = exec.Command(filepath.Join(folder, ".venv/bin/python"), filepath.Join(folder, "route_server.py"), p.port, p.dir)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the server says %q, %v", line, err)
	}
}

func (p *peer) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// session is another client, which looks at the variables.
func (p *peer) session(t *testing.T) (get func(node string) any, set func(node string, v any)) {
	t.Helper()
	s, err := opcua.Dial(within(t), opcua.Config{Endpoint: p.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return func(node string) any {
			v, err := s.Read(within(t), []opcua.Attribute{{Node: ua.NewStringNodeID(2, node), ID: ua.AttributeIDValue}})
			if err != nil {
				t.Fatal(err)
			}
			return v[0].V
		}, func(node string, v any) {
			status, err := s.Write(within(t), []opcua.Write{{Node: ua.NewStringNodeID(2, node), Value: ua.MustVariant(v)}})
			if err != nil || status[0] != ua.StatusOK {
				t.Fatal(status, err)
			}
		}
}

// The route on asyncua, a server of another maker: `make opcua-route`.
func TestPeersOPCUARoute(t *testing.T) {
	if os.Getenv("FLANK_PEERS") == "" {
		t.Skip("FLANK_PEERS names the folder of the server: make opcua-route")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	dir := t.TempDir()
	certificate(t, dir, "server", 2048)
	certificate(t, dir, "client", 3072)
	certificate(t, dir, "other", 2048)
	t.Setenv("PLC_PASSWORD", "plc-password")
	p := &peer{dir: dir, port: strconv.Itoa(port), URL: "opc.tcp://127.0.0.1:" + strconv.Itoa(port) + "/flank/"}
	p.start(t)
	get, set := p.session(t)
	user := credential.Login{User: "flank", PasswordEnv: "PLC_PASSWORD"}
	file := func(name string) string { return filepath.Join(dir, name) }
	secured := opcuaConfig{Endpoint: p.URL, Login: user, TLS: &credential.TLS{CA: file("server.pem"), Cert: file("client.pem"), Key: file("client.key")}}
	raised, cleared := func(machine string, n int, incident string) *Event {
		return opened(t, alert(machine, n, event.Raised, withWear(187.5), func(a *event.Alert) { a.Incident = incident }))
	}, func(machine string, n int) *Event {
		return opened(t, alert(machine, n, event.Cleared, func(a *event.Alert) { a.Incident = "" }))
	}
	n, seen := 0, int32(0)
	for name, o := range map[string]opcuaConfig{
		"no security": {Endpoint: p.URL}, "no security, with a user": {Endpoint: p.URL, Login: user}, "secured": secured,
		"secured, anonymous": {Endpoint: p.URL, TLS: secured.TLS},
	} {
		b, to := opcuaRoute(t, o)
		if found, err := to.probe(within(t)); err != nil {
			t.Fatalf("%s: %s, %v", name, found, err)
		}
		until := func(what string, ok func() bool) {
			t.Helper()
			await.Until(t, name+": "+what, func() bool { b.after(t, 100*time.Millisecond); return ok() })
		}
		for _, machine := range []string{"usk25", "usk26"} {
			path := "acme/spore/bay2/line1/" + machine
			n += 10
			first, second := "A-AAAA"+strconv.Itoa(1000+n), "A-BBBB"+strconv.Itoa(1000+n)
			set("plc.mode", "answer")
			if err := to.deliver(within(t), raised(path, n, first)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			until("the PLC takes the request", func() bool { return get(machine+".request") == false && get(machine+".request_id") == first })
			if a := get(machine + ".alarm"); a != "raised" && a != uint16(1) {
				t.Errorf("%s: the alarm is %v", name, a)
			}
			if w := get(machine + ".wear_um"); w != 187.5 && w != int16(188) {
				t.Errorf("%s: wear %v", name, w)
			}
			if at := monday.Add(time.Duration(n) * time.Second); machine == "usk25" && get("usk25.time") != at {
				t.Errorf("%s: time %v, want %v", name, get("usk25.time"), at)
			}
			if err := to.deliver(within(t), cleared(path, n+1)); err != nil {
				t.Fatal(err)
			}
			if id, text := get(machine+".request_id"), get(machine+".incident"); id != "" || text != "" {
				t.Errorf("%s: cleared, and %v, %v", name, id, text)
			}
			set("plc.mode", "other") // or none: a Boolean names no id
			missed := b.snapshot().requestsMissed
			if err := to.deliver(within(t), raised(path, n+2, second)); err != nil {
				t.Fatal(err)
			}
			until("the time is over", func() bool { return b.snapshot().requestsMissed > missed && get(machine+".request") == false })
			set("plc.mode", "answer")
			until("the PLC takes the second request", func() bool { return get(machine+".request") == false && get(machine+".request_id") == second })
			if err := to.deliver(within(t), cleared(path, n+3)); err != nil {
				t.Fatal(err)
			}
		}
		if now, ok := get("plc.usk25.seen").(int32); !ok || now < seen+3 {
			t.Errorf("%s: the PLC has seen %v requests, before %d", name, now, seen)
		} else {
			seen = now
		}
		if c := b.snapshot(); c.requestsTaken != 4 || c.requestsOpen != 0 {
			t.Errorf("%s: %d taken, %d open", name, c.requestsTaken, c.requestsOpen)
		}
	}

	wrong := secured
	wrong.TLS = &credential.TLS{CA: file("other.pem"), Cert: file("client.pem"), Key: file("client.key")}
	_, to := opcuaRoute(t, wrong)
	if _, err := to.probe(within(t)); err == nil || !strings.Contains(err.Error(), "name its signer, or the certificate itself, in `ca`") {
		t.Errorf("another certificate: %v", err)
	}
	for _, o := range []opcuaConfig{{Endpoint: p.URL, Login: user}, secured} {
		t.Setenv("PLC_PASSWORD", "wrong")
		_, to = opcuaRoute(t, o)
		if _, err := to.probe(within(t)); err == nil || strings.Contains(err.Error(), "wrong-") || !errors.Is(err, ua.StatusBadUserAccessDenied) && !errors.Is(err, ua.StatusBadIdentityTokenRejected) {
			t.Errorf("a wrong password: %v", err)
		}
		t.Setenv("PLC_PASSWORD", "plc-password")
	}
	wrong = opcuaConfig{Endpoint: p.URL, Nodes: []opcuaNodes{{Machine: drill, Alarm: "ns=2;s=usk25.acknowledged"}}}
	_, to = opcuaRoute(t, wrong)
	if _, err := to.probe(within(t)); err == nil || !strings.Contains(err.Error(), "may not be written by this user") {
		t.Errorf("a variable that only the PLC writes: %v", err)
	}

	b, to := opcuaRoute(t, secured)
	if err := to.deliver(within(t), raised(drill, 1000, "A-CCCCCCCC")); err != nil {
		t.Fatal(err)
	}
	p.stop()
	if err := to.deliver(within(t), opened(t, alert(drill, 1001, "acknowledged", func(a *event.Alert) { a.Incident = "A-CCCCCCCC" }))); err == nil {
		t.Error("delivered to no server")
	}
	p.start(t)
	get, _ = p.session(t)
	await.Until(t, "the restarted server has the state", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		b.clock = b.clock.Add(100 * time.Millisecond)
		return to.again(ctx, 0) == nil && get("usk25.alarm") == "acknowledged" && get("usk25.request_id") == "A-CCCCCCCC" && get("usk25.request") == false
	})
}
