package bus

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/flank-tcm/flank/internal/testkit/kafkatest"
)

// craftedRecord is a record whose lengths may lie.
type craftedRecord struct {
	offset      int64
	key, value  []byte
	headers     [][2]string
	headerCount int64 // 0: the number of headers
	valueLength int64 // 0: the length of value
}

func (r craftedRecord) encode() []byte {
	varint := binary.AppendVarint
	b := []byte{0}
	b = varint(b, 0)
	b = varint(b, r.offset)
	b = append(varint(b, int64(len(r.key))), r.key...)
	n := r.valueLength
	if n == 0 {
		n = int64(len(r.value))
	}
	b = append(varint(b, n), r.value...)
	count := r.headerCount
	if count == 0 {
		count = int64(len(r.headers))
	}
	b = varint(b, count)
	for _, h := range r.headers {
		b = append(varint(b, int64(len(h[0]))), h[0]...)
		b = append(varint(b, int64(len(h[1]))), h[1]...)
	}
	return append(varint(nil, int64(len(b))), b...)
}

// craftBatch returns a batch with a good checksum around any payload.
func craftBatch(first int64, count int32, attributes int16, producer int64, payload []byte) []byte {
	var body []byte
	body = binary.BigEndian.AppendUint16(body, uint16(attributes))
	body = binary.BigEndian.AppendUint32(body, uint32(max(count, 1)-1))
	body = binary.BigEndian.AppendUint64(body, 1_700_000_000_000)
	body = binary.BigEndian.AppendUint64(body, 1_700_000_000_000)
	body = binary.BigEndian.AppendUint64(body, uint64(producer))
	body = binary.BigEndian.AppendUint16(body, 0)
	body = binary.BigEndian.AppendUint32(body, 0)
	body = binary.BigEndian.AppendUint32(body, uint32(count))
	body = append(body, payload...)
	b := binary.BigEndian.AppendUint64(nil, uint64(first))
	b = binary.BigEndian.AppendUint32(b, uint32(9+len(body)))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = append(b, 2)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...)
}

// craftRecords encodes records with the given values.
func craftRecords(values ...string) (payload []byte) {
	for i, v := range values {
		payload = append(payload, craftedRecord{offset: int64(i), key: []byte("k"), value: []byte(v)}.encode()...)
	}
	return payload
}

// zstdZeros returns a record with a value of n zero bytes, compressed.
func zstdZeros(n int) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out)
	if err == nil {
		_, err = w.Write(craftedRecord{key: []byte("k"), value: make([]byte, n)}.encode())
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// bomb is 130 MiB in 14 kB.
var bomb = sync.OnceValue(func() []byte { return zstdZeros(130 << 20) })

const (
	noProducer    = int64(-1)
	transactional = 1 << 4
	controlBatch  = 1<<5 | transactional
)

func marker(first, producer int64, commit bool) []byte {
	kind := byte(0)
	if commit {
		kind = 1
	}
	return craftBatch(first, 1, controlBatch, producer, craftedRecord{key: []byte{0, 0, 0, kind}, value: make([]byte, 6)}.encode())
}

// hostile returns batches of one offset that a broker takes and that readers must refuse.
// The attributes are the ones that the batch claims.
func hostile() map[string]struct {
	attributes int16
	payload    []byte
} {
	type b = struct {
		attributes int16
		payload    []byte
	}
	huge := binary.AppendVarint(nil, math.MaxInt64)
	return map[string]b{
		"130 MiB in 14 kB":            {4, bomb()},
		"two billion headers":         {0, craftedRecord{key: []byte("k"), value: []byte("v"), headerCount: math.MaxInt32}.encode()},
		"minus one header":            {0, craftedRecord{key: []byte("k"), value: []byte("v"), headerCount: -1}.encode()},
		"not a zstd frame":            {4, []byte("this is not a zstd frame at all")},
		"no gzip":                     {1, []byte("nor is this gzip")},
		"no snappy":                   {2, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2}},
		"no snappy in Java's form":    {2, append(bytes.Clone(xerial), "\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff"...)},
		"no lz4":                      {3, []byte("nor is this lz4")},
		"a value longer than all":     {0, craftedRecord{value: []byte("v"), valueLength: math.MaxInt32}.encode()},
		"a value of negative length":  {0, craftedRecord{value: []byte("v"), valueLength: -7}.encode()},
		"a record longer than all":    {0, append(huge, 0, 0, 0)},
		"a record of negative length": {0, []byte{1, 0, 0}},
		"headers that end too early":  {0, craftedRecord{headerCount: 3, headers: [][2]string{{"a", "b"}, {"c", ""}}}.encode()},
		"1001 headers":                {0, craftedRecord{headers: make([][2]string, maxHeaders+1)}.encode()},
		"another batch's offset":      {0, craftedRecord{offset: 5, value: []byte("v")}.encode()},
	}
}

