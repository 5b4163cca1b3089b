package feed

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/mqtttest"
)

// notices remembers what a feed says.
type notices struct {
	mu   sync.Mutex
	said []string
}

func (n *notices) add(x Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, fmt.Sprintf("%s: %v", x.Text, x.Err))
}

func (n *notices) has(part string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Contains(strings.Join(n.said, "\n"), part)
}

func subscribe(t *testing.T, addr string, set *Setting, change ...func(*Config, *MQTT)) (*Feed, *notices) {
	t.Helper()
	heard := &notices{}
	cfg := Config{Machine: drill, Layout: layout(t), Setting: set, Notify: heard.add, Timeout: patience}
	m := MQTT{Broker: addr, ClientID: "flank-test", Samples: SamplesTopic("flank", drill), Context: ContextTopic("flank", drill)}
	for _, c := range change {
		c(&cfg, &m)
	}
	f, err := DialMQTT(cfg, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, heard
}

func connected(f *Feed) func() bool { return func() bool { return f.Stats().Senders == 1 } }

func publish(t *testing.T, s *mqtttest.Broker, kind string, payload []byte, retain bool) {
	t.Helper()
	s.Publish(t, "flank/"+drill+"/"+kind, payload, retain)
}

// A right that is granted later ends no connection: the feed asks for its topics again.
func TestMQTTRightGrantedLater(t *testing.T) {
	t.Parallel()
	var refuse atomic.Bool
	refuse.Store(true)
	s := mqtttest.Start(t, mqtttest.Options{Refuse: &refuse})
	f, heard := subscribe(t, s.URL, nil)
	await.Until(t, "the refusal is in the log", func() bool { return heard.has("the MQTT broker refuses the topics") })
	refuse.Store(false)
	await.Until(t, "the broker is connected", connected(f))
	publish(t, s, "samples", []byte("no frame"), false)
	await.Until(t, "messages come", func() bool { return heard.has("a frame is refused") })
	if n := strings.Count(strings.Join(heard.said, "\n"), "refuses the topics"); n != 1 {
		t.Errorf("the refusal is %d times in the log", n)
	}
}

// What was not on disk when the feed ended comes again, and what came while there
// was none too.
func TestMQTT(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	f, heard := subscribe(t, s.URL, nil)
	l := f.Layout()
	await.Until(t, "the broker is connected", connected(f))
	publish(t, s, "samples", piece(t, l, 0, 1, 0, 40), false)
	publish(t, s, "samples", []byte("no frame"), false)
	publish(t, s, "samples", piece(t, l, 0, 1, 40, 80), false)
	publish(t, s, "samples", []byte(`{"session": 1, "first": 0, "time_ns": 1767592800000000000, "channels": {"c": [0,1,2,3,4,5,6,7,8,9]}}`), false)
	for i, want := range []int64{0, 40, 0} {
		b, err := f.Next(t.Context())
		if err != nil || b.First != want {
			t.Fatalf("block %d: %+v, %v", i, b, err)
		}
	}
	f.Acked(1, 40)
	inflight := func() int { return s.Inflight("flank-test") }
	await.Until(t, "the broker knows of the first and the bad frame", func() bool { return inflight() == 2 })
	await.Until(t, "the bad frame is reported", func() bool { return heard.has("a frame is refused: feed: the frame is not an Arrow IPC stream") })
	if n := f.Stats().Refused[Malformed]; n != 1 {
		t.Errorf("%d frames refused", n)
	}
	f.Close()
	publish(t, s, "samples", piece(t, l, 0, 1, 80, 120), false)

	f, _ = subscribe(t, s.URL, nil)
	f.Acked(1, 40) // as the spool has it
	seen := map[int64]bool{}
	for len(seen) < 2 {
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen[b.First] = true
	}
	if !seen[40] || !seen[80] {
		t.Errorf("blocks at %v, want 40 and 80", seen)
	}
	f.Acked(1, 120)
	await.Until(t, "all frames are acknowledged", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _ = f.Next(ctx) // what was on disk may come last
		return inflight() == 0
	})
}

// Two programs with one client id back off. Each warns once, naming the id and the remedy, and each has an
// error until a connection has lasted.
func TestMQTTClientIDTwice(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	f, heard := subscribe(t, s.URL, nil)
	await.Until(t, "the broker is connected", connected(f))
	g, other := subscribe(t, s.URL, nil)
	await.Until(t, "both say it", func() bool { return heard.has("does not last") && other.has("does not last") })
	if f.Err() == nil || g.Err() == nil {
		t.Errorf("the errors are %v and %v", f.Err(), g.Err())
	}
	for _, n := range []*notices{heard, other} {
		n.mu.Lock()
		said := strings.Join(n.said, "\n")
		n.mu.Unlock()
		if strings.Count(said, "does not last") != 1 || !strings.Contains(said, "another program connects to the MQTT broker with the client id flank-test") || !strings.Contains(said, "start a standby only after the first has stopped") {
			t.Errorf("%s", said)
		}
	}
	if f.Stats().Short < 3 || f.lives.Wait(0) < 400*time.Millisecond {
		t.Errorf("%d short connections, then a wait of %v", f.Stats().Short, f.lives.Wait(0))
	}
}

