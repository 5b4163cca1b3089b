package bus

import (
	"hash/crc32"

	"github.com/segmentio/kafka-go/compress"
)

// checksum returns the CRC-32C of behind, which is what follows the checksum of the batch. On the way it notes the
// CRC-32C of each of the first long values, so that no one computes it again.
func (b *recordBatch) checksum(behind []byte) (sum uint32) {
	done, d := 0, decoder{left: b.payload}
	mostlyLong := len(b.payload)/lentFrom >= int(b.count) && b.attributes.Compression() == compress.None
	for n := int32(0); mostlyLong && n < b.count && b.summed < len(b.sums); n++ {
		r, err := d.record()
		if err != nil {
			break
		}
		if len(r.value) < lentFrom {
			continue
		}
		end := len(behind) - len(d.left) - r.behind
		sum = crc32.Update(sum, castagnoli, behind[done:end-len(r.value)])
		own := crc32.Checksum(r.value, castagnoli)
		b.sums[b.summed] = own
		b.summed++
		sum, done = own^timesBytes(sum, len(r.value)), end
	}
	return crc32.Update(sum, castagnoli, behind[done:])
}

// sumOf returns the CRC-32C of a value of the batch if it is known. Long counts the long values; ask for each value, in order.
func (b *recordBatch) sumOf(value []byte, long *int) (sum uint32, ok bool) {
	if len(value) < lentFrom {
		return 0, false
	}
	if *long++; *long > b.summed {
		return 0, false
	}
	return b.sums[*long-1], true
}

// Sum returns the CRC-32C of the value of a message that was read, if it is known already.
func (m *Message) Sum() (sum uint32, ok bool) { return m.sum, m.summed }

// A CRC is a polynomial over GF(2) modulo crc32.Castagnoli, with the coefficient of 1 in the highest bit. Two texts in a row have the CRC of the
// first times x to the power of the second's bits, plus the CRC of the second. (crc32_combine of zlib)

// times returns the product of a and b.
func times(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			product ^= b
		}
		b = b>>1 ^ -(b&1)&crc32.Castagnoli
	}
	return product
}

// powers are x to the power of 8 bits, 16, 32 and so on.
var powers = func() (p [32]uint32) {
	p[0] = 1 << (31 - 8)
	for i := range p[1:] {
		p[i+1] = times(p[i], p[i])
	}
	return p
}()

// timesBytes returns sum times x to the power of the bits of so many bytes.
func timesBytes(sum uint32, n int) uint32 {
	for i := 0; n != 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			sum = times(powers[i], sum)
		}
	}
	return sum
}
