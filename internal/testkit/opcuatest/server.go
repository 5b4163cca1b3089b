// Package opcuatest is a server of OPC UA for tests: variables in memory, without security.
package opcuatest

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
)

// Server has variables by their node ids, such as ns=2;s=usk25.alarm. It is safe for
// concurrent use.
type Server struct {
	Addr string // host:port
	URL  string // opc.tcp://host:port

	mu        sync.Mutex
	listener  net.Listener
	conns     map[net.Conn]bool
	variables map[string]any
	refused   map[string]ua.StatusCode
	onWrite   func(all map[string]any)
	writes    int
	dialled   int
}

// Start starts a server. addr is an address of an earlier one, or empty.
func Start(t testing.TB, addr string, variables map[string]any) *Server {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String(), URL: "opc.tcp://" + l.Addr().String(), listener: l,
		conns: make(map[net.Conn]bool), variables: variables, refused: make(map[string]ua.StatusCode)}
	go s.accept()
	t.Cleanup(s.Stop)
	return s
}

// Stop ends the server and its connections.
func (s *Server) Stop() {
	_ = s.listener.Close()
	s.Drop()
}

// Drop ends the connections.
func (s *Server) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Get returns a variable.
func (s *Server) Get(node string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.variables[node]
}

// Set sets a variable.
func (s *Server) Set(node string, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.variables[node] = v
}

// Refuse makes the server answer reads and writes of a variable with a status; ua.StatusOK
// ends that.
func (s *Server) Refuse(node string, status ua.StatusCode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[node] = status
}

// OnWrite calls f with all variables after each request that writes. f may change them.
func (s *Server) OnWrite(f func(all map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onWrite = f
}

// Counts returns how many requests to write and how many connections there were.
func (s *Server) Counts() (writes, connections int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.dialled
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.dialled++
		s.mu.Unlock()
		go func() {
			defer func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.conns, c)
				_ = c.Close()
			}()
			s.serve(c)
		}()
	}
}

// readChunk reads the kind and the rest of a chunk, "" if there is none.
func readChunk(c net.Conn) (kind string, b []byte) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return "", nil
	}
	n := binary.LittleEndian.Uint32(head[4:])
	if n < 8 || n > 65535 {
		return "", nil
	}
	b = make([]byte, n-8)
	if _, err := io.ReadFull(c, b); err != nil {
		return "", nil
	}
	return string(head[:3]), b
}

func (s *Server) serve(c net.Conn) {
	sequence := uint32(0)
	for {
		kind, b := readChunk(c)
		switch kind {
		case "":
			return
		case "HEL":
			if _, err := c.Write(Acknowledge(65535)); err != nil {
				return
			}
			continue
		case "CLO":
			return
		case "OPN":
			b = b[4+4+len(ua.SecurityPolicyURINone)+4+4:]
		default:
			b = b[8:]
		}
		request := binary.LittleEndian.Uint32(b[4:])
		_, req, err := ua.DecodeService(b[8:])
		if err != nil {
			return
		}
		sequence++
		if _, err := c.Write(Answer(kind, sequence, request, s.answer(req))); err != nil {
			return
		}
	}
}

// Acknowledge returns the answer to the first message of a connection. most is the largest
// chunk that the server takes.
func Acknowledge(most uint32) []byte {
	b := []byte("ACKF\x1c\x00\x00\x00")
	for _, n := range []uint32{0, most, most, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// Answer returns a response as one chunk of channel 7 with token 9. typ is OPN or MSG.
func Answer(typ string, sequence, request uint32, response any) []byte {
	body, err := ua.Encode(response)
	if err != nil {
		panic(err)
	}
	typeID, err := ua.Encode(ua.NewFourByteExpandedNodeID(0, ua.ServiceTypeID(response)))
	if err != nil {
		panic(err)
	}
	return Chunk(typ+"F", sequence, request, append(typeID, body...))
}

// Chunk returns a chunk of channel 7 with token 9. typ is as MSGF.
func Chunk(typ string, sequence, request uint32, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(typ+"\x00\x00\x00\x00"), 7)
	if typ[:3] == "OPN" {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(ua.SecurityPolicyURINone)))
		b = append(b, ua.SecurityPolicyURINone+"\xff\xff\xff\xff\xff\xff\xff\xff"...)
	} else {
		b = binary.LittleEndian.AppendUint32(b, 9)
	}
	b = binary.LittleEndian.AppendUint32(b, sequence)
	b = binary.LittleEndian.AppendUint32(b, request)
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)))
	return b
}

