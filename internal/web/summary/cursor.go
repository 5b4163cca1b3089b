package summary

import (
	"iter"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// ascending yields the entries of a bucket, which may be nil, from a key on.
func ascending(b *bbolt.Bucket, from []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if b == nil {
			return
		}
		c := b.Cursor()
		for k, v := c.Seek(from); k != nil && yield(k, v); k, v = c.Next() {
		}
	}
}

// descending yields the entries of a bucket, which may be nil, before a key, the last one first.
func descending(b *bbolt.Bucket, before []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if b == nil {
			return
		}
		c := b.Cursor()
		last := c.Prev
		if k, _ := c.Seek(before); k == nil {
			last = c.Last
		}
		for k, v := last(); k != nil && yield(k, v); k, v = c.Prev() {
		}
	}
}

// parent is a machine's bucket, or the transaction.
type parent interface {
	CreateBucketIfNotExists(name []byte) (*bbolt.Bucket, error)
}

// putAll puts the entries of a map into a bucket of b, in the order of their keys there. Most are newer than all before, so
// pages are filled.
func putAll[K comparable, V any](b parent, name []byte, all map[K]V, key func(K) []byte, value func(V) []byte) error {
	if len(all) == 0 {
		return nil
	}
	in, err := b.CreateBucketIfNotExists(name)
	if err != nil {
		return err
	}
	in.FillPercent = 0.95
	values := make(map[string]V, len(all))
	for k, v := range all {
		values[string(key(k))] = v
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if err := in.Put([]byte(k), value(values[k])); err != nil {
			return err
		}
	}
	return nil
}
