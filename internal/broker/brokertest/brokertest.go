// Package brokertest starts brokers for tests.
package brokertest

import (
	"net"
	"testing"

	"github.com/flank-tcm/flank/internal/broker"
)

// Start returns a broker without topics that ends with the test. It keeps its data in memory:
// files of partitions that no one reads again cost more than the rest of a short test.
func Start(t testing.TB) *broker.Broker {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.NewMemory(ln)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}