// A hostile batch becomes a message with Damage at its offset and takes little memory. The
// batches around it are read.
func TestDamage(t *testing.T) {
	for name, bad := range hostile() {
		b := slices.Concat(craftBatch(10, 2, 0, noProducer, craftRecords("a", "b")), craftBatch(12, 1, bad.attributes, noProducer, bad.payload),
			craftBatch(13, 1, 0, noProducer, craftRecords("c")))
		r := recordReader{topic: "t", partition: 3}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := r.read(b, 10)
		runtime.ReadMemStats(&after)
		if err != nil || len(out.msgs) != 4 || out.next != 14 || len(out.gaps) > 0 {
			t.Errorf("%s: %d messages, next %d, gaps %v, %v", name, len(out.msgs), out.next, out.gaps, err)
			continue
		}
		m := out.msgs[2]
		if !errors.Is(m.Damage, errDamage) || !strings.Contains(m.Damage.Error(), "topic t partition 3 offset 12") || m.Offset != 12 || m.Topic != "t" || m.Partition != 3 || m.Value != nil {
			t.Errorf("%s: %+v", name, m)
		}
		if string(out.msgs[1].Value) != "b" || string(out.msgs[3].Value) != "c" || out.msgs[3].Damage != nil {
			t.Errorf("%s: around it are %q and %q", name, out.msgs[1].Value, out.msgs[3].Value)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 6*maxUnpacked { // of all goroutines
			t.Errorf("%s: took %d bytes", name, took)
		}
	}
}

// The damaged stretch may be longer than one offset, or the rest of a batch.
func TestDamagedStretches(t *testing.T) {
	good := craftBatch(20, 1, 0, noProducer, craftRecords("good"))
	broken := craftBatch(10, 10, 0, noProducer, append(craftRecords("a", "b"), 0x7f))
	flipped := craftBatch(10, 10, 0, noProducer, craftRecords("a", "b"))
	flipped[len(flipped)-1]++
	old := craftBatch(19, 1, 0, noProducer, craftRecords("old"))
	old[16] = 1
	for name, tc := range map[string]struct {
		b        []byte
		tolerant bool
		want     []string // values, or the offset of a damage
		next     int64
		err      error
	}{
		"a batch that breaks off":        {slices.Concat(broken, good), false, []string{"a", "b", "damage 12", "good"}, 21, nil},
		"checksum":                       {slices.Concat(flipped, good), false, nil, 10, errChecksum},
		"checksum, for good":             {slices.Concat(flipped, good), true, []string{"damage 10", "good"}, 21, nil},
		"checksum behind what is good":   {slices.Concat(craftBatch(9, 1, 0, noProducer, craftRecords("first")), flipped), false, []string{"first"}, 10, nil},
		"format of 2016":                 {slices.Concat(old, good), false, []string{"damage 19", "good"}, 21, nil},
		"cut off by the broker":          {slices.Concat(good, broken[:len(broken)-1]), false, []string{"good"}, 21, nil},
		"nothing but a part":             {broken[:len(broken)-1], false, []string{"damage 10"}, 11, nil},
		"a length below the head's":      {slices.Concat(append(make([]byte, 11), 3), make([]byte, 100)), false, []string{"damage 10"}, 11, nil},
		"compaction took the last":       {craftBatch(10, 10, 0, noProducer, craftRecords("a")), false, []string{"a"}, 20, nil},
		"compaction took all":            {craftBatch(10, 10, 0, noProducer, nil), false, nil, 20, nil},
		"begins before what was asked":   {craftBatch(8, 4, 0, noProducer, craftRecords("no", "no", "a", "b")), false, []string{"a", "b"}, 12, nil},
		"all before what was asked":      {craftBatch(2, 4, 0, noProducer, craftRecords("no", "no", "no", "no")), false, nil, 10, nil},
		"more records than offsets":      {craftBatch(10, 1, 0, noProducer, craftRecords("a", "b", "c")), false, []string{"a"}, 11, nil},
		"junk behind the last record":    {craftBatch(10, 2, 0, noProducer, craftRecords("a", "b", "c")[:9*2+5]), false, []string{"a", "b"}, 12, nil},
		"an offset that comes twice":     {craftBatch(10, 2, 0, noProducer, slices.Concat(craftRecords("a"), craftRecords("a"))), false, []string{"a"}, 12, nil},
		"no record, but a count of many": {craftBatch(10, math.MaxInt32, 0, noProducer, craftRecords("a")), false, []string{"a"}, 10 + math.MaxInt32, nil},
	} {
		from := int64(10)
		if name == "checksum behind what is good" {
			from = 9
		}
		r := recordReader{topic: "t", tolerant: tc.tolerant}
		out, err := r.read(tc.b, from)
		var got []string
		for _, m := range out.msgs {
			if m.Damage != nil {
				got = append(got, fmt.Sprint("damage ", m.Offset))
			} else {
				got = append(got, string(m.Value))
			}
		}
		if !slices.Equal(got, tc.want) || out.next != tc.next || err != tc.err {
			t.Errorf("%s: %q, next %d, %v; want %q, next %d, %v", name, got, out.next, err, tc.want, tc.next, tc.err)
		}
	}
}

// The reader leaves out aborted messages and markers, and both are progress.
func TestAborted(t *testing.T) {
	b := slices.Concat(
		craftBatch(0, 1, transactional, 7, craftRecords("aborted 7")),
		craftBatch(1, 1, transactional, 8, craftRecords("8")),
		craftBatch(2, 1, 0, 7, craftRecords("not in a transaction")),
		marker(3, 7, false),
		craftBatch(4, 1, transactional, 7, craftRecords("7")),
		marker(5, 8, true),
		marker(6, 7, true),
		craftBatch(7, 1, transactional, 7, craftRecords("aborted again")),
		marker(8, 7, false),
	)
	list := []aborted{{7, 7}, {7, 0}} // in no order
	for from, want := range map[int64][]string{
		0: {"8", "not in a transaction", "7"}, 1: {"8", "not in a transaction", "7"}, 2: {"not in a transaction", "7"}, 4: {"7"}, 7: nil,
	} {
		r := recordReader{topic: "t", committed: true, aborted: list}
		if from > 3 {
			r.aborted = list[:1] // brokers name the transactions that overlap the answer
		}
		var rest []byte
		for left := b; len(left) > 0; { // and send whole batches
			batch, after, err := nextBatch(left)
			if err != nil {
				t.Fatal(err)
			}
			if batch.last >= from {
				rest = left
				break
			}
			left = after
		}
		out, err := r.read(rest, from)
		if err != nil || !slices.Equal(values(out.msgs), want) || out.next != 9 || len(out.gaps) > 0 {
			t.Errorf("from %d: %q, next %d, gaps %v, %v; want %q", from, values(out.msgs), out.next, out.gaps, err, want)
		}
	}
	r := recordReader{topic: "t", aborted: list}
	if out, err := r.read(b, 0); err != nil || len(out.msgs) != 5 || out.next != 9 {
		t.Errorf("uncommitted: %q, next %d, %v", values(out.msgs), out.next, err)
	}
}

// A batch with more messages than memory is read in parts.
func TestReadInParts(t *testing.T) {
	const n = 400_000
	var payload []byte
	for i := range n {
		payload = append(payload, craftedRecord{offset: int64(i)}.encode()...)
	}
	b := craftBatch(0, n, 0, noProducer, payload)
	r := recordReader{topic: "t"}
	next, parts := int64(0), 0
	for next < n {
		out, err := r.read(b, next)
		if err != nil || out.memory > maxDecoded || int64(len(out.msgs)) != out.next-next || out.next == next {
			t.Fatalf("from %d: %d messages of %d bytes, next %d, %v", next, len(out.msgs), out.memory, out.next, err)
		}
		next = out.next
		parts++
	}
	if parts < 2 {
		t.Errorf("%d parts, so the test shows nothing", parts)
	}
}

func TestUnpack(t *testing.T) {
	plain := craftRecords("a", strings.Repeat("b", 100_000), "c")
	var gz, zs, lz bytes.Buffer
	for w, to := range map[io.WriteCloser]*bytes.Buffer{gzip.NewWriter(&gz): &gz, compress.Lz4.Codec().NewWriter(&lz): &lz} {
		_, _ = w.Write(plain)
		if err := w.Close(); err != nil || to.Len() == 0 {
			t.Fatal(err)
		}
	}
	zw, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = zw.Write(plain)
	_ = zw.Close()
	java := append(bytes.Clone(xerial), 0, 0, 0, 1, 0, 0, 0, 1)
	for part := range slices.Chunk(plain, 30_000) {
		block := snappy.Encode(nil, part)
		java = append(binary.BigEndian.AppendUint32(java, uint32(len(block))), block...)
	}
	for codec, packed := range map[int16][][]byte{0: {plain}, 1: {gz.Bytes()}, 2: {snappy.Encode(nil, plain), java}, 3: {lz.Bytes()}, 4: {zs.Bytes()}} {
		for _, p := range packed {
			r := recordReader{topic: "t"}
			out, err := r.read(craftBatch(0, 3, codec, noProducer, p), 0)
			if err != nil || len(out.msgs) != 3 || out.msgs[0].Damage != nil || string(out.msgs[2].Value) != "c" || len(out.msgs[1].Value) != 100_000 {
				t.Errorf("codec %d: %d messages, %v, %v", codec, len(out.msgs), err, out.msgs[0].Damage)
			}
		}
	}
}

// Readers read the messages of other clients in every compression.
func TestReadCompressed(t *testing.T) {
	cfg := anyBroker(t)
	apply(t, cfg, 1)
	var want []string
	for i, codec := range []kgo.CompressionCodec{kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.ProducerBatchCompression(codec))
		if err != nil {
			t.Fatal(err)
		}
		value := fmt.Sprint(i, strings.Repeat(" and again", 1000))
		want = append(want, value)
		r := &kgo.Record{Topic: TopicWindows, Key: []byte("k"), Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}}}
		if err := cl.ProduceSync(testContext(t), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		cl.Close()
	}
	if got := readAll(t, cfg, TopicWindows)["k"]; !slices.Equal(got, want) {
		t.Errorf("%.100q", got)
	}
}

