// Package opcua reads and writes variables of an OPC UA server that it does not trust.
//
// A [Session] is a connection with a secure channel and a session on it. It sends one
// request at a time and ends at the first error: dial again then. An answer has a bound in
// size, in chunks and in time, and damage in it is an error. Requests are encoded, signed
// and encrypted by gopcua. Its client is not used: it decodes answers in a goroutine of its
// own, where an array of negative length ends the program.
//
// Terms are of OPC UA 1.05: part 4 has the services, part 6 the encoding and the channel.
package opcua

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uapolicy"
)

// Config says which server to talk to, and how.
type Config struct {
	Endpoint string // opc.tcp://host:port/path

	// Security signs and encrypts with Basic256Sha256. Certificates has this program's
	// certificate and RSA key, RootCAs the certificates that may sign the server's, or the
	// server's own. ServerName is the name in the server's certificate; empty: the host of
	// the endpoint. A nil Security means that messages travel in the clear.
	Security *tls.Config

	User, Password string // empty: anonymous
}

// Load returns the Config of a server. It reads the password, and the files of TLS; nil means that messages travel
// in the clear, which insecure allows to another computer. What cannot be read or used is a config.KeyError of
// endpoint, user, password or tls.
func Load(endpoint string, login credential.Login, files *credential.TLS, insecure bool) (cfg Config, err error) {
	cfg = Config{Endpoint: endpoint, User: login.User}
	host := hostOf(endpoint)
	if host == "" {
		return cfg, wrong(true, "endpoint", "write the server's address, such as opc.tcp://plc.example:4840, without user and query; a password does not belong in a URL: name `user` and `password_file`")
	}
	if files == nil && !credential.IsLocal(host) {
		err = cmp.Or(
			wrong(!insecure, "endpoint", "without certificates anyone on the way could change what is read and write as this program does: name `tls` with ca, cert and key, or write `insecure: true`"),
			wrong(login.User != "", "user", "without certificates anyone on the way could read the password: name `tls`, or remove the user"))
	}
	if err == nil && !login.IsZero() {
		err = login.Check()
	}
	if err == nil && !login.IsZero() {
		cfg.Password, err = login.Password()
	}
	if err == nil && files != nil {
		cfg.Security, err = security(files)
	}
	return cfg, err
}

// wrong returns a config.KeyError if something is wrong.
func wrong(is bool, key, text string) error { return config.Under(key, config.Wrong(is, "%s", text)) }

// hostOf returns the host of a server's URL that has neither user nor query, "" of anything else.
func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "opc.tcp" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(endpoint) > 4096 {
		return ""
	}
	return u.Hostname()
}

// security reads certificates and the key.
func security(files *credential.TLS) (*tls.Config, error) {
	if files.CA == "" || files.Cert == "" || files.Key == "" {
		return nil, wrong(true, "tls", "OPC UA needs all of `ca`, `cert` and `key`: name the server's certificate or its signer, and this program's RSA certificate and key")
	}
	c, err := files.Client()
	if err != nil {
		return nil, config.Under("tls", err)
	}
	k, ok := c.Certificates[0].PrivateKey.(*rsa.PrivateKey)
	return c, wrong(!ok || k.N.BitLen() < 2048 || k.N.BitLen() > 4096, "tls.key", files.Key+": OPC UA needs an RSA key of 2048 to 4096 bits: make a new one")
}

// Bounds of what is taken from a server.
const (
	maxChunk   = 65535     // bytes of one chunk
	maxMessage = 256 << 10 // bytes of an answer
	maxChunks  = 16        // of an answer
	maxTime    = time.Minute
)

// Session is a connection to a server. It is not safe for concurrent use.
type Session struct {
	cfg    Config
	conn   net.Conn
	until  time.Time // when the channel's token and keys are too old
	broken error

	most       uint32 // bytes of a chunk that the server takes
	channel    uint32
	token      uint32
	sent, got  uint32 // sequence numbers
	request    uint32
	asymmetric *uapolicy.EncryptionAlgorithm // nil without security
	symmetric  *uapolicy.EncryptionAlgorithm
	own        []byte // this program's certificate, and the server's; nil without security
	remote     []byte
	auth       *ua.NodeID
}

