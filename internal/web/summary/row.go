package summary

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// rowVersion is the first byte of a row. A row has rowSize bytes:
//
//	version    byte     1
//	counts     7×u32    windows by verdict: healthy, faulty, unknown, learning, not cutting,
//	                    sensor fault, verdicts of later releases
//	late       u32      of them, windows that came late
//	scored     u32      of them, windows that have a score
//	score sum  u64      of these, in millionths
//	score max  f32
//	threshold  f32      the highest; 0 if not known
//	wear       3×f32    µm and its interval, after the last window that has an estimate
//	wear at    i64      end of that window, Unix milliseconds; 0: none has one
//	tool       u32      id of the life of the last window's tool
//	tool at    i64      end of that window, Unix milliseconds
//
// Numbers are little-endian.
const (
	rowVersion = 1
	rowSize    = 1 + 4*(verdicts+2) + 8 + 4*5 + 8 + 4 + 8
	verdicts   = 7
)

// row sums up windows.
type row struct {
	counts         [verdicts]uint32
	late, scored   uint32
	scoreSum       uint64
	scoreMax       float32
	threshold      float32
	wear, low, top float32
	wearAt         int64
	tool           uint32
	toolAt         int64
}

// verdictIndex returns the element of counts for a verdict.
func verdictIndex(v event.Verdict) int {
	if i := slices.Index(event.Verdicts, v); i >= 0 {
		return i
	}
	return verdicts - 1
}

// rowOf returns the row of one window, whose tool has the given life.
func rowOf(r *event.Result, end time.Time, life uint32) row {
	one := row{tool: life, toolAt: end.UnixMilli()}
	one.counts[verdictIndex(r.Verdict)] = 1
	if r.Late {
		one.late = 1
	}
	if scored(r) {
		one.scored, one.scoreSum, one.scoreMax = 1, millionths(r.Score), float32(r.Score)
	}
	if r.Threshold > 0 && r.Threshold <= 1 {
		one.threshold = float32(r.Threshold)
	}
	if w := r.Wear; w != nil && finite(w.WearUM) && finite(w.WearLowUM) && finite(w.WearHighUM) {
		one.wear, one.low, one.top, one.wearAt = float32(w.WearUM), float32(w.WearLowUM), float32(w.WearHighUM), one.toolAt
	}
	return one
}

// scored reports whether a window has a score: those that were not judged have none.
func scored(r *event.Result) bool { return len(r.Posterior) > 0 && r.Score >= 0 && r.Score <= 1 }

func millionths(score float64) uint64 { return uint64(math.Round(score * 1e6)) }

func finite(x float64) bool { return !math.IsNaN(x) && math.Abs(x) <= math.MaxFloat32 }

// add adds the windows of another row. The order of additions does not matter.
func (r *row) add(o *row) {
	for i, n := range o.counts {
		r.counts[i] += n
	}
	r.late += o.late
	r.scored += o.scored
	r.scoreSum += o.scoreSum
	r.scoreMax = max(r.scoreMax, o.scoreMax)
	r.threshold = max(r.threshold, o.threshold)
	if o.wearAt > r.wearAt || o.wearAt == r.wearAt && o.wear > r.wear {
		r.wear, r.low, r.top, r.wearAt = o.wear, o.low, o.top, o.wearAt
	}
	if o.toolAt > r.toolAt || o.toolAt == r.toolAt && o.tool > r.tool {
		r.tool, r.toolAt = o.tool, o.toolAt
	}
}

// windows returns how many windows the row has.
func (r *row) windows() (n int) {
	for _, c := range r.counts {
		n += int(c)
	}
	return n
}

// cutting returns how many of them are of a cutting machine.
func (r *row) cutting() int {
	return int(r.counts[0]) + int(r.counts[1]) + int(r.counts[2]) + int(r.counts[3])
}

// appendTo appends the binary form.
func (r *row) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, rowVersion)
	for _, n := range r.counts {
		b = le.AppendUint32(b, n)
	}
	b = le.AppendUint32(b, r.late)
	b = le.AppendUint32(b, r.scored)
	b = le.AppendUint64(b, r.scoreSum)
	for _, v := range [...]float32{r.scoreMax, r.threshold, r.wear, r.low, r.top} {
		b = le.AppendUint32(b, math.Float32bits(v))
	}
	b = le.AppendUint64(b, uint64(r.wearAt))
	b = le.AppendUint32(b, r.tool)
	return le.AppendUint64(b, uint64(r.toolAt))
}

// parse sets r to the row whose binary form is b. Any bytes are safe to try.
func (r *row) parse(b []byte) error {
	if len(b) != rowSize || b[0] != rowVersion {
		return fmt.Errorf("summary: a row of %d bytes in version %d: this program reads %d bytes in version %d", len(b), first(b), rowSize, rowVersion)
	}
	le := binary.LittleEndian
	*r = row{}
	b = b[1:]
	for i := range r.counts {
		r.counts[i] = le.Uint32(b[4*i:])
	}
	b = b[4*verdicts:]
	r.late, r.scored, r.scoreSum = le.Uint32(b), le.Uint32(b[4:]), le.Uint64(b[8:])
	b = b[16:]
	for i, v := range [...]*float32{&r.scoreMax, &r.threshold, &r.wear, &r.low, &r.top} {
		*v = math.Float32frombits(le.Uint32(b[4*i:]))
	}
	b = b[20:]
	r.wearAt, r.tool, r.toolAt = int64(le.Uint64(b)), le.Uint32(b[8:]), int64(le.Uint64(b[12:]))
	return nil
}

func first(b []byte) byte {
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

// timeKey returns a key that orders like its time.
func timeKey(unix int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(unix)^(1<<63))
}

// keyTime returns the time of a key, or false for a key that timeKey did not make.
func keyTime(k []byte) (unix int64, ok bool) {
	if len(k) < 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(k) ^ (1 << 63)), true
}

// floor returns the greatest multiple of step that is not above t.
func floor(t, step int64) int64 {
	m := t % step
	if m < 0 {
		m += step
	}
	return t - m
}
