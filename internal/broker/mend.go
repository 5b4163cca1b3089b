package broker

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/flank-tcm/flank/internal/bus"
)

// kfake ends a transaction in one partition after the other. A kill between two of them would commit half of it, such as a state that
// has judged windows whose results no one sees. A kill between a batch and its entry of the index, by which kfake tells that a
// transaction is open, would do the same. And kfake aborts what was open without a marker: readers would take all later messages of the
// producer for aborted, and after the next kill kfake itself would take the aborted ones for committed. So the broker notes
// which transaction it is about to commit, and mends the files of a broker that was killed before kfake reads them.

// committing is the name of a file in the broker's folder: the producer and epoch that commit, or zeros once another
// transaction has begun.
const committing = "committing"

const (
	indexEntry = 15 // bytes, in kfake's files
	batchHead  = 61 // bytes of a batch before its records
	logHead    = 8  // bytes of an entry of a log before its version and text: their length and checksum
	inTxn      = 0x10
	isMarker   = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// owner is who writes a transaction, as the file committing has it.
func owner(producer int64, epoch int16) string {
	return string(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, uint64(producer)), uint16(epoch)))
}

// noteCommits keeps the file committing.
func noteCommits(c *kfake.Cluster, f *os.File) {
	note := func(o string) (kmsg.Response, error, bool) {
		c.KeepControl()
		_, err := f.WriteAt([]byte(o), 0)
		return nil, err, err != nil
	}
	c.ControlKey(int16(kmsg.AddPartitionsToTxn), func(kmsg.Request) (kmsg.Response, error, bool) { return note(owner(0, 0)) })
	c.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if end := req.(*kmsg.EndTxnRequest); end.Commit {
			return note(owner(end.ProducerID, end.ProducerEpoch))
		}
		return nil, nil, false
	})
}

// glob is filepath.Glob in a folder, whose name may have any characters.
func glob(dir, pattern string) []string {
	names, _ := fs.Glob(os.DirFS(dir), pattern)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}

// mend completes the files that a broker which was killed has left in its folder: partitions that it was compacting, the indexes, and a
// marker wherever a transaction is open. The marker commits the transaction that the broker was committing, and aborts any other. After an
// error or a kill mend goes on when it is called again.
func mend(dir string) error {
	last, err := os.ReadFile(filepath.Join(dir, committing))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partitions := filepath.Join(dir, "kafka", "partitions")
	for _, p := range glob(dir, compacting+"/*") {
		to := filepath.Join(partitions, filepath.Base(p))
		if err := cmp.Or(os.RemoveAll(to), os.Rename(p, to)); err != nil {
			return err
		}
	}
	producers := filepath.Join(dir, "kafka", "pids.log")
	err = cmp.Or(os.RemoveAll(filepath.Join(dir, compacting)), cutTorn(producers), cutTorn(filepath.Join(dir, "kafka", "groups.log")))
	for _, p := range glob(partitions, "*") {
		if !strings.HasPrefix(filepath.Base(p), bus.TopicWindows) { // windows are not written in transactions
			err = cmp.Or(err, mendPartition(p, string(last), producers))
		}
	}
	return err
}

// cutTorn cuts the torn end off a log. kfake reads up to there only, and would never read what it appends behind it.
func cutTorn(path string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	whole := 0
	for rest := raw; len(rest) >= logHead; rest = raw[whole:] {
		size := int64(binary.LittleEndian.Uint32(rest)) + logHead
		if size < logHead+2 || size > int64(len(rest)) || crc32.Checksum(rest[logHead:size], castagnoli) != binary.LittleEndian.Uint32(rest[4:]) {
			break
		}
		whole += int(size)
	}
	if err == nil && whole < len(raw) {
		err = os.Truncate(path, int64(whole))
	}
	return err
}

// mendPartition completes the files of a partition.
func mendPartition(dir, last, producers string) (err error) {
	paths := glob(dir, "*.dat") // named by numbers
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	open := make(map[int64]int16) // epochs by producer
	var s segment
	for _, path := range paths {
		err = cmp.Or(err, s.read(path, open))
	}
	for _, producer := range slices.Sorted(maps.Keys(open)) {
		commit := owner(producer, open[producer]) == last
		if err == nil && !commit {
			err = fence(producers, producer, open[producer])
		}
		if err == nil {
			err = s.end(producer, open[producer], commit)
		}
	}
	return err
}