// produceRaw sends the bytes of a batch unchanged.
func produceRaw(t testing.TB, cfg Config, topic string, batch []byte) error {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...), kgo.MaxVersions(kversion.V3_0_0())) // newer ones name topics by id
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.Ping(testContext(t)); err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, -1, 5000
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = batch
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{part}}}
	res, err := cl.DiscoveredBrokers()[0].Request(testContext(t), req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(res.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
}

// writeHostile writes hostile messages between good ones. It returns how to reach the broker
// and how many of them the broker took: Apache Kafka refuses some, and the embedded broker
// holds all of them, as one of an older release would.
func writeHostile(t *testing.T) (cfg Config, taken int) {
	t.Helper()
	dir := t.TempDir()
	restart := func() {}
	if cfg = anyBroker(t); kafkatest.Version() == "" {
		bare, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(filepath.Join(dir, "kafka")), kfake.ListenFn(func(string, string) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Brokers = bare.ListenAddrs()
		restart = func() {
			bare.Close()
			b, err := StartBroker(dir, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close() })
			cfg.Brokers = []string{b.Addr()}
		}
	}
	apply(t, cfg, 1)
	p := newProducer(t, cfg)
	send(t, p, windows("k", 0, 2))
	for name, bad := range hostile() {
		err := produceRaw(t, cfg, TopicWindows, craftBatch(0, 1, bad.attributes, noProducer, bad.payload))
		t.Logf("%s: the broker says %v", name, err)
		if err == nil {
			taken++
		}
		if bad.attributes == 0 { // a compacted topic is read by the broker too
			_ = produceRaw(t, cfg, TopicState, craftBatch(0, 1, bad.attributes, noProducer, bad.payload))
		}
	}
	send(t, p, windows("k", 2, 4))
	if taken == 0 {
		t.Fatal("the broker refuses them all, so the test shows nothing")
	}
	restart()
	return cfg, taken
}

// A hostile message on any topic stops neither a reader nor a start. A group gets it as
// Damage; the other readers leave it out and call OnDamage.
func TestHostileMessages(t *testing.T) {
	cfg, taken := writeHostile(t)
	said := 0
	cfg.OnDamage = func(err error) {
		if !errors.Is(err, errDamage) {
			t.Error(err)
		}
		said++
	}
	if got := readAll(t, cfg, TopicWindows)["k"]; !slices.Equal(got, values(windows("k", 0, 4))) || said != taken {
		t.Errorf("read %q, %d damages of %d", got, said, taken)
	}
	readAll(t, cfg, TopicState)
	withPartition(t, cfg, func(ctx context.Context, p *Partition) {
		good, bad := 0, 0
		for good < 4 {
			msgs, err := p.Fetch(ctx, 100, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range msgs {
				if m.Damage != nil {
					bad++
				} else {
					good++
				}
			}
		}
		if bad != taken {
			t.Errorf("a group got %d damages of %d", bad, taken)
		}
	})
}

// Any bytes are safe: the reader goes on, only forwards, and stays within its memory.
func FuzzRecords(f *testing.F) {
	f.Add(craftBatch(10, 2, 0, noProducer, craftRecords("a", "b")), int64(10), false)
	f.Add(slices.Concat(craftBatch(3, 1, transactional, 7, craftRecords("x")), marker(4, 7, false)), int64(0), true)
	for name, bad := range hostile() {
		if name != "130 MiB in 14 kB" {
			f.Add(craftBatch(0, 1, bad.attributes, noProducer, bad.payload), int64(0), true)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, from int64, tolerant bool) {
		from &= math.MaxInt64 >> 1
		for at := 0; len(b)-at >= batchHead; { // give the batches the checksums they need to get far
			n := int(int32(binary.BigEndian.Uint32(b[at+8:])))
			if n < batchHead-batchPrefix || n > len(b)-at-batchPrefix {
				break
			}
			end := at + batchPrefix + n
			b = bytes.Clone(b)
			binary.BigEndian.PutUint32(b[at+17:], crc32.Checksum(b[at+21:end], castagnoli))
			at = end
		}
		r := recordReader{topic: "t", committed: tolerant, aborted: []aborted{{7, 0}}, tolerant: tolerant}
		out, err := r.read(b, from)
		if err != nil {
			if out.next != from || len(out.msgs) > 0 {
				t.Fatalf("an error, and %d messages", len(out.msgs))
			}
			return
		}
		if len(b) > 0 && out.next < from || out.memory > maxDecoded+MaxMessage {
			t.Fatalf("next %d from %d, %d bytes", out.next, from, out.memory)
		}
		last := from - 1
		for _, m := range out.msgs {
			if m.Offset <= last || m.Offset >= out.next {
				t.Fatalf("offset %d after %d, next %d", m.Offset, last, out.next)
			}
			last = m.Offset
			if sum, ok := m.Sum(); ok && sum != crc32.Checksum(m.Value, castagnoli) {
				t.Fatalf("offset %d: sum %08x", m.Offset, sum)
			}
		}
	})
}

func FuzzFetchResponse(f *testing.F) {
	f.Add(make([]byte, 80), int16(11))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 1}, 30), int16(4))
	f.Fuzz(func(t *testing.T, b []byte, version int16) {
		got, err := parseFetch(version, b)
		size := 0
		for at, f := range got {
			size += len(at.topic) + len(f.records) + 16*len(f.aborted)
		}
		if err == nil && size > len(b) {
			t.Fatal("more than there was")
		}
	})
}