// Dial connects, opens a secure channel and activates a session.
func Dial(ctx context.Context, cfg Config) (*Session, error) {
	endpoints, err := discover(ctx, cfg)
	if err != nil {
		return nil, err
	}
	mode, policy := ua.MessageSecurityModeNone, ua.SecurityPolicyURINone
	if cfg.Security != nil {
		mode, policy = ua.MessageSecurityModeSignAndEncrypt, ua.SecurityPolicyURIBasic256Sha256
	}
	i := slices.IndexFunc(endpoints, func(e endpoint) bool { return e.mode == uint32(mode) && e.policy == policy })
	if i < 0 {
		if cfg.Security == nil {
			return nil, errors.New("the server takes no connection without security: name certificates under `tls`")
		}
		return nil, errors.New("the server has no endpoint with Basic256Sha256 and SignAndEncrypt: enable it there")
	}
	s := &Session{cfg: cfg}
	if cfg.Security != nil {
		if err := s.trust(endpoints[i].certificate); err != nil {
			return nil, err
		}
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if err := s.login(ctx, endpoints[i]); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// discover asks for the endpoints, without security. What it gets is not trusted.
func discover(ctx context.Context, cfg Config) ([]endpoint, error) {
	s := &Session{cfg: Config{Endpoint: cfg.Endpoint}}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	defer s.Close()
	r, err := s.call(ctx, &ua.GetEndpointsRequest{EndpointURL: cfg.Endpoint})
	if err != nil {
		return nil, err
	}
	all := readEndpoints(r)
	return all, s.failed("GetEndpoints", r.err)
}

// trust checks the server's certificate and keeps it.
func (s *Session) trust(der []byte) error {
	leaf, err := x509.ParseCertificate(der) // the first, if a chain follows
	if err != nil {
		all, err2 := x509.ParseCertificates(der)
		if err2 != nil || len(all) == 0 {
			return fmt.Errorf("the server's certificate: %w", err)
		}
		leaf = all[0]
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: s.cfg.Security.RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	if err != nil {
		return fmt.Errorf("the server's certificate: %w: name its signer, or the certificate itself, in `ca`", err)
	}
	name := s.cfg.Security.ServerName
	itself := slices.ContainsFunc(chains, func(c []*x509.Certificate) bool { return len(c) == 1 })
	if name == "" && !itself { // a certificate that is named itself needs no name
		u, err := url.Parse(s.cfg.Endpoint)
		if err != nil {
			return err
		}
		name = u.Hostname()
	}
	if name != "" {
		if err := leaf.VerifyHostname(name); err != nil {
			return fmt.Errorf("the server's certificate: %w: name the server as it does in `server_name`", err)
		}
	}
	public, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok {
		return errors.New("the server's certificate has no RSA key, which Basic256Sha256 needs")
	}
	own := s.cfg.Security.Certificates[0]
	if s.asymmetric, err = uapolicy.Asymmetric(ua.SecurityPolicyURIBasic256Sha256, own.PrivateKey.(*rsa.PrivateKey), public); err != nil {
		return err
	}
	s.own, s.remote = own.Certificate[0], leaf.Raw
	return nil
}

// open connects and opens the channel.
func (s *Session) open(ctx context.Context) error {
	u, err := url.Parse(s.cfg.Endpoint)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	s.conn, err = new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "4840")))
	if err != nil {
		return fmt.Errorf("OPC UA: %w: check the address, and that the server runs", err)
	}
	return s.bounded(ctx, "open a channel", func() error {
		if err := s.hello(); err != nil {
			return err
		}
		return s.openChannel()
	})
}

func (s *Session) hello() error {
	b := []byte("HELF\x00\x00\x00\x00")
	for _, n := range []uint32{0, maxChunk, maxChunk, maxMessage, maxChunks} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	b = appendBytes(b, []byte(s.cfg.Endpoint))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)))
	if _, err := s.conn.Write(b); err != nil {
		return err
	}
	answer, err := s.chunk("ACKF")
	if err != nil {
		return err
	}
	r := &reader{b: answer[8:]}
	version, most := r.u32(), r.u32()
	if r.err != nil {
		return r.err
	}
	if version != 0 || most < 8192 {
		return fmt.Errorf("the server speaks version %d and takes chunks of %d bytes: want version 0 and at least 8192", version, most)
	}
	s.most = most
	return nil
}

