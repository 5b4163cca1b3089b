package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
)

// Kinds of what a broker coordinates, as FindCoordinator names them.
const (
	ofGroup       int8 = 0
	ofTransaction int8 = 1
)

// coordinated is a group or a transactional id.
type coordinated struct {
	kind int8
	key  string
}

// coordinator returns the number of the broker that coordinates a group or a transactional id. It
// asks once, and again after expire.
func (t *transport) coordinator(ctx context.Context, of coordinated) (int32, error) {
	t.mu.Lock()
	node, known := t.coordinators[of]
	t.mu.Unlock()
	if known {
		return node, nil
	}
	res, err := t.anyone(ctx, &findcoordinator.Request{Key: of.key, KeyType: of.kind})
	if err != nil {
		return 0, err
	}
	r := res.(*findcoordinator.Response)
	if r.ErrorCode != 0 {
		return 0, of.explain(kafka.Error(r.ErrorCode))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coordinators[of] = r.NodeID
	return r.NodeID, nil
}

// explain adds the broker setting to correct if no broker can be the coordinator.
func (of coordinated) explain(err error) error {
	if !errors.Is(err, kafka.GroupCoordinatorNotAvailable) {
		return err
	}
	if of.kind == ofTransaction {
		return fmt.Errorf("no broker coordinates transactions (%w): if this lasts, look at the broker's log; a broker that is alone needs transaction.state.log.replication.factor=1 and transaction.state.log.min.isr=1", err)
	}
	return fmt.Errorf("no broker keeps the positions of groups (%w): if this lasts, look at the broker's log; a broker that is alone needs offsets.topic.replication.factor=1", err)
}

// call sends a request to the broker that it is for and returns its answer.
func call[T protocol.Message](ctx context.Context, t *transport, req protocol.Message) (answer T, err error) {
	res, err := t.RoundTrip(ctx, nil, req)
	if err != nil {
		return answer, err
	}
	return res.(T), nil // the transport decodes nothing else
}

// errorOf returns the error with a code, or nil.
func errorOf(code int16) error {
	if code == 0 {
		return nil
	}
	return kafka.Error(code)
}
