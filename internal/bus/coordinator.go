package bus

import (
	"context"
	"errors"
	"fmt"
	"net"

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
	r, err := t.askCoordinator(ctx, of)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coordinators[of] = r.NodeID
	return r.NodeID, nil
}

func (t *transport) askCoordinator(ctx context.Context, of coordinated) (*findcoordinator.Response, error) {
	res, err := t.anyone(ctx, &findcoordinator.Request{Key: of.key, KeyType: of.kind})
	if err != nil {
		return nil, err
	}
	r := res.(*findcoordinator.Response)
	return r, of.explain(errorOf(r.ErrorCode))
}

// coordinatorOf stands for the address of a group's coordinator in the client library. The library would ask
// the first broker in the configuration that takes a connection, and if that one hangs, no other.
const coordinatorOf = "coordinator:0"

// dialIn returns how the client library reaches brokers for a group.
func (t *transport) dialIn(group string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == coordinatorOf {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // a broker that hangs takes some of it
			defer cancel()
			r, err := t.askCoordinator(ctx, coordinated{ofGroup, group})
			if err != nil {
				return nil, err
			}
			address = net.JoinHostPort(r.Host, fmt.Sprint(r.Port))
		}
		return t.cfg.dial(ctx, network, address)
	}
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
