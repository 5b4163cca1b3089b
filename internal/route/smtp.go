package route

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base32"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

// smtpConfig is a server that takes mail: one plain-text mail for each event.
//
// The Message-ID is made of the event's id, so that a mail that comes twice is
// recognised, and References of its incident, so that everything about one alarm
// is in one thread.
type smtpConfig struct {
	Server  string           `yaml:"server"` // host:port
	TLSMode string           `yaml:"encrypt"`
	From    string           `yaml:"from"`
	To      []string         `yaml:"to"`
	Login   credential.Login `yaml:",inline"`
	TLS     *credential.TLS  `yaml:"tls"`
}

// Values of SMTP.TLSMode.
const (
	startTLS = "starttls" // the default: what the server must offer, as on port 587
	wholeTLS = "tls"      // from the first byte, as on port 465
	noTLS    = "none"     // for a relay on this machine or in the plant
)

func (s *smtpConfig) check() error {
	host, port, err := net.SplitHostPort(s.Server)
	_, badFrom := mail.ParseAddress(s.From)
	var badTo error
	for i, to := range s.To {
		_, err := mail.ParseAddress(to)
		badTo = cmp.Or(badTo, wrong(err != nil, fmt.Sprintf("to[%d]", i), "%q: write an address as in shift@plant.example", to))
	}
	return cmp.Or(
		wrong(err != nil || host == "" || port == "", "server", "%q: write host:port, for example mail.example:587", s.Server),
		wrong(!slices.Contains([]string{"", startTLS, wholeTLS, noTLS}, s.TLSMode), "encrypt", "%q: choose starttls (as on port 587), tls (as on port 465) or none", s.TLSMode),
		wrong(s.TLSMode == noTLS && s.Login.User != "" && !credential.IsLocal(host), "encrypt", "without TLS anyone on the network can read the password: choose starttls or tls, or leave `user` out"),
		wrong(badFrom != nil, "from", "%q: write an address as in Flank <flank@plant.example>", s.From),
		wrong(len(s.To) == 0, "to", "name who gets the mail, for example [\"shift@plant.example\"]"),
		badTo,
		checkLogin(s.Login),
		checkFiles(s.TLS))
}

func (s *smtpConfig) resolve(file string) {
	s.Login, s.TLS = s.Login.Resolve(file), s.TLS.Resolve(file)
}

func (s *smtpConfig) target() string { return "mail by way of " + s.Server }

type smtpReceiver struct {
	cfg  smtpConfig
	host string
	from *mail.Address
	to   []*mail.Address
	log  zerolog.Logger
	now  func() time.Time
}

// open is called for a configuration that was checked.
func (s *smtpConfig) open(r *Route) (receiver, error) {
	m := &smtpReceiver{cfg: *s, log: r.log, now: r.time}
	m.host, _, _ = net.SplitHostPort(s.Server)
	m.from, _ = mail.ParseAddress(s.From)
	for _, text := range s.To {
		to, _ := mail.ParseAddress(text)
		m.to = append(m.to, to)
	}
	if len(r.filter.Kinds) == 0 {
		r.filter.Kinds = []string{"alert", "advisory"} // an alert has the link to its evidence already
	}
	return m, nil
}

func (s *smtpReceiver) deliver(ctx context.Context, e *Event) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the server may be quicker
	if err := c.Mail(s.from.Address); err != nil {
		return answered("MAIL FROM", err)
	}
	var taken int
	var refused error
	for _, to := range s.to {
		err := c.Rcpt(to.Address)
		if permanently(err) {
			refused = errors.Join(refused, fmt.Errorf("%s: %w", to.Address, err))
			continue
		}
		if err != nil {
			return fmt.Errorf("RCPT TO %s: %w: the other mailboxes of the route wait with it until it takes mail, or is removed from `to`", to.Address, err)
		}
		taken++
	}
	if taken == 0 {
		return &refusal{refused}
	}
	w, err := c.Data()
	if err != nil {
		return answered("DATA", err)
	}
	if _, err := w.Write(s.mail(e)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return answered("the mail", err)
	}
	if refused != nil {
		s.log.Warn().Str("event", "mailbox_refused").Str("id", e.ID).Err(refused).Msg("some mailboxes refuse alerts: correct `to`")
	}
	_ = c.Quit() // the server has the mail
	return nil
}

