package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/flank-tcm/flank/internal/credential"
)

// TLS says how connections are encrypted: TLS 1.3, nothing older. Its files are
// read anew for every connection, so a certificate is renewed by replacing them.
type TLS struct {
	CAFile     string // certificates that may sign the brokers'; empty: those of the system
	CertFile   string // this program's certificate, for brokers that ask for one; empty: none
	KeyFile    string // its key
	ServerName string // name in the brokers' certificates; empty: the host that is dialled

	broker atomic.Pointer[Certificate] // of the last handshake
}

// Login is a user with a password, for SCRAM-SHA-512. The password is read for
// every connection and kept nowhere.
type Login struct {
	User         string
	PasswordFile string // a file with nothing else; line breaks at its end do not count
	PasswordEnv  string // or an environment variable
}

// check reports what cannot work, before anything is dialled.
func (l *Login) check() error {
	if l.User == "" || (l.PasswordFile == "") == (l.PasswordEnv == "") {
		return errors.New("bus: a login needs a user, and either a file or an environment variable with the password")
	}
	_, err := l.password()
	return err
}

func (l *Login) password() (string, error) {
	text := os.Getenv(l.PasswordEnv)
	if l.PasswordFile != "" {
		b, err := os.ReadFile(l.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("bus: password of %s: %w", l.User, err)
		}
		text = strings.TrimRight(string(b), "\r\n")
	}
	if text == "" {
		return "", fmt.Errorf("bus: password of %s: %s is empty", l.User, l.PasswordFile+l.PasswordEnv)
	}
	return text, nil
}

// Name and Start make a Login what the client library asks when it connects.
func (l *Login) Name() string { return scram.SHA512.Name() }

func (l *Login) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	password, err := l.password()
	if err != nil {
		return nil, nil, err
	}
	m, err := scram.Mechanism(scram.SHA512, l.User, password)
	if err != nil {
		return nil, nil, fmt.Errorf("bus: password of %s cannot be used", l.User) // the cause may quote it
	}
	return m.Start(ctx)
}

// mechanism returns what logs in, or nil.
func (c Config) mechanism() sasl.Mechanism {
	if c.Login == nil {
		return nil
	}
	return c.Login
}

// clientConfig reads the files.
func (t *TLS) clientConfig() (*tls.Config, error) {
	files := credential.TLS{CA: t.CAFile, Cert: t.CertFile, Key: t.KeyFile, ServerName: t.ServerName}
	cfg, err := files.Client()
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	cfg.MinVersion = tls.VersionTLS13
	return cfg, nil
}

// connect connects to an address, in the clear.
func (c Config) connect(ctx context.Context, network, address string) (net.Conn, error) {
	if c.Network != nil {
		return c.Network.Dial(ctx, network, address)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
}

// dial connects to a broker, in the clear or through TLS.
func (c Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if c.TLS != nil {
		if conn, err = c.TLS.handshake(ctx, conn, address); err != nil {
			return nil, err
		}
	}
	return &guardedConn{Conn: conn}, nil
}

// handshake wraps conn, which it closes if it fails.
func (t *TLS) handshake(ctx context.Context, conn net.Conn, address string) (*tls.Conn, error) {
	cfg, err := t.clientConfig()
	if err == nil && cfg.ServerName == "" {
		cfg.ServerName, _, err = net.SplitHostPort(address)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS with %s: %w", address, err)
	}
	t.noteBroker(secure.ConnectionState())
	return secure, nil
}

// denied reports an error that says what this program wants to do is not allowed.
func denied(err error) bool {
	return errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.GroupAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed) ||
		errors.Is(err, kafka.TransactionalIDAuthorizationFailed)
}

// refused reports an error that says who this program is, or who the broker is, is
// not accepted. Once it was, it is tried again, like what is denied: certificates,
// passwords and rights are changed on both sides while programs run.
func refused(err error) bool {
	if errors.Is(err, kafka.SASLAuthenticationFailed) || errors.Is(err, kafka.UnsupportedSASLMechanism) {
		return true
	}
	var (
		certificate *tls.CertificateVerificationError
		notTLS      tls.RecordHeaderError
		remote      *net.OpError
	)
	return errors.As(err, &certificate) || errors.As(err, &notTLS) || errors.As(err, &remote) && remote.Op == "remote error"
}

// explainRefusal turns a refusal into words, or returns "".
func explainRefusal(err error, cfg Config) string {
	brokers := strings.Join(cfg.Brokers, ", ")
	user := "this program"
	if cfg.Login != nil {
		user = "user " + cfg.Login.User
	}
	var (
		invalid   x509.CertificateInvalidError
		unknownCA x509.UnknownAuthorityError
		wrongHost x509.HostnameError
		notTLS    tls.RecordHeaderError
		remote    *net.OpError
	)
	switch {
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return fmt.Sprintf("bus: %s does not let %s in: correct the user or the password", brokers, user)
	case errors.Is(err, kafka.UnsupportedSASLMechanism):
		return fmt.Sprintf("bus: %s does not offer SCRAM-SHA-512: add it to sasl.enabled.mechanisms of the broker, or correct the port", brokers)
	case errors.Is(err, kafka.TransactionalIDAuthorizationFailed):
		return fmt.Sprintf("%v: %s lacks the right Write on TransactionalId, prefix tcm-: grant it as deploy/kafka/acls.md says", err, user)
	case denied(err):
		return fmt.Sprintf("%v: %s lacks the right: grant it as deploy/kafka/acls.md says", err, user)
	case errors.As(err, &wrongHost):
		return fmt.Sprintf("bus: the certificate of %s is for another host (%v): correct `brokers` or set `server_name`", brokers, wrongHost)
	case errors.As(err, &invalid):
		return fmt.Sprintf("bus: the certificate of %s is not valid (%v): renew it, and check the clock of this machine", brokers, invalid)
	case errors.As(err, &unknownCA):
		return fmt.Sprintf("bus: the certificate of %s is signed by nobody we trust: set `ca` to the certificate that signed it", brokers)
	case errors.As(err, &notTLS):
		return fmt.Sprintf("bus: %s does not speak TLS: correct the port, or remove `tls`", brokers)
	case errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "protocol version"):
		return fmt.Sprintf("bus: %s does not speak TLS 1.3, and nothing older is spoken here: add TLSv1.3 to ssl.enabled.protocols of the broker", brokers)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Sprintf("bus: %s refuses our certificate (%v): set `cert` and `key` to one that it trusts and that has not expired", brokers, remote.Err)
	}
	return ""
}
