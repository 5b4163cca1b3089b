package bus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// The binary form of a message, for the spool:
//
//	version    byte      1
//	topic      string    a string is its length as uvarint, then its bytes
//	key        string
//	partition  varint
//	offset     varint
//	seconds    varint    of Time since 1970
//	nanos      uvarint   of Time within the second
//	headers    uvarint   how many follow
//	  key      string
//	  value    bytes     0 for nil, else length+1 as uvarint, then the bytes
//	value      bytes
const messageVersion = 1

// AppendBinary appends the binary form of m to b.
func (m *Message) AppendBinary(b []byte) []byte {
	b = append(b, messageVersion)
	b = appendString(b, m.Topic)
	b = appendString(b, m.Key)
	b = binary.AppendVarint(b, int64(m.Partition))
	b = binary.AppendVarint(b, m.Offset)
	b = binary.AppendVarint(b, m.Time.Unix())
	b = binary.AppendUvarint(b, uint64(m.Time.Nanosecond()))
	b = binary.AppendUvarint(b, uint64(len(m.Headers)))
	for _, h := range m.Headers {
		b = appendString(b, h.Key)
		b = appendBytes(b, h.Value)
	}
	return appendBytes(b, m.Value)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBytes(b, v []byte) []byte {
	if v == nil {
		return binary.AppendUvarint(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(v))+1), v...)
}

// UnmarshalBinary sets m to the message whose binary form is b. It keeps no part of b.
// Time comes back in UTC. Any bytes are safe to try.
func (m *Message) UnmarshalBinary(b []byte) error {
	d := decoder{left: append([]byte(nil), b...)}
	if v := d.bytes(1); d.err == nil && v[0] != messageVersion {
		return fmt.Errorf("bus: message in version %d of its form, this program reads %d: use the version that wrote it", v[0], messageVersion)
	}
	out := Message{
		Topic: string(d.bytes(d.uvarint())), Key: string(d.bytes(d.uvarint())),
		Partition: int(d.varint()), Offset: d.varint(),
		Time: time.Unix(d.varint(), int64(d.uvarint()%1e9)).UTC(),
	}
	n := d.uvarint()
	if n > uint64(len(d.left))/2 { // a header takes two bytes at least
		d.fail()
	}
	if n > 0 && d.err == nil {
		out.Headers = make([]Header, n)
	}
	for i := range out.Headers {
		out.Headers[i] = Header{Key: string(d.bytes(d.uvarint())), Value: d.nilBytes()}
	}
	out.Value = d.nilBytes()
	if len(d.left) > 0 {
		d.fail()
	}
	if d.err != nil {
		return d.err
	}
	*m = out
	return nil
}

// BinaryTime returns the Time of the message whose binary form begins with b.
func BinaryTime(b []byte) (at time.Time, ok bool) {
	d := decoder{left: b}
	if v := d.bytes(1); d.err != nil || v[0] != messageVersion {
		return time.Time{}, false
	}
	d.bytes(d.uvarint())
	d.bytes(d.uvarint())
	d.varint()
	d.varint()
	at = time.Unix(d.varint(), int64(d.uvarint()%1e9)).UTC()
	return at, d.err == nil
}

// decoder takes values off the front of left. After a failure all values are zero.
type decoder struct {
	left []byte
	err  error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errors.New("bus: message is damaged: this program did not write it")
	}
	d.left = nil
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.left)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.left = d.left[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.left)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.left = d.left[n:]
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.left)) {
		d.fail()
		return nil
	}
	v := d.left[:n:n]
	d.left = d.left[n:]
	return v
}

func (d *decoder) nilBytes() []byte {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	return d.bytes(n - 1)
}