// answered returns the error of a command: a refusal, or one to retry.
func answered(command string, err error) error {
	if permanently(err) {
		return &refusal{fmt.Errorf("the server refuses %s: %w", command, err)}
	}
	return fmt.Errorf("%s: %w", command, err)
}

// permanently reports whether a server has said that it will never take a command.
func permanently(err error) bool {
	code, ok := errors.AsType[*textproto.Error](err)
	return ok && code.Code/100 == 5
}

// connect connects and logs in. A refusal before that is not about a mail.
func (s *smtpReceiver) connect(ctx context.Context) (*smtp.Client, error) {
	var conn net.Conn
	var err error
	if s.cfg.TLSMode == wholeTLS {
		conn, err = dialTLS(ctx, s.cfg.TLS, "tcp", s.cfg.Server)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", s.cfg.Server)
	}
	if err != nil {
		return nil, dialError(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // ends what waits
	c, err := s.greet(&answers{Conn: conn, left: maxAnswers})
	if err != nil {
		stop()
		conn.Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s does not answer within the `timeout`: %w", s.cfg.Server, ctx.Err())
		}
		return nil, err
	}
	return c, nil
}

// maxAnswers is how many bytes a mail server may say in one conversation, and before TLS as much again.
const maxAnswers = 256 << 10

// answers is a connection to a server whose answers are bounded: the library keeps a line of any length.
type answers struct {
	net.Conn
	left int
}

func (a *answers) Read(b []byte) (int, error) {
	if a.left <= 0 {
		return 0, fmt.Errorf("the server says more than %d kB: check that it is a mail server", maxAnswers>>10)
	}
	n, err := a.Conn.Read(b[:min(len(b), a.left)])
	a.left -= n
	return n, err
}

func (s *smtpReceiver) greet(conn net.Conn) (*smtp.Client, error) {
	c, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, fmt.Errorf("%s does not greet as a mail server: %w", s.cfg.Server, err)
	}
	if err := c.Hello("localhost"); err != nil {
		return nil, fmt.Errorf("%s refuses this program: %w", s.cfg.Server, err)
	}
	if s.cfg.TLSMode == "" || s.cfg.TLSMode == startTLS {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return nil, fmt.Errorf("%s does not offer STARTTLS: set `encrypt: tls` if it is a port such as 465, or none if mail may go in the clear", s.cfg.Server)
		}
		cfg, err := s.cfg.TLS.Client()
		if err != nil {
			return nil, err
		}
		if cfg.ServerName == "" {
			cfg.ServerName = s.host
		}
		if err := c.StartTLS(cfg); err != nil {
			return nil, dialError(err)
		}
	}
	if s.cfg.Login.User == "" {
		return c, nil
	}
	return c, s.login(c)
}

// login says who sends mail, by a method that the server knows.
func (s *smtpReceiver) login(c *smtp.Client) error {
	password, err := s.cfg.Login.Password()
	if err != nil {
		return err
	}
	ok, methods := c.Extension("AUTH")
	auth := smtp.PlainAuth("", s.cfg.Login.User, password, s.host)
	switch {
	case !ok:
		return fmt.Errorf("%s takes no logins: leave `user` out", s.cfg.Server)
	case slices.Contains(strings.Fields(methods), "PLAIN"):
	case slices.Contains(strings.Fields(methods), "LOGIN"):
		auth = &loginAuth{user: s.cfg.Login.User, password: password, host: s.host}
	default:
		return fmt.Errorf("%s takes logins by %s only, and this program knows PLAIN and LOGIN", s.cfg.Server, methods)
	}
	if err := c.Auth(auth); err != nil {
		return fmt.Errorf("%s refuses user %s: %w: correct the user or the password; nothing has to be restarted", s.cfg.Server, s.cfg.Login.User, err)
	}
	return nil
}

// loginAuth is AUTH LOGIN, which some servers offer only: the server asks for the
// name and then for the password. (draft-murchison-sasl-login-00.)
type loginAuth struct {
	user, password, host string
	asked                int
}

func (a *loginAuth) Start(server *smtp.ServerInfo) (string, []byte, error) {
	if !server.TLS && !credential.IsLocal(server.Name) || server.Name != a.host {
		return "", nil, errors.New("the password is not sent without TLS")
	}
	return "LOGIN", nil, nil
}

