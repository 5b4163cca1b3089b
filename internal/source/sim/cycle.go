package sim

import (
	"fmt"
	"time"
)

// phase is what the machine does at one time of a hole's cycle.
type phase int

// The phases of a cycle in their order: the five of the experiment (start
// machine, feed coolant, drill, finish and pull back, shut down), with a wait
// before.
const (
	idleBefore phase = iota
	startUp          // the spindle runs up
	coolant          // coolant flows, the spindle turns, nothing is cut
	drilling         // the drill enters and cuts
	retract          // the drill is pulled back, spindle and coolant still on
	shutdown         // coolant is off, the spindle runs down and stands
	phases
)

// The states of the machine as the Truth of blocks names them. After its
// shutdown and before its start-up the machine is idle; entry is the part of
// drilling in which the edge is not fully in the material.
const (
	Idle     = "idle"
	StartUp  = "start-up"
	Coolant  = "coolant"
	Entry    = "entry"
	Drilling = "drilling"
	Retract  = "retract"
)

// state is one of them by number.
type state int

const (
	idle state = iota
	startingUp
	cooling
	entering
	cutting
	retracting
	stateCount
)

var stateNames = [stateCount]string{Idle, StartUp, Coolant, Entry, Drilling, Retract}

// states has the state of each phase; entry is found in drilling.
var states = [phases]state{idle, startingUp, cooling, cutting, retracting, idle}

// hole is one cycle in frames: from idle over drilling to idle.
type hole struct {
	name  string
	first int         // frame of the session at which it starts
	ends  [phases]int // frames of the cycle at which the phases end
	cut   int         // frames of cutting before it in the tool's life
	wait  int         // frames after the cycle in which the machine stands, until the tool is changed
}

func (h *hole) drilled() int { return h.ends[drilling] - h.ends[coolant] }
func (h *hole) frames() int  { return h.ends[shutdown] + h.wait }

// at returns the phase of frame f of the cycle and the share of the phase that
// is over. While the machine waits for a tool it is idle.
func (h *hole) at(f int) (phase, float64) {
	start := 0
	for p, end := range h.ends {
		if f < end {
			return phase(p), float64(f-start) / float64(end-start)
		}
		start = end
	}
	if f < h.frames() {
		return idleBefore, 0
	}
	panic(fmt.Sprintf("sim: frame %d of a cycle of %d", f, h.frames()))
}

// minHole is the least time that is worth a hole of its own at the end of a life.
const minHole = 2 * time.Second

// schedule returns the holes of a life: of the given drilling time each, the last
// one cut short when the life is over. Every cycle takes whole seconds, so that
// a block belongs to one hole; what is missing is spent idle.
func schedule(life, drill, pause time.Duration) []hole {
	var holes []hole
	left, cut, first := int(life/frame), 0, 0
	whole, rest := int(drill/frame), int(pause/frame)
	for left > 0 {
		n := min(whole, left)
		if left-n < int(minHole/frame) {
			n = left
		}
		h := hole{name: fmt.Sprintf("H%02d", len(holes)+1), first: first, cut: cut}
		before := rest * 2 / 5
		h.ends = [...]int{rest / 5, rest * 3 / 10, before, before + n, before + n + rest*3/10, rest + n}
		if over := h.ends[shutdown] % framesPerBlock; over != 0 {
			h.ends[shutdown] += framesPerBlock - over
		}
		holes = append(holes, h)
		left, cut, first = left-n, cut+n, first+h.frames()
	}
	return holes
}
