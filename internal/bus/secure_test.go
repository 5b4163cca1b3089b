package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// The rights in deploy/kafka/acls.md are enough, every one of them is needed, and every
// refusal has its own message.
func TestKafkaSecured(t *testing.T) {
	needKafka(t)
	k := kafkatest.StartSecure(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const secret = "s3cret-of-the-plant"
	for _, name := range []string{"ingest", "monitor", "trainer", "stranger"} {
		k.User(t, name, secret)
	}
	k.GrantDocumented(t, "ingest")
	k.GrantDocumented(t, "monitor")
	k.GrantDocumented(t, "trainer")
	password := file("password", secret+"\n")
	as := func(user string) Config {
		return Config{Brokers: []string{k.Addr}, ClientID: user, TLS: &TLS{TLS: credential.TLS{CA: k.CAFile()}}, Login: &credential.Login{User: user, PasswordFile: password}}
	}
	adminCert, adminKey := k.Issue(t, "admin", time.Now().Add(time.Hour)).WriteFiles(t, dir, "admin")
	admin := Config{Brokers: []string{k.MTLS}, TLS: &TLS{TLS: credential.TLS{CA: k.CAFile(), Cert: adminCert, Key: adminKey}}}
	apply(t, admin, 1)
	k.User(t, administrator, secret)
	k.GrantDocumented(t, administrator)
	keeper := as(administrator)
	keeper.Retain = map[string]Retain{TopicWindows: {Time: time.Hour}}
	if s := statusOf(t, mustApply(t, keeper, 1), TopicWindows); s.Retain.Time != time.Hour {
		t.Errorf("retained as the administrator: %+v", s)
	}

	send(t, newProducer(t, as("ingest")), windows("k", 0, 20))
	c := newCollector()
	stop := runGroup(t, as("monitor"), c.handle)
	c.wait(t, 20)
	stop()
	send(t, newProducer(t, as("monitor")), []Message{{Topic: TopicResults, Key: "k"}, {Topic: TopicState, Key: "k"}, {Topic: TopicAlerts, Key: "k"}, {Topic: TopicDead, Key: "k"}})

	withPartition(t, as("monitor"), func(ctx context.Context, p *Partition) {
		txn := fence(t, ctx, p)
		if err := txn.Publish(ctx, []Message{message(TopicResults, "k", 1), message(TopicState, "k", 1), message(TopicAlerts, "k", 1)}, nil); err != nil {
			t.Errorf("in a transaction: %v", err)
		}
	})
	k.Grant(t, "stranger", kafka.ACLEntry{ResourceType: kafka.ResourceTypeGroup, ResourceName: "tcm-", ResourcePatternType: kafka.PatternTypePrefixed, Operation: kafka.ACLOperationTypeRead},
		kafka.ACLEntry{ResourceType: kafka.ResourceTypeTopic, ResourceName: TopicModels, ResourcePatternType: kafka.PatternTypeLiteral, Operation: kafka.ACLOperationTypeRead})
	noID, _ := NewGroup(as("stranger"), "tcm-no-id", TopicModels)
	err := noID.Run(testContext(t), func(ctx context.Context, p *Partition) error {
		_, err := p.Fence(ctx)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "user stranger lacks the right Write on TransactionalId, prefix tcm-") {
		t.Errorf("no right to the transactional id: %v", err)
	}

	other, err := filepath.Abs(filepath.Join(dir, "other.crt"))
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := kafkatest.Stranger()
	if err != nil {
		t.Fatal(err)
	}
	strangerCert, strangerKey := stranger.WriteFiles(t, dir, "other")
	expiredCert, expiredKey := k.Issue(t, "ingest", time.Now().Add(-time.Minute)).WriteFiles(t, dir, "expired")
	mtls := func(cert, key string) Config {
		return Config{Brokers: []string{k.MTLS}, TLS: &TLS{TLS: credential.TLS{CA: k.CAFile(), Cert: cert, Key: key}}}
	}
	trying := func(cfg Config, topic string) error {
		p, err := NewProducer(cfg)
		if err != nil {
			return err
		}
		defer p.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		return p.Send(ctx, []Message{{Topic: topic, Key: "k"}})
	}
	with := func(cfg Config, change func(*Config)) Config {
		change(&cfg)
		return cfg
	}
	var refusals sync.WaitGroup
	for name, tc := range map[string]struct {
		cfg   Config
		topic string
		want  string
	}{
		"wrong password":        {with(as("ingest"), func(c *Config) { c.Login = &credential.Login{User: "ingest", PasswordFile: file("wrong", "wrong")} }), TopicWindows, "does not let user ingest in"},
		"unknown user":          {as("mallory"), TopicWindows, "does not let user mallory in"},
		"in the clear":          {with(as("ingest"), func(c *Config) { c.TLS, c.Login = nil, nil }), TopicWindows, "TLS"},
		"without a password":    {with(as("ingest"), func(c *Config) { c.Login = nil }), TopicWindows, "closed the connection"},
		"authority not trusted": {with(as("ingest"), func(c *Config) { c.TLS = &TLS{TLS: credential.TLS{CA: other}} }), TopicWindows, "signed by an authority that this program does not trust"},
		"another host":          {with(as("ingest"), func(c *Config) { c.TLS = &TLS{TLS: credential.TLS{CA: k.CAFile(), ServerName: "kafka.example"}} }), TopicWindows, "is for another host"},
		"no certificate":        {mtls("", ""), TopicWindows, "refuses this program's certificate"},
		"certificate expired":   {mtls(expiredCert, expiredKey), TopicWindows, "refuses this program's certificate"},
		"stranger":              {mtls(strangerCert, strangerKey), TopicWindows, "refuses this program's certificate"},
		"no right to the topic": {as("stranger"), TopicWindows, "no right to it"},
		"may not write windows": {as("trainer"), TopicWindows, "user trainer lacks the right"},
		"may not write alerts":  {as("ingest"), TopicAlerts, "no right to it"},
	} {
		refusals.Go(func() { // each takes up to its patience
			err := trying(tc.cfg, tc.topic)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", name, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the password is in %q", name, err)
			}
		})
	}
	refusals.Wait()
	checkSteps(t, as("ingest"), "", "")
	checkSteps(t, with(as("ingest"), func(c *Config) { c.TLS = &TLS{TLS: credential.TLS{CA: other}} }), "tls", "signed by an authority that this program does not trust")
	checkSteps(t, mtls(expiredCert, expiredKey), "tls", "refuses this program's certificate")
	checkSteps(t, as("mallory"), "sasl", "does not let user mallory in")
	checkSteps(t, as("stranger"), "topics", "no right to it")
	checkSteps(t, as("trainer"), "acl", "user trainer lacks the right")
	checkStepsOf(t, as("monitor"), monitorNeeds, "", "")
	others := monitorNeeds
	others.Group = "other"
	checkStepsOf(t, as("monitor"), others, "acl", "join group other: [30] Group Authorization Failed")
	others.Group, others.Transactional = monitorNeeds.Group, "other-check"
	checkStepsOf(t, as("monitor"), others, "acl", "write in transactions as other-check: [53]")
	checkStepsOf(t, as("monitor"), Needs{Read: []string{TopicResults}}, "acl", "read topic tcm.results.v1: [29]")
	checkStepsOf(t, as("ingest"), monitorNeeds, "topics", "no right to it")
	a, err := OpenAdmin(as("monitor"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Raise(testContext(t), TopicWindows, 4); err == nil || !strings.Contains(err.Error(), "user monitor lacks the right") {
		t.Errorf("raised by a monitor: %v", err)
	}

	g, err := NewGroup(with(as("monitor"), func(*Config) {}), "other", TopicWindows)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(testContext(t), c.handle); !errors.Is(err, kafka.GroupAuthorizationFailed) || !strings.Contains(err.Error(), "lacks the right") {
		t.Errorf("a group outside tcm-: %v", err)
	}

	// A running program goes on when its certificate and password change.
	liveCert, liveKey := k.Issue(t, "ingest", time.Now().Add(time.Hour)).WriteFiles(t, dir, "live")
	cert, login := newProducer(t, mtls(liveCert, liveKey)), newProducer(t, as("ingest"))
	send(t, cert, windows("cert", 0, 5))
	send(t, login, windows("login", 0, 5))
	k.Issue(t, "ingest", time.Now().Add(-time.Minute)).WriteFiles(t, dir, "live") // the certificate expires
	k.User(t, "ingest", "another")
	cert.c.t.reset() // as after a broker's restart
	login.c.t.reset()
	done := make(chan error, 2)
	go func() { done <- cert.Send(testContext(t), windows("cert", 5, 10)) }()
	go func() { done <- login.Send(testContext(t), windows("login", 5, 10)) }()
	select {
	case err := <-done:
		t.Fatalf("Send with expired credentials: %v", err)
	case <-time.After(time.Second):
	}
	k.Issue(t, "ingest", time.Now().Add(time.Hour)).WriteFiles(t, dir, "live")
	file("password", "another")
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("after certificate and password were replaced: %v", err)
		}
	}
}

