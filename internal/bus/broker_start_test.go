package bus_test

import (
	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
)

func init() {
	bus.StartBroker = func(dir, addr string) (*bus.Broker, error) {
		b, err := broker.Start(dir, addr)
		if err != nil {
			return nil, err
		}
		return bus.NewBroker(b.Config, b.Addr, b.Close, b.Cluster(), b.Compact), nil
	}
}
