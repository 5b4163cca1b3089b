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
func (m *Message) AppendBinary(b []byte) []byte { return append(m.AppendHead(b), m.Value...) }

// AppendHead appends what precedes the value in the binary form of m.
func (m *Message) AppendHead(b []byte) []byte {
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
		b = append(appendLength(b, h.Value), h.Value...)
	}
	return appendLength(b, m.Value)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendLength appends what precedes v.
func appendLength(b, v []byte) []byte {
	if v == nil {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(len(v))+1)
}

// UnmarshalBinary sets m to the message whose binary form is b. It keeps no part of b.
// Time comes back in UTC. Any bytes are safe to try.
func (m *Message) UnmarshalBinary(b []byte) error {
	d := decoder{left: append([]byte(nil), b...)}
	if v := d.bytes(1); !d.failed && v[0] != messageVersion {
		return fmt.Errorf("bus: message in version %d of its form, this program reads %d: use the version that wrote it", v[0], messageVersion)
	}
	out := Message{
		Topic: string(d.bytes(d.length())), Key: string(d.bytes(d.length())),
		Partition: int(d.varint()), Offset: d.varint(),
		Time: time.Unix(d.varint(), int64(d.uvarint()%1e9)).UTC(),
	}
	n := d.uvarint()
	if n > uint64(len(d.left))/2 { // a header takes two bytes at least
		d.fail()
	}
	if n > 0 && !d.failed {
		out.Headers = make([]Header, n)
	}
	for i := range out.Headers {
		out.Headers[i] = Header{Key: string(d.bytes(d.length())), Value: d.nilBytes()}
	}
	out.Value = d.nilBytes()
	if len(d.left) > 0 {
		d.fail()
	}
	if d.failed {
		return errors.New("bus: message is damaged: this program did not write it")
	}
	*m = out
	return nil
}

// BinaryTime returns the Time of the message whose binary form begins with b.
func BinaryTime(b []byte) (at time.Time, ok bool) {
	d := decoder{left: b}
	if v := d.bytes(1); d.failed || v[0] != messageVersion {
		return time.Time{}, false
	}
	d.bytes(d.length())
	d.bytes(d.length())
	d.varint()
	d.varint()
	at = time.Unix(d.varint(), int64(d.uvarint()%1e9)).UTC()
	return at, !d.failed
}