// checkSteps fails the test unless the named step fails and all steps before it work.
func checkSteps(t *testing.T, cfg Config, fails, want string) {
	t.Helper()
	checkStepsOf(t, cfg, Needs{Write: []string{TopicWindows}}, fails, want)
}

// administrator is the principal with the rights of that row of deploy/kafka/acls.md.
const administrator = "the administrator"

// monitorNeeds is what cmd/monitor needs.
var monitorNeeds = Needs{
	Read: []string{TopicWindows, TopicState}, Write: []string{TopicState, TopicResults, TopicAlerts, TopicDead},
	Group: "tcm-monitor", Alike: MachineTopics(), Transactional: "tcm-monitor-check",
}

func checkStepsOf(t *testing.T, cfg Config, needs Needs, fails, want string) {
	t.Helper()
	steps, err := Steps(cfg, needs)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		found, err := s.Run(testContext(t))
		if s.Name == fails {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q, %v, want %q", s.Name, found, err, want)
			}
			return
		}
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			return
		}
	}
	if fails != "" {
		t.Errorf("no step %s", fails)
	}
}

// The steps on a broker without security, from no topic to all of them.
func TestSteps(t *testing.T) {
	cfg := anyBroker(t)
	checkSteps(t, cfg, "topics", "`ingest topics apply`")
	createTopic(t, cfg, TopicWindows, 1, "max.message.bytes", "1000")
	checkSteps(t, cfg, "topics", "set its max.message.bytes to 8388608")
	deleteTopic(t, cfg, TopicWindows)
	apply(t, cfg, 2)
	checkSteps(t, cfg, "", "")
	checkStepsOf(t, cfg, monitorNeeds, "", "")
	checkStepsOf(t, cfg, Needs{Read: []string{TopicWindows, TopicDead}, Alike: []string{TopicWindows, TopicDead}}, "topics", "tcm.windows.v1 has 2 partitions, tcm.dlq.v1 has 1 partition: run `ingest topics grow --partitions 2`")
	send(t, newProducer(t, cfg), windows("k", 0, 3))
	checkSteps(t, cfg, "", "")
	checkSteps(t, Config{Brokers: []string{"no-such-host.invalid:9092"}}, "dns", "no address for no-such-host.invalid")
	checkSteps(t, Config{Brokers: []string{"127.0.0.1:1"}}, "tcp", "no Kafka broker answers at 127.0.0.1:1")
	if _, err := Steps(Config{}, Needs{}); err == nil {
		t.Error("no error without a broker")
	}
}