// A change of tool is heard, also one that was retained, and lasts.
func TestMQTTContext(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	publish(t, s, "context", []byte(`{"tool": "T08", "hole": "12", "spindle_speed": 1650}`), true)
	path := filepath.Join(t.TempDir(), "context.json")
	set, err := OpenSetting(path)
	if err != nil {
		t.Fatal(err)
	}
	f, heard := subscribe(t, s.URL, set)
	await.Until(t, "the retained tool is known", func() bool { return set.Context().Tool == "T08" })
	await.Until(t, "the broker is connected", connected(f))
	publish(t, s, "samples", floats(t, metadata(), []string{"c"}, []float32{1}), false)
	publish(t, s, "samples", floats(t, metadata(), []string{"a", "b"}, []float32{1}, []float32{2}), false)
	b, err := f.Next(t.Context())
	if err != nil || b.Tool != "T08" || b.Hole != "12" || b.SpindleSpeed != 1650 {
		t.Errorf("%+v, %v", b, err)
	}
	publish(t, s, "context", []byte(`{"tool": 9}`), false)
	publish(t, s, "context", []byte(`{"tool": "T09"}`), false)
	await.Until(t, "the new tool is known", func() bool { return set.Context().Tool == "T09" })
	await.Until(t, "both are reported", func() bool {
		return heard.has("a frame is refused: feed: context:") && heard.has(`context: tool "T09", hole "", 0 rev/min`)
	})
	if again, err := OpenSetting(path); err != nil || again.Context().Tool != "T09" {
		t.Errorf("after a restart: %+v, %v", again.Context(), err)
	}
}

// Only with the right password, and only at the right broker.
func TestMQTTSecure(t *testing.T) {
	own, other := certificate(t), certificate(t)
	pair, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := mqtttest.Start(t, mqtttest.Options{
		TLS:   &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Users: map[string]string{"ingest": "right"},
	})
	t.Setenv("MQTT_RIGHT", "right")
	t.Setenv("MQTT_WRONG", "wrong")
	for why, tc := range map[string]struct {
		login credential.Login
		files *credential.TLS
		want  string // empty: it works
	}{
		"a good login":        {credential.Login{User: "ingest", PasswordEnv: "MQTT_RIGHT"}, &credential.TLS{CA: own.CA}, ""},
		"a wrong password":    {credential.Login{User: "ingest", PasswordEnv: "MQTT_WRONG"}, &credential.TLS{CA: own.CA}, "0x"},
		"no login":            {credential.Login{}, &credential.TLS{CA: own.CA}, "0x"},
		"an unknown broker":   {credential.Login{User: "ingest", PasswordEnv: "MQTT_RIGHT"}, &credential.TLS{CA: other.CA}, "certificate"},
		"no certificates":     {credential.Login{User: "ingest", PasswordEnv: "MQTT_RIGHT"}, nil, "certificate"},
		"a name that differs": {credential.Login{User: "ingest", PasswordEnv: "MQTT_RIGHT"}, &credential.TLS{CA: own.CA, ServerName: "elsewhere"}, "certificate"},
	} {
		f, heard := subscribe(t, s.URL, nil, func(c *Config, m *MQTT) { m.Login, m.TLS = tc.login, tc.files })
		if tc.want == "" {
			await.Until(t, why, connected(f))
			publish(t, s, "samples", piece(t, f.Layout(), 1, 1, 0, 10), false)
			publish(t, s, "samples", piece(t, f.Layout(), 0, 1, 0, 40), false)
			if _, err := f.Next(t.Context()); err != nil {
				t.Error(err)
			}
		} else {
			await.Until(t, why, func() bool { return heard.has("the MQTT broker cannot be reached") })
			if f.Stats().Senders != 0 || heard.has("right") || heard.has("wrong") {
				t.Errorf("%s: %v", why, f.Stats())
			}
		}
		f.Close()
	}
}

// Impossible settings are reported before anything is dialled.
func TestMQTTCheck(t *testing.T) {
	t.Parallel()
	for why, m := range map[string]MQTT{
		"no scheme":                {Broker: "broker:1883"},
		"another protocol":         {Broker: "http://broker"},
		"a password in the open":   {Broker: "mqtt://broker", Login: credential.Login{User: "u", PasswordEnv: "HOME"}},
		"a password in the URL":    {Broker: "mqtts://u:p@broker"},
		"a login without password": {Broker: "mqtts://broker", Login: credential.Login{User: "u"}},
		"an empty password":        {Broker: "mqtts://broker", Login: credential.Login{User: "u", PasswordEnv: "FLANK_NOT_SET"}},
		"no file of certificates":  {Broker: "mqtts://broker", TLS: &credential.TLS{CA: "absent.pem"}},
		"a certificate, no key":    {Broker: "mqtts://broker", TLS: &credential.TLS{Cert: "absent.pem"}},
	} {
		if err := m.Check(); err == nil {
			t.Errorf("%s: no error", why)
		}
		if _, err := DialMQTT(Config{Machine: drill, Layout: layout(t)}, m); err == nil {
			t.Errorf("%s: no error of DialMQTT", why)
		}
	}
	if err := (MQTT{Broker: "mqtt://127.0.0.1", Login: credential.Login{User: "u", PasswordEnv: "HOME"}}).Check(); err != nil {
		t.Error(err)
	}
}

// A frame that the broker had kept is of another time: it is refused, and what comes then is taken.
func TestMQTTRetainedFrame(t *testing.T) {
	t.Parallel()
	s := mqtttest.Start(t, mqtttest.Options{})
	publish(t, s, "samples", piece(t, layout(t), 0, 1, 0, 40), true)
	f, heard := subscribe(t, s.URL, nil)
	await.Until(t, "the retained frame is refused", func() bool { return f.Stats().Refused[Retained] == 1 && heard.has("without the retain flag") })
	publish(t, s, "samples", piece(t, f.Layout(), 0, 2, 0, 40), true) // to one that listens it is new
	publish(t, s, "samples", piece(t, f.Layout(), 1, 2, 0, 10), false)
	if b, err := f.Next(t.Context()); err != nil || b.Session != 2 {
		t.Errorf("%+v, %v", b, err)
	}
}
