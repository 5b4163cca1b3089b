package bus

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawMessage(t *rapid.T) Message {
	draw := func(what string) []byte {
		if rapid.Bool().Draw(t, what+" is nil") {
			return nil
		}
		return rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, what)
	}
	m := Message{
		Topic:     rapid.String().Draw(t, "topic"),
		Partition: rapid.IntRange(0, 1<<31-1).Draw(t, "partition"),
		Offset:    rapid.Int64().Draw(t, "offset"),
		Key:       rapid.String().Draw(t, "key"),
		Time:      time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC(),
		Value:     draw("value"),
	}
	for range rapid.IntRange(0, 5).Draw(t, "headers") {
		m.Headers = append(m.Headers, Header{rapid.String().Draw(t, "header"), draw("header value")})
	}
	return m
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		b := m.AppendBinary([]byte("before"))
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Fatal("AppendBinary does not append")
		}
		b = b[len("before"):]
		if at, ok := BinaryTime(b[:len(b)-len(m.Value)]); !ok || !at.Equal(m.Time) {
			t.Fatalf("BinaryTime: %v, %v, want %v", at, ok, m.Time)
		}
		var got Message
		if err := got.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = 0xff // the message must have kept nothing of it
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("got %+v, want %+v", got, m)
		}
	})
}

func TestMessageZeroTime(t *testing.T) {
	var m, got Message
	if err := got.UnmarshalBinary(m.AppendBinary(nil)); err != nil || !got.Time.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
}

// A message cut short anywhere is an error, never another message.
func TestMessageTruncated(t *testing.T) {
	m := Message{Topic: "t", Key: "k", Time: time.Unix(5, 6), Headers: []Header{{"a", []byte("b")}, {"c", nil}}, Value: []byte("v")}
	b := m.AppendBinary(nil)
	for n := range b {
		got := Message{Topic: "untouched"}
		if err := got.UnmarshalBinary(b[:n]); err == nil || got.Topic != "untouched" {
			t.Errorf("%d of %d bytes: %v, %+v", n, len(b), err, got)
		}
	}
	b[0] = 2
	if err := m.UnmarshalBinary(b); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another version: %v", err)
	}
}

