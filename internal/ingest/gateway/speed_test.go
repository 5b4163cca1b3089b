//go:build unix

package gateway

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/testkit/spent"
	"github.com/flank-tcm/flank/pkg/window"
)

// asSink is the name of a variable that lets the test program be a broker that keeps nothing.
const asSink = "FLANK_TEST_SINK"

// TestMain lets the test program be the broker of BenchmarkGateway: what a broker takes is not the gateway's.
func TestMain(m *testing.M) {
	if os.Getenv(asSink) == "" {
		os.Exit(m.Run())
	}
	if err := sink(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sink prints the address of a broker that takes all messages and keeps none, until its input ends.
func sink() error {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, bus.TopicWindows, bus.TopicFeatures))
	if err != nil {
		return err
	}
	defer c.Close()
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := r.(*kmsg.ProduceRequest)
		res := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, t := range req.Topics {
			topic := kmsg.NewProduceResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				part := kmsg.NewProduceResponseTopicPartition()
				part.Partition = p.Partition
				topic.Partitions = append(topic.Partitions, part)
				if len(p.Records) == 0 {
					part.ErrorCode = kerr.CorruptMessage.Code
				}
			}
			res.Topics = append(res.Topics, topic)
		}
		return res, nil, true
	})
	fmt.Println(c.ListenAddrs()[0])
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startSink starts a process that is a sink, and returns its address.
func startSink(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asSink+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// What a window of the gun drill costs a gateway from the blocks of a driver until the broker, which is another process, has
// it: processor time of this process with the system's share, memory and objects. A second is handed over when the broker has
// all but the last few before it, as a live source does.
func BenchmarkGateway(b *testing.B) {
	addr := startSink(b)
	for _, mode := range []string{"raw", "edge"} {
		b.Run(mode, func(b *testing.B) { benchmarkGateway(b, addr, mode == "edge") })
	}
}

func benchmarkGateway(b *testing.B, addr string, edge bool) {
	const warm = 20
	r := recordDrill(b)
	r.windows = int64(b.N) + warm
	cfg := Config{Source: r, Window: window.DefaultSpec, SpoolDir: b.TempDir(), SpoolBytes: 512 << 20, Bus: bus.Config{Brokers: []string{addr}, ClientID: "speed"}, Log: zerolog.Nop()}
	sent := make(chan time.Duration, r.windows)
	cfg.OnSent = func(age time.Duration) { sent <- age }
	if edge {
		cfg.Edge = &Edge{Keep: time.Hour, KeepBytes: 256 << 20}
	}
	g, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	var used time.Duration
	var objects, bytes float64
	r.ready = func(second int64) {
		if second > 2 {
			<-sent
		}
		if second == warm {
			used, objects, bytes = spent.Now()
			b.ResetTimer()
		}
	}
	if err := g.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	after, made, filled := spent.Now()
	if n := g.Stats().Delivered; n != uint64(r.windows) {
		b.Fatalf("%d of %d windows were delivered", n, r.windows)
	}
	n := float64(b.N)
	b.ReportMetric(1e3*(after-used).Seconds()/n, "processor-ms/window")
	b.ReportMetric((filled-bytes)/n, "B/window")
	b.ReportMetric((made-objects)/n, "objects/window")
}
