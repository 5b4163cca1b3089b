package pages

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/testkit/logtest"
	"github.com/flank-tcm/flank/internal/testkit/loopback"
	"github.com/flank-tcm/flank/internal/testkit/metrictest"
	"github.com/flank-tcm/flank/internal/web"
)

// A page is an address, or a mapping whose keys have defaults.
func TestPageYAML(t *testing.T) {
	usual := Config{Listen: "127.0.0.1:9102", Read: ReadOpen}
	for text, want := range map[string]Config{
		"{}":                         usual,
		`page: "0.0.0.0:1"`:          {Listen: "0.0.0.0:1", Read: ReadOpen},
		`page: ""`:                   {Read: ReadOpen},
		"page: {people: p.yaml}":     {Listen: "127.0.0.1:9102", People: "p.yaml", Read: ReadOpen},
		"page: {listen: \"\"}":       {Read: ReadOpen},
		"page: {tls: {cert: a.pem}}": {Listen: "127.0.0.1:9102", Read: ReadOpen, TLS: certificate{Cert: "a.pem"}},
		"page:\n  listen: a:1\n  read: token\n  hosts: [b, c]\n  insecure: true\n  tls: {cert: x, key: y}\n": {
			Listen: "a:1", Read: readToken, Hosts: []string{"b", "c"}, Insecure: true, TLS: certificate{"x", "y"},
		},
	} {
		c := struct{ Page Config }{usual}
		if err := config.Decode([]byte(text), "monitor.yaml", &c); err != nil || !same(c.Page, want) {
			t.Errorf("%s: %+v, %v", text, c.Page, err)
		}
	}
	for text, want := range map[string]string{
		"page: {lisen: a}":           "monitor.yaml:1: unknown key `lisen`",
		"page:\n  tls: {ca: a}":      "monitor.yaml:2: unknown key `ca`",
		"page:\n  insecure: perhaps": "monitor.yaml:2: `insecure: perhaps`: must be true or false",
		"page: [a]":                  "monitor.yaml:1: `page: [a]`: must be",
	} {
		c := struct{ Page Config }{usual}
		if err := config.Decode([]byte(text), "monitor.yaml", &c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func same(a, b Config) bool {
	x, y := a.Hosts, b.Hosts
	return a.Listen == b.Listen && a.People == b.People && a.Read == b.Read && a.TLS == b.TLS && a.Insecure == b.Insecure && slices.Equal(x, y)
}

// Which pages are refused at start. Tokens never travel without TLS unless someone says so.
func TestPageCheck(t *testing.T) {
	shared := credential.Secret{File: "page-token"}
	pair := certificate{"a.pem", "a.key"}
	for why, tc := range map[string]struct {
		page  Config
		token credential.Secret
		key   string // of the error
		says  string
	}{
		"no page":                            {Config{People: "p"}, shared, "", ""},
		"shown to all":                       {Config{Listen: "0.0.0.0:1", Read: ReadOpen}, credential.Secret{}, "", ""},
		"a token at home":                    {Config{Listen: "127.0.0.1:1", Read: ReadOpen}, shared, "", ""},
		"people at home":                     {Config{Listen: "[::1]:1", Read: readToken, People: "p"}, credential.Secret{}, "", ""},
		"localhost":                          {Config{Listen: "localhost:1", Read: readToken, People: "p"}, credential.Secret{}, "", ""},
		"a token for all to read":            {Config{Listen: "0.0.0.0:1", Read: ReadOpen}, shared, "page.listen", "insecure: true"},
		"people for all to read":             {Config{Listen: ":1", Read: ReadOpen, People: "p"}, credential.Secret{}, "page.listen", "tls: {cert: FILE, key: FILE}"},
		"by name":                            {Config{Listen: "usk25-monitor:1", Read: ReadOpen}, shared, "page.listen", `"usk25-monitor:1"`},
		"a plant's address":                  {Config{Listen: "10.0.0.7:1", Read: ReadOpen}, shared, "page.listen", "127.0.0.1 behind a proxy"},
		"all of IPv6":                        {Config{Listen: "[::]:1", Read: ReadOpen}, shared, "page.listen", ""},
		"someone says so":                    {Config{Listen: "0.0.0.0:1", Read: ReadOpen, Insecure: true}, shared, "", ""},
		"TLS":                                {Config{Listen: "0.0.0.0:1", Read: ReadOpen, TLS: pair}, shared, "", ""},
		"people and a token":                 {Config{Listen: "127.0.0.1:1", Read: ReadOpen, People: "p"}, shared, "page.people", "remove `page_token`"},
		"reads need a token that no one has": {Config{Listen: "127.0.0.1:1", Read: readToken}, credential.Secret{}, "page.read", "monitor people add"},
		"reads are something else":           {Config{Listen: "127.0.0.1:1", Read: "closed"}, shared, "page.read", "open or token"},
		"a certificate without its key":      {Config{Listen: "127.0.0.1:1", Read: ReadOpen, TLS: certificate{Cert: "a"}}, shared, "page.tls", "needs its key"},
		"a key without its certificate":      {Config{Listen: "127.0.0.1:1", Read: ReadOpen, TLS: certificate{Key: "a"}}, shared, "page.tls", "its certificate"},
		"a name with a port":                 {Config{Listen: "127.0.0.1:1", Read: ReadOpen, Hosts: []string{"a:9102"}}, shared, "page.hosts", "without a port"},
		"names":                              {Config{Listen: "127.0.0.1:1", Read: ReadOpen, Hosts: []string{"flank.plant.example", "[fd00::1]"}}, shared, "", ""},
		"an empty name":                      {Config{Listen: "127.0.0.1:1", Read: ReadOpen, Hosts: []string{""}}, shared, "page.hosts", ""},
		"a notice":                           {Config{Listen: "127.0.0.1:1", Read: ReadOpen, Notice: "Only for Acme.\nLogins are recorded.\n"}, shared, "", ""},
		"a notice that no one would see":     {Config{Listen: "127.0.0.1:1", Read: ReadOpen, Notice: "Only for Acme."}, credential.Secret{}, "page.notice", "no one can log in"},
		"a notice with escapes":              {Config{Listen: "127.0.0.1:1", Read: ReadOpen, Notice: "Only\x1b[2J"}, shared, "page.notice", ""},
		"a notice too long":                  {Config{Listen: "127.0.0.1:1", Read: ReadOpen, Notice: strings.Repeat("x", maxNotice+1)}, shared, "page.notice", "2048"},
		"no page, so it does not matter how": {Config{Read: "closed"}, shared, "", ""},
	} {
		err := tc.page.Check(tc.token)
		var key *config.KeyError
		if (err == nil) != (tc.key == "") || err != nil && (!errors.As(err, &key) || key.Key != tc.key || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// open serves a page that says ok, and returns its URL and its log.
func open(t *testing.T, p Config, token credential.Secret, h http.Handler) (string, *logtest.Buffer) {
	t.Helper()
	if err := p.Check(token); err != nil {
		t.Fatal(err)
	}
	log := &logtest.Buffer{}
	g, err := p.Guard(token, zerolog.New(log), "flank.example")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("/metrics", metric.Handler(Metrics(g)))
	url, stop, err := p.Serve(g, mux, zerolog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url, log
}

// get asks for a URL under a host's name, with a token.
func get(t *testing.T, client *http.Client, url, host, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Host = host; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

// A page is served for people of a file. What is refused is logged without the token, and
// counted; a handler that panics is logged.
func TestServePage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "people.yaml")
	token, err := credential.AddPerson(file, credential.Person{Name: "kim", Role: credential.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	p := Config{Listen: "127.0.0.1:0", People: "people.yaml", Read: readToken, Hosts: []string{"usk25"}}.Resolve(filepath.Join(dir, "monitor.yaml"))
	url, log := open(t, p, credential.Secret{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/panics" {
			panic("as a defect does")
		}
		hello(w, r)
	}))
	c := http.DefaultClient
	for _, tc := range []struct {
		path, host, token string
		want              int
	}{
		{"/", "", "", 200}, {"/api/machines", "", "", 401}, {"/api/machines", "", token, 200}, {"/api/machines", "flank.example", token, 200},
		{"/api/machines", "usk25:80", token, 200}, {"/api/machines", "", "wrong-" + token, 401}, {"/", "evil.example", token, 421}, {"/metrics", "", "", 200},
	} {
		if code, body := get(t, c, url+tc.path, tc.host, tc.token); code != tc.want {
			t.Errorf("%+v: %d %s", tc, code, body)
		}
	}
	_, metrics := get(t, c, url+"/metrics", "", "")
	for _, want := range []string{`tcm_page_refused_total{reason="host"} 1`, `tcm_page_refused_total{reason="token"} 1`, `tcm_page_refused_total{reason="role"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, url+"/api/panics", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	if res, err := c.Do(r); err == nil {
		t.Errorf("a handler panicked: %s", res.Status)
	}
	text := log.String()
	for _, want := range []string{`"page":"http://127.0.0.1:`, `"event":"page_refused"`, `"address":"127.0.0.1"`, `"reason":"token"`, `"reason":"host"`, "as a defect does"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the log\n%s", want, text)
		}
	}
	if strings.Contains(text, token) {
		t.Error("the token is in the log")
	}
	if err := credential.RemovePerson(file, "kim"); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, c, url+"/api/machines", "", token); code != http.StatusUnauthorized {
		t.Errorf("kim was removed: %d", code)
	}
	if _, _, err := (Config{Listen: strings.TrimPrefix(url, "http://")}).Serve(nil, hello, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "page: ") || !strings.Contains(err.Error(), "choose another address") {
		t.Errorf("an address in use: %v", err)
	}
}

// The token that people share is read for every request, and names an operator without a name.
func TestServeShared(t *testing.T) {
	token := credential.Secret{File: filepath.Join(t.TempDir(), "token")}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(token.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := Config{Listen: "127.0.0.1:0", Read: ReadOpen}
	if _, err := p.Guard(token, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "token of the page") {
		t.Errorf("no token: %v", err)
	}
	write("0123456789abcdef")
	url, _ := open(t, p, token, hello)
	me := func(token string) string {
		_, body := get(t, http.DefaultClient, url+"/api/me", "", token)
		return body
	}
	const operator = `{"name":"","role":"operator","read":"open","login":true}`
	if got := me("0123456789abcdef"); got != operator {
		t.Error(got)
	}
	write("fedcba9876543210")
	if got := me("fedcba9876543210"); got != operator {
		t.Error(got)
	}
	if got := me("0123456789abcdef"); !strings.Contains(got, "not the token") {
		t.Error(got)
	}
	if err := os.Remove(token.File); err != nil {
		t.Fatal(err)
	}
	if got := me("fedcba9876543210"); !strings.Contains(got, "look at its log") {
		t.Error(got)
	}
}

// A page with a certificate speaks TLS, also under the names of the certificate.
func TestServeTLS(t *testing.T) {
	certified := httptest.NewUnstartedServer(hello)
	certified.StartTLS() // for its certificate, of example.com and 127.0.0.1
	defer certified.Close()
	dir := t.TempDir()
	p := Config{Listen: "127.0.0.1:0", Read: ReadOpen, TLS: certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}}
	if _, err := p.Guard(credential.Secret{}, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "page: tls") {
		t.Errorf("no certificate: %v", err)
	}
	c := certified.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, b := range map[string]*pem.Block{p.TLS.Cert: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, p.TLS.Key: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url, log := open(t, p, credential.Secret{}, hello)
	if !strings.HasPrefix(url, "https://") {
		t.Error(url)
	}
	transport := certified.Client().Transport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for host, want := range map[string]int{"": 200, "example.com": 200, "evil.example": 421} {
		if code, body := get(t, client, url, host, ""); code != want {
			t.Errorf("%s: %d %s", host, code, body)
		}
	}
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}
	if c, err := (&tls.Dialer{Config: old}).DialContext(context.Background(), "tcp", strings.TrimPrefix(url, "https://")); err == nil {
		c.Close()
		t.Error("TLS 1.1 will do")
	}
	if plain, err := net.Dial("tcp", strings.TrimPrefix(url, "https://")); err == nil {
		_, _ = io.WriteString(plain, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answer, _ := io.ReadAll(plain)
		plain.Close()
		if bytes.Contains(answer, []byte("hello")) {
			t.Error("it answers without TLS")
		}
	}
	if strings.Contains(log.String(), `"level":"error"`) {
		t.Errorf("clients that break off are errors:\n%s", log)
	}
}

func TestPageMetricsAreDocumented(t *testing.T) {
	metrictest.Check(t, "../../../docs/reference/metrics.md", Metrics(web.NewGuard(web.Protection{Listen: "127.0.0.1:0"})))
}

// An address is free again as soon as its server is stopped, also before it has served: the next run of a program
// that reloads may use it.
func TestServeStops(t *testing.T) {
	free, err := net.Listen("tcp", loopback.Host(1)+":0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	guard, err := Config{Listen: address}.Guard(credential.Secret{}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		stop, err := cli.ServeMetrics(address, func() error { return nil }, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		stop()
		_, stop, err = Config{Listen: address}.Serve(guard, http.NotFoundHandler(), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		stop()
	}
}
