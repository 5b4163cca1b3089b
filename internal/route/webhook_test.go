package route

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
)

// request is what a receiver got.
type request struct {
	head http.Header
	body []byte
}

// receiverOf starts a program that answers as the test says, and keeps requests.
func receiverOf(t *testing.T, answer func(w http.ResponseWriter, n int)) (*httptest.Server, func() []request) {
	t.Helper()
	var mu sync.Mutex
	var got []request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, request{r.Header.Clone(), body})
		n := len(got)
		mu.Unlock()
		if answer != nil {
			answer(w, n)
		}
	}))
	t.Cleanup(s.Close)
	return s, func() []request {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	secretOne = "0123456789abcdef0123456789abcdef"
	secretTwo = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // the example of Standard Webhooks
)

// A request in binary mode is a CloudEvent, signed so that the library of Standard
// Webhooks takes it, by each secret of the file as it is at that moment.
func TestWebhookSigned(t *testing.T) {
	s, got := receiverOf(t, nil)
	path := secretFile(t, secretOne+"\n")
	b := newBench(t, Config{Receivers: Receivers{Webhook: &Webhook{URL: s.URL + "/hook", Secret: credential.Secret{File: path}, Token: credential.Secret{File: secretFile(t, "bearer-of-news")}}}}, nil)
	m, without := alert(drill, 1, event.Raised), alert(drill, 2, event.Cleared)
	trace := event.TraceParent(event.AlertType, drill+"/00000000cafe0001/1/raised")
	without.Headers = slices.DeleteFunc(without.Headers, func(h bus.Header) bool { return h.Key == event.TraceHeader })
	verify := func(r request, secret string) error {
		w, err := standardwebhooks.NewWebhookRaw([]byte(secret))
		if strings.HasPrefix(secret, "whsec_") {
			w, err = standardwebhooks.NewWebhook(secret)
		}
		if err != nil {
			t.Fatal(err)
		}
		return w.VerifyIgnoringTimestamp(r.body, r.head)
	}
	b.play(t, newTape(m))
	if err := os.WriteFile(path, []byte(secretTwo+"\n"+secretOne+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.play(t, newTape(without))
	all := got()
	if len(all) != 2 {
		t.Fatalf("%d requests", len(all))
	}
	first, second := all[0], all[1]
	if verify(first, secretOne) != nil || verify(second, secretOne) != nil || verify(second, secretTwo) != nil {
		t.Error("a signature is not taken")
	}
	if verify(first, secretTwo) == nil {
		t.Error("a signature of another secret is taken")
	}
	if got := second.head.Get("Traceparent"); got != "" { // the alert had none
		t.Errorf("Traceparent is %q", got)
	}
	first.body = append(first.body, ' ')
	if verify(first, secretOne) == nil {
		t.Error("a changed body is taken")
	}
	id := drill + "/00000000cafe0001/1/raised"
	for name, want := range map[string]string{
		"Ce-Id": id, "Ce-Specversion": "1.0", "Ce-Type": "io.tcm.alert.v1", "Ce-Source": "/" + drill, "Ce-Time": "2026-11-02T02:13:42Z",
		"Content-Type": "application/json", "Idempotency-Key": id, "Webhook-Id": id, "Webhook-Timestamp": fmt.Sprint(b.clock.Unix()), "Authorization": "Bearer bearer-of-news",
		"Traceparent": trace,
	} {
		if got := first.head.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if string(first.body[:len(first.body)-1]) != string(m.Value) {
		t.Errorf("body %s", first.body)
	}
}

// In structured mode all is in one JSON object.
func TestWebhookStructured(t *testing.T) {
	s, got := receiverOf(t, nil)
	b := newBench(t, Config{Receivers: Receivers{Webhook: &Webhook{URL: s.URL, Mode: "structured"}}}, nil)
	m := alert(drill, 1, event.Raised)
	b.play(t, newTape(m))
	var e struct {
		SpecVersion, ID, Type, Source, Time, DataContentType string
		Data                                                 event.Alert
	}
	r := got()[0]
	if err := json.Unmarshal(r.body, &e); err != nil {
		t.Fatal(err)
	}
	if e.SpecVersion != "1.0" || e.ID != string(m.Header("ce_id")) || e.Type != event.AlertType || e.Source != "/"+drill || e.Time != "2026-11-02T02:13:42Z" ||
		e.DataContentType != "application/json" || e.Data.Incident != "A-K3ZQ7M2P" || r.head.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" || r.head.Get("Ce-Id") != "" {
		t.Errorf("%+v\n%v", e, r.head)
	}
}

// A receiver is reached over the network that the options name.
func TestDial(t *testing.T) {
	s, got := receiverOf(t, nil)
	var asked string
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		asked = address
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}
	r, err := New(Config{Name: "r", Receivers: Receivers{Webhook: &Webhook{URL: "http://far.example/alerts"}}}, Options{Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.to.deliver(t.Context(), opened(t, alert(drill, 1, event.Raised))); err != nil || asked != "far.example:80" || len(got()) != 1 {
		t.Errorf("dialled %q, %d requests: %v", asked, len(got()), err)
	}
}

// Answers, and what becomes of the event.
func TestWebhookAnswers(t *testing.T) {
	for code, want := range map[int]string{ // of the first answer; the second is 200
		200: "taken", 202: "taken", 204: "taken",
		301: "tried again", 307: "tried again", // redirects are not followed
		400: "refused", 403: "refused", 404: "refused", 409: "refused", 410: "refused", 413: "refused", 422: "refused",
		401: "tried again", 407: "tried again", // is not about the event
		408: "tried again", 425: "tried again", 429: "tried again",
		500: "tried again", 502: "tried again", 503: "tried again", 504: "tried again",
	} {
		s, got := receiverOf(t, func(w http.ResponseWriter, n int) {
			if n == 1 {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(code)
			}
		})
		b := newBench(t, Config{Receivers: Receivers{Webhook: &Webhook{URL: s.URL}}}, nil)
		dead := b.play(t, newTape(alert(drill, 1, event.Raised)))
		became := "taken"
		switch all := got(); {
		case len(dead.letters) == 1:
			became = "refused"
		case len(all) == 2 && all[0].head.Get("Idempotency-Key") == all[1].head.Get("Idempotency-Key"):
			became = "tried again"
		}
		if became != want {
			t.Errorf("%d: %s, want %s", code, became, want)
		}
	}
}

// A receiver that hangs, ends the connection, or answers half is tried again under
// the same key.
func TestWebhookTrouble(t *testing.T) {
	release := make(chan struct{})
	s, got := receiverOf(t, func(w http.ResponseWriter, n int) {
		switch n {
		case 1:
			<-release // hangs until long after the timeout
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
		}
	})
	defer close(release)
	b := newBench(t, Config{Timeout: 50 * time.Millisecond, Receivers: Receivers{Webhook: &Webhook{URL: s.URL}}}, nil)
	b.timeout = time.Minute
	ask := b.to.(*webhookReceiver)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	e := opened(t, alert(drill, 1, event.Raised))
	if err := ask.deliver(ctx, e); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a receiver that hangs: %v", err)
	}
	b.play(t, newTape(alert(drill, 1, event.Raised)))
	all := got()
	if len(all) != 4 {
		t.Fatalf("%d requests, want one for each trouble and a good one\n%s", len(all), &b.log)
	}
	for i, r := range all {
		if r.head.Get("Idempotency-Key") != e.ID || string(r.body) != string(e.message.Value) {
			t.Errorf("attempt %d: %v", i, r.head)
		}
	}
}

// The receiver says when to try again, in seconds or as a date.
func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "Mon, 02 Nov 2026 03:15:41 GMT": 2 * time.Minute, "": 0, "soon": 0, "-5": 0, "Mon, 02 Nov 2020 03:15:41 GMT": 0, "99999999999999": 0,
	} {
		if got := retryAfter(text, monday.Add(time.Hour)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	s, _ := receiverOf(t, func(w http.ResponseWriter, n int) {
		if n == 1 {
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	b := newBench(t, Config{Receivers: Receivers{Webhook: &Webhook{URL: s.URL}}}, nil)
	b.play(t, newTape(alert(drill, 1, event.Raised)))
	if len(b.waits) != 1 || b.waits[0] != 5*time.Minute {
		t.Errorf("waited %v", b.waits)
	}
}

// An error message never holds a secret, for any answer of the receiver.
func TestWebhookSaysNoSecrets(t *testing.T) {
	t.Setenv("HOOK_TOKEN", "bearer-of-news")
	s, _ := receiverOf(t, func(w http.ResponseWriter, n int) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "token bearer-of-news, key %s, path /services/T0/B0/verysecret\n\x1b[31m", secretOne)
	})
	b := newBench(t, Config{Receivers: Receivers{Webhook: &Webhook{
		URLFile: secretFile(t, s.URL+"/services/T0/B0/verysecret"), Secret: credential.Secret{File: secretFile(t, secretOne)}, Token: credential.Secret{Env: "HOOK_TOKEN"},
	}}}, nil)
	e := opened(t, alert(drill, 1, event.Raised))
	said := []string{b.target}
	err := b.to.deliver(t.Context(), e)
	if err == nil || !strings.Contains(err.Error(), "500 Internal Server Error: \"token ***") {
		t.Error(err)
	}
	said = append(said, fmt.Sprint(err))
	s.Close()
	err = b.to.deliver(t.Context(), e)
	if err == nil || !strings.Contains(err.Error(), "check the address") {
		t.Error(err)
	}
	said = append(said, fmt.Sprint(err))
	_, err = b.to.probe(t.Context())
	for _, text := range append(said, fmt.Sprint(err)) {
		for _, secret := range []string{"bearer-of-news", secretOne, "verysecret", "\x1b"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in %q", secret, text)
			}
		}
	}
}

// What a header cannot hold is encoded, so that nothing can be put into a request.
func TestHeaderValue(t *testing.T) {
	for text, want := range map[string]string{
		"acme/m/00/1/raised": "acme/m/00/1/raised", "Fräse 1": "Fr%C3%A4se%201", "a\r\nX-Evil: 1": "a%0D%0AX-Evil:%201", "100%": "100%25", `"`: "%22", "": "",
	} {
		if got := headerValue(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A certificate of an unknown authority is refused with the remedy; with the CA in
// the configuration it is accepted.
func TestWebhookTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	s.Config.ErrorLog = nil
	b := newBench(t, Config{Receivers: Receivers{Webhook: &Webhook{URL: s.URL}}}, nil)
	if err := b.to.deliver(t.Context(), opened(t, alert(drill, 1, event.Raised))); err == nil || !strings.Contains(err.Error(), "tls: {ca: FILE}") {
		t.Error(err)
	}
	ca := secretFile(t, string(pemOf(s.Certificate())))
	b = newBench(t, Config{Receivers: Receivers{Webhook: &Webhook{URL: s.URL, TLS: &credential.TLS{CA: ca}}}}, nil)
	if err := b.to.deliver(t.Context(), opened(t, alert(drill, 1, event.Raised))); err != nil {
		t.Error(err)
	}
	if found, err := b.to.probe(t.Context()); err != nil || !strings.Contains(found, "TLS, certificate until ") {
		t.Errorf("%q, %v", found, err)
	}
}

// A receiver cannot make a route wait for a time that is negative.
func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"120", "Mon, 02 Nov 2026 03:15:41 GMT", "-5", "99999999999999", "Monday, 02-Nov-26 03:15:41 GMT"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d := retryAfter(text, monday); d < 0 {
			t.Fatalf("%q: %v", text, d)
		}
	})
}

// A header that is not an attribute of CloudEvents cannot be one of HTTP: the message is set aside, and no request is tried for ever.
func TestAttributeNames(t *testing.T) {
	for _, name := range []string{"ce_", "ce_two words", "ce_line\nbreak", "ce_Größe", "ce_x:y"} {
		m := alert(drill, 1, event.Raised)
		m.Headers = append(m.Headers, bus.Header{Key: name, Value: []byte("x")})
		if _, err := open(m); err == nil || !strings.Contains(err.Error(), "not an event that Flank sent") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
