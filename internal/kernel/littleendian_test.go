package kernel

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

func TestFloatsRoundTrip(t *testing.T) {
	x := []float64{0, -1.5, math.Inf(1), math.MaxFloat64}
	r := Reader{Rest: append(AppendFloats(nil, x), 7)}
	if got := r.Floats(); !slices.Equal(got, x) || r.Short {
		t.Errorf("read %v, short: %v; want %v", got, r.Short, x)
	}
	if got := r.Uint8(); got != 7 || r.Short || len(r.Rest) != 0 {
		t.Errorf("then %d, short: %v, %d bytes left", got, r.Short, len(r.Rest))
	}
}

// A count of more numbers than there are bytes reserves no memory for them, and all
// that is read afterwards is zero.
func TestShort(t *testing.T) {
	b := binary.LittleEndian.AppendUint32(nil, math.MaxUint32)
	r := Reader{Rest: append(b, 1, 2, 3, 4, 5, 6, 7, 8)}
	if got := r.Floats(); got != nil || !r.Short {
		t.Errorf("read %d numbers, short: %v", len(got), r.Short)
	}
	if u8, u32, f, b := r.Uint8(), r.Uint32(), r.Float64(), r.Bytes(100); u8 != 0 || u32 != 0 || f != 0 || len(b) > 8 {
		t.Errorf("after the end: %d, %d, %v and %d bytes", u8, u32, f, len(b))
	}
}
