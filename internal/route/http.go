package route

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/flank-tcm/flank/internal/config/credential"
)

// newHTTP returns a client that reads the files of TLS for every connection and
// follows no redirects: a signed request is for the receiver it was signed for. Without TLS
// it connects with dial; nil means the network of the system.
func newHTTP(files *credential.TLS, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:  dial,
			Proxy:        http.ProxyFromEnvironment,
			MaxIdleConns: 4,

			MaxResponseHeaderBytes: 64 << 10,
			IdleConnTimeout:        90 * time.Second,
			DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialTLS(ctx, files, network, address)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dialTLS connects by TLS, with the files as they are now.
func dialTLS(ctx context.Context, files *credential.TLS, network, address string) (net.Conn, error) {
	cfg, err := files.Client()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: cfg}).DialContext(ctx, network, address)
}

// dialProbe connects to the host of a URL and closes the connection. It returns what it
// found.
func dialProbe(ctx context.Context, u *url.URL, files *credential.TLS) (string, error) {
	secure := u.Scheme == "https"
	port := cmp.Or(u.Port(), map[bool]string{false: "80", true: "443"}[secure])
	addr := net.JoinHostPort(u.Hostname(), port)
	if !secure {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return "", dialError(err)
		}
		conn.Close()
		return addr + " answers", nil
	}
	conn, err := dialTLS(ctx, files, "tcp", addr)
	if err != nil {
		return "", dialError(err)
	}
	defer conn.Close()
	cert := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	return fmt.Sprintf("%s answers, TLS, certificate until %s", addr, cert.NotAfter.UTC().Format(time.DateOnly)), nil
}

// dialError adds a remedy to the error of a receiver that cannot be reached.
func dialError(err error) error {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("%w: correct the address, or the name server of this machine", err)
	case errors.As(err, &cert):
		return fmt.Errorf("%w: name the CA that signed it in `tls: {ca: FILE}`", err)
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer within the `timeout`: check the receiver, the network and firewalls")
	}
	return fmt.Errorf("%w: check the address, and that the receiver runs", err)
}

// post sends a body. It returns nil, a refusal, a later, or an error to retry. No error
// quotes a secret.
func post(client *http.Client, req *http.Request, body []byte, secrets []string, now time.Time) error {
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	res, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the URL, which may hold a token
		}
		return dialError(err)
	}
	defer res.Body.Close()
	head, err := io.ReadAll(io.LimitReader(res.Body, 16<<10))
	if res.StatusCode/100 == 2 {
		if err != nil {
			return fmt.Errorf("the connection ended within the answer (%w)", err)
		}
		return nil
	}
	err = fmt.Errorf("the receiver answers %s%s", res.Status, quoted(head, secrets))
	switch code := res.StatusCode; {
	case code/100 == 3:
		return fmt.Errorf("%w: redirects are not followed: correct the URL", err)
	case code == http.StatusUnauthorized, code == http.StatusProxyAuthRequired:
		return fmt.Errorf("%w: correct the token or the password; no restart is needed", err)
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code/100 != 4:
		return &later{err, retryAfter(res.Header.Get("Retry-After"), now)}
	}
	return &refusal{err}
}

// quoted returns the beginning of an answer for an error, without secrets.
func quoted(head []byte, secrets []string) string {
	text := strings.ToValidUTF8(string(head), "")
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if text == "" {
		return ""
	}
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return ": " + strconv.Quote(text)
}

// retryAfter returns the time that a Retry-After says, in either of its forms, or
// 0. (RFC 9110, §10.2.3.)
func retryAfter(text string, now time.Time) time.Duration {
	if s, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// bearer puts a token into a request, if there is one. It returns the secrets, which
// errors must not quote.
func bearer(req *http.Request, token credential.Secret) (secrets []string, err error) {
	if token.IsZero() {
		return nil, nil
	}
	text, err := token.Read()
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+text)
	return []string{text}, nil
}
