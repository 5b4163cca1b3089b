package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"
)

// The simulation goes by frames: what the machine does and how worn the tool is
// change from frame to frame, the signals from sample to sample.
const (
	frame          = 10 * time.Millisecond
	framesPerBlock = 100
)

// entryTime is how long the drill takes to enter, but at most a seventh of the
// hole.
const entryTime = 1200 * time.Millisecond

// run is the session of one tool, from its first hole to its change. Everything
// random is drawn in the order of frames, so the signals do not depend on how
// many frames are taken at a time.
type run struct {
	tool  Tool
	rng   *rand.Rand
	curve curve
	force dynamometer
	vib   *vibration
	holes []hole
	hole  int // index of the one at hand; len(holes) at the end
	next  int // frame of the session that comes next
	cut   cut
}

// cut is the state of the process during one frame.
type cut struct {
	machine       state
	engaged       float64 // share of the edge that is in the material
	entry         float64 // 1 at first contact, 0 once the drill is guided
	depth         float64 // share of the hole that is drilled
	speed         float64 // of the spindle, rev/s
	angle         float64 // of the spindle at the start of the frame, 0 to 2π
	coolant       bool
	hardness      float64 // of the workpiece at this hole, 1 on average
	vbMax, vbMean float64 // flank wear in µm at the end of the frame
	state         string  // of the tool at the end of the frame
}

// turn returns the angle of the spindle at the end of the frame, and whether it
// passes 0 within the frame; it does so once at most, see Tool.check.
func (c *cut) turn() (angle float64, over bool) {
	angle = c.angle + 2*math.Pi*c.speed*frame.Seconds()
	if angle < 2*math.Pi {
		return angle, false
	}
	return angle - 2*math.Pi, true
}

func newRun(t Tool, s *Settings) *run {
	rng := rand.New(rand.NewPCG(s.Seed, t.Seed))
	r := &run{tool: t, rng: rng, holes: schedule(t.Life, cmp.Or(s.Hole, t.holeTime()), s.Pause)}
	for len(r.holes) > 1 && float64(r.holes[1].cut)*frame.Seconds() <= t.Used*t.Life.Seconds() {
		r.holes = r.holes[1:]
	}
	for i, begin := 0, r.holes[0].first; i < len(r.holes); i++ {
		r.holes[i].first -= begin
	}
	r.holes[len(r.holes)-1].wait = int((s.Change+time.Second-1)/time.Second) * framesPerBlock // a block is a second
	r.curve = newCurve(t.End, rng)
	r.force = newDynamometer(&t, rng)
	r.vib = newVibration(&t, rng)
	r.startHole()
	return r
}

func (r *run) startHole() {
	r.cut.hardness = spread(r.rng, 0.05)
	r.force.startHole(r.rng)
	r.vib.startHole(r.rng)
}

// frame simulates the next frame: perFrame samples of each acceleration go to
// fast[channel][at*perFrame:], thrust and torque to slow[0][at] and slow[1][at].
func (r *run) frame(fast, slow [][]float32, at int) {
	h := &r.holes[r.hole]
	f := r.next - h.first
	r.advance(h, f)
	slow[0][at], slow[1][at] = r.force.sample(&r.cut, r.rng)
	r.vib.frame(fast, at*perFrame, &r.cut, r.rng)
	r.cut.angle, _ = r.cut.turn()
	r.next++
	if f+1 == h.frames() {
		r.hole++
		if r.hole < len(r.holes) {
			r.startHole()
		}
	}
}

// advance sets r.cut to what it is in frame f of hole h.
func (r *run) advance(h *hole, f int) {
	c := &r.cut
	p, share := h.at(f)
	c.engaged, c.entry, c.depth = 0, 0, 0
	c.speed = r.tool.SpeedRPM / 60
	c.coolant = p >= coolant && p <= retract
	c.machine = states[p]
	switch p {
	case idleBefore:
		c.speed = 0
	case startUp:
		c.speed *= share
	case drilling:
		c.depth = share
		entry := min(entryTime.Seconds(), float64(h.drilled())*frame.Seconds()/7)
		into := share * float64(h.drilled()) * frame.Seconds()
		c.engaged = min(1, into/entry)
		c.entry = 1 - c.engaged
		if c.entry > 0 {
			c.machine = entering
		}
	case shutdown:
		c.speed *= max(0, 1-4*share)
	}
	worked := min(max(f+1-h.ends[coolant], 0), h.drilled())
	u := float64(h.cut+worked) * frame.Seconds() / r.tool.Life.Seconds()
	c.vbMax, c.vbMean, c.state = r.curve.at(u)
}
