package event

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// ToolNames are names of tools, the one that was added last at the end: 32 bits of a hash of the name, and 32 of its life. A new name
// is taken for one of a thousand once in four million times.
type ToolNames []byte

func nameHash(s string) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(s)))
}

// Has reports whether a name is there with a life. An empty life stands for any.
func (n ToolNames) Has(name, life string) bool {
	h := nameHash(name)
	for of := range slices.Chunk(n, 8) {
		if bytes.HasPrefix(of, h) {
			return life == "" || bytes.HasSuffix(of, nameHash(life))
		}
	}
	return false
}

// With returns the names with one more, in place of another life of it: at most a thousand.
func (n ToolNames) With(name, life string) ToolNames {
	n = append(append(n.Without(name), nameHash(name)...), nameHash(life)...)
	return n[max(0, len(n)-8*1000):]
}

// Without returns the names without one.
func (n ToolNames) Without(name string) (left ToolNames) {
	h := nameHash(name)
	for of := range slices.Chunk(n, 8) {
		if !bytes.HasPrefix(of, h) {
			left = append(left, of...)
		}
	}
	return left
}
