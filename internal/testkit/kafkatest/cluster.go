package kafkatest

import (
	"fmt"
	"strings"
	"testing"
)

// Cluster is three nodes of Apache Kafka, each broker and controller. With one node dead
// the cluster works on; with two dead it takes no messages.
type Cluster struct {
	Nodes [3]*Broker // each can be killed and restarted
}

// StartCluster starts a cluster in the clear, which ends with the test. It takes
// about 800 MiB. The test fails if a node has died that it did not kill.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := new(Cluster)
	t.Cleanup(func() {
		if err := c.Died(); err != nil {
			t.Error(err)
		}
	})
	var voters []string
	for i := range c.Nodes {
		b, err := newBroker(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		b.node = i + 1
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%s", b.node, b.controller))
		t.Cleanup(b.Kill)
		c.Nodes[i] = b
	}
	for _, b := range c.Nodes {
		b.voters = strings.Join(voters, ",")
		if err := b.launch(); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range c.Nodes {
		if err := b.await(len(c.Nodes)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Died is Broker.Died of the first node that has died.
func (c *Cluster) Died() error {
	for _, b := range c.Nodes {
		if b == nil {
			continue // StartCluster has failed
		}
		if err := b.Died(); err != nil {
			return err
		}
	}
	return nil
}

// Addrs returns the host:port of every node.
func (c *Cluster) Addrs() (addrs []string) {
	for _, b := range c.Nodes {
		addrs = append(addrs, b.Addr)
	}
	return addrs
}

// Join starts another broker, in the clear, that joins a broker which Start has started. It is
// no controller: with the first one dead, the cluster elects no leaders. It ends with the test.
func Join(t testing.TB, first *Broker, node int) *Broker {
	t.Helper()
	b, err := newBroker(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b.node, b.voters = node, "1@127.0.0.1:"+first.controller
	t.Cleanup(b.Kill)
	if err := b.launch(); err != nil {
		t.Fatal(err)
	}
	if err := b.await(node); err != nil {
		t.Fatal(err)
	}
	return b
}
