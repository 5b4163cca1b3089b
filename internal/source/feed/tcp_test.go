package feed

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/testkit/await"
)

// patience bounds what should take a moment. It is not a measure of speed.
const patience = await.Patience

// dial connects as a client does.
func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

func framed(p []byte) []byte {
	h := make([]byte, headerSize, headerSize+len(p))
	binary.LittleEndian.PutUint32(h, uint32(len(p)))
	binary.LittleEndian.PutUint32(h[4:], crc32.ChecksumIEEE(p))
	return append(h, p...)
}

func send(t *testing.T, c net.Conn, p []byte) {
	t.Helper()
	if _, err := c.Write(p); err != nil {
		t.Fatal(err)
	}
}

// expect reads lines from the feed until the wanted one, which only fewer
// acknowledgements may precede.
func expect(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err == nil && strings.HasPrefix(line, want) {
			return
		}
		if err != nil || !strings.HasPrefix(line, "ok ") || line > want {
			t.Fatalf("the feed says %q, %v; want %q", line, err, want)
		}
	}
}

func listen(t *testing.T, cfg Config, tcp TCP) *Feed {
	t.Helper()
	cfg.Machine, tcp.Listen = drill, "127.0.0.1:0"
	cfg.Layout = layout(t)
	if cfg.Timeout == 0 {
		cfg.Timeout = patience
	}
	f, err := ListenTCP(cfg, tcp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A client sends frames and hears of them when they are on disk; it comes again
// after it was cut off.
func TestTCP(t *testing.T) {
	t.Parallel()
	f := listen(t, Config{}, TCP{})
	l := f.Layout()
	c, r := dial(t, f.Addr())
	send(t, c, framed(piece(t, l, 0, 1, 0, 40)))
	send(t, c, framed(nil)) // it is there
	send(t, c, framed(piece(t, l, 1, 1, 0, 10)))
	for i, want := range []int{40, 10} {
		b, err := f.Next(t.Context())
		if err != nil || b.Len() != want || b.Machine != drill {
			t.Fatalf("block %d: %+v, %v", i, b, err)
		}
	}
	f.Acked(1, 40)
	expect(t, r, "ok 2\n")
	send(t, c, framed(piece(t, l, 0, 1, 40, 80)))
	if _, err := f.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Close()
	await.Until(t, "the client is gone", func() bool { return f.Stats().Senders == 0 })

	c, r = dial(t, f.Addr())
	send(t, c, framed(piece(t, l, 0, 1, 40, 80)))
	send(t, c, framed(piece(t, l, 1, 1, 10, 20)))
	for range 2 {
		if _, err := f.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.Acked(1, 80)
	expect(t, r, "ok 2\n")
	await.Right(t, func() string { // a frame counts once it is handed on
		if want := (Stats{Frames: 5, Senders: 1, Samples: 260}); f.Stats() != want {
			return fmt.Sprintf("%+v, want %+v", f.Stats(), want)
		}
		return ""
	})
}

// A client hears what it got wrong; the next one is served.
func TestTCPRefuses(t *testing.T) {
	t.Parallel()
	f := listen(t, Config{}, TCP{})
	l := f.Layout()
	good := framed(piece(t, l, 1, 1, 0, 10))
	bad := append([]byte(nil), good...)
	bad[len(bad)-40] ^= 1
	long := framed(nil)
	binary.LittleEndian.PutUint32(long, maxFrame+1)
	for why, tc := range map[string]struct {
		bytes []byte
		want  string
	}{
		"a flipped bit":          {bad, "error frame 1: checksum "},
		"a length without sense": {long, "error frame 1: its header says 16777217 bytes"},
		"another protocol":       {[]byte("GET / HTTP/1.1\r\n\r\n"), "error frame 1: its header says"},
		"no channel":             {framed([]byte(`{"session": 1, "first": 0, "time_ns": 1}`)), "error frame 1: feed: no column is a channel"},
	} {
		t.Run(why, func(t *testing.T) {
			await.Until(t, "no client is connected", func() bool { return f.Stats().Senders == 0 })
			c, r := dial(t, f.Addr())
			send(t, c, tc.bytes)
			expect(t, r, tc.want)
			if _, err := r.ReadByte(); err != io.EOF {
				t.Errorf("the connection goes on: %v", err)
			}
		})
	}
	if s := f.Stats(); s.Refused[Malformed] != 4 || s.Frames != 0 {
		t.Errorf("%+v", s)
	}
}

// The name of a tool that cannot be used is a person's fault: the connection goes on, and so do the frames behind it.
func TestTCPRefusesNames(t *testing.T) {
	t.Parallel()
	f := listen(t, Config{}, TCP{})
	c, r := dial(t, f.Addr())
	send(t, c, framed(fmt.Appendf(nil, `{"session": 1, "first": 0, "time_ns": %d, "tool": "T\u200b1", "channels": {"c": [1, 2]}}`, origin.UnixNano())))
	send(t, c, framed(fmt.Appendf(nil, `{"session": 1, "first": 0, "time_ns": %d, "hole": "\u0007", "channels": {"c": [1, 2]}}`, origin.UnixNano())))
	send(t, c, framed(piece(t, f.Layout(), 0, 1, 0, 40)))
	send(t, c, framed(piece(t, f.Layout(), 1, 1, 0, 10)))
	for _, want := range []int{40, 10} {
		if b, err := f.Next(t.Context()); err != nil || b.Len() != want {
			t.Fatalf("%+v, %v", b, err)
		}
	}
	f.Acked(1, 40)
	for _, want := range []string{`refused 1: malformed: frame 1: feed: tool: "T\u200b1" has the invisible character U+200B`, "refused 2: malformed: frame 2: feed: hole: ", "ok 4\n"} {
		expect(t, r, want)
	}
	second, taken := uint64(0), uint64(0) // the samples of the two malformed frames are not known: nothing was read before
	for g, n := range []uint64{40, 10} {
		of := f.Layout().Groups()[g]
		second, taken = second+uint64(of.Rate)*uint64(len(of.Channels)), taken+n*uint64(len(of.Channels))
	}
	await.Until(t, "both frames are handed on", func() bool { return f.Stats().Frames == 2 })
	if s := f.Stats(); s.Refused[Malformed] != 2 || s.Unused[Malformed] != 2*second || s.Samples != 2*second+taken {
		t.Errorf("%+v, want %d samples for a frame", s, second)
	}
	send(t, c, framed(fmt.Appendf(nil, `{"session": 1, "first": 50, "time_ns": %d, "tool": "T\u200b1", "channels": {"c": [1, 2]}}`, origin.UnixNano())))
	expect(t, r, "refused 5: malformed: ")
	if s := f.Stats(); s.Unused[Malformed] != 2*second+10*uint64(len(f.Layout().Groups()[1].Channels)) {
		t.Errorf("%+v: it counts as the frame before it", s)
	}
}

// A client that was sent away is served when it comes again at once, also before it has closed the old connection.
func TestTCPComesAgain(t *testing.T) {
	t.Parallel()
	f := listen(t, Config{}, TCP{})
	for range 20 {
		c, r := dial(t, f.Addr())
		send(t, c, framed([]byte(`{"session": 1, "first": -1}`)))
		expect(t, r, "error frame 1: feed: ")
	}
}

// A machine has one client at a time; one that is silent makes room.
func TestTCPOneClient(t *testing.T) {
	t.Parallel()
	f := listen(t, Config{Timeout: patience}, TCP{})
	dial(t, f.Addr())
	await.Until(t, "the first is connected", func() bool { return f.Stats().Senders == 1 })
	_, second := dial(t, f.Addr())
	expect(t, second, "error feed: machine "+drill+" has a client already")

	f = listen(t, Config{Timeout: 300 * time.Millisecond}, TCP{})
	_, first := dial(t, f.Addr())
	expect(t, first, "error feed: no whole frame for 300ms")
	await.Until(t, "the next client's frames are there", func() bool {
		c, _ := dial(t, f.Addr())
		for channel, samples := range []int64{40, 10} {
			_, _ = c.Write(framed(piece(t, f.Layout(), channel, 1, 0, samples))) // it may be too late, or too early
		}
		return f.Stats().Frames > 1
	})
	if _, err := f.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A client that is faster than the disk has to wait: what is not taken is not
// read.
func TestTCPBackPressure(t *testing.T) {
	t.Parallel()
	f := listen(t, Config{}, TCP{})
	c, _ := dial(t, f.Addr())
	const frames = 2000
	wrote := make(chan error, 1)
	go func() {
		for i := range int64(frames) {
			if _, err := c.Write(framed(piece(t, f.Layout(), 1, 1, 1000*i, 1000*(i+1)))); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	await.Until(t, "the queue is full", func() bool { return f.Stats().Frames == queued })
	select {
	case err := <-wrote:
		t.Fatalf("8 MB are taken while nothing reads: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for i := range int64(frames) {
		b, err := f.Next(t.Context())
		if err != nil || b.First != 1000*i {
			t.Fatalf("frame %d: %v, %v", i, b, err)
		}
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// With TLS only who has a certificate that was signed may send.
func TestTCPWithTLS(t *testing.T) {
	t.Parallel()
	own, other := certificate(t), certificate(t)
	f := listen(t, Config{Timeout: patience}, TCP{TLS: own})
	for why, tc := range map[string]struct {
		files *credential.TLS
		ok    bool
	}{
		"signed":         {own, true},
		"no certificate": {&credential.TLS{CA: own.CA}, false},
		"a stranger's":   {&credential.TLS{CA: own.CA, Cert: other.Cert, Key: other.Key}, false},
	} {
		await.Until(t, "no client is connected", func() bool { return f.Stats().Senders == 0 })
		cfg, err := tc.files.Client()
		if err != nil {
			t.Fatal(err)
		}
		before := f.Stats().Frames
		c, err := tls.Dial("tcp", f.Addr(), cfg)
		if err == nil {
			_, _ = c.Write(framed(piece(t, f.Layout(), 1, 1, 0, 10)))
			if tc.ok {
				await.Until(t, "the frame is there", func() bool { return f.Stats().Frames == before+1 })
			} else if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s: the feed answers", why)
			}
			c.Close()
		} else if tc.ok {
			t.Errorf("%s: %v", why, err)
		}
		if !tc.ok && f.Stats().Frames != before {
			t.Errorf("%s: a frame is taken", why)
		}
	}
	if _, err := ListenTCP(Config{Machine: drill, Layout: layout(t)}, TCP{Listen: "127.0.0.1:0", TLS: &credential.TLS{CA: own.CA}}); err == nil {
		t.Error("a server without a certificate: no error")
	}
}

// certificate writes a certificate that is its own authority.
func certificate(t *testing.T) *credential.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "plant"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert := write("cert.pem", "CERTIFICATE", der)
	return &credential.TLS{CA: cert, Cert: cert, Key: write("key.pem", "PRIVATE KEY", pkcs8)}
}

// A client hears at once which frame is refused and why; its connection goes on, and what is acknowledged is
// in the order of its frames.
func TestTCPRefusesOneFrame(t *testing.T) {
	t.Parallel()
	f := listen(t, Config{}, TCP{})
	l := f.Layout()
	c, r := dial(t, f.Addr())
	send(t, c, framed(piece(t, l, 0, 1, 0, 20)))
	send(t, c, framed(floats(t, metadata("session", "1", "first", "99999999", "time_ns", strconv.FormatInt(origin.Add(time.Hour).UnixNano(), 10)), []string{"a", "b"}, []float32{1}, []float32{1})))
	send(t, c, framed(piece(t, l, 0, 1, 20, 40)))
	send(t, c, framed(piece(t, l, 1, 1, 0, 10)))
	for range 3 {
		if _, err := f.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, r, "refused 2: counter: first: 99999999 at ")
	f.Acked(1, 40)
	expect(t, r, "ok 4\n")
	if n := f.Stats().Refused[Counter]; n != 1 {
		t.Errorf("%d frames refused", n)
	}
}

// Who finds that there is a client finds which one: the place has a sender as soon as it is taken.
func TestPlaceHasSender(t *testing.T) {
	for range 5000 {
		s := &listener{Feed: &Feed{cfg: Config{Timeout: time.Minute}}, slot: make(chan struct{}, 1)}
		var wg sync.WaitGroup
		wg.Go(func() { s.take(&client{peer: "a"}) })
		for len(s.slot) == 0 {
			runtime.Gosched()
		}
		s.mu.Lock()
		none := s.sender == nil
		s.mu.Unlock()
		if wg.Wait(); none {
			t.Fatal("the place is taken, and no one has it")
		}
	}
}