// chunk reads one chunk whose type is as wanted, such as MSG; with a fourth letter the
// kind of the chunk too.
func (s *Session) chunk(want string) ([]byte, error) {
	head := make([]byte, 8)
	if err := readFull(s.conn, head); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[4:])
	if n < 8 || n > maxChunk {
		return nil, fmt.Errorf("not an answer of OPC UA: a chunk of %d bytes", n)
	}
	b := append(head, make([]byte, n-8)...)
	if err := readFull(s.conn, b[8:]); err != nil {
		return nil, err
	}
	if string(b[:3]) == "ERR" {
		r := &reader{b: b[8:]}
		code, why := r.u32(), r.text()
		return nil, fmt.Errorf("the server ends the connection: %w %s", ua.StatusCode(code), plain.Short(why, 200))
	}
	if !bytes.HasPrefix(b, []byte(want)) {
		return nil, fmt.Errorf("not an answer of OPC UA: a message %s, want %s", plain.Short(string(b[:4]), 4), want)
	}
	return b, nil
}

func (s *Session) openChannel() error {
	nonce, policy, mode := []byte(nil), ua.SecurityPolicyURINone, ua.MessageSecurityModeNone
	if s.asymmetric != nil {
		nonce, policy, mode = make([]byte, 32), ua.SecurityPolicyURIBasic256Sha256, ua.MessageSecurityModeSignAndEncrypt
		if _, err := rand.Read(nonce); err != nil {
			return err
		}
	}
	began := time.Now()
	r, err := s.roundTrip(&ua.OpenSecureChannelRequest{
		RequestType: ua.SecurityTokenRequestTypeIssue, SecurityMode: mode, ClientNonce: nonce, RequestedLifetime: uint32(time.Hour / time.Millisecond),
	}, policy)
	if err != nil && s.asymmetric != nil {
		return fmt.Errorf("%w: does the server trust this program's certificate?", err)
	}
	if err != nil {
		return err
	}
	r.u32() // version
	s.channel, s.token = r.u32(), r.u32()
	r.skip(8)
	lifetime := time.Duration(r.u32()) * time.Millisecond
	remote := r.bytes()
	if r.err != nil {
		return r.err
	}
	s.until = began.Add(min(lifetime, time.Hour) * 3 / 4)
	if s.asymmetric == nil {
		return nil
	}
	if len(remote) != 32 {
		return fmt.Errorf("the server's nonce has %d bytes, want 32", len(remote))
	}
	s.symmetric, err = uapolicy.Symmetric(policy, nonce, remote)
	return err
}

// login creates a session and activates it.
func (s *Session) login(ctx context.Context, e endpoint) error {
	uri := "urn:flank"
	if c, err := x509.ParseCertificate(s.own); err == nil && len(c.URIs) > 0 { // there is none without security
		uri = c.URIs[0].String() // servers compare the two
	}
	nonce := make([]byte, 32)
	if _, err := rand.Read(nonce); err != nil {
		return err
	}
	r, err := s.call(ctx, &ua.CreateSessionRequest{
		ClientDescription: &ua.ApplicationDescription{
			ApplicationURI: uri, ProductURI: "urn:flank", ApplicationName: ua.NewLocalizedText("Flank"), ApplicationType: ua.ApplicationTypeClient,
		},
		EndpointURL: s.cfg.Endpoint, SessionName: "flank", ClientNonce: nonce, ClientCertificate: s.own,
		RequestedSessionTimeout: float64(2 * time.Minute / time.Millisecond), MaxResponseMessageSize: maxMessage,
	})
	if err != nil {
		return err
	}
	r.nodeID()
	auth := r.nodeID()
	r.skip(8)
	remoteNonce, remoteCert := r.bytes(), r.bytes()
	readEndpoints(r)
	for range r.count(8) { // signed software certificates
		r.bytes()
		r.bytes()
	}
	r.text()
	signature := r.bytes()
	if r.err != nil {
		return s.failed("CreateSession", r.err)
	}
	s.auth = auth
	if s.asymmetric != nil {
		if !bytes.HasPrefix(remoteCert, s.remote) {
			return s.failed("CreateSession", errors.New("the server shows another certificate than before"))
		}
		if err := s.asymmetric.VerifySignature(append(slices.Clone(s.own), nonce...), signature); err != nil {
			return s.failed("CreateSession", errors.New("the server's signature is wrong"))
		}
	}
	return s.activate(ctx, e, remoteNonce, remoteCert)
}

