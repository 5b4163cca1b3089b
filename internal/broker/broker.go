// Package broker is a Kafka broker inside a process, for trying things out and for tests: it
// listens on loopback only. A plant runs Apache Kafka.
package broker

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config/credential"
)

// retain is how much of the windows, and of the dead letters, the
// broker keeps in each partition. It loads its data when it starts.
const retain = 512 << 20

// neverCompact is how often kfake compacts by itself, in milliseconds: once in ten years.
// The compactor tells it when to compact.
const neverCompact = "315360000000"

// mostRebalance is how long the broker waits for members that do not join again, in milliseconds.
// Clients ask for longer. But in kfake the session of a member runs on while the member
// waits for the others to join, and each new member restarts the wait. With a wait longer
// than a session kfake would drop live members, and kafka-go notices that only after 36 s.
const mostRebalance = int32((bus.SessionTimeout - time.Second) / time.Millisecond)

// runningMark is the name of a file in the broker's folder while the broker runs.
const runningMark = "running"

// errLocked means that another process has the broker's folder open.
var errLocked = errors.New("in use by another process")

// Broker speaks Kafka's protocol and keeps its data in a folder. It has no
// replicas: like Kafka with one replica, it may lose the last seconds if the machine loses
// power.
type Broker struct {
	cluster *kfake.Cluster
	compact *compactor
	commits *os.File     // that are begun; nil: all data is in memory
	lock    *flock.Flock // of the folder; nil: all data is in memory
	mark    string       // file that exists while the broker runs
	unsaved failure      // of kfake to write
	addr    string
	once    sync.Once
	err     error // of Close
}

// failure is the first error that kfake has logged: it tells no one else that it could not write.
type failure struct{ err error }

// Logf notes an error. kfake calls it in the one goroutine that writes.
func (f *failure) Logf(level kfake.LogLevel, text string, args ...any) {
	if level == kfake.LogLevelError && f.err == nil {
		f.err = fmt.Errorf("broker: not everything could be written, perhaps for lack of room: the next start mends the files: "+text, args...)
	}
}

// CheckAddress reports an address that a broker does not listen on.
func CheckAddress(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: want host:port, for example 127.0.0.1:9092", addr)
	}
	if !credential.IsLocal(host) {
		return fmt.Errorf("address %q: other computers may reach it, and the broker asks for no password: choose one of this computer, such as 127.0.0.1:9092, or use Apache Kafka", addr)
	}
	return nil
}

// Start starts a broker on addr, a host:port of loopback whose port may be 0 for any
// free one, with its data in folder dir, which is created if needed. If another
// process has the folder open the error is errLocked.
func Start(dir, addr string) (*Broker, error) {
	if err := CheckAddress(addr); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "lock")); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("broker: folder %s: lock is not a file of its own but %v: remove it", dir, info.Mode().Type())
	}
	b := &Broker{lock: flock.New(filepath.Join(dir, "lock")), mark: filepath.Join(dir, runningMark)}
	if locked, err := b.lock.TryLock(); err != nil {
		return nil, fmt.Errorf("broker: folder %s: %w", dir, err)
	} else if !locked {
		return nil, fmt.Errorf("broker: folder %s is %w: stop that process, or give this broker a folder of its own", dir, errLocked)
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
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // it names the address a second time
		}
		return fmt.Errorf("broker: cannot listen on %s (%v): stop the program that uses it, or choose another address", addr, err)
	}
	killed, err := markRunning(dir)
	if err != nil {
		ln.Close()
		return fmt.Errorf("broker: folder: %w", err)
	}
	if killed {
		if err := mend(dir); err != nil {
			ln.Close()
			return fmt.Errorf("broker: folder %s: cannot mend its files: %w: end the cause, such as a full disk, and start again; if that does not help, move the folder away", dir, err)
		}
	}
	if b.commits, err = os.OpenFile(filepath.Join(dir, committing), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
		ln.Close()
		return fmt.Errorf("broker: folder: %w", err)
	}
	if err := b.serve(ln, dir, kfake.DataDir(filepath.Join(dir, "kafka"))); err != nil {
		ln.Close()
		return fmt.Errorf("broker: folder %s: %w: if its files are damaged, move the folder away and start again", dir, err)
	}
	noteCommits(b.cluster, b.commits)
	return nil
}

// NewMemory starts a broker behind a listener, which Close closes. It keeps all data
// in memory: for simulations.
func NewMemory(ln net.Listener) (*Broker, error) {
	b := new(Broker)
	if err := b.serve(ln, ""); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	return b, nil
}

// serve starts the cluster behind a listener.
func (b *Broker) serve(ln net.Listener, dir string, more ...kfake.Opt) (err error) {
	b.cluster, err = kfake.NewCluster(append(more,
		kfake.NumBrokers(1),
		kfake.WithLogger(&b.unsaved),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return listener{ln}, nil }),
		kfake.BrokerConfigs(map[string]string{"log.cleaner.backoff.ms": neverCompact, "message.max.bytes": "16777216"}),
	)...)
	if err != nil {
		return err
	}
	b.cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		join := req.(*kmsg.JoinGroupRequest)
		join.RebalanceTimeoutMillis = min(join.RebalanceTimeoutMillis, mostRebalance)
		return nil, nil, false
	})
	b.compact, b.addr = startCompactor(b.cluster, dir), ln.Addr().String()
	return nil
}

// Compact removes old messages now, and has the topics compacted before the next request that
// finds no transaction open, for tests.
func (b *Broker) Compact() { b.compact.due() }

// Cluster returns the broker's inside, for tests that let it fail.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Addr returns the host:port of the broker.
func (b *Broker) Addr() string { return b.addr }

// Config returns how to reach the broker.
func (b *Broker) Config(clientID string) bus.Config {
	return bus.Config{Brokers: []string{b.addr}, ClientID: clientID, Retain: map[string]bus.Retain{
		bus.TopicWindows: {Bytes: retain}, bus.TopicFeatures: {Bytes: retain}, bus.TopicDead: {Bytes: retain},
	}}
}

// Close writes all data to disk, stops the broker and unlocks the folder. If some could not be
// written, the next start mends the files. Closing again does nothing.
func (b *Broker) Close() error {
	b.once.Do(func() {
		b.compact.close()
		b.cluster.Close()
		if b.lock != nil {
			if b.err = b.unsaved.err; b.err == nil {
				b.err = os.Remove(b.mark)
			}
			b.err = cmp.Or(b.err, b.commits.Close(), b.lock.Close())
		}
	})
	return b.err
}

// markRunning notes that the broker runs. It reports whether the last broker in the folder
// was killed.
func markRunning(dir string) (killed bool, err error) {
	path := filepath.Join(dir, runningMark)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return true, nil
	}
	folder, failed := os.Open(dir)
	return false, cmp.Or(err, f.Sync(), f.Close(), failed, folder.Sync(), folder.Close())
}
