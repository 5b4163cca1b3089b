package opcua

import (
	"bytes"
	"crypto/sha1" // the thumbprint of Basic256Sha256
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uapolicy"

	"github.com/flank-tcm/flank/internal/plain"
)

func readFull(c net.Conn, b []byte) error {
	_, err := io.ReadFull(c, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the server closed the connection")
	}
	return err
}

func appendBytes(b, field []byte) []byte {
	if field == nil {
		return binary.LittleEndian.AppendUint32(b, math.MaxUint32)
	}
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(field))), field...)
}

// send sends a request in one chunk. The policy is named to open a channel.
func (s *Session) send(typ string, req ua.Request, policy string) error {
	s.sent++
	s.request++
	req.SetHeader(&ua.RequestHeader{
		AuthenticationToken: s.authentication(), Timestamp: time.Now(), RequestHandle: s.request, TimeoutHint: uint32(maxTime / time.Millisecond),
	})
	head := binary.LittleEndian.AppendUint32([]byte(typ+"F\x00\x00\x00\x00"), s.channel)
	algorithm := s.symmetric
	if policy != "" {
		algorithm = s.asymmetric
		var thumbprint []byte
		if s.asymmetric != nil {
			sum := sha1.Sum(s.remote)
			thumbprint = sum[:]
		}
		head = appendBytes(appendBytes(appendBytes(head, []byte(policy)), s.own), thumbprint)
	} else {
		head = binary.LittleEndian.AppendUint32(head, s.token)
	}
	body := binary.LittleEndian.AppendUint32(nil, s.sent)
	body = binary.LittleEndian.AppendUint32(body, s.request)
	for _, part := range []any{ua.NewFourByteExpandedNodeID(0, ua.ServiceTypeID(req)), req} {
		b, err := ua.Encode(part)
		if err != nil {
			return err
		}
		body = append(body, b...)
	}
	b, err := seal(head, body, algorithm)
	if err != nil {
		return err
	}
	if len(b) > int(min(s.most, maxChunk)) {
		return fmt.Errorf("a request of %d bytes, the server takes %d", len(b), s.most)
	}
	_, err = s.conn.Write(b)
	return err
}

func (s *Session) authentication() *ua.NodeID {
	if s.auth == nil {
		return ua.NewTwoByteNodeID(0)
	}
	return s.auth
}

// seal completes a chunk: its size, and with an algorithm padding, signature and encryption.
// (Part 6, 6.7.2.)
func seal(head, body []byte, a *uapolicy.EncryptionAlgorithm) ([]byte, error) {
	if a == nil {
		binary.LittleEndian.PutUint32(head[4:], uint32(len(head)+len(body)))
		return append(head, body...), nil
	}
	block, extra := a.PlaintextBlockSize(), 1
	if a.BlockSize() > 256 {
		extra = 2 // a byte holds no more padding
	}
	padding := (block - (len(body)+a.SignatureLength()+extra)%block) % block
	body = append(body, bytes.Repeat([]byte{byte(padding)}, padding+1)...)
	if extra == 2 {
		body = append(body, byte(padding>>8))
	}
	size := len(head) + (len(body)+a.SignatureLength())/block*a.BlockSize()
	binary.LittleEndian.PutUint32(head[4:], uint32(size))
	signature, err := a.Signature(append(bytes.Clone(head), body...))
	if err != nil {
		return nil, err
	}
	sealed, err := a.Encrypt(append(body, signature...))
	if err != nil {
		return nil, err
	}
	return append(head, sealed...), nil
}

var errSecurity = errors.New("the signature or the encryption of an answer is wrong")

// unseal returns the body of a chunk whose head has a length.
func unseal(b []byte, head int, a *uapolicy.EncryptionAlgorithm) ([]byte, error) {
	if a == nil {
		return b[head:], nil
	}
	body, err := a.Decrypt(bytes.Clone(b[head:]))
	if err != nil || len(body) < a.RemoteSignatureLength()+2 {
		return nil, errSecurity
	}
	at := len(body) - a.RemoteSignatureLength()
	body, signature := body[:at], body[at:]
	if err := a.VerifySignature(append(bytes.Clone(b[:head]), body...), signature); err != nil {
		return nil, errSecurity
	}
	padding := int(body[at-1])
	if a.SignatureLength() > 256 {
		padding = padding<<8 + int(body[at-2]) + 1
	}
	if padding+1 > at {
		return nil, errSecurity
	}
	return body[:at-padding-1], nil
}