// fence gives a producer its next epoch, by which a client that outlives the broker notices that its transaction is over.
func fence(producers string, producer int64, epoch int16) error {
	text := fmt.Appendf([]byte{1, 0}, `{"type":"timeout","pid":%d,"epoch":%d}`, producer, epoch+1)
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(text, castagnoli))
	f, err := os.OpenFile(producers, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	_, failed := f.Write(append(head, text...))
	return cmp.Or(err, failed, f.Close())
}

// segment is a file of batches and its index.
type segment struct {
	path  string           // of the batches
	index []byte           // an entry for each batch
	size  int64            // of the batches
	batch kmsg.RecordBatch // the last one
}

// read reads a segment up to its end or to what is torn, which kfake cuts off, and writes its index again. It adds the transactions that begin
// in the segment to those that are open, and removes those that end.
func (s *segment) read(path string, open map[int64]int16) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	*s = segment{path: path, batch: s.batch}
	for len(raw) >= batchHead {
		size := 12 + int(int32(binary.BigEndian.Uint32(raw[8:])))
		if size < batchHead || size > len(raw) || crc32.Checksum(raw[21:size], castagnoli) != binary.BigEndian.Uint32(raw[17:]) || s.batch.ReadFrom(raw[:size]) != nil {
			break
		}
		raw = raw[size:]
		s.add(size)
		switch s.batch.Attributes & (inTxn | isMarker) {
		case inTxn:
			open[s.batch.ProducerID] = s.batch.ProducerEpoch
		case inTxn | isMarker:
			delete(open, s.batch.ProducerID)
		}
	}
	return os.WriteFile(strings.TrimSuffix(path, ".dat")+".idx", s.index, 0o644)
}

// add adds an entry of the batch to the index. kfake works out by itself which time is the newest.
func (s *segment) add(size int) {
	s.size += int64(size)
	e := binary.LittleEndian.AppendUint32([]byte{1, 0}, uint32(s.batch.PartitionLeaderEpoch))
	e = append(e, make([]byte, 9)...)
	if s.batch.Attributes&(inTxn|isMarker) == inTxn {
		e[indexEntry-1] = 1
	}
	e[1] = byte(crc32.Checksum(e[2:], castagnoli))
	s.index = append(s.index, e...)
}

// end appends a marker to the newest segment.
func (s *segment) end(producer int64, epoch int16, commit bool) error {
	var key kmsg.ControlRecordKey
	if commit {
		key.Type = kmsg.ControlRecordKeyTypeCommit
	}
	rec := kmsg.Record{Key: key.AppendTo(nil), Value: new(kmsg.EndTxnMarker).AppendTo(nil)}
	rec.Length = int32(len(rec.AppendTo(nil)) - 1) // without the byte that says it
	b := &s.batch
	*b = kmsg.RecordBatch{
		FirstOffset: b.FirstOffset + int64(b.LastOffsetDelta) + 1, PartitionLeaderEpoch: b.PartitionLeaderEpoch, Magic: 2, Attributes: inTxn | isMarker,
		FirstTimestamp: b.MaxTimestamp, MaxTimestamp: b.MaxTimestamp, ProducerID: producer, ProducerEpoch: epoch, FirstSequence: -1, NumRecords: 1, Records: rec.AppendTo(nil),
	}
	raw := b.AppendTo(nil)
	b.Length, b.CRC = int32(len(raw)-12), int32(crc32.Checksum(raw[21:], castagnoli))
	at := s.size
	s.add(len(raw))
	f, err := os.OpenFile(s.path, os.O_WRONLY, 0)
	err = cmp.Or(err, f.Truncate(at))
	_, failed := f.WriteAt(b.AppendTo(nil), at)
	return cmp.Or(err, failed, f.Close(), os.WriteFile(strings.TrimSuffix(s.path, ".dat")+".idx", s.index, 0o644))
}
