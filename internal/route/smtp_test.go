package route

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	netsmtp "net/smtp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
)

// post office is a mail server of another make, that answers as the test says.
type office struct {
	mu     sync.Mutex
	mails  []string
	rcpts  []string
	users  []string
	refuse map[string]error // by command, or by mailbox
	login  string           // mechanism that it offers
}

func (o *office) NewSession(*smtp.Conn) (smtp.Session, error) { return o, o.refuse["connect"] }
func (o *office) Reset()                                      {}
func (o *office) Logout() error                               { return nil }
func (o *office) AuthMechanisms() []string                    { return []string{o.login} }

func (o *office) Auth(mech string) (sasl.Server, error) {
	check := func(user, password string) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.users = append(o.users, user); password != "right" {
			return smtp.ErrAuthFailed
		}
		return nil
	}
	if mech == "LOGIN" {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

func (o *office) Mail(string, *smtp.MailOptions) error { return o.refuse["mail"] }

func (o *office) Rcpt(to string, _ *smtp.RcptOptions) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refuse[to]; err != nil {
		return err
	}
	o.rcpts = append(o.rcpts, to)
	return nil
}

func (o *office) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.refuse["data"]; err != nil {
		delete(o.refuse, "data")
		return err
	}
	o.mails = append(o.mails, string(text))
	return nil
}

// loginServer is the other side of AUTH LOGIN.
type loginServer struct {
	user  string
	asked int
	check func(user, password string) error
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	l.asked++
	switch l.asked {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.user, string(response))
}

// open starts the office, with TLS as a client finds it: "starttls", "tls" or "none".
func (o *office) open(t *testing.T, encrypt string) (addr, ca string) {
	t.Helper()
	certs := httptest.NewUnstartedServer(nil)
	certs.StartTLS() // for its certificate of 127.0.0.1
	t.Cleanup(certs.Close)
	s := smtp.NewServer(o)
	s.AllowInsecureAuth = true
	cfg := &tls.Config{Certificates: certs.TLS.Certificates}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	switch encrypt {
	case startTLS:
		s.TLSConfig = cfg
	case wholeTLS:
		l = tls.NewListener(l, cfg)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); l.Close(); <-done }) // Close of the server knows the listener only when Serve has begun
	return addr, secretFile(t, string(pemOf(certs.Certificate())))
}

func (o *office) route(t *testing.T, encrypt string, change ...func(*smtpConfig)) *bench {
	t.Helper()
	addr, ca := o.open(t, encrypt)
	t.Setenv("MAIL_PASSWORD", "right")
	c := smtpConfig{
		Server: addr, TLSMode: encrypt, From: "Flank <flank@plant.example>", To: []string{"Schicht <shift@plant.example>", "kim@plant.example"},
		Login: credential.Login{User: "flank", PasswordEnv: "MAIL_PASSWORD"}, TLS: &credential.TLS{CA: ca},
	}
	for _, f := range change {
		f(&c)
	}
	return newBench(t, Config{Receivers: Receivers{SMTP: &c}}, nil)
}

// A mail gets through with each kind of encryption and login, and says what there
// is to say in headers that mail programs understand.
func TestMail(t *testing.T) {
	for _, tc := range [][2]string{{startTLS, "PLAIN"}, {wholeTLS, "LOGIN"}, {noTLS, "PLAIN"}, {noTLS, "LOGIN"}} {
		o := &office{login: tc[1]}
		b := o.route(t, tc[0])
		b.play(t, newTape(alert(drill, 1, event.Raised, func(a *event.Alert) { a.Text = "usk25 tool T07: FAULTY. Vorschub 41 %, Übermaß." }),
			alert(drill, 2, "acknowledged"), message(event.Evidence{ID: "e", Group: "tcm-monitor", Machine: drill}, "e", event.EvidenceType, drill, monday),
			advisory(drill, 3, "sensor", "ch07", event.Raised)))
		if len(o.mails) != 3 || len(o.rcpts) != 6 || o.users[0] != "flank" {
			t.Fatalf("%v: %d mails to %v by %v\n%s", tc, len(o.mails), o.rcpts, o.users, &b.log)
		}
		var parsed []*mail.Message
		for _, text := range o.mails {
			m, err := mail.ReadMessage(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, m)
		}
		first, second, third := parsed[0].Header, parsed[1].Header, parsed[2].Header
		subject, err := new(mime.WordDecoder).DecodeHeader(first.Get("Subject"))
		if err != nil || subject != "usk25 tool T07: alarm A-K3ZQ7M2P" || second.Get("Subject") != first.Get("Subject") || third.Get("Subject") != "usk25: sensor ch07" {
			t.Errorf("subjects %q, %q, %q, %v", subject, second.Get("Subject"), third.Get("Subject"), err)
		}
		if first.Get("References") == "" || first.Get("References") != second.Get("References") || first.Get("References") == third.Get("References") ||
			first.Get("Message-ID") == second.Get("Message-ID") || !strings.HasSuffix(first.Get("Message-ID"), "@plant.example>") {
			t.Errorf("threads: %v, %v, %v", first, second, third)
		}
		if to, err := first.AddressList("To"); err != nil || len(to) != 2 || first.Get("Auto-Submitted") != "auto-generated" || first.Get("X-Flank-Severity") != "warning" {
			t.Errorf("%v, %v, %v", to, err, first)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(parsed[0].Body))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"usk25 tool T07: FAULTY. Vorschub 41 %, Übermaß.\r\n", "machine   " + drill, "alarm     raised A-K3ZQ7M2P", "monitor alerts ack A-K3ZQ7M2P"} {
			if !strings.Contains(string(body), want) {
				t.Errorf("the mail lacks %q:\n%s", want, body)
			}
		}
		if found, err := b.to.probe(t.Context()); err != nil || !strings.Contains(found, "user flank") {
			t.Errorf("%q, %v", found, err)
		}
	}
}

