package bus

import "github.com/twmb/franz-go/pkg/kfake"

// Broker is an embedded broker. Its room imports this one, so a test outside of the package starts it.
type Broker struct {
	Config  func(clientID string) Config
	Addr    func() string
	Close   func() error
	cluster *kfake.Cluster
	compact func()
}

// StartBroker starts a broker, in memory if dir is empty; broker_start_test.go sets it.
var StartBroker func(dir, addr string) (*Broker, error)

// NewBroker returns a broker by its parts.
func NewBroker(config func(string) Config, addr func() string, end func() error, cluster *kfake.Cluster, compact func()) *Broker {
	return &Broker{config, addr, end, cluster, compact}
}