// Ids of the encodings of answers. (Part 6, annex A.)
const (
	serviceFault = 397
	idOffset     = 3 // from a request's id to its answer's
)

// roundTrip sends a request and reads its answer, up to behind the answer's header.
func (s *Session) roundTrip(req ua.Request, policy string) (*reader, error) {
	typ := "MSG"
	if policy != "" {
		typ = "OPN"
	}
	if err := s.send(typ, req, policy); err != nil {
		return nil, err
	}
	var message []byte
	for chunks := 1; ; chunks++ {
		b, err := s.chunk(typ)
		if err != nil {
			return nil, err
		}
		kind := b[3]
		var body []byte
		if policy != "" {
			body, err = s.openingBody(b, policy)
		} else {
			body, err = s.body(b)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case kind == 'A':
			r := &reader{b: body}
			code, why := r.u32(), r.text()
			return nil, fmt.Errorf("the server gave up an answer: %w %s", ua.StatusCode(code), plain.Short(why, 200))
		case kind != 'F' && kind != 'C':
			return nil, errors.New("not an answer of OPC UA: a chunk of unknown kind")
		case len(message)+len(body) > maxMessage || chunks > maxChunks:
			return nil, fmt.Errorf("the answer has more than %d bytes or %d chunks", maxMessage, maxChunks)
		}
		if message = append(message, body...); kind == 'F' {
			break
		}
	}
	r := &reader{b: message}
	id := r.typeID()
	r.skip(12) // time and handle
	status := ua.StatusCode(r.u32())
	r.diagnostics(0)
	for range r.count(4) {
		r.text()
	}
	r.extension()
	if r.err != nil {
		return nil, r.err
	}
	if bad(status) {
		return nil, status
	}
	if want := uint32(ua.ServiceTypeID(req)) + idOffset; id != want {
		return nil, fmt.Errorf("not an answer of OPC UA: message %d, want %d", id, want)
	}
	return r, nil
}

// bad reports whether a status says that something was not done. (Part 4, 7.39.)
func bad(status ua.StatusCode) bool { return status>>31 == 1 }

// openingBody returns the body of the chunk that opens a channel.
func (s *Session) openingBody(b []byte, policy string) ([]byte, error) {
	r := &reader{b: b}
	r.skip(12)
	got, certificate, thumbprint := r.text(), r.bytes(), r.bytes()
	if r.err != nil {
		return nil, r.err
	}
	if got != policy {
		return nil, fmt.Errorf("the server answers with the policy %s, want %s", plain.Short(got, 100), policy)
	}
	if s.asymmetric != nil {
		if sum := sha1.Sum(s.own); !bytes.HasPrefix(certificate, s.remote) || !bytes.Equal(thumbprint, sum[:]) {
			return nil, errors.New("the server answers with another certificate")
		}
	}
	body, err := unseal(b, r.at, s.asymmetric)
	if err != nil {
		return nil, err
	}
	return s.sequence(body, true)
}

// body returns the body of a chunk of an open channel.
func (s *Session) body(b []byte) ([]byte, error) {
	r := &reader{b: b}
	r.skip(8)
	channel, token := r.u32(), r.u32()
	if r.err != nil {
		return nil, r.err
	}
	if channel != s.channel || token != s.token {
		return nil, errors.New("not an answer of OPC UA: of another channel")
	}
	body, err := unseal(b, r.at, s.symmetric)
	if err != nil {
		return nil, err
	}
	return s.sequence(body, false)
}

// sequence takes the sequence header off a body. Numbers rise by one, so that no chunk can
// come twice.
func (s *Session) sequence(body []byte, first bool) ([]byte, error) {
	r := &reader{b: body}
	n, request := r.u32(), r.u32()
	if r.err != nil {
		return nil, r.err
	}
	if !first && n != s.got+1 && (s.got < math.MaxUint32-1024 || n >= 1024) || request != s.request {
		return nil, fmt.Errorf("not an answer of OPC UA: chunk %d of request %d, want chunk %d of request %d", n, request, s.got+1, s.request)
	}
	s.got = n
	return body[r.at:], nil
}