// Of a batch whose times are the broker's all records have the time at which it took the batch, and no
// time has a year of five digits, which JSON cannot write.
func TestTimesOfRecords(t *testing.T) {
	head := func(attributes uint16, first, newest int64) []byte {
		b := make([]byte, batchHead)
		binary.BigEndian.PutUint32(b[8:], batchHead-batchPrefix)
		b[16] = 2
		binary.BigEndian.PutUint16(b[21:], attributes)
		binary.BigEndian.PutUint64(b[27:], uint64(first))
		binary.BigEndian.PutUint64(b[35:], uint64(newest))
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
		return b
	}
	const day = 1_793_000_000_000
	for _, tc := range []struct {
		attributes    uint16
		first, newest int64
		want          int64
	}{
		{0, day, day + 9, day + 5},
		{logAppendTime, 1 << 52, day, day},
		{logAppendTime, day - 7, day, day},
		{0, 1 << 52, day, mostTime},
		{0, math.MaxInt64 - 2, day, leastTime}, // the sum overflows
		{0, math.MinInt64, day, leastTime},
	} {
		batch, _, err := nextBatch(head(tc.attributes, tc.first, tc.newest))
		if err != nil {
			t.Fatal(err)
		}
		got := batch.timeOf(5)
		if got.UnixMilli() != tc.want {
			t.Errorf("attributes %d, first %d, newest %d: %v, want %v", tc.attributes, tc.first, tc.newest, got, time.UnixMilli(tc.want).UTC())
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
	}
}
