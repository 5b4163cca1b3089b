package route

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Sparkplug B 3.0.0: topics, and payloads of its sparkplug_b.proto as far as the state of
// machines needs them: metrics with a name, a time and a value.

// spbMetric is one metric of a payload.
type spbMetric struct {
	name  string
	value any // bool, string, int64, or a time.Time, of which the zero one is null
}

// Numbers of types in sparkplug_b.proto.
const (
	spbInt64    = 4
	spbBoolean  = 11
	spbString   = 12
	spbDateTime = 13
)

// spbPayload returns a payload. A negative seq is left out, as in NDEATH.
func spbPayload(at time.Time, seq int, metrics []spbMetric) []byte {
	var b []byte
	stamp := uint64(at.UnixMilli())
	b = varint(b, 1, stamp)
	for _, m := range metrics {
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendBytes(b, m.encode(stamp))
	}
	if seq >= 0 {
		b = varint(b, 3, uint64(seq))
	}
	return b
}

func varint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func (m spbMetric) encode(stamp uint64) []byte {
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	b = protowire.AppendString(b, m.name)
	b = varint(b, 3, stamp)
	switch v := m.value.(type) {
	case bool:
		b = varint(b, 4, spbBoolean)
		return varint(b, 14, protowire.EncodeBool(v))
	case string:
		b = varint(b, 4, spbString)
		b = protowire.AppendTag(b, 15, protowire.BytesType)
		return protowire.AppendString(b, strings.ToValidUTF8(v, "\uFFFD"))
	case int64:
		b = varint(b, 4, spbInt64)
		return varint(b, 11, uint64(v))
	case time.Time:
		b = varint(b, 4, spbDateTime)
		if v.IsZero() {
			return varint(b, 7, 1) // is_null
		}
		return varint(b, 11, uint64(v.UnixMilli()))
	}
	panic(fmt.Sprintf("route: metric %s of type %T", m.name, m.value))
}

// spbRebirth is the metric of a command with which a host asks for births.
const spbRebirth = "Node Control/Rebirth"

// spbWants reports whether a payload sets a boolean metric to true. It returns an error
// for bytes that are not a payload.
func spbWants(payload []byte, name string) (bool, error) {
	wanted := false
	err := fields(payload, func(field protowire.Number, _ uint64, metric []byte) error {
		if field != 2 || metric == nil {
			return nil
		}
		var called string
		var set bool
		err := fields(metric, func(field protowire.Number, v uint64, text []byte) error {
			switch field {
			case 1:
				called = string(text)
			case 14:
				set = v != 0
			}
			return nil
		})
		wanted = wanted || called == name && set
		return err
	})
	return wanted, err
}

// fields calls f for the fields of a message that are numbers or bytes.
func fields(b []byte, f func(field protowire.Number, v uint64, text []byte) error) error {
	for len(b) > 0 {
		field, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errors.New("route: not a payload of Sparkplug B")
		}
		b = b[n:]
		var v uint64
		var text []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			if text, n = protowire.ConsumeBytes(b); text == nil {
				text = []byte{}
			}
		default:
			n = protowire.ConsumeFieldValue(field, typ, b)
		}
		if n < 0 {
			return errors.New("route: not a payload of Sparkplug B")
		}
		if err := f(field, v, text); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// sparkplugConfig names this monitor among the edge nodes. Machines are its devices,
// named by their path with dots for slashes.
type sparkplugConfig struct {
	Group string `yaml:"group"` // empty: flank
	Edge  string `yaml:"edge"`  // of each monitor another; empty: the name of the host
}

// check accepts that there is none.
func (s *sparkplugConfig) check() error {
	if s == nil {
		return nil
	}
	const text = "%q: a name in Sparkplug has none of / + #"
	return cmp.Or(wrong(strings.ContainsAny(s.Group, "/+#"), "sparkplug.group", text, s.Group), wrong(strings.ContainsAny(s.Edge, "/+#"), "sparkplug.edge", text, s.Edge))
}

// topic returns the topic of a message of a type about the node, or a device of it.
func (s *sparkplugConfig) topic(typ, machine string) string {
	t := "spBv1.0/" + s.Group + "/" + typ + "/" + s.Edge
	if machine != "" {
		t += "/" + strings.NewReplacer("/", ".", "+", "_", "#", "_").Replace(machine)
	}
	return t
}

// spbDevice returns the metrics of a machine. They are always the same ones, because the
// birth of a device names them.
func spbDevice(s *standing) []spbMetric {
	a := s.last
	if a == nil {
		a = &Event{facts: facts{Alarm: "normal"}}
	}
	since, text := ofClock(a.Since), a.Text
	if !a.stands() {
		since = time.Time{}
	}
	all := []spbMetric{
		{"Alarm/Active", a.calls()},
		{"Alarm/State", a.Alarm},
		{"Alarm/Incident", a.Incident},
		{"Alarm/Tool", a.Tool},
		{"Alarm/Since", since},
		{"Alarm/Text", text},
	}
	var texts []string
	stand := make(map[string]bool)
	for _, e := range s.sorted() {
		stand[e.Kind] = true
		texts = append(texts, e.Text)
	}
	for _, kind := range [][2]string{{"Sensor", "sensor"}, {"Silence", "silence"}, {"Unknown", "unknown"}, {"Drift", "drift"}, {"Refused", "windows_refused"}, {"Stopped", "machine_stopped"}} {
		all = append(all, spbMetric{"Advisory/" + kind[0], stand[kind[1]]})
	}
	return append(all, spbMetric{"Advisory/Text", strings.Join(texts, "\n")})
}
