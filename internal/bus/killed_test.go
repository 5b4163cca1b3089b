package bus

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// copyFolder copies a folder in the state in which a kill would leave it.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// After any number of kills with an open transaction, an embedded broker shows every
// message that is committed later and no message that was not committed.
func TestBrokerKilledInATransaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	for life := range 3 {
		b, err := StartBroker(dir, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		cfg := b.Config("test")
		apply(t, cfg, 1)
		withPartition(t, cfg, func(ctx context.Context, p *Partition) {
			txn := fence(t, ctx, p)
			for i := range 2 {
				value := fmt.Sprint(life, "/", i)
				if err := txn.Publish(ctx, []Message{message(TopicState, value, value), message(TopicResults, "k", value)}, nil); err != nil {
					t.Fatal(err)
				}
				want = append(want, value)
			}
			outs, err := txn.plan(ctx, []Message{message(TopicState, "open", "open"), message(TopicResults, "k", "open")})
			if err == nil {
				err = txn.write(ctx, outs, map[string]int64{TopicWindows: 0})
			}
			if err != nil {
				t.Fatal(err)
			}
			dir = copyFolder(t, dir)
		})
		if got := committed(t, cfg, TopicResults, 0); !slices.Equal(got, want) {
			t.Errorf("life %d, before the kill: %q, want %q", life, got, want)
		}
		b.Close()
	}
	b, err := StartBroker(dir, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, topic := range []string{TopicState, TopicResults} {
		if got := committed(t, b.Config("test"), topic, 0); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", topic, got, want)
		}
	}
}

// tear appends half a batch to a partition's file.
func tear(t *testing.T, dir, topic string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "kafka", "partitions", topic+"-0", "0.dat"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(binary.BigEndian.AppendUint32(make([]byte, 8, 100), 1000)[:100])
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// cut removes the last batch of a partition's files, or only its entry of the index, as if the broker had been killed before it wrote them.
func cut(t *testing.T, dir, topic string, batch bool) {
	t.Helper()
	path := filepath.Join(dir, "kafka", "partitions", topic+"-0", "0")
	dat, err := os.ReadFile(path + ".dat")
	if err != nil {
		t.Fatal(err)
	}
	idx, err := os.Stat(path + ".idx")
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for size := 0; at+size < len(dat); size = 12 + int(binary.BigEndian.Uint32(dat[at+8:])) {
		at += size
	}
	if batch {
		err = os.Truncate(path+".dat", int64(at))
	}
	if err == nil {
		err = os.Truncate(path+".idx", idx.Size()-15)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An embedded broker that is killed while it ends a transaction has committed the transaction everywhere, or nowhere. Its next kills
// show no message that was not committed, either.
func TestBrokerKilledWhileItCommits(t *testing.T) {
	t.Parallel()
	topics := []string{TopicState, TopicResults}
	for name, kill := range map[string]func(t *testing.T, dir string){
		"after no marker":    func(t *testing.T, dir string) { cut(t, dir, TopicState, true); cut(t, dir, TopicResults, true) },
		"after the state's":  func(t *testing.T, dir string) { cut(t, dir, TopicResults, true) },
		"after the results'": func(t *testing.T, dir string) { cut(t, dir, TopicState, true) },
		"within the state's": func(t *testing.T, dir string) { cut(t, dir, TopicState, false); cut(t, dir, TopicResults, true) },
		"after all of them":  func(*testing.T, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var want []string
			end := kmsg.NewPtrEndTxnRequest() // of a client that does not know that its broker was killed
			for life := range 3 {
				b, err := StartBroker(dir, "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				cfg := b.Config("test")
				apply(t, cfg, 1)
				if life == 2 {
					if res, err := olderClient(t, cfg).Request(t.Context(), end); err != nil || res.(*kmsg.EndTxnResponse).ErrorCode == 0 {
						t.Errorf("the open transaction is said to be committed: %+v, %v", res, err)
					}
				}
				for _, topic := range topics {
					if got := committed(t, cfg, topic, 0); !slices.Equal(got, want) {
						t.Fatalf("life %d: %s: %q, want %q", life, topic, got, want)
					}
				}
				withPartition(t, cfg, func(ctx context.Context, p *Partition) {
					txn := fence(t, ctx, p)
					send := func(value string) (msgs []Message) {
						return []Message{message(TopicState, value, value), message(TopicResults, "k", value)}
					}
					for i := range 2 {
						value := fmt.Sprint(life, "/", i)
						if err := txn.Publish(ctx, send(value), nil); err != nil {
							t.Fatal(err)
						}
						want = append(want, value)
					}
					if life != 1 {
						dir = copyFolder(t, dir)
						kill(t, dir)
						return
					}
					outs, err := txn.plan(ctx, send("open")) // the kill is in a transaction, between a batch and its entry
					if err == nil {
						err = txn.write(ctx, outs, map[string]int64{TopicWindows: 0})
					}
					if err != nil {
						t.Fatal(err)
					}
					end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = txn.id, txn.producer, txn.epoch, true
					dir = copyFolder(t, dir)
					cut(t, dir, TopicState, false)
					tear(t, dir, TopicResults)
				})
			}
		})
	}
}
