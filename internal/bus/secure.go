package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/flank-tcm/flank/internal/config/credential"
)

// TLS says how connections are encrypted: with TLS 1.3, not with older versions. Every
// connection reads the files again, so replacing them renews a certificate.
type TLS struct {
	credential.TLS

	broker atomic.Pointer[Certificate] // of the last handshake
}

// mechanism is SCRAM-SHA-512 for the client library. It reads the password again for every
// connection.
type mechanism struct{ login credential.Login }

func (m mechanism) Name() string { return scram.SHA512.Name() }

func (m mechanism) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	password, err := m.login.Password()
	if err != nil {
		return nil, nil, fmt.Errorf("bus: %w", err)
	}
	s, err := scram.Mechanism(scram.SHA512, m.login.User, password)
	if err != nil {
		return nil, nil, fmt.Errorf("bus: password of %s cannot be used", m.login.User) // the cause may quote it
	}
	return s.Start(ctx)
}

// mechanism returns the mechanism that logs in, or nil without a login.
func (c Config) mechanism() sasl.Mechanism {
	if c.Login == nil {
		return nil
	}
	return mechanism{*c.Login}
}

// clientConfig reads the files.
func (t *TLS) clientConfig() (*tls.Config, error) {
	cfg, err := t.Client()
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	cfg.MinVersion = tls.VersionTLS13
	return cfg, nil
}

// dial connects to a broker, in the clear or through TLS.
func (c Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.network().Dial(ctx, network, address)
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

// denied reports whether err says that this program lacks a right.
func denied(err error) bool {
	return errors.Is(err, kafka.TopicAuthorizationFailed) || errors.Is(err, kafka.GroupAuthorizationFailed) || errors.Is(err, kafka.ClusterAuthorizationFailed) ||
		errors.Is(err, kafka.TransactionalIDAuthorizationFailed)
}

// refused reports whether err says that the broker does not accept who this program is, or
// this program who the broker is. After a connection has once worked, such errors are
// tried again, as missing rights are: certificates, passwords and rights change on both
// sides while programs run.
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
	switch {
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return fmt.Sprintf("bus: %s does not let %s in: correct the user or the password", brokers, user)
	case errors.Is(err, kafka.UnsupportedSASLMechanism):
		return fmt.Sprintf("bus: %s does not offer SCRAM-SHA-512: add it to sasl.enabled.mechanisms of the broker, or correct the port", brokers)
	case errors.Is(err, kafka.TransactionalIDAuthorizationFailed):
		return fmt.Sprintf("%v: %s lacks the right Write on TransactionalId, prefix tcm-: grant it as deploy/kafka/acls.md says", err, user)
	case denied(err):
		return fmt.Sprintf("%v: %s lacks the right: grant it as deploy/kafka/acls.md says", err, user)
	}
	return explainTLS(err, brokers)
}

func explainTLS(err error, brokers string) string {
	var (
		invalid   x509.CertificateInvalidError
		unknownCA x509.UnknownAuthorityError
		wrongHost x509.HostnameError
		notTLS    tls.RecordHeaderError
		remote    *net.OpError
	)
	switch {
	case errors.As(err, &wrongHost):
		return fmt.Sprintf("bus: the certificate of %s is for another host (%v): correct `brokers` or set `server_name`", brokers, wrongHost)
	case errors.As(err, &invalid):
		return fmt.Sprintf("bus: the certificate of %s is not valid (%v): renew it, and check the clock of this machine", brokers, invalid)
	case errors.As(err, &unknownCA):
		return fmt.Sprintf("bus: the certificate of %s is signed by an authority that this program does not trust: set `ca` to the certificate that signed it", brokers)
	case errors.As(err, &notTLS):
		return fmt.Sprintf("bus: %s does not speak TLS: correct the port, or remove `tls`", brokers)
	case errors.As(err, &remote) && remote.Op == "remote error" && strings.Contains(remote.Err.Error(), "protocol version"):
		return fmt.Sprintf("bus: %s does not speak TLS 1.3, and this program speaks no older version: add TLSv1.3 to ssl.enabled.protocols of the broker", brokers)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Sprintf("bus: %s refuses this program's certificate (%v): set `cert` and `key` to one that it trusts and that has not expired", brokers, remote.Err)
	}
	return ""
}
