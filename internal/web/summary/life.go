package summary

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

const (
	lifeVersion   = 1
	calledVersion = 1
	firstWidth    = 5000 // milliseconds of cutting of a point of a new curve
	maxToolName   = 200
)

// life is a tool from its first window on. Its binary form, with little-endian numbers:
//
//	version    byte     1
//	name       u16, bytes
//	from, to   2×i64    Unix milliseconds
//	cut until  i64      end of the last window that counted as cutting time
//	cutting    i64      milliseconds
//	begun      i64      when Kafka got the first result, Unix milliseconds
//	windows    u32
//	wear       f32      µm
//	wear at    i64      end of the last window that has an estimate; 0: none has one
//	width      u32      milliseconds of cutting of a point
//	points     u16, then for each: score sum u64 in millionths, scored u32, wear f32 (NaN: not known)
//
// What it is called is kept apart from that.
type life struct {
	name     string
	from, to int64
	cutUntil int64
	cutting  int64
	begun    int64
	windows  uint32
	wear     float32
	wearAt   int64
	width    int64
	curve    []curvePoint

	called string // event.Result.ToolLife; empty: the tool was never declared new to its ingester
	named  bool   // called is known
}

type curvePoint struct {
	scoreSum uint64
	scored   uint32
	wear     float32
}

func newLife(name string, begun int64) *life {
	return &life{name: name, begun: begun, from: math.MaxInt64, to: math.MinInt64, width: firstWidth}
}

// call takes what the life is called, as it is kept.
func (l *life) call(v []byte) {
	if len(v) > 0 && v[0] == calledVersion {
		l.called, l.named = string(v[1:]), true
	}
}

// fold adds a window.
func (l *life) fold(r *event.Result, start, end time.Time) {
	from, to := start.UnixMilli(), end.UnixMilli()
	l.from, l.to = min(l.from, from), max(l.to, to)
	l.windows++
	if w := r.Wear; w != nil && finite(w.WearUM) && to >= l.wearAt {
		l.wear, l.wearAt = float32(w.WearUM), to
	}
	switch r.Verdict {
	case event.Healthy, event.Faulty, event.Unknown, event.Learning:
	default:
		return
	}
	if r.Late || r.Unknown == event.NoTool { // the monitor does not count their cutting time either
		return
	}
	// Windows that overlap do not cut twice.
	if l.cutUntil > from && l.cutUntil < to {
		from = l.cutUntil
	}
	l.cutUntil = to
	l.cutting += min(max(to-from, 0), maxWindow.Milliseconds())
	l.addPoint(r)
}

// addPoint adds a window to the point of the curve that the cutting time has come to.
func (l *life) addPoint(r *event.Result) {
	i := max(l.cutting-1, 0) / l.width
	for i >= maxCurve {
		l.halve()
		i = max(l.cutting-1, 0) / l.width
	}
	for int64(len(l.curve)) <= i {
		l.curve = append(l.curve, curvePoint{wear: float32(math.NaN())})
	}
	p := &l.curve[i]
	if scored(r) {
		p.scored++
		p.scoreSum += millionths(r.Score)
	}
	if l.wearAt != 0 {
		p.wear = l.wear
	}
}

// halve makes one point of two.
func (l *life) halve() {
	n := (len(l.curve) + 1) / 2
	for i := range n {
		p := l.curve[2*i]
		if 2*i+1 < len(l.curve) {
			q := l.curve[2*i+1]
			p.scoreSum += q.scoreSum
			p.scored += q.scored
			if q.wear == q.wear {
				p.wear = q.wear
			}
		}
		l.curve[i] = p
	}
	l.curve = l.curve[:n]
	l.width *= 2
}

// shown returns the life as pages get it.
func (l *life) shown() Life {
	out := Life{Tool: l.name, From: time.UnixMilli(l.from).UTC(), To: time.UnixMilli(l.to).UTC(), CuttingSeconds: seconds(l.cutting), WearUM: l.wearUM(), Windows: int(l.windows)}
	out.Curve = Curve{Cutting: Numbers{}, Wear: Numbers{}, Score: Numbers{}}
	for i, p := range l.curve {
		if p.scored == 0 && p.wear != p.wear {
			continue
		}
		score := math.NaN()
		if p.scored > 0 {
			score = float64(p.scoreSum) / 1e6 / float64(p.scored)
		}
		out.Curve.Cutting = append(out.Curve.Cutting, seconds(min(int64(i+1)*l.width, l.cutting)))
		out.Curve.Wear = append(out.Curve.Wear, float64(p.wear))
		out.Curve.Score = append(out.Curve.Score, score)
	}
	return out
}

func (l *life) wearUM() *float64 {
	if l.wearAt == 0 {
		return nil
	}
	w := math.Round(float64(l.wear)*100) / 100
	return &w
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }

func (l *life) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	name := l.name[:min(len(l.name), maxToolName)]
	b = append(b, lifeVersion)
	b = le.AppendUint16(b, uint16(len(name)))
	b = append(b, name...)
	for _, v := range [...]int64{l.from, l.to, l.cutUntil, l.cutting, l.begun} {
		b = le.AppendUint64(b, uint64(v))
	}
	b = le.AppendUint32(b, l.windows)
	b = le.AppendUint32(b, math.Float32bits(l.wear))
	b = le.AppendUint64(b, uint64(l.wearAt))
	b = le.AppendUint32(b, uint32(l.width))
	b = le.AppendUint16(b, uint16(len(l.curve)))
	for _, p := range l.curve {
		b = le.AppendUint64(b, p.scoreSum)
		b = le.AppendUint32(b, p.scored)
		b = le.AppendUint32(b, math.Float32bits(p.wear))
	}
	return b
}

var errLife = errors.New("summary: the record of a tool is damaged, or of a later release")

// parse sets l to the life whose binary form is b. Any bytes are safe to try.
func (l *life) parse(b []byte) error {
	le := binary.LittleEndian
	if len(b) < 3 || b[0] != lifeVersion {
		return errLife
	}
	n := int(le.Uint16(b[1:]))
	const fixed = 5*8 + 4 + 4 + 8 + 4 + 2
	if b = b[3:]; n > maxToolName || len(b) < n+fixed {
		return errLife
	}
	*l = life{name: string(b[:n])}
	b = b[n:]
	for i, v := range [...]*int64{&l.from, &l.to, &l.cutUntil, &l.cutting, &l.begun} {
		*v = int64(le.Uint64(b[8*i:]))
	}
	b = b[40:]
	l.windows, l.wear, l.wearAt, l.width = le.Uint32(b), math.Float32frombits(le.Uint32(b[4:])), int64(le.Uint64(b[8:])), int64(le.Uint32(b[16:]))
	points := int(le.Uint16(b[20:]))
	if b = b[22:]; len(b) != 16*points || points > maxCurve || l.width < firstWidth || l.cutting < 0 || (l.cutting-1)/l.width >= maxCurve {
		return errLife
	}
	for ; len(b) > 0; b = b[16:] {
		l.curve = append(l.curve, curvePoint{le.Uint64(b), le.Uint32(b[8:]), math.Float32frombits(le.Uint32(b[12:]))})
	}
	return nil
}
