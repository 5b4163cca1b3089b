package route

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
)

// Webhook is a program that gets each event as an HTTP POST.
//
// The request is a CloudEvent in the HTTP binding 1.0.2, in binary mode (headers
// ce-id, ce-type and so on, the event as the body) or in structured mode (one JSON
// object, the event as its data). Idempotency-Key and webhook-id are the event's
// id, percent-encoded where a header needs it, and the same at every attempt.
//
// With a secret the request is signed as Standard Webhooks has it
// (github.com/standard-webhooks/standard-webhooks, version 1): the header
// webhook-signature holds
//
//	"v1," + base64(HMAC-SHA256(secret, webhook-id + "." + webhook-timestamp + "." + body))
//
// for each line of the secret, with blanks between them: while a secret is
// renewed, the receiver may know the old one or the new one.
type Webhook struct {
	URL     string            `yaml:"url"`
	URLFile string            `yaml:"url_file"` // where the URL itself is a secret
	Mode    string            `yaml:"mode"`     // "binary" or "structured"; empty: binary
	Secret  credential.Secret `yaml:"secret"`   // of signatures; "whsec_" before base64, else taken as it is
	Token   credential.Secret `yaml:"token"`    // sent as bearer token
	TLS     *credential.TLS   `yaml:"tls"`
}

func (w *Webhook) check() error {
	if (w.URL == "") == (w.URLFile == "") {
		return badKey("url", "name the URL that takes the alerts, or in `url_file` the file that holds it")
	}
	key := "url"
	if w.URL == "" {
		key = "url_file"
	}
	_, badURL := w.url()
	_, badKeys := w.keys()
	return cmp.Or(
		config.Under(key, badURL),
		wrong(!slices.Contains([]string{"", "binary", "structured"}, w.Mode), "mode", "%q: choose binary (attributes as headers) or structured (one JSON object)", w.Mode),
		config.Under("token", w.Token.Check()),
		config.Under("secret", w.Secret.Check()),
		config.Under("secret", badKeys),
		checkFiles(w.TLS))
}

func (w *Webhook) resolve(file string) {
	w.URLFile = config.ResolvePath(file, w.URLFile)
	w.Secret, w.Token, w.TLS = w.Secret.Resolve(file), w.Token.Resolve(file), w.TLS.Resolve(file)
}

func (w *Webhook) target() string { return "a webhook at " + host(w.URL) }

func (w *Webhook) open(r *Route) (receiver, error) {
	return &webhookReceiver{cfg: *w, client: newHTTP(w.TLS, r.opt.Dial), now: r.time}, nil
}

// url returns where to send, as the file says now.
func (w *Webhook) url() (*url.URL, error) {
	text := w.URL
	if w.URLFile != "" {
		var err error
		if text, err = (credential.Secret{File: w.URLFile}).Read(); err != nil {
			return nil, err
		}
	}
	if err := credential.CheckURL(text, "http", "https", !w.Token.IsZero()); err != nil {
		return nil, err
	}
	return url.Parse(text)
}

// keys returns the secrets that sign now.
func (w *Webhook) keys() (keys [][]byte, err error) {
	if w.Secret.IsZero() {
		return nil, nil
	}
	lines, err := w.Secret.Lines()
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		key := []byte(line)
		if coded, ok := strings.CutPrefix(line, "whsec_"); ok {
			if key, err = base64.StdEncoding.DecodeString(coded); err != nil {
				return nil, fmt.Errorf("line %d: what follows whsec_ is not base64", i+1)
			}
		}
		if len(key) < 24 {
			return nil, fmt.Errorf("line %d: %d bytes are too few, 24 are needed: for example what `openssl rand -hex 32` prints", i+1, len(key))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

type webhookReceiver struct {
	cfg    Webhook
	client *http.Client
	now    func() time.Time
}

func (w *webhookReceiver) deliver(ctx context.Context, e *Event) error {
	now := w.now()
	to, err := w.cfg.url()
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	req := (&http.Request{Method: http.MethodPost, URL: to, Host: to.Host, Header: make(http.Header)}).WithContext(ctx)
	body := w.encode(req.Header, e)
	if trace := e.message.Header(event.TraceHeader); trace != nil {
		req.Header.Set("Traceparent", headerValue(string(trace)))
	}
	id := headerValue(e.ID)
	req.Header.Set("User-Agent", "flank")
	req.Header.Set("Idempotency-Key", id)
	req.Header.Set("Webhook-Id", id)
	stamp := strconv.FormatInt(now.Unix(), 10)
	req.Header.Set("Webhook-Timestamp", stamp)
	secrets, err := bearer(req, w.cfg.Token)
	if err != nil {
		return err
	}
	keys, err := w.cfg.keys()
	if err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	if w.cfg.URLFile != "" {
		secrets = append(secrets, to.String(), to.RequestURI())
	}
	var signatures []string
	for _, key := range keys {
		signatures = append(signatures, sign(key, id, stamp, body))
		secrets = append(secrets, string(key), base64.StdEncoding.EncodeToString(key))
	}
	if len(signatures) > 0 {
		req.Header.Set("Webhook-Signature", strings.Join(signatures, " "))
	}
	return post(w.client, req, body, secrets, now)
}

func sign(key []byte, id, stamp string, body []byte) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s.%s.", id, stamp)
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// encode sets the headers of the mode and returns the body.
func (w *webhookReceiver) encode(head http.Header, e *Event) []byte {
	if w.cfg.Mode != "structured" {
		head.Set("Content-Type", "application/json")
		for _, h := range e.message.Headers {
			if name, ok := strings.CutPrefix(h.Key, "ce_"); ok {
				head.Set("Ce-"+name, headerValue(string(h.Value)))
			}
		}
		return e.message.Value
	}
	head.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	whole := map[string]any{"datacontenttype": "application/json", "data": json.RawMessage(e.message.Value)}
	for _, h := range e.message.Headers {
		if name, ok := strings.CutPrefix(h.Key, "ce_"); ok {
			whole[name] = string(h.Value)
		}
	}
	body, err := json.Marshal(whole)
	if err != nil {
		panic("route: webhook: " + err.Error()) // Open has read it as JSON
	}
	return body
}

// headerValue percent-encodes what a header cannot hold as it is: everything but
// printable ASCII, blanks, quotes and percent signs.
// (CloudEvents HTTP binding 1.0.2, §3.1.3.2.)
func headerValue(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (w *webhookReceiver) probe(ctx context.Context) (string, error) {
	to, err := w.cfg.url()
	if err != nil {
		return "", fmt.Errorf("url: %w", err)
	}
	return dialProbe(ctx, to, w.cfg.TLS)
}

func (w *webhookReceiver) close() { w.client.CloseIdleConnections() }