// activate activates the session that the server has created, as the user of the configuration.
func (s *Session) activate(ctx context.Context, e endpoint, remoteNonce, remoteCert []byte) error {
	req := &ua.ActivateSessionRequest{ClientSignature: &ua.SignatureData{}, UserTokenSignature: &ua.SignatureData{}}
	if s.asymmetric != nil {
		signed, err := s.asymmetric.Signature(append(slices.Clone(remoteCert), remoteNonce...))
		if err != nil {
			return err
		}
		req.ClientSignature = &ua.SignatureData{Algorithm: s.asymmetric.SignatureURI(), Signature: signed}
	}
	var err error
	if req.UserIdentityToken, err = s.identity(e, remoteNonce); err != nil {
		return s.failed("log in", err)
	}
	_, err = s.call(ctx, req)
	for _, denied := range []ua.StatusCode{ua.StatusBadUserAccessDenied, ua.StatusBadIdentityTokenRejected, ua.StatusBadIdentityTokenInvalid} {
		if errors.Is(err, denied) {
			err = fmt.Errorf("%w: check the user and the password, and the user's rights on the server", err)
		}
	}
	return err
}

// identity returns the user as the endpoint wants to know it.
func (s *Session) identity(e endpoint, nonce []byte) (*ua.ExtensionObject, error) {
	kind := ua.UserTokenTypeAnonymous
	if s.cfg.User != "" {
		kind = ua.UserTokenTypeUserName
	}
	i := slices.IndexFunc(e.tokens, func(t userToken) bool { return t.kind == uint32(kind) })
	if i < 0 {
		if kind == ua.UserTokenTypeAnonymous {
			return nil, errors.New("the server takes no anonymous users: name `user` and `password_file`")
		}
		return nil, errors.New("the server takes no users with a password: remove `user`, or enable it there")
	}
	t := e.tokens[i]
	if kind == ua.UserTokenTypeAnonymous {
		return ua.NewExtensionObject(&ua.AnonymousIdentityToken{PolicyID: t.id}), nil
	}
	u := &ua.UserNameIdentityToken{PolicyID: t.id, UserName: s.cfg.User, Password: []byte(s.cfg.Password)}
	if policy := cmp.Or(t.policy, e.policy); policy != ua.SecurityPolicyURINone {
		algorithm := s.asymmetric
		if algorithm == nil || policy != ua.SecurityPolicyURIBasic256Sha256 {
			der := s.remote
			if der == nil {
				der = e.certificate
			}
			c, err := x509.ParseCertificate(der)
			if err != nil {
				return nil, fmt.Errorf("the server's certificate: %w", err)
			}
			public, ok := c.PublicKey.(*rsa.PublicKey)
			if !ok {
				return nil, errors.New("the server's certificate has no RSA key, which a password needs")
			}
			if algorithm, err = uapolicy.Asymmetric(policy, nil, public); err != nil {
				return nil, err
			}
		}
		secret := binary.LittleEndian.AppendUint32(nil, uint32(len(s.cfg.Password)+len(nonce)))
		secret = append(append(secret, s.cfg.Password...), nonce...)
		var err error
		if u.Password, err = algorithm.Encrypt(secret); err != nil {
			return nil, err
		}
		u.EncryptionAlgorithm = algorithm.EncryptionURI()
	}
	return ua.NewExtensionObject(u), nil
}

// Usable reports whether the session can go on at a time.
func (s *Session) Usable(at time.Time) bool { return s.broken == nil && at.Before(s.until) }

