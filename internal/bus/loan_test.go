package bus

import (
	"bytes"
	"context"
	"hash/crc32"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/flank-tcm/flank/internal/testkit/await"
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
		"compressed":                 {craftBatch(0, 1, 4, noProducer, zstdZeros(long)), true, "c"},
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
					t.Errorf("message %d has not got a loan", n)
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
			await.Until(t, "the reader of the answer lets go of it too", func() bool { return l.users.Load() == 0 })
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

// A message with the texts of the message before it makes no other texts.
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

// The checksum of a batch is the same if checksums of its long values are computed on the way, and these are right. A value of
// which it is not known has none.
func TestSums(t *testing.T) {
	const long = lentFrom
	for name, tc := range map[string]struct {
		values []int
		known  string // of each message: y its sum is known
	}{
		"one":               {[]int{long}, "y"},
		"the least too few": {[]int{long - 1}, "n"},
		"odd lengths":       {[]int{long + 1, 3*long + 7, long + 3}, "yyy"},
		"with short ones":   {[]int{5 * long, 3, long - 1, long}, "ynny"},
		"mostly short":      {[]int{2 * long, 3, 4}, "nnn"},
		"more than noted":   {[]int{long, long, long, long, long, long}, "yyyynn"},
		"none":              {nil, ""},
		"an empty one":      {[]int{0}, "n"},
	} {
		var values []string
		for i, n := range tc.values {
			values = append(values, strings.Repeat(string(rune('a'+i))+"xyz", n/4+1)[:n])
		}
		b := craftBatch(5, int32(len(values)), 0, noProducer, craftRecords(values...))
		r := recordReader{topic: "t"}
		out, err := r.read(b, 5)
		if err != nil || len(out.msgs) != len(values) {
			t.Fatalf("%s: %d messages, %v", name, len(out.msgs), err)
		}
		for i, m := range out.msgs {
			if m.Damage != nil || string(m.Value) != values[i] {
				t.Errorf("%s: message %d: %v, or another value", name, i, m.Damage)
			}
			if sum, ok := m.Sum(); ok != (tc.known[i] == 'y') || ok && sum != crc32.Checksum(m.Value, castagnoli) {
				t.Errorf("%s: message %d: sum %08x, known %v", name, i, sum, ok)
			}
		}
		for at := 21; at < len(b); at += 1 + len(b)/50 { // each wrong byte is found
			b[at] ^= 4
			if _, _, err := nextBatch(b); err != errChecksum {
				t.Fatalf("%s: byte %d is wrong: %v", name, at, err)
			}
			b[at] ^= 4
		}
		if len(values) > 1 { // from the second message on
			out, err := r.read(b, 6)
			if err != nil || len(out.msgs) != len(values)-1 {
				t.Fatalf("%s: %d messages, %v", name, len(out.msgs), err)
			}
			if sum, ok := out.msgs[0].Sum(); ok && sum != crc32.Checksum(out.msgs[0].Value, castagnoli) {
				t.Errorf("%s: the second message has the sum of another", name)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOf(rapid.Byte()).Draw(t, "a"), rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		sums := func(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
		if got, want := sums(b)^timesBytes(sums(a), len(b)), sums(append(a, b...)); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
}

// A long message of an answer makes no copy of its value, and few objects.
func TestReadMakesFewObjects(t *testing.T) {
	record := craftedRecord{key: []byte("acme/line1/drill"), value: make([]byte, 968_000)}
	for _, name := range []string{"ce_id", "ce_source", "ce_type", "layout", "epoch", "seq", "crc32c"} {
		record.headers = append(record.headers, [2]string{name, "a value of a header"})
	}
	b := craftBatch(0, 1, 0, noProducer, record.encode())
	l := takeBody(len(b))
	copy(l.bytes, b)
	r := recordReader{topic: TopicWindows, loan: l}
	read := func() {
		out, err := r.read(l.bytes, 0)
		if err != nil || len(out.msgs) != 1 {
			t.Fatal(out, err)
		}
		l.lend(out.msgs)
		out.msgs[0].TakeLoan().Return()
	}
	read()
	objects, size := testing.AllocsPerRun(20, read), math.Inf(1)
	for range 3 { // the least: of another test a goroutine may be left
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 20 {
			read()
		}
		runtime.ReadMemStats(&after)
		size = min(size, float64(after.TotalAlloc-before.TotalAlloc)/20)
	}
	if objects > 6 || size > 2000 {
		t.Errorf("%v objects of %.0f bytes, at most 6 of 2,000 may be", objects, size)
	}
	t.Logf("%v objects of %.0f bytes", objects, size)
}
