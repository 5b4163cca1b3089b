package bus

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
)

// toBroker is a request for the broker with a known number. The client library alone would
// ask FindCoordinator before every request of a transaction, and ignore the error in the
// answer.
type toBroker struct {
	protocol.Message // the request
	node             int32
	clientID         string
	version          int16 // of the request; set by the connection
}

// Broker implements protocol.BrokerMessage.
func (r *toBroker) Broker(c protocol.Cluster) (protocol.Broker, error) {
	b, ok := c.Brokers[r.node]
	if !ok {
		return protocol.Broker{ID: -1}, kafka.BrokerNotAvailable
	}
	return b, nil
}

// Required implements protocol.RawExchanger.
func (r *toBroker) Required(versions map[protocol.ApiKey]int16) bool {
	r.version = versions[r.ApiKey()]
	return true
}

// RawExchange implements protocol.RawExchanger. A connection carries one request at a time,
// so every request may have the same number.
func (r *toBroker) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	return protocol.RoundTrip(rw, r.version, 1, r.clientID, r.Message)
}

// askBroker sends a request to the broker with number node and returns its answer.
func askBroker[T protocol.Message](ctx context.Context, c *client, kc *kafka.Client, node int32, req protocol.Message) (T, error) {
	var none T
	res, err := kc.Transport.RoundTrip(ctx, kc.Addr, &toBroker{Message: req, node: node, clientID: c.cfg.ClientID})
	if err != nil {
		return none, err
	}
	answer, ok := res.(T)
	if !ok {
		return none, fmt.Errorf("bus: answer is a %T, want a %T", res, none)
	}
	return answer, nil
}

// Kinds of coordinator, as FindCoordinator names them.
const (
	ofGroup       int8 = 0
	ofTransaction int8 = 1
)

// pinned remembers which broker coordinates a group or a transaction.
type pinned struct {
	kind int8
	key  string
	node int32
	set  bool
}

// find returns the number of the coordinator. It asks only if it does not know it.
func (p *pinned) find(ctx context.Context, kc *kafka.Client) (int32, error) {
	if p.set {
		return p.node, nil
	}
	res, err := kc.Transport.RoundTrip(ctx, kc.Addr, &findcoordinator.Request{Key: p.key, KeyType: p.kind})
	if err != nil {
		return 0, err
	}
	r := res.(*findcoordinator.Response)
	if r.ErrorCode != 0 {
		return 0, p.explain(kafka.Error(r.ErrorCode))
	}
	p.node, p.set = r.NodeID, true
	return p.node, nil
}

// check returns the error with that code, or nil. It forgets the broker if another one may
// be the coordinator now.
func (p *pinned) check(code int16) error {
	if code == 0 {
		return nil
	}
	if code != int16(kafka.ConcurrentTransactions) {
		p.set = false
	}
	return kafka.Error(code)
}

// explain adds the broker setting to correct if no broker can be the coordinator.
func (p *pinned) explain(err error) error {
	if !errors.Is(err, kafka.GroupCoordinatorNotAvailable) {
		return err
	}
	if p.kind == ofTransaction {
		return fmt.Errorf("no broker coordinates transactions (%w): if this lasts, look at the broker's log; a broker that is alone needs transaction.state.log.replication.factor=1 and transaction.state.log.min.isr=1", err)
	}
	return fmt.Errorf("no broker keeps the positions of groups (%w): if this lasts, look at the broker's log; a broker that is alone needs offsets.topic.replication.factor=1", err)
}

// coordinate sends a request to a coordinator and returns its answer.
func coordinate[T protocol.Message](ctx context.Context, c *client, kc *kafka.Client, p *pinned, req protocol.Message) (T, error) {
	node, err := p.find(ctx, kc)
	if err != nil {
		var none T
		return none, err
	}
	res, err := askBroker[T](ctx, c, kc, node, req)
	if err != nil {
		p.set = false
	}
	return res, err
}
