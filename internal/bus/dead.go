package bus

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers of a dead letter. The headers of the message itself follow, with
// deadOriginal before their keys.
const (
	deadReason    = "dead_reason"
	deadTopic     = "dead_topic"
	deadPartition = "dead_partition"
	deadOffset    = "dead_offset"
	deadTime      = "dead_time" // of the message
	deadCut       = "dead_cut"  // parts of the message that the letter does not hold whole: "key", "headers", "value", with commas; absent: none
	deadSize      = "dead_size" // bytes of the message's value, if it is cut and its size is known
	deadOriginal  = "original_"
)

// CutBytes is how many bytes of the value a CutLetter keeps.
const CutBytes = 64 << 10

// maxReason bounds the reason, which may quote a hostile message.
const maxReason = 4096

// deadBounds are how many bytes of a message a dead letter keeps.
type deadBounds struct{ key, value, headers int }

// wholeBounds are larger than any message that this program sends. Within them, and with
// deadOverhead, a letter of any message fits its topic.
var wholeBounds = deadBounds{key: 32 << 10, value: MaxMessage, headers: 256 << 10}

// DeadLetter returns m as a message for TopicDead: its key, headers and value, the
// reason why it could not be used, and where it lay. At is when it was set aside. The
// letter of any message fits its topic: it keeps only the beginning of a key, headers or a
// value that are longer than this program's own, and says so.
func DeadLetter(m Message, reason string, at time.Time) Message {
	return letterOf(m, len(m.Value), wholeBounds, reason, at)
}

// CutLetter is DeadLetter with no more than the first CutBytes of the value: for
// messages that come by the thousand and are alike, such as windows of another layout.
func CutLetter(m Message, reason string, at time.Time) Message {
	b := wholeBounds
	b.value = CutBytes
	return letterOf(m, len(m.Value), b, reason, at)
}

// BareLetter is DeadLetter for a message whose body was not read because it is too
// large or damaged, or that a topic of dead letters with other settings does not take:
// it says where the message lies, the beginning of its key, and the reason. Size is the
// length of the value in bytes, below 0 if it is not known. Only the topic, partition and
// offset of m must be set.
func BareLetter(m Message, size int, reason string, at time.Time) Message {
	return letterOf(m, size, deadBounds{key: 256}, reason, at)
}

// letterOf returns a letter with the parts of m that the bounds allow. The value was size bytes long.
func letterOf(m Message, size int, b deadBounds, reason string, at time.Time) Message {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	d := Message{
		Topic: TopicDead, Key: m.Key, Time: at, Value: m.Value,
		Headers: []Header{
			{deadReason, []byte(reason)},
			{deadTopic, []byte(m.Topic)},
			{deadPartition, strconv.AppendInt(nil, int64(m.Partition), 10)},
			{deadOffset, strconv.AppendInt(nil, m.Offset, 10)},
			{deadTime, []byte(m.Time.UTC().Format(time.RFC3339Nano))},
		},
	}
	var cut []string
	if len(d.Key) > b.key {
		d.Key = d.Key[:b.key]
		cut = append(cut, "key")
	}
	headers := boundHeaders(m.Headers, b.headers)
	if len(headers) < len(m.Headers) {
		cut = append(cut, "headers")
	}
	if len(d.Value) > b.value {
		d.Value = d.Value[:b.value:b.value]
	}
	if len(d.Value) != size {
		cut = append(cut, "value")
	}
	if len(cut) > 0 {
		d.Headers = append(d.Headers, Header{deadCut, []byte(strings.Join(cut, ","))})
	}
	if len(d.Value) != size && size >= 0 {
		d.Headers = append(d.Headers, Header{deadSize, strconv.AppendInt(nil, int64(size), 10)})
	}
	for _, h := range headers {
		d.Headers = append(d.Headers, Header{deadOriginal + h.Key, h.Value})
	}
	return d
}

// boundHeaders returns the first headers, at most maxHeaders with at most so many
// bytes.
func boundHeaders(headers []Header, most int) []Header {
	size := 0
	for i, h := range headers {
		if size += len(h.Key) + len(h.Value); i == maxHeaders || size > most {
			return headers[:i]
		}
	}
	return headers
}

// Letter is a dead letter as it is read again.
type Letter struct {
	Message Message // the original, with its topic, partition, offset, time, headers, key and value
	Reason  string
	At      time.Time // when the broker got the letter
	Cut     string    // parts of Message that are not whole, such as "value" or "key,headers"; empty: none
	Size    int64     // bytes of the original value; -1 if not known
}

// Whole returns an error if the letter does not hold all of the message, which then cannot
// be sent again. The error says where the message itself lies.
func (l Letter) Whole() error {
	if l.Cut == "" {
		return nil
	}
	m := l.Message
	kept := fmt.Sprintf("the letter does not hold all of the message (%s)", strings.ReplaceAll(l.Cut, ",", ", "))
	if l.Cut == "value" && l.Size >= 0 {
		kept = fmt.Sprintf("the letter holds %d of the %d bytes of the message's value", len(m.Value), l.Size)
	}
	return fmt.Errorf("bus: %s: the message itself lies in topic %s partition %d at offset %d as long as Kafka keeps it", kept, m.Topic, m.Partition, m.Offset)
}

// OpenLetter is the inverse of DeadLetter, CutLetter and BareLetter. It returns an error
// for messages that these did not make.
func OpenLetter(d Message) (Letter, error) {
	partition, err1 := strconv.Atoi(string(d.Header(deadPartition)))
	offset, err2 := strconv.ParseInt(string(d.Header(deadOffset)), 10, 64)
	sent, err3 := time.Parse(time.RFC3339Nano, string(d.Header(deadTime)))
	if err := errors.Join(err1, err2, err3); err != nil {
		return Letter{}, fmt.Errorf("bus: dead letter at offset %d: %w", d.Offset, err)
	}
	l := Letter{
		Message: Message{
			Topic: string(d.Header(deadTopic)), Partition: partition, Offset: offset,
			Key: d.Key, Time: sent, Value: d.Value,
		},
		Reason: string(d.Header(deadReason)), At: d.Time, Cut: string(d.Header(deadCut)), Size: int64(len(d.Value)),
	}
	if l.Message.Topic == "" {
		return Letter{}, fmt.Errorf("bus: dead letter at offset %d does not say where it came from", d.Offset)
	}
	if strings.Contains(l.Cut, "value") {
		var err error
		if l.Size, err = strconv.ParseInt(cmp.Or(string(d.Header(deadSize)), "-1"), 10, 64); err != nil {
			return Letter{}, fmt.Errorf("bus: dead letter at offset %d: %w", d.Offset, err)
		}
	}
	for _, h := range d.Headers {
		if key, ok := strings.CutPrefix(h.Key, deadOriginal); ok {
			l.Message.Headers = append(l.Message.Headers, Header{key, h.Value})
		}
	}
	return l, nil
}