// Missing and wrong files are errors before any connection.
func TestSecretsInFiles(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FLANK_TEST_PASSWORD", "secret")
	for name, tc := range map[string]struct {
		tls   *TLS
		login *credential.Login
		want  string
	}{
		"no CA":               {tls: &TLS{TLS: credential.TLS{CA: filepath.Join(dir, "none")}}, want: "certificates to trust"},
		"CA is empty":         {tls: &TLS{TLS: credential.TLS{CA: empty}}, want: "holds no certificate"},
		"key without":         {tls: &TLS{TLS: credential.TLS{Key: empty}}, want: "a certificate needs its key"},
		"not a certificate":   {tls: &TLS{TLS: credential.TLS{Cert: empty, Key: empty}}, want: "certificate " + empty},
		"no user":             {login: &credential.Login{PasswordEnv: "FLANK_TEST_PASSWORD"}, want: "needs a user"},
		"no password":         {login: &credential.Login{User: "u"}, want: "name either `password_file` or `password_env`"},
		"two passwords":       {login: &credential.Login{User: "u", PasswordEnv: "FLANK_TEST_PASSWORD", PasswordFile: empty}, want: "name either `password_file` or"},
		"password file":       {login: &credential.Login{User: "u", PasswordFile: filepath.Join(dir, "none")}, want: "password of u"},
		"empty password file": {login: &credential.Login{User: "u", PasswordFile: empty}, want: "is empty"},
		"empty variable":      {login: &credential.Login{User: "u", PasswordEnv: "FLANK_TEST_NO_PASSWORD"}, want: "FLANK_TEST_NO_PASSWORD is empty"},
		"good":                {login: &credential.Login{User: "u", PasswordEnv: "FLANK_TEST_PASSWORD"}},
	} {
		err := Config{Brokers: []string{"127.0.0.1:1"}, TLS: tc.tls, Login: tc.login}.check()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// A program speaks only TLS 1.3 and SCRAM-SHA-512.
func TestOldProtocolsRefused(t *testing.T) {
	dir := t.TempDir()
	own, err := kafkatest.Stranger()
	if err != nil {
		t.Fatal(err)
	}
	cert, key := own.WriteFiles(t, dir, "old")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MaxVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
	}()
	if err := Probe(testContext(t), Config{Brokers: []string{l.Addr().String()}, TLS: &TLS{}}); err == nil || !strings.Contains(err.Error(), "does not speak TLS 1.3") {
		t.Errorf("TLS 1.2: %v", err)
	}

	old, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL())
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	old.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) { // as Apache Kafka does
		old.KeepControl()
		res := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		res.ErrorCode, res.SupportedMechanisms = kerr.UnsupportedSaslMechanism.Code, []string{"PLAIN"}
		return res, nil, true
	})
	t.Setenv("FLANK_TEST_PASSWORD", "secret")
	cfg := Config{Brokers: old.ListenAddrs(), Login: &credential.Login{User: "ingest", PasswordEnv: "FLANK_TEST_PASSWORD"}}
	p := newProducer(t, cfg)
	for what, err := range map[string]error{"Probe": Probe(testContext(t), cfg), "Send": p.Send(testContext(t), windows("k", 0, 1))} {
		if err == nil || !strings.Contains(err.Error(), "does not offer SCRAM-SHA-512: add it to sasl.enabled.mechanisms") {
			t.Errorf("%s without SCRAM-SHA-512: %v", what, err)
		}
	}
}

