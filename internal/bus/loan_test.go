package bus

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Memory for answers is found again by its size, and is at most a quarter larger than was asked for.
func TestSizeOf(t *testing.T) {
	sizes := make(map[int]int)
	for n := 0; n <= maxResponse; n += 1 + n/1000 {
		size, at := sizeOf(n)
		if again, same := sizeOf(size); size < n || size > max(4<<10, n+n/4) || again != size || same != at || at >= len(bodies) {
			t.Fatalf("for %d bytes: %d at %d; for those: %d at %d", n, size, at, again, same)
		}
		if sizes[at] == 0 {
			sizes[at] = size
		}
		if sizes[at] != size {
			t.Fatalf("%d and %d bytes are both at %d", sizes[at], size, at)
		}
	}
	if got := takeBody(5000); len(got.bytes) != 5000 || cap(got.bytes) != 5<<10 || got.users.Load() != 1 {
		t.Errorf("%d of %d bytes with %d users", len(got.bytes), cap(got.bytes), got.users.Load())
	}
}

// Long values of an answer are lent, unless they are a small part of it. All others are copies.
func TestLend(t *testing.T) {
	const long = lentFrom
	plain := func(values ...int) (all []byte) {
		for i, n := range values {
			all = append(all, craftBatch(int64(i), 1, 0, noProducer, craftRecords(strings.Repeat("v", n)))...)
		}
		return all
	}
	for name, tc := range map[string]struct {
		batches []byte
		lends   bool
		lent    string // of each message: l lent, c copied
	}{
		"long":                       {plain(long, 2*long), true, "ll"},
		"one that is too short":      {plain(3*long, long-1), true, "lc"},
		"a small part of the answer": {plain(long, long-1, long-1), true, "ccc"},
		"several in a batch":         {craftBatch(0, 2, 0, noProducer, craftRecords(strings.Repeat("v", long), strings.Repeat("v", long))), true, "ll"},
		"compressed":                 {craftBatch(0, 1, 4, noProducer, zstdZeros(t, long)), true, "c"},
		"none":                       {plain(0), true, "c"},
		"a reader that borrows none": {plain(long), false, "c"},
		"with one that is damaged":   {append(plain(long), craftBatch(1, 1, 0, noProducer, craftedRecord{value: []byte("v"), headerCount: 9}.encode())...), true, "lc"},
		"behind a gap":               {append(plain(2*long), craftBatch(9, 1, 0, noProducer, craftRecords(strings.Repeat("v", 3*long)))...), true, "ll"},
	} {
		l := takeBody(len(tc.batches))
		copy(l.bytes, tc.batches)
		r := recordReader{topic: "t"}
		if tc.lends {
			r.loan = l
		}
		out, err := r.read(l.bytes, 0)
		if err != nil || len(out.msgs) != len(tc.lent) {
			t.Fatalf("%s: %d messages, %v", name, len(out.msgs), err)
		}
		l.lend(out.msgs)
		before := make([][]byte, len(out.msgs))
		for i, m := range out.msgs {
			before[i] = bytes.Clone(m.Value)
		}
		clear(l.bytes)
		for i := range out.msgs {
			m := &out.msgs[i]
			want := tc.lent[i] == 'l'
			if same := bytes.Equal(m.Value, before[i]); same == want {
				t.Errorf("%s: message %d: a part of the answer: %v, want %v", name, i, !same, want)
			}
			if got := m.TakeLoan(); (got == l) != want || m.TakeLoan() != nil {
				t.Errorf("%s: message %d has the loan %p of %p", name, i, got, l)
			}
		}
		if n := int(l.users.Load()); n != 1+strings.Count(tc.lent, "l") {
			t.Errorf("%s: %d users", name, n)
		}
	}
}

// A group lends long values. The fetch itself lets go of the answer, and the last message that is returned leaves it without a user.
func TestGroupLends(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	var msgs []Message
	for i := range 6 {
		msgs = append(msgs, message(TopicWindows, "m", strings.Repeat(string(rune('a'+i)), 2*lentFrom)))
	}
	send(t, newProducer(t, cfg), msgs)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		loans := make(map[*Loan]int)
		for n := 0; n < len(msgs); {
			got, err := p.Fetch(ctx, 4, 0)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range got {
				if !bytes.Equal(got[i].Value, msgs[n].Value) {
					t.Errorf("message %d begins with %.10q", n, got[i].Value)
				}
				n++
				l := got[i].TakeLoan()
				if l == nil {
					t.Errorf("message %d is no loan", n)
				}
				loans[l]++
			}
		}
		for l, n := range loans {
			for range n {
				if l.users.Load() <= 0 {
					t.Error("the memory is free while a message has it")
				}
				l.Return()
			}
			if got := l.users.Load(); got != 0 {
				t.Errorf("%d users are left", got)
			}
		}
	})
}

// Of an answer that breaks off no one keeps the memory.
func TestAnswerBreaksOff(t *testing.T) {
	whole := append([]byte{0, 0, 0, 200}, make([]byte, 200)...)
	for n := range len(whole) {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(context.DeadlineExceeded))
		if l, err := readAnswer(r, maxRaw); l != nil || err == nil {
			t.Fatalf("after %d bytes: %p, %v", n, l, err)
		}
	}
	if l, err := readAnswer(bytes.NewReader(whole), maxRaw); err != nil || len(l.bytes) != 200 {
		t.Errorf("the whole answer: %v", err)
	}
}

// A message whose texts are those of the one before it makes no others.
func TestTextsOfTheMessageBefore(t *testing.T) {
	var payload []byte
	keys := []string{"k", "k", "another"}
	for i, key := range keys {
		payload = append(payload, craftedRecord{offset: int64(i), key: []byte(key), headers: [][2]string{{"h1", "a"}, {[]string{"h2", "h2", "h3"}[i], "b"}}}.encode()...)
	}
	r := recordReader{topic: "t"}
	out, err := r.read(craftBatch(0, 3, 0, noProducer, payload), 0)
	if err != nil || len(out.msgs) != 3 {
		t.Fatal(out, err)
	}
	for i, m := range out.msgs {
		if m.Key != keys[i] || m.Headers[0].Key != "h1" || m.Headers[1].Key != []string{"h2", "h2", "h3"}[i] || string(m.Headers[1].Value) != "b" {
			t.Errorf("message %d: %s %q", i, m.Key, m.Headers)
		}
	}
	record := rawRecord{key: []byte("a key that is the same"), headers: craftedHeaders(t), headerCount: 2}
	var m Message
	if err := record.message(&m, &texts{}); err != nil {
		t.Fatal(err)
	}
	before := texts{m.Key, m.Headers}
	if n := testing.AllocsPerRun(20, func() {
		if err := record.message(&m, &before); err != nil {
			t.Fatal(err)
		}
	}); n > 2 { // the headers, and the bytes of their values
		t.Errorf("%v objects", n)
	}
}

func craftedHeaders(t *testing.T) []byte {
	t.Helper()
	d := decoder{left: craftedRecord{headers: [][2]string{{"a header of some length", "1"}, {"another one of some length", "2"}}}.encode()}
	r, err := d.record()
	if err != nil {
		t.Fatal(err)
	}
	return r.headers
}
