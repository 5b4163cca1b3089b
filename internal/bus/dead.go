package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers of a dead letter. Those of the message itself follow with
// deadOriginal before their keys.
const (
	deadReason    = "dead_reason"
	deadTopic     = "dead_topic"
	deadPartition = "dead_partition"
	deadOffset    = "dead_offset"
	deadTime      = "dead_time" // of the message
	deadOriginal  = "original_"
)

// maxReason bounds the reason, which may quote a hostile message.
const maxReason = 4096

// DeadLetter returns m as a message for TopicDead: its key and value as they were,
// the reason why it could not be used, where it lay, and its headers. At is when
// it was given up.
func DeadLetter(m Message, reason string, at time.Time) Message {
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
	for _, h := range m.Headers {
		d.Headers = append(d.Headers, Header{deadOriginal + h.Key, h.Value})
	}
	return d
}

// Letter is a dead letter as it is read again.
type Letter struct {
	Message Message // as it was: topic, partition, offset, time, headers, key and value
	Reason  string
	At      time.Time // when the broker got the letter
}

// OpenLetter is the inverse of DeadLetter. It reports messages that DeadLetter did
// not make.
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
		Reason: string(d.Header(deadReason)), At: d.Time,
	}
	if l.Message.Topic == "" {
		return Letter{}, fmt.Errorf("bus: dead letter at offset %d does not say where it came from", d.Offset)
	}
	for _, h := range d.Headers {
		if key, ok := strings.CutPrefix(h.Key, deadOriginal); ok {
			l.Message.Headers = append(l.Message.Headers, Header{key, h.Value})
		}
	}
	return l, nil
}
