package bus

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/twmb/franz-go/pkg/kfake"
)

// embeddedRetain is how much of the windows, and of the dead letters, an embedded
// broker keeps in each partition. It loads its data when it starts.
const embeddedRetain = 512 << 20

// neverCompact is how often kfake compacts by itself, in milliseconds: once in ten years.
// The compactor tells it when to compact.
const neverCompact = "315360000000"

// repairTimeout bounds the repair at a start after a kill.
const repairTimeout = 5 * time.Minute

// Broker is a Kafka broker inside this process, for trying things out and for a
// single machine. It speaks Kafka's protocol and keeps its data in a folder. It has no
// replicas: like Kafka with one replica, it may lose the last seconds if the machine loses
// power. A plant should run Apache Kafka.
type Broker struct {
	cluster *kfake.Cluster
	compact *compactor
	lock    *flock.Flock // of the folder; nil: all data is in memory
	mark    string       // file that exists while the broker runs
	addr    string
	once    sync.Once
	err     error // of Close
}

// StartBroker starts a broker on addr, a host:port whose port may be 0 for any
// free one, with its data in folder dir, which is created if needed. If another
// process has the folder open the error is errLocked.
func StartBroker(dir, addr string) (*Broker, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("bus: broker address %q: want host:port, for example 127.0.0.1:9092", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return nil, fmt.Errorf("bus: broker address %q: want the one address at which clients reach this machine, for example 127.0.0.1:9092", addr)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("bus: broker: %w", err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "lock")); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("bus: broker folder %s: lock is not a file of its own but %v: remove it", dir, info.Mode().Type())
	}
	b := &Broker{lock: flock.New(filepath.Join(dir, "lock")), mark: filepath.Join(dir, runningMark)}
	if locked, err := b.lock.TryLock(); err != nil {
		return nil, fmt.Errorf("bus: broker folder %s: %w", dir, err)
	} else if !locked {
		return nil, fmt.Errorf("bus: broker folder %s is %w: stop that process, or give this broker a folder of its own", dir, errLocked)
	}
	if err := b.start(dir, addr); err != nil {
		b.lock.Close()
		return nil, err
	}
	return b, nil
}

// start starts a broker whose folder is locked.
func (b *Broker) start(dir, addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("bus: broker cannot listen on %s (%v): stop the program that uses it, or choose another address", addr, innermost(err))
	}
	killed, err := markRunning(dir)
	if err != nil {
		ln.Close()
		return fmt.Errorf("bus: broker folder: %w", err)
	}
	guarded := newBrokerListener(ln)
	if err := b.serve(guarded, kfake.DataDir(filepath.Join(dir, "kafka"))); err != nil {
		ln.Close()
		return fmt.Errorf("bus: broker folder %s: %w: if its files are damaged, move the folder away and start again", dir, err)
	}
	if killed {
		ctx, cancel := context.WithTimeout(context.Background(), repairTimeout)
		defer cancel()
		if _, err := endOrphans(ctx, guarded.dial, b.addr); err != nil {
			b.compact.close()
			b.cluster.Close()
			return fmt.Errorf("bus: broker folder %s: after it was killed: %w: start again; if that does not help, move the folder away", dir, err)
		}
	}
	guarded.open()
	return nil
}

// NewMemoryBroker starts a broker behind a listener, which Close closes. It keeps all data
// in memory: for simulations.
func NewMemoryBroker(ln net.Listener) (*Broker, error) {
	guarded, b := newBrokerListener(ln), new(Broker)
	if err := b.serve(guarded); err != nil {
		return nil, fmt.Errorf("bus: broker: %w", err)
	}
	guarded.open()
	return b, nil
}

// serve starts the cluster behind a listener.
func (b *Broker) serve(ln net.Listener, more ...kfake.Opt) (err error) {
	b.cluster, err = kfake.NewCluster(append(more,
		kfake.NumBrokers(1),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return ln, nil }),
		kfake.BrokerConfigs(map[string]string{"log.cleaner.backoff.ms": neverCompact, "message.max.bytes": "16777216"}),
	)...)
	if err == nil {
		b.compact, b.addr = startCompactor(b.cluster), ln.Addr().String()
	}
	return err
}

// Addr returns the host:port of the broker.
func (b *Broker) Addr() string { return b.addr }

// Config returns how to reach the broker.
func (b *Broker) Config(clientID string) Config {
	return Config{Brokers: []string{b.addr}, ClientID: clientID, Retain: map[string]Retain{
		TopicWindows: {Bytes: embeddedRetain}, TopicFeatures: {Bytes: embeddedRetain}, TopicDead: {Bytes: embeddedRetain},
	}}
}

// Close writes all data to disk, stops the broker and unlocks the folder. Closing again
// does nothing.
func (b *Broker) Close() error {
	b.once.Do(func() {
		b.compact.close()
		b.cluster.Close()
		if b.lock != nil {
			b.err = cmp.Or(os.Remove(b.mark), b.lock.Close())
		}
	})
	return b.err
}
