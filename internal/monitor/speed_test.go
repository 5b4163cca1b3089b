//go:build unix

package monitor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/broker"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/testkit/await"
	"github.com/flank-tcm/flank/internal/testkit/spent"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// asProcess is the name of a variable that lets the test program be another process of BenchmarkMonitor: what that does is not the monitor's.
// Its value is the folder of an embedded broker, or "send windows to " or "send features to " and the address of one.
const asProcess = "FLANK_TEST_PROCESS"

func TestMain(m *testing.M) {
	await.Together()
	as := os.Getenv(asProcess)
	if as == "" {
		os.Exit(m.Run())
	}
	var err error
	if addr, sends := strings.CutPrefix(as, "send windows to "); sends {
		err = sendDrills(addr, false)
	} else if addr, sends := strings.CutPrefix(as, "send features to "); sends {
		err = sendDrills(addr, true)
	} else {
		err = serveBroker(as)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveBroker prints the address of a broker, and then for each line of its input what this process has used.
func serveBroker(dir string) error {
	b, err := broker.Start(dir, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Println(b.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(costsNow())
	}
	return nil
}

// sendDrills sends for each number in its input the next window of the drill with that number, or its features, and prints its seq.
func sendDrills(addr string, features bool) error {
	layout := signal.GunDrill()
	codec, err := window.NewCodec(layout, window.DefaultSpec)
	if err != nil {
		return err
	}
	form, err := window.NewForm(layout, window.DefaultSpec, signal.FeatureSpec{}, nil)
	if err != nil {
		return err
	}
	out, err := bus.NewProducer(speedConfig(addr))
	if err != nil {
		return err
	}
	defer out.Close()
	extractor, values := form.NewExtractor(), new(window.Features)
	seqs := make(map[string]uint64)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		seq := seqs[in.Text()]
		seqs[in.Text()]++
		w := drillWindow(layout, "acme/line1/drill"+in.Text(), seq)
		e, err := codec.Seal(w)
		m := envelope.Window(e)
		if features && err == nil {
			extractor.Extract(w, values)
			e, err = form.Seal(values)
			m = envelope.Features(e, envelope.Gateway, 0)
		}
		if err == nil {
			err = out.Send(context.Background(), []bus.Message{m})
		}
		if err != nil {
			return err
		}
		fmt.Println(seq)
	}
	return nil
}

func speedConfig(addr string) bus.Config {
	return bus.Config{Brokers: []string{addr}, ClientID: "speed"}
}

// costs are what a process has used since it began.
type costs struct {
	processor      time.Duration // with the system's share
	bytes, objects float64
}

func (c costs) String() string {
	return fmt.Sprintf("%d %.0f %.0f", c.processor, c.bytes, c.objects)
}

func (c costs) since(o costs) costs {
	return costs{c.processor - o.processor, c.bytes - o.bytes, c.objects - o.objects}
}

// of returns the costs of one of n windows.
func (c costs) of(n int) costs {
	return costs{c.processor / time.Duration(n), c.bytes / float64(n), c.objects / float64(n)}
}

func (c costs) report(b *testing.B, of string) {
	b.ReportMetric(1e3*c.processor.Seconds(), of+"-ms/window")
	b.ReportMetric(c.bytes, of+"-B/window")
	b.ReportMetric(c.objects, of+"-objects/window")
}

func costsNow() costs {
	processor, objects, bytes := spent.Now()
	return costs{processor, bytes, objects}
}

// process is another process of this program. It answers each line that it is given with one.
type process struct {
	b   *testing.B
	in  io.WriteCloser
	out *bufio.Reader
}

func startProcess(b *testing.B, as string) *process {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProcess+"="+as)
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
	return &process{b, in, bufio.NewReader(out)}
}

// read reads what the process says.
func (p *process) read(into ...any) {
	p.b.Helper()
	if _, err := fmt.Fscanln(p.out, into...); err != nil {
		p.b.Fatal(err)
	}
}

// send has a window of a drill sent.
func (p *process) send(drill int) {
	p.b.Helper()
	fmt.Fprintln(p.in, drill)
	var seq int
	p.read(&seq)
}

// costs returns what the process has used.
func (p *process) costs() (c costs) {
	p.b.Helper()
	fmt.Fprintln(p.in)
	p.read((*int64)(&c.processor), &c.bytes, &c.objects)
	return c
}

// What a window of the gun drill, of 14 channels and 968 kB, costs the monitor and the embedded broker, which is another process: processor
// time with the system's share, memory and objects. In "backlog" the windows of eight machines are there when the monitor begins;
// in "live" one comes when the one before is judged, so each has a transaction of its own.
func BenchmarkMonitor(b *testing.B) {
	for _, of := range []string{"windows", "features"} {
		b.Run(of+"/backlog", func(b *testing.B) { benchmarkMonitor(b, of, 8, true) })
		b.Run(of+"/live", func(b *testing.B) { benchmarkMonitor(b, of, 1, false) })
	}
}

func benchmarkMonitor(b *testing.B, of string, drills int, backlog bool) {
	const warm = 72
	var addr string
	p := startProcess(b, b.TempDir())
	p.read(&addr)
	cfg := speedConfig(addr)
	if _, err := bus.Apply(b.Context(), cfg, 1, 1); err != nil {
		b.Fatal(err)
	}
	sender := startProcess(b, "send "+of+" to "+addr)
	judged := make(chan struct{}, warm+b.N)
	mon, err := New(Config{Model: drillModel(b), Bus: cfg, Log: zerolog.Nop(), OnWindow: func(*signal.Layout, *window.Window, event.Result) { judged <- struct{}{} }})
	if err != nil {
		b.Fatal(err)
	}
	var ours, theirs, took costs
	if theirs = p.costs(); backlog {
		for i := range warm + b.N {
			sender.send(i % drills)
		}
		took = p.costs().since(theirs).of(warm + b.N)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- mon.Run(ctx) }()
	for n := range warm + b.N {
		if n == warm {
			b.ResetTimer()
			ours, theirs = costsNow(), p.costs()
		}
		if !backlog {
			sender.send(0)
		}
		select {
		case <-judged:
		case err := <-done:
			b.Fatal(err)
		}
	}
	b.StopTimer()
	costsNow().since(ours).of(b.N).report(b, "monitor")
	c := p.costs().since(theirs).of(b.N)
	costs{c.processor + took.processor, c.bytes + took.bytes, c.objects + took.objects}.report(b, "broker")
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