func header(status ua.StatusCode) *ua.ResponseHeader {
	return &ua.ResponseHeader{Timestamp: time.Now(), ServiceResult: status, ServiceDiagnostics: &ua.DiagnosticInfo{}, AdditionalHeader: ua.NewExtensionObject(nil)}
}

func each[A, B any](all []A, of func(A) B) (out []B) {
	for _, a := range all {
		out = append(out, of(a))
	}
	return out
}

// answer returns the response to a request.
func (s *Server) answer(req any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := req.(type) {
	case *ua.OpenSecureChannelRequest:
		return &ua.OpenSecureChannelResponse{ResponseHeader: header(ua.StatusOK), SecurityToken: &ua.ChannelSecurityToken{ChannelID: 7, TokenID: 9, RevisedLifetime: r.RequestedLifetime}}
	case *ua.GetEndpointsRequest:
		return &ua.GetEndpointsResponse{ResponseHeader: header(ua.StatusOK), Endpoints: s.endpoints()}
	case *ua.CreateSessionRequest:
		return &ua.CreateSessionResponse{ResponseHeader: header(ua.StatusOK), SessionID: ua.NewNumericNodeID(1, 1), AuthenticationToken: ua.NewStringNodeID(1, "token"),
			RevisedSessionTimeout: r.RequestedSessionTimeout, ServerNonce: make([]byte, 32), ServerEndpoints: s.endpoints(), ServerSignature: &ua.SignatureData{}}
	case *ua.ActivateSessionRequest:
		return &ua.ActivateSessionResponse{ResponseHeader: header(ua.StatusOK)}
	case *ua.CloseSessionRequest:
		return &ua.CloseSessionResponse{ResponseHeader: header(ua.StatusOK)}
	case *ua.ReadRequest:
		return &ua.ReadResponse{ResponseHeader: header(ua.StatusOK), Results: each(r.NodesToRead, s.read)}
	case *ua.WriteRequest:
		res := &ua.WriteResponse{ResponseHeader: header(ua.StatusOK), Results: each(r.NodesToWrite, s.write)}
		if s.writes++; s.onWrite != nil {
			s.onWrite(s.variables)
		}
		return res
	}
	return &ua.ServiceFault{ResponseHeader: header(ua.StatusBadServiceUnsupported)}
}

func (s *Server) endpoints() []*ua.EndpointDescription {
	return []*ua.EndpointDescription{{
		EndpointURL: s.URL, SecurityMode: ua.MessageSecurityModeNone, SecurityPolicyURI: ua.SecurityPolicyURINone,
		Server:             &ua.ApplicationDescription{ApplicationName: ua.NewLocalizedText("test")},
		UserIdentityTokens: []*ua.UserTokenPolicy{{PolicyID: "anyone", TokenType: ua.UserTokenTypeAnonymous}, {PolicyID: "users", TokenType: ua.UserTokenTypeUserName}},
	}}
}

func (s *Server) read(n *ua.ReadValueID) *ua.DataValue {
	if n.NodeID.Namespace() == 0 && n.NodeID.IntID() == id.Server_ServerStatus_State {
		return good(int32(0))
	}
	v, ok := s.variables[n.NodeID.String()]
	if !ok {
		return bad(ua.StatusBadNodeIDUnknown)
	}
	if status := s.refused[n.NodeID.String()]; status != ua.StatusOK {
		return bad(status)
	}
	switch n.AttributeID {
	case ua.AttributeIDValue:
		return good(v)
	case ua.AttributeIDDataType:
		return good(ua.NewNumericNodeID(0, uint32(ua.MustVariant(v).Type())))
	case ua.AttributeIDUserAccessLevel:
		return good(byte(3))
	}
	return bad(ua.StatusBadAttributeIDInvalid)
}

func (s *Server) write(n *ua.WriteValue) ua.StatusCode {
	node := n.NodeID.String()
	v, ok := s.variables[node]
	switch {
	case !ok:
		return ua.StatusBadNodeIDUnknown
	case s.refused[node] != ua.StatusOK:
		return s.refused[node]
	case ua.MustVariant(v).Type() != n.Value.Value.Type():
		return ua.StatusBadTypeMismatch
	}
	s.variables[node] = n.Value.Value.Value()
	return ua.StatusOK
}

func good(v any) *ua.DataValue {
	return &ua.DataValue{EncodingMask: ua.DataValueValue, Value: ua.MustVariant(v)}
}

func bad(status ua.StatusCode) *ua.DataValue {
	return &ua.DataValue{EncodingMask: ua.DataValueStatusCode, Status: status}
}
