package bus_test

import (
	"net"

	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
)

func init() {
	bus.StartBroker = func(dir, addr string) (*bus.Broker, error) {
		if dir != "" {
			b, err := broker.Start(dir, addr)
			if err != nil {
				return nil, err
			}
			return partsOf(b), nil
		}
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, err
		}
		b, err := broker.NewMemory(ln)
		if err != nil {
			return nil, err
		}
		return partsOf(b), nil
	}
}

func partsOf(b *broker.Broker) *bus.Broker {
	return bus.NewBroker(b.Config, b.Addr, b.Close, b.Cluster(), b.Compact)
}
