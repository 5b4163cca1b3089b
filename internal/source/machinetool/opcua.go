package machinetool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/gopcua/opcua/ua"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/protocol/opcua"
)

// Server is a server of OPC UA in a control or next to it. Open it before it is read. Its
// methods are for one goroutine. It is only read.
type Server struct {
	Endpoint string // opc.tcp://host:4840/path
	Insecure bool   // lets messages leave this computer in the clear, without TLS
	Login    credential.Login
	TLS      *credential.TLS // signs and encrypts with Basic256Sha256; nil: in the clear
	Items    Items           // ids of nodes, such as ns=2;s=Tool

	keys    []string // of the items that are asked for
	nodes   []opcua.Attribute
	session *opcua.Session // nil while there is none

	now    func() time.Time
	failed error         // of the last attempt, while the next one waits
	wait   time.Duration // after failed
	next   time.Time     // attempt
	closed bool
}

// Between two attempts to reach a server it is left alone, each time twice as long: controls
// have few sessions, and lock out users who fail too often.
const (
	minWait = time.Second
	maxWait = 30 * time.Second
)

// maxNodeID is the most bytes of the id of a node.
const maxNodeID = 1024

// Open checks the configuration and reads its files once. It reports what cannot be used. It
// does not connect.
func (s *Server) Open() error {
	if err := s.Items.Check(); err != nil {
		return err
	}
	for _, ask := range s.Items.named() {
		id, err := opcua.ParseNode(ask.item)
		if err != nil || len(ask.item) > maxNodeID {
			return fmt.Errorf("%s: %.80q is not the id of a node: write it as ns=2;s=Tool or ns=2;i=1234", ask.key, ask.item)
		}
		s.keys, s.nodes = append(s.keys, ask.key), append(s.nodes, opcua.Attribute{Node: id, ID: ua.AttributeIDValue})
	}
	s.now = time.Now
	_, err := opcua.Load(s.Endpoint, s.Login, s.TLS, s.Insecure)
	return err
}

// Read asks the server once. It connects if it must. After a failure it does not try again for
// a while, and returns the same error meanwhile. A node whose status is not good is not known.
func (s *Server) Read(ctx context.Context) (Reading, error) {
	if s.closed {
		return Reading{}, net.ErrClosed
	}
	if s.failed != nil && s.now().Before(s.next) {
		return Reading{}, s.failed
	}
	values, err := s.read(ctx)
	if err != nil {
		s.wait = min(max(2*s.wait, minWait), maxWait)
		s.failed, s.next = fmt.Errorf("%s: %w", s.Endpoint, err), s.now().Add(s.wait)
		return Reading{}, s.failed
	}
	s.failed, s.wait = nil, 0
	texts := map[string]string{}
	var errs []error
	for i, v := range values {
		text, err := textOf(v)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.keys[i], err))
		}
		texts[s.keys[i]] = text
	}
	r := reading(texts)
	r.Problem = errors.Join(append(errs, r.Problem)...)
	return r, nil
}

// read asks once. If that fails in a session from before, as after a restart of the server, it
// asks once more in a new one.
func (s *Server) read(ctx context.Context) ([]opcua.Value, error) {
	for {
		if s.session != nil && !s.session.Usable(s.now()) {
			s.hangUp()
		}
		old := s.session != nil
		if !old {
			cfg, err := opcua.Load(s.Endpoint, s.Login, s.TLS, s.Insecure)
			if err != nil {
				return nil, err
			}
			if s.session, err = opcua.Dial(ctx, cfg); err != nil {
				s.session = nil
				return nil, withRemedy(err)
			}
		}
		values, err := s.session.Read(ctx, s.nodes)
		if err == nil {
			return values, nil
		}
		s.hangUp()
		if !old || ctx.Err() != nil {
			return nil, err
		}
	}
}

// remedies say what to do about some of the reasons why a server lets no one in.
var remedies = []struct {
	statuses []ua.StatusCode
	remedy   string
}{
	{[]ua.StatusCode{
		ua.StatusBadCertificateUntrusted, ua.StatusBadCertificateInvalid, ua.StatusBadCertificateURIInvalid, ua.StatusBadCertificateTimeInvalid,
		ua.StatusBadCertificateUseNotAllowed, ua.StatusBadSecurityChecksFailed, ua.StatusBadApplicationSignatureInvalid,
	}, "let the server trust the certificate that `cert` of `tls` names"},
	{[]ua.StatusCode{ua.StatusBadTooManySessions, ua.StatusBadMaxConnectionsReached, ua.StatusBadTCPServerTooBusy}, "let the server have more sessions, or end other programs' sessions"},
	{[]ua.StatusCode{ua.StatusBadTCPEndpointURLInvalid, ua.StatusBadServerURIInvalid}, "correct `endpoint`"},
}

func withRemedy(err error) error {
	for _, r := range remedies {
		if slices.ContainsFunc(r.statuses, func(s ua.StatusCode) bool { return errors.Is(err, s) }) {
			return fmt.Errorf("%w: %s", err, r.remedy)
		}
	}
	return err
}

func (s *Server) hangUp() {
	if s.session != nil {
		s.session.Close()
		s.session = nil
	}
}

// Close ends the session, so that the server frees it at once.
func (s *Server) Close() {
	s.hangUp()
	s.closed = true
}

// String returns the server's address.
func (s *Server) String() string { return s.Endpoint }

// textOf returns a value as text, empty if the server does not know it at present. An error
// is about the node, which cannot be read like this.
func textOf(v opcua.Value) (string, error) {
	switch v.Status {
	case ua.StatusBadNodeIDUnknown, ua.StatusBadNodeIDInvalid, ua.StatusBadAttributeIDInvalid:
		return "", errors.New("the OPC UA server has no such variable: correct the node's id")
	case ua.StatusBadNotReadable, ua.StatusBadUserAccessDenied:
		return "", errors.New("the OPC UA server does not let this user read the variable: give the user that right")
	}
	if v.Status>>30 != 0 || v.Type == ua.TypeIDNull { // bad or uncertain; or nothing
		return "", nil
	}
	switch x := v.V.(type) {
	case string:
		return x, nil
	case int8, int16, int32, int64, uint8, uint16, uint32, uint64:
		return fmt.Sprint(x), nil
	case float32:
		return strconv.FormatFloat(float64(x), 'f', -1, 32), nil
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), nil
	}
	return "", errors.New("the variable holds neither a text nor a number: name one that does")
}
