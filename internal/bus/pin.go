package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
)

// askBroker sends a request to the broker with number node and returns its answer. The client
// library alone would ask FindCoordinator before every request of a transaction.
func askBroker[T protocol.Message](ctx context.Context, t *transport, node int32, req protocol.Message) (T, error) {
	var none T
	res, err := t.toNode(ctx, node, req)
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
func (p *pinned) find(ctx context.Context, t *transport) (int32, error) {
	if p.set {
		return p.node, nil
	}
	res, err := t.anyone(ctx, &findcoordinator.Request{Key: p.key, KeyType: p.kind})
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
func coordinate[T protocol.Message](ctx context.Context, t *transport, p *pinned, req protocol.Message) (T, error) {
	node, err := p.find(ctx, t)
	if err != nil {
		var none T
		return none, err
	}
	res, err := askBroker[T](ctx, t, node, req)
	if err != nil {
		p.set = false
	}
	return res, err
}
