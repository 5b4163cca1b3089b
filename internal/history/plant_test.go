package history

import (
	"context"
	"testing"
	"time"

	"github.com/flank-tcm/flank/internal/broker/brokertest"
	"github.com/flank-tcm/flank/internal/bus"
)

const (
	drill    = "acme/line1/drill"
	group    = "tcm-monitor"
	patience = 2 * time.Minute // bounds what should take a moment
)

// plant is a broker and a producer.
type plant struct {
	t   *testing.T
	bus bus.Config
	out *bus.Producer
}

// newPlant starts a broker with all topics.
func newPlant(t *testing.T, partitions int) *plant {
	p := newPlantWithoutTopics(t)
	if _, err := bus.Apply(context.Background(), p.bus, partitions, 1); err != nil {
		t.Fatal(err)
	}
	return p
}

func newPlantWithoutTopics(t *testing.T) *plant {
	t.Helper()
	b := brokertest.Start(t)
	p := &plant{t: t, bus: b.Config("test")}
	var err error
	if p.out, err = bus.NewProducer(p.bus); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.out.Close)
	return p
}

func (p *plant) send(msgs ...bus.Message) {
	p.t.Helper()
	if err := p.out.Send(context.Background(), msgs); err != nil {
		p.t.Fatal(err)
	}
}

// message is an event as a monitor sends it.
func message(topic, id, machine, typ string, value []byte) bus.Message {
	return bus.Message{Topic: topic, Key: machine, Value: value, Headers: []bus.Header{{Key: "ce_id", Value: []byte(id)}, {Key: "ce_type", Value: []byte(typ)}}}
}
