package alarm

import (
	"fmt"
	"math/bits"
	"time"
)

// Hysteresis says when a [Notice] is raised and when it is cleared.
type Hysteresis struct {
	K, N int           // K bad observations of the last N raise it; 1 ≤ K ≤ N ≤ 64
	Hold time.Duration // observed time, without a bad one, that clears it; 0: the first good observation
}

// Notice is a condition that people should know of and that is not an alarm of the
// tool: a sensor that fails, a machine that is silent. It has two states:
//
//	       K of the last N observations are bad
//	quiet ─────────────────────────────────────► raised
//	  ▲                                            │
//	  └────────────────────────────────────────────┘
//	       only good ones for Hold of observed time
//
// A notice cannot be acknowledged or shelved, and it does not latch. Time without
// observations clears nothing. With a Hold of a minute and K above 1 it
// changes fewer than three times in any minute, so that it does not chatter.
//
// A Notice is plain data, so that it can be kept across restarts; the zero value
// is quiet. The Hysteresis is an argument: it may differ after a restart.
type Notice struct {
	Recent uint64        `json:"recent,omitempty"` // bit i: was the i-th last observation bad?
	Raised bool          `json:"raised,omitempty"`
	Since  time.Time     `json:"since,omitzero"` // start of the bad observation that began it
	At     time.Time     `json:"at,omitzero"`    // when it was raised
	Last   time.Time     `json:"last,omitzero"`  // end of the last observation
	Held   time.Duration `json:"held,omitempty"` // observed time since the last bad one while raised, in nanoseconds
}

// Observe takes the next observation, which lasted from start to end, and returns
// Raised, Cleared or None. It panics if h breaks the bounds of Hysteresis.
func (n *Notice) Observe(bad bool, start, end time.Time, h Hysteresis) Change {
	if outside(h.K, 1, h.N) || h.N > 64 || h.Hold < 0 {
		panic(fmt.Sprintf("alarm: Observe: hysteresis %+v", h))
	}
	lasted := observed(&n.Last, start, end)
	n.Recent = (n.Recent<<1 | bit(bad)) & (^uint64(0) >> (64 - h.N))
	if n.Raised {
		if bad {
			n.Held = 0
			return None
		}
		if n.Held += lasted; n.Held < h.Hold {
			return None
		}
		return n.Clear()
	}
	switch n.Recent {
	case 0:
		*n = Notice{}
	case 1:
		n.Since = start
	}
	if bits.OnesCount64(n.Recent) < h.K {
		return None
	}
	return n.Raise(n.Since, end)
}

// Raise raises the notice of a condition that has been there since then. It returns
// None if the notice is raised already.
func (n *Notice) Raise(since, at time.Time) Change {
	if n.Raised {
		return None
	}
	n.Raised, n.Since, n.At, n.Held = true, since, at, 0
	return Raised
}

// Clear makes the notice quiet and forgets what was observed. It returns None if
// it was not raised.
func (n *Notice) Clear() Change {
	change := None
	if n.Raised {
		change = Cleared
	}
	*n = Notice{}
	return change
}

// Quiet reports whether there is nothing to remember.
func (n *Notice) Quiet() bool { return *n == Notice{} }

// Check returns errState for a notice that Observe cannot have made.
func (n *Notice) Check() error {
	if n.Held < 0 || n.Held > 0 && !n.Raised || n.Raised && n.At.IsZero() {
		return fmt.Errorf("%w: notice %+v", errState, *n)
	}
	return nil
}