// Texts of an event cannot add a header, a line or a link to a mail.
func TestHostileMail(t *testing.T) {
	const evil = "T1\r\nBcc: all@plant.example\r\n\r\nFORGED\nFORGED\x1b[2J\u009b\u202e<b>https://evil.example/"
	o := &office{login: "PLAIN"}
	b := o.route(t, noTLS)
	e := opened(t, alert(drill, 1, event.Raised, func(a *event.Alert) {
		a.Text, a.Tool, a.Hole, a.Model, a.Incident, a.Alarm = evil, evil, evil, evil, evil, evil
		a.Evidence = &event.EvidenceLink{URL: evil}
	}))
	e.Severity = evil
	text := b.to.(*smtpReceiver).mail(e)
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	body, err2 := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if m.Header.Get("Bcc") != "" || strings.Contains(string(text), "\r\nBcc") {
		t.Errorf("the mail has a header of the attacker's: %s", text)
	}
	for line := range strings.Lines(subject + "\n" + string(body)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "FORGED") || strings.ContainsAny(line, "<>") || strings.Contains(line, "https:") ||
			strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("raw in the mail: %q", line)
		}
	}
}

// A mail that comes twice is the same one.
func TestMailIsTheSame(t *testing.T) {
	o := &office{login: "PLAIN", refuse: map[string]error{"data": &smtp.SMTPError{Code: 451, Message: "later"}}}
	b := o.route(t, noTLS)
	e := opened(t, alert(drill, 1, event.Raised))
	to := b.to.(*smtpReceiver)
	first := string(to.mail(e))
	b.clock = b.clock.Add(time.Hour)
	if again := string(to.mail(e)); again != first {
		t.Errorf("two mails of one event:\n%s\n%s", first, again)
	}
	b.play(t, newTape(alert(drill, 1, event.Raised)))
	if len(o.mails) != 1 || len(b.waits) != 1 {
		t.Errorf("%d mails after %d waits", len(o.mails), len(b.waits))
	}
}

// What a server refuses, and what becomes of the mail.
func TestMailRefused(t *testing.T) {
	no, busy := &smtp.SMTPError{Code: 550, Message: "no such user"}, &smtp.SMTPError{Code: 450, Message: "busy"}
	for why, tc := range map[string]struct {
		refuse map[string]error
		change func(*smtpConfig)
		want   string // "taken", "refused", or part of the error
	}{
		"one mailbox of two":  {map[string]error{"kim@plant.example": no}, nil, "taken"},
		"both mailboxes":      {map[string]error{"kim@plant.example": no, "shift@plant.example": no}, nil, "refused"},
		"a mailbox, for now":  {map[string]error{"kim@plant.example": busy}, nil, "RCPT TO kim@plant.example: "},
		"the sender":          {map[string]error{"mail": no}, nil, "refused"},
		"the mail":            {map[string]error{"data": no}, nil, "refused"},
		"the connection":      {map[string]error{"connect": no}, nil, "no such user"},
		"a wrong password":    {nil, func(s *smtpConfig) { s.Login.PasswordEnv = "HOME" }, "correct the user or the password"},
		"TLS that is not":     {nil, func(s *smtpConfig) { s.TLSMode = startTLS }, "does not offer STARTTLS"},
		"TLS from the start?": {nil, func(s *smtpConfig) { s.TLSMode = wholeTLS }, "check the address"},
		"no server":           {nil, func(s *smtpConfig) { s.Server = "127.0.0.1:1" }, "check the address"},
		"a name without host": {nil, func(s *smtpConfig) { s.Server = "mail.invalid:25"; s.Login = credential.Login{} }, "name server"},
	} {
		o := &office{login: "PLAIN", refuse: tc.refuse}
		if o.refuse == nil {
			o.refuse = map[string]error{}
		}
		b := o.route(t, noTLS, func(s *smtpConfig) {
			if tc.change != nil {
				tc.change(s)
			}
		})
		err := b.to.deliver(t.Context(), opened(t, alert(drill, 1, event.Raised)))
		var refused *refusal
		switch became := errors.As(err, &refused); {
		case tc.want == "taken" && err == nil, tc.want == "refused" && became:
		case err == nil || became || !strings.Contains(err.Error(), tc.want):
			t.Errorf("%s: %v, want %q", why, err, tc.want)
		}
		if strings.Contains(fmt.Sprint(err), "right") {
			t.Errorf("%s: the password is in %v", why, err)
		}
	}
}

// A login is never sent in the clear beyond this machine.
func TestLoginNeedsTLS(t *testing.T) {
	a := &loginAuth{user: "u", password: "p", host: "mail.example"}
	if _, _, err := a.Start(&netsmtp.ServerInfo{Name: "mail.example"}); err == nil {
		t.Error("the password is sent in the clear")
	}
	if _, _, err := a.Start(&netsmtp.ServerInfo{Name: "mail.example", TLS: true}); err != nil {
		t.Error(err)
	}
}
