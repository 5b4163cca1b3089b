package broker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flank-tcm/flank/internal/bus"
)

// A broker that is killed while it compacts has what it had before.
func TestKilledWhileItCompacts(t *testing.T) {
	dir := t.TempDir()
	states := func(b *Broker) (all []string) {
		t.Helper()
		if _, err := bus.Apply(t.Context(), b.Config("test"), 1, 1); err != nil {
			t.Fatal(err)
		}
		if err := bus.ReadTopic(t.Context(), b.Config("test"), bus.TopicState, bus.FirstOffset, false, func(m bus.Message) error {
			all = append(all, string(m.Value))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for life := range 3 {
		b, err := Start(dir, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if n := len(states(b)); n != life {
			t.Fatalf("life %d: %d states", life, n)
		}
		p, err := bus.NewProducer(b.Config("test"))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Send(t.Context(), []bus.Message{{Topic: bus.TopicState, Key: string(rune('a' + life)), Value: []byte("v")}}); err != nil {
			t.Fatal(err)
		}
		if life == 0 { // the compaction ends
			b.Compact()
			states(b)
			if left, _ := filepath.Glob(filepath.Join(dir, compacting+"*")); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		}
		to := t.TempDir()
		b.compact.keep()
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		dir = to
		switch partition := filepath.Join(dir, "kafka", "partitions", bus.TopicState+"-0"); life {
		case 1: // the files are deleted
			err = os.RemoveAll(partition)
		case 2: // the new ones are begun
			err = os.Truncate(filepath.Join(partition, "0.dat"), 10)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := Start(dir, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if n := len(states(b)); n != 3 {
		t.Errorf("in the end %d states", n)
	}
}
