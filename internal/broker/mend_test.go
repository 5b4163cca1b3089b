package broker

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

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
		to := filepath.Join(t.TempDir(), "[a-b]") // a name that is a pattern as well
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

// A full disk has its room for what kfake writes when it compacts: nothing keeps the files that it deletes.
func TestCompactsOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no file that is always full: ", err)
	}
	dir := t.TempDir()
	partition := filepath.Join(dir, "kafka", "partitions", bus.TopicState+"-0")
	if err := cmp.Or(os.MkdirAll(partition, 0o700), os.WriteFile(filepath.Join(partition, "0.dat"), []byte("batches"), 0o600)); err != nil {
		t.Fatal(err)
	}
	k := &compactor{dir: dir}
	for _, full := range []bool{false, true} {
		if full {
			if err := os.Symlink("/dev/full", filepath.Join(dir, compacting+".room")); err != nil {
				t.Fatal(err)
			}
		}
		k.keep()
		if kept := glob(dir, compacting+"*/*/*"); (len(kept) == 0) != full {
			t.Errorf("full: %v: kept %q", full, kept)
		}
		k.forget()
		if left := glob(dir, compacting+"*"); len(left) > 0 {
			t.Errorf("full: %v: left %q", full, left)
		}
	}
}

// What a start after a kill could not mend is mended by the next start.
func TestMendsAfterAnError(t *testing.T) {
	dir := t.TempDir()
	kept, kafka := filepath.Join(dir, compacting, bus.TopicState+"-0"), filepath.Join(dir, "kafka")
	b := kmsg.RecordBatch{Magic: 2, Attributes: inTxn, ProducerID: 7, ProducerEpoch: 3, NumRecords: 1}
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], castagnoli))
	if err := cmp.Or(os.MkdirAll(kept, 0o700), os.WriteFile(filepath.Join(kept, "0.dat"), raw, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := mend(dir); err == nil {
		t.Error("no error, and no folder to bring the partition back to")
	}
	if err := os.MkdirAll(filepath.Join(kafka, "pids.log"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(kafka, "partitions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mend(dir); err == nil {
		t.Error("no error, and no file for the producer's next epoch")
	}
	if err := os.Remove(filepath.Join(kafka, "pids.log")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := mend(dir); err != nil {
			t.Fatal(err)
		}
	}
	dat, err := os.ReadFile(filepath.Join(kafka, "partitions", bus.TopicState+"-0", "0.dat"))
	if err != nil || !bytes.HasPrefix(dat, raw) || len(dat) <= len(raw) {
		t.Errorf("%d bytes, %v: want the batch and a marker", len(dat), err)
	}
	if pids, err := os.ReadFile(filepath.Join(kafka, "pids.log")); err != nil || !bytes.HasSuffix(pids, []byte(`{"type":"timeout","pid":7,"epoch":4}`)) {
		t.Errorf("producers: %q, %v", pids, err)
	}
}

// What the broker appends to its logs is read after the next kill too, if a full disk or a loss of power has torn the last entry.
func TestTornLogs(t *testing.T) {
	dir := t.TempDir()
	life := func(position int64) (found int64) {
		b, err := Start(dir, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		client := &kafka.Client{Addr: kafka.TCP(b.Addr())}
		got, err := client.OffsetFetch(t.Context(), &kafka.OffsetFetchRequest{GroupID: "g", Topics: map[string][]int{"t": {0}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: "t", NumPartitions: 1, ReplicationFactor: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{GroupID: "g", GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{"t": {{Partition: 0, Offset: position}}}})
		if err != nil {
			t.Fatal(err)
		}
		at := t.TempDir() // the folder as a kill leaves it
		if err := os.CopyFS(at, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		dir = at
		if p := got.Topics["t"]; len(p) > 0 {
			return p[0].CommittedOffset
		}
		return -1
	}
	life(1)
	for _, name := range []string{"groups.log", "pids.log"} {
		path := filepath.Join(dir, "kafka", name)
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(raw, 40, 0, 0, 0, 1, 2, 3, 4, 1, 0, '{'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if at := life(2); at != 1 {
		t.Errorf("with a torn end, the position is %d, want 1", at)
	}
	if at := life(3); at != 2 {
		t.Errorf("after another kill, the position is %d, want 2", at)
	}
}