// Close ends the session. It waits for no answer.
func (s *Session) Close() {
	if s.conn == nil {
		return
	}
	if s.broken == nil {
		_ = s.conn.SetDeadline(time.Now().Add(time.Second))
		if s.auth != nil {
			_ = guarded(func() error {
				_, err := s.roundTrip(&ua.CloseSessionRequest{DeleteSubscriptions: true}, "")
				return err
			})
		}
		_ = guarded(func() error { return s.send("CLO", &ua.CloseSecureChannelRequest{}, "") })
		s.broken = net.ErrClosed
	}
	_ = s.conn.Close()
}

// nodeID is how ids of nodes are written. (Part 6, 5.3.1.10.) The parser of gopcua takes more.
var nodeID = regexp.MustCompile(`^(ns=[0-9]+;)?[isgb]=.`)

// ParseNode returns the id of a node that is written as ns=2;s=Tool or i=1234. An error says nothing
// about where the text stood: the caller knows the key.
func ParseNode(text string) (*ua.NodeID, error) {
	if !nodeID.MatchString(text) {
		return nil, errors.New("not the id of a node")
	}
	return ua.ParseNodeID(text)
}

// Attribute names an attribute of a node.
type Attribute struct {
	Node *ua.NodeID
	ID   ua.AttributeID
}

// Value is an attribute as the server has it. A missing value and an array have the type
// ua.TypeIDNull. V has the Go type of Type: bool, int8 to uint64, float32, float64, string, time.Time or
// *ua.NodeID, and nil for other types.
type Value struct {
	Status ua.StatusCode // bad: Type and V are empty
	Type   ua.TypeID
	V      any
}

// Read returns the values of attributes, in their order.
func (s *Session) Read(ctx context.Context, all []Attribute) ([]Value, error) {
	req := &ua.ReadRequest{TimestampsToReturn: ua.TimestampsToReturnNeither}
	for _, a := range all {
		req.NodesToRead = append(req.NodesToRead, &ua.ReadValueID{NodeID: a.Node, AttributeID: a.ID, DataEncoding: &ua.QualifiedName{}})
	}
	r, err := s.call(ctx, req)
	if err != nil {
		return nil, err
	}
	values := list(r, len(all), 1, "values", r.dataValue)
	return values, s.failed("Read", r.err)
}

// Write is a value for a variable.
type Write struct {
	Node  *ua.NodeID
	Value *ua.Variant
}

// Write sets variables, in their order, in one request. It returns what the server says of each.
func (s *Session) Write(ctx context.Context, all []Write) ([]ua.StatusCode, error) {
	req := new(ua.WriteRequest)
	for _, w := range all {
		req.NodesToWrite = append(req.NodesToWrite, &ua.WriteValue{
			NodeID: w.Node, AttributeID: ua.AttributeIDValue, Value: &ua.DataValue{EncodingMask: ua.DataValueValue, Value: w.Value},
		})
	}
	r, err := s.call(ctx, req)
	if err != nil {
		return nil, err
	}
	status := list(r, len(all), 4, "results", func() ua.StatusCode { return ua.StatusCode(r.u32()) })
	return status, s.failed("Write", r.err)
}

// call sends a request and returns its answer behind the header.
func (s *Session) call(ctx context.Context, req ua.Request) (r *reader, err error) {
	if s.broken != nil {
		return nil, s.broken
	}
	err = s.bounded(ctx, fmt.Sprintf("%T", req)[len("*ua."):], func() error {
		r, err = s.roundTrip(req, "")
		return err
	})
	return r, err
}

// bounded calls f, which uses the connection, and ends it when ctx does. An error ends the
// session.
func (s *Session) bounded(ctx context.Context, what string, f func() error) error {
	deadline := time.Now().Add(maxTime)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := s.conn.SetDeadline(deadline); err != nil {
		return s.failed(what, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	return s.failed(what, guarded(f))
}

// guarded calls f. A panic of the code that decodes is an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not an answer of OPC UA: %v", p)
		}
	}()
	return f()
}

// failed ends the session if there is an error.
func (s *Session) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	s.broken = fmt.Errorf("OPC UA: %s: %w", what, err)
	_ = s.conn.Close()
	return s.broken
}
