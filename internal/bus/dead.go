package bus

import (
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