func (a *loginAuth) Next(_ []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	a.asked++
	switch a.asked {
	case 1:
		return []byte(a.user), nil
	case 2:
		return []byte(a.password), nil
	}
	return nil, errors.New("the server asks for more than a name and a password")
}

// mail returns the mail of an event, the same whenever it is sent.
func (s *smtpReceiver) mail(e *Event) []byte {
	var b bytes.Buffer
	var to []string
	for _, a := range s.to {
		to = append(to, a.String())
	}
	head := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	head("From", s.from.String())
	head("To", strings.Join(to, ",\r\n "))
	head("Subject", mime.QEncoding.Encode("utf-8", plain.Mail(subject(e))))
	head("Date", e.Sent.Format(time.RFC1123Z))
	head("Message-ID", s.messageID(e.ID))
	if root := thread(e); root != "" {
		head("In-Reply-To", s.messageID(root))
		head("References", s.messageID(root))
	}
	head("Auto-Submitted", "auto-generated") // RFC 3834: no vacation notes
	head("X-Flank-Severity", mime.QEncoding.Encode("utf-8", plain.Mail(e.Severity)))
	head("MIME-Version", "1.0")
	head("Content-Type", "text/plain; charset=utf-8")
	head("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(strings.ReplaceAll(mailText(e), "\n", "\r\n"))) // into memory
	_ = w.Close()
	return b.Bytes()
}

// messageID returns the Message-ID of a text: it is always the same and hides the text.
func (s *smtpReceiver) messageID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("<%s@%s>", strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15])), s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:])
}

// thread names what the mails of one incident are about. It is empty for an event
// that stands by itself.
func thread(e *Event) string {
	switch {
	case e.Incident != "":
		return e.Machine + " " + e.Incident
	case e.Type == event.AdvisoryType:
		return fmt.Sprintf("%s %s %d", e.Machine, e.topic(), e.Since.UnixNano())
	}
	return ""
}

// subject is the same for all mails of a thread.
func subject(e *Event) string {
	name := event.ShortName(e.Machine)
	if e.Tool != "" {
		name += " tool " + e.Tool
	}
	switch {
	case e.isTest():
		return "TEST of a route"
	case e.Incident != "":
		return name + ": alarm " + e.Incident
	case e.Type == event.AdvisoryType:
		return strings.TrimSuffix(event.ShortName(e.Machine)+": "+e.Kind+" "+e.Subject, " ")
	}
	return name + ": " + e.State
}

// mailText is the body of a mail.
func mailText(e *Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", plain.Mail(e.Text))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s%s\n", name, value)
		}
	}
	rowOf := func(name, value string) { row(name, plain.Mail(value)) }
	rowOf("machine", e.Machine)
	rowOf("tool", e.Tool)
	rowOf("hole", e.Hole)
	rowOf("channel", e.Subject)
	rowOf("severity", e.Severity)
	if !e.Since.IsZero() {
		row("since", signal.FormatTime(e.Since, time.RFC3339))
	}
	row("at", signal.FormatTime(e.At, time.RFC3339))
	marks := event.AlertState(e.State).Marks()
	if marks {
		rowOf("alarm", e.Incident) // the event has the state of another alarm
	} else {
		rowOf("alarm", strings.TrimSpace(e.Alarm+" "+e.Incident))
	}
	rowOf("status", e.Status)
	rowOf("model", e.Model)
	row("evidence", plain.Link(e.link()))
	rowOf("id", e.ID)
	if e.calls() && e.Type == event.AlertType && e.Incident != "" && e.Alarm != "acknowledged" && !marks {
		fmt.Fprintf(&b, "\nTo acknowledge the alarm:\n  monitor alerts ack %s --by NAME --config monitor.yaml\n", plain.Mail(e.Incident))
	}
	return b.String()
}

func (s *smtpReceiver) probe(ctx context.Context) (string, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }() // the server may be quicker
	found := s.cfg.Server + " answers"
	if state, ok := c.TLSConnectionState(); ok {
		found += ", " + tls.VersionName(state.Version)
	}
	if s.cfg.Login.User != "" {
		found += ", user " + s.cfg.Login.User
	}
	_ = c.Quit()
	return found, nil
}

func (s *smtpReceiver) close() {}