func FuzzMessage(f *testing.F) {
	m := Message{Topic: TopicWindows, Key: "e/s/a/l/m", Time: time.Unix(1, 2), Headers: []Header{{"ce_id", []byte("1")}}, Value: []byte("v")}
	f.Add(m.AppendBinary(nil))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again Message
		if m.UnmarshalBinary(b) != nil {
			return
		}
		if err := again.UnmarshalBinary(m.AppendBinary(nil)); err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

func TestDeadLetter(t *testing.T) {
	at := time.Unix(100, 0)
	m := Message{
		Topic: TopicWindows, Partition: 3, Offset: 77, Key: "m1", Time: time.Unix(50, 0), Value: []byte{0, 1, 2},
		Headers: []Header{{"ce_id", []byte("x")}, {"dead_reason", []byte("its own")}},
	}
	d := DeadLetter(m, "checksum differs", at)
	if d.Topic != TopicDead || d.Key != "m1" || !bytes.Equal(d.Value, m.Value) || !d.Time.Equal(at) {
		t.Errorf("%+v", d)
	}
	for key, want := range map[string]string{
		"dead_reason": "checksum differs", "dead_topic": TopicWindows, "dead_partition": "3", "dead_offset": "77",
		"dead_time": "1970-01-01T00:00:50Z", "original_ce_id": "x", "original_dead_reason": "its own",
	} {
		if got := string(d.Header(key)); got != want {
			t.Errorf("header %s = %q, want %q", key, got, want)
		}
	}
	d.Time = at.Add(time.Second) // as the broker sets it
	l, err := OpenLetter(d)
	m.Time = m.Time.UTC()
	if err != nil || !reflect.DeepEqual(l, Letter{Message: m, Reason: "checksum differs", At: d.Time, Size: 3}) {
		t.Errorf("opened again: %+v, %v", l, err)
	}
	if _, err := OpenLetter(m); err == nil {
		t.Error("OpenLetter takes a message that is not a dead letter")
	}
	long := DeadLetter(m, strings.Repeat("é", 1<<20), at)
	if n := len(long.Header("dead_reason")); n > maxReason || n < maxReason-1 {
		t.Errorf("a long reason has %d bytes", n)
	}
}

// The letter of any message fits the topic of dead letters, and names the parts that it
// does not hold.
func TestDeadLetterBounds(t *testing.T) {
	many := make([]Header, 1<<20)
	for i := range many {
		many[i] = Header{Key: "h"}
	}
	long := []Header{{"a", []byte("1")}, {"b", make([]byte, 1<<20)}, {"c", []byte("3")}}
	whole := func(m Message) Message { return DeadLetter(m, "why", time.Unix(0, 0)) }
	cutLetter := func(m Message) Message { return CutLetter(m, "why", time.Unix(0, 0)) }
	bare := func(m Message) Message { return BareLetter(m, len(m.Value), "why", time.Unix(0, 0)) }
	unknown := func(m Message) Message { return BareLetter(m, -1, "why", time.Unix(0, 0)) }
	for name, tc := range map[string]struct {
		of      func(Message) Message
		m       Message
		cut     string
		size    int64 // as it was
		key     int   // kept
		headers int
		value   int
		want    string // in the refusal to send it again
	}{
		"a largest message":          {whole, Message{Value: make([]byte, MaxMessage)}, "", MaxMessage, 0, 0, MaxMessage, ""},
		"larger than the topics":     {whole, Message{Value: make([]byte, MaxMessage+1)}, "value", MaxMessage + 1, 0, 0, MaxMessage, "8388608 of the 8388609 bytes"},
		"a long key":                 {whole, Message{Key: strings.Repeat("k", 1<<20), Value: []byte("v")}, "key", 1, 32 << 10, 0, 1, "(key)"},
		"a million headers":          {whole, Message{Headers: many}, "headers", 0, 0, 1000, 0, "(headers)"},
		"a long header":              {whole, Message{Headers: long}, "headers", 0, 0, 1, 0, "(headers)"},
		"a tombstone":                {whole, Message{Key: "k"}, "", 0, 1, 0, 0, ""},
		"a window of another layout": {cutLetter, Message{Key: "k", Headers: long[:1], Value: make([]byte, 966_000)}, "value", 966_000, 1, 1, CutBytes, "65536 of the 966000 bytes"},
		"a short one of that kind":   {cutLetter, Message{Value: make([]byte, CutBytes)}, "", CutBytes, 0, 0, CutBytes, ""},
		"all beyond its bounds": {
			whole, Message{Key: strings.Repeat("k", 1<<20), Headers: many, Value: make([]byte, 16<<20)},
			"key,headers,value", 16 << 20, 32 << 10, 1000, MaxMessage, "(key, headers, value)",
		},
		"without body":        {bare, Message{Key: strings.Repeat("k", 300), Headers: long, Value: make([]byte, 7)}, "key,headers,value", 7, 256, 0, 0, "(key, headers, value)"},
		"of a size not known": {unknown, Message{}, "value", -1, 0, 0, 0, "(value)"},
	} {
		tc.m.Topic, tc.m.Partition, tc.m.Offset = TopicWindows, 3, 77
		d := tc.of(tc.m)
		if n := len(d.AppendBinary(nil)) + 32*len(d.Headers); n > MaxMessage+deadOverhead { // and Kafka's framing
			t.Errorf("%s: %d bytes", name, n)
		}
		l, err := OpenLetter(d)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m := l.Message
		if l.Cut != tc.cut || l.Size != tc.size || len(m.Key) != tc.key || len(m.Headers) != tc.headers || len(m.Value) != tc.value ||
			m.Topic != TopicWindows || m.Partition != 3 || m.Offset != 77 || l.Reason != "why" {
			t.Errorf("%s: cut %q of %d bytes, key of %d, %d headers, value of %d: %s/%d@%d", name, l.Cut, l.Size, len(m.Key), len(m.Headers), len(m.Value), m.Topic, m.Partition, m.Offset)
		}
		err = l.Whole()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want+" ") && !strings.Contains(err.Error(), tc.want+":") {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	forged := CutLetter(Message{Topic: TopicWindows, Value: make([]byte, 1<<20)}, "", time.Unix(0, 0))
	forged.Headers[6].Value = []byte("many")
	if _, err := OpenLetter(forged); err == nil {
		t.Error("a size that is not a number is taken")
	}
}

// Any message comes back from its letter, or the letter says that it is not whole. Any
// message of the topic of dead letters is safe to open.
func FuzzLetter(f *testing.F) {
	f.Add("k", []byte("v"), "h", []byte("x"), "why", 3, int64(77))
	f.Add("", []byte(nil), deadCut, []byte("value"), "", -1, int64(-1))
	f.Add(strings.Repeat("k", 40<<10), make([]byte, 70<<10), deadSize, make([]byte, 300<<10), "why", 0, int64(0))
	f.Fuzz(func(t *testing.T, key string, value []byte, header string, text []byte, reason string, partition int, offset int64) {
		m := Message{
			Topic: TopicWindows, Partition: partition, Offset: offset, Key: key, Time: time.Unix(50, 0).UTC(),
			Headers: []Header{{header, text}}, Value: value,
		}
		for _, d := range []Message{DeadLetter(m, reason, time.Unix(100, 0)), CutLetter(m, reason, time.Unix(100, 0)), BareLetter(m, len(value), reason, time.Unix(100, 0))} {
			l, err := OpenLetter(d)
			if err != nil {
				t.Fatalf("%+v: %v", d, err)
			}
			if l.Cut == "" && !reflect.DeepEqual(l.Message, m) {
				t.Fatalf("%+v became %+v", m, l.Message)
			}
			if l.Size != int64(len(value)) || l.Message.Partition != partition || l.Message.Offset != offset {
				t.Fatalf("%+v became %+v", m, l)
			}
		}
		_, _ = OpenLetter(Message{Headers: []Header{
			{deadTopic, text}, {deadPartition, []byte("1")}, {deadOffset, []byte("1")}, {deadTime, []byte("2026-11-22T00:00:00Z")}, {deadCut, []byte(key)}, {deadSize, value}, {header, text},
		}})
	})
}
