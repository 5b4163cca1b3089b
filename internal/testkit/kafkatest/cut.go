package kafkatest

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CutLog removes the last n records of a partition from its log, as when a machine loses
// power before it has written to its disk. It removes whole batches, so it may remove more
// records. It returns how many it removed. The broker must be dead.
func (b *Broker) CutLog(topic string, partition int, n int64) (cut int64, err error) {
	dir := filepath.Join(b.dir, "data", fmt.Sprintf("%s-%d", topic, partition))
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		return 0, fmt.Errorf("kafkatest: no log in %s: %v", dir, err)
	}
	slices.Sort(logs) // by their first offset
	var batches []batch
	for _, log := range logs {
		if batches, err = appendBatches(batches, log); err != nil {
			return 0, fmt.Errorf("kafkatest: %w", err)
		}
	}
	keep := len(batches)
	for keep > 0 && cut < n {
		keep--
		cut += batches[keep].records
	}
	for _, log := range logs {
		size := int64(0) // of the rest of the file
		for _, at := range batches[:keep] {
			if at.file == log {
				size = at.end
			}
		}
		if err := os.Truncate(log, size); err != nil {
			return 0, fmt.Errorf("kafkatest: %w", err)
		}
		for _, ending := range []string{".index", ".timeindex", ".snapshot"} { // the broker makes them again
			_ = os.Remove(strings.TrimSuffix(log, ".log") + ending)
		}
	}
	return cut, nil
}

// batch is the place of a batch of records in a log.
type batch struct {
	file    string
	end     int64 // offset in the file of the byte behind it
	records int64
}

// appendBatches appends the batches of a file. (Kafka protocol, record batch: first
// offset int64, length int32 of the rest, ..., at byte 23 the last record's offset
// relative to the first, int32.)
func appendBatches(to []batch, file string) ([]batch, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var head [27]byte
	for at := int64(0); ; {
		if _, err := f.ReadAt(head[:], at); err == io.EOF {
			return to, nil
		} else if err != nil {
			return nil, err
		}
		length := int64(binary.BigEndian.Uint32(head[8:]))
		if length == 0 { // space reserved ahead
			return to, nil
		}
		at += 12 + length
		to = append(to, batch{file, at, int64(binary.BigEndian.Uint32(head[23:])) + 1})
	}
}
