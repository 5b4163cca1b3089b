package bus

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"iter"
	"time"
)

// RenewAhead is how long before a certificate expires it should be renewed.
const RenewAhead = 30 * 24 * time.Hour

// Certificate is one that connections to Kafka depend on.
type Certificate struct {
	Whose    string // "client" or "broker"
	Name     string // its common name
	NotAfter time.Time
}

// Left returns how long the certificate lasts from now on. It is negative once it
// has expired.
func (c Certificate) Left(now time.Time) time.Duration { return c.NotAfter.Sub(now) }

// DaysLeft is Left in days.
func (c Certificate) DaysLeft(now time.Time) float64 { return c.Left(now).Hours() / 24 }

// Expiries yields whose certificate expires when. A file that cannot be read is reported by the next connection.
func (c Config) Expiries() iter.Seq2[string, time.Time] {
	return func(yield func(string, time.Time) bool) {
		certificates, _ := c.Certificates()
		for _, one := range certificates {
			if !yield(one.Whose, one.NotAfter) {
				return
			}
		}
	}
}

// Certificates returns this program's certificate, read from its file now, and the
// certificate of the broker of the last connection. For a broker it is the certificate
// of the chain that expires first. Certificates that are not used, or not known yet, are
// left out.
func (c Config) Certificates() ([]Certificate, error) {
	if c.TLS == nil {
		return nil, nil
	}
	var found []Certificate
	if c.TLS.Cert != "" {
		pair, err := c.TLS.Certificate()
		if err != nil {
			return nil, fmt.Errorf("bus: %w", err)
		}
		found = append(found, Certificate{"client", pair.Leaf.Subject.CommonName, pair.Leaf.NotAfter})
	}
	if b := c.TLS.broker.Load(); b != nil {
		found = append(found, *b)
	}
	return found, nil
}

// noteBroker remembers the certificates that a broker has shown.
func (t *TLS) noteBroker(state tls.ConnectionState) {
	if len(state.VerifiedChains) == 0 {
		return
	}
	// If several chains vouch for the broker, the one that lasts longest counts.
	var last *x509.Certificate
	for _, chain := range state.VerifiedChains {
		first := chain[0]
		for _, c := range chain {
			if c.NotAfter.Before(first.NotAfter) {
				first = c
			}
		}
		if last == nil || first.NotAfter.After(last.NotAfter) {
			last = first
		}
	}
	t.broker.Store(&Certificate{"broker", last.Subject.CommonName, last.NotAfter})
}