// Of several certificates, the one that expires first counts.
func TestCertificates(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	cert := func(name string, days int) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: now.AddDate(0, 0, days)}
	}
	short, long := cert("root", 20), cert("new root", 4000)
	cfg := Config{TLS: &TLS{}}
	if got, err := cfg.Certificates(); err != nil || len(got) != 0 {
		t.Errorf("before a connection: %v, %v", got, err)
	}
	for _, tc := range []struct {
		chains [][]*x509.Certificate
		name   string
		days   float64
	}{
		{[][]*x509.Certificate{{cert("broker", 100), cert("between", 300), long}}, "broker", 100},
		{[][]*x509.Certificate{{cert("broker", 100), short}}, "root", 20},
		{[][]*x509.Certificate{{cert("broker", 100), short}, {cert("broker", 100), long}}, "broker", 100}, // one that lasts is enough
		{nil, "broker", 100}, // nothing was verified: nothing is learnt
	} {
		cfg.TLS.noteBroker(tls.ConnectionState{VerifiedChains: tc.chains})
		got, err := cfg.Certificates()
		if err != nil || len(got) != 1 || got[0].Whose != "broker" || got[0].Name != tc.name || got[0].DaysLeft(now) != tc.days {
			t.Errorf("%v, %v, want %s with %v days", got, err, tc.name, tc.days)
		}
	}
	for left, want := range map[time.Duration]string{
		RenewAhead + time.Hour: "expires in 30 d", RenewAhead - time.Second: "expires in 29 d (renew it soon)", -time.Second: "has expired (renew it)",
	} {
		if got := expiry(Certificate{NotAfter: now.Add(left)}, now); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}
