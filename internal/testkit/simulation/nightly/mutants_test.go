package nightly

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// mutant removes a protection by changing the requests of monitors. The code under test does not
// know of it.
//
// Every transaction of a monitor commits positions too, also the transactions of ticks and
// commands. So there are two protections. First, the broker takes positions only from a member of
// the group's generation. Second, it takes no more requests of a transaction after another monitor
// has initialised the transactional id.
//
// After the positions are committed, only the second one protects. For example, a request with
// messages is stuck on its connection while the positions are committed on another one, and the
// monitor is suspended. Another monitor loads the state, which has no open transaction, and judges
// the windows again. Then the first monitor wakes, its messages arrive, and it commits. Without the
// second protection readers see both results.
//
// Without the first protection the second one still stops every such monitor, but later. A monitor
// that was suspended before it initialised the id takes the id from the new owner, and then reads
// positions and state. So runs hold without the first protection: it only stops such a monitor
// early.
type mutant struct {
	name  string
	takes func(program string, r kmsg.Request)
	found bool // whether seeds must find the mutant
}

var mutants = []*mutant{
	{"no fence", takeFence, true},
	{"no generation", takeGeneration, false},
	{"neither", func(program string, r kmsg.Request) {
		takeFence(program, r)
		takeGeneration(program, r)
	}, true},
}

// mutantSeeds is how many seeds TestMutants tries for a mutant.
const mutantSeeds = 40

// TestMutants looks for a seed that finds each mutant: seeds that hold mean nothing if no seed can
// fail.
func TestMutants(t *testing.T) {
	if !changedRuntime || *seedsFlag < mutantSeeds {
		t.Skipf("needs a changed Go runtime and -seeds of %d or more: use `make simulate-real SEEDS=%d`", mutantSeeds, mutantSeeds)
	}
	for _, m := range mutants {
		if !m.found {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			for seed := uint64(1); seed <= mutantSeeds; seed++ {
				out, err := runSeed(seed, m.name)
				_, wrong, found := strings.Cut(out, "\n"+wrongMark+", ")
				switch {
				case found:
					fmt.Printf("%s: found with `make simulate-real MUTANT=%q SEED=%d SEEDS=1`: %s", m.name, m.name, seed, strings.SplitAfterN(wrong, "\n", 3)[1])
					return
				case err != nil:
					t.Fatalf("%s\nseed %d: %v\n%s", out, seed, err, circumstances(seed))
				}
			}
			t.Errorf("%d seeds do not find that monitors have %s", mutantSeeds, m.name)
		})
	}
}

func mutantOf(t *testing.T, name string) *mutant {
	if name == "" {
		return nil
	}
	i := slices.IndexFunc(mutants, func(m *mutant) bool { return m.name == name })
	if i < 0 {
		t.Fatalf("no mutant is called %q", name)
	}
	return mutants[i]
}

// takeFence gives every program other transactional ids, so that a program that takes a partition
// over does not fence the previous owner.
func takeFence(program string, r kmsg.Request) {
	own := func(id string) string { return id + " of " + program }
	switch r := r.(type) {
	case *kmsg.InitProducerIDRequest:
		if r.TransactionalID != nil {
			*r.TransactionalID = own(*r.TransactionalID)
		}
	case *kmsg.ProduceRequest:
		if r.TransactionID != nil {
			*r.TransactionID = own(*r.TransactionID)
		}
	case *kmsg.AddPartitionsToTxnRequest:
		r.TransactionalID = own(r.TransactionalID)
	case *kmsg.AddOffsetsToTxnRequest:
		r.TransactionalID = own(r.TransactionalID)
	case *kmsg.EndTxnRequest:
		r.TransactionalID = own(r.TransactionalID)
	case *kmsg.TxnOffsetCommitRequest:
		r.TransactionalID = own(r.TransactionalID)
	}
}

// takeGeneration commits positions as a program without a group does: brokers do not check them.
func takeGeneration(_ string, r kmsg.Request) {
	if r, ok := r.(*kmsg.TxnOffsetCommitRequest); ok {
		r.Generation, r.MemberID = -1, ""
	}
}

// change returns a request after the mutant's change.
func (m *mutant) change(program string, frame []byte) []byte {
	if m == nil {
		return frame
	}
	key := int16(binary.BigEndian.Uint16(frame[4:]))
	switch key {
	case produceKey, initProducerIDKey, addPartitionsKey, addOffsetsKey, endTxnKey, txnOffsetCommitKey:
	default:
		return frame
	}
	r := kmsg.RequestForKey(key)
	r.SetVersion(int16(binary.BigEndian.Uint16(frame[6:])))
	number := int32(binary.BigEndian.Uint32(frame[8:]))
	n := int(binary.BigEndian.Uint16(frame[12:]))
	client, body := string(frame[14:14+n]), frame[14+n:]
	if r.IsFlexible() {
		body = body[1:] // no tags
	}
	if err := r.ReadFrom(body); err != nil {
		panic(fmt.Sprintf("a request of kind %d cannot be read: %v", key, err))
	}
	m.takes(program, r)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(client)).AppendRequest(nil, r, number)
}

// A mutant changes only the requests and fields that it names.
func TestMutantChange(t *testing.T) {
	none := &mutant{takes: func(string, kmsg.Request) {}}
	id := func() *string { return kmsg.StringPtr("g-0") }
	for _, r := range []kmsg.Request{
		&kmsg.ProduceRequest{Version: 8, TransactionID: id(), Acks: -1},
		&kmsg.ProduceRequest{Version: 8, Acks: -1}, // of a gateway
		&kmsg.InitProducerIDRequest{Version: 1, TransactionalID: id()},
		&kmsg.InitProducerIDRequest{Version: 3, TransactionalID: id(), ProducerID: -1},
		&kmsg.AddPartitionsToTxnRequest{Version: 2, TransactionalID: *id(), ProducerID: 7, Topics: []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "t", Partitions: []int32{3}}}},
		&kmsg.AddOffsetsToTxnRequest{Version: 3, TransactionalID: *id(), ProducerID: 7, Group: "g"},
		&kmsg.EndTxnRequest{Version: 2, TransactionalID: *id(), ProducerID: 7, Commit: true},
		&kmsg.TxnOffsetCommitRequest{Version: 3, TransactionalID: *id(), Group: "g", Generation: 5, MemberID: "m"},
		&kmsg.HeartbeatRequest{Version: 1, Group: "g", Generation: 5, MemberID: "m"},
	} {
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("monitor-a/1")).AppendRequest(nil, r, 42)
		if got := none.change("monitor-a/1", frame); !bytes.Equal(got, frame) {
			t.Errorf("%T changes without a mutant:\n%x\n%x", r, frame, got)
		}
		fenced := mutants[0].change("monitor-a/1", frame)
		if inTxn, own := bytes.Contains(frame, []byte("g-0")), bytes.Contains(fenced, []byte("g-0 of monitor-a/1")); inTxn != own {
			t.Errorf("%T: transactional id %v, of its own %v", r, inTxn, own)
		}
		_, commits := r.(*kmsg.TxnOffsetCommitRequest)
		if unchecked := mutants[1].change("monitor-a/1", frame); bytes.Equal(unchecked, frame) == commits {
			t.Errorf("%T: commits positions %v, and becomes\n%x\nfrom\n%x", r, commits, unchecked, frame)
		}
	}
}
