package route

import "time"

// handshake is the tool-expired request to the PLC of one machine. The PLC has three
// variables: Flank writes request and request_id, the PLC writes acknowledged.
//
//	ask       request = true, request_id = incident
//	taken     the PLC has acknowledged: request = false, request_id = incident
//	withdraw  the alarm has ended, or the time is over: request = false, request_id = ""
//
// Each step begins with what the variables hold now. So a monitor that was restarted, or that
// has just taken over the machine, goes on where the other one was, and a PLC that forgot is
// asked again. While the alarm is open, request = false with the id means that the PLC took the
// request. The PLC must therefore write neither of the two.
type handshake struct {
	incident string // that the PLC is asked about; empty: no alarm is open
	phase    phase
	began    time.Time // of asking
	failures int       // times that the PLC did not take it
	retry    time.Time // of pausing: when to ask again
}

type phase int

const (
	unread  phase = iota // what the variables hold was not looked at yet
	asking               // until the PLC acknowledges or the time is over
	pausing              // the PLC did not take the request in time
	taken
	idle // no alarm is open, and the variables say so
)

// requestVariables is what the variables of a request hold.
type requestVariables struct {
	request bool
	id      string

	byID         bool   // acknowledged is a String, the id; else it is a Boolean
	acknowledged string // of a String
	set          bool   // of a Boolean
}

// requestWrite says which values to write to request and request_id, in one call.
type requestWrite int

const (
	writeNothing requestWrite = iota
	writeAsk
	writeTaken
	writeWithdraw
)

// outcome is what a step found out.
type outcome int

const (
	undecided outcome = iota
	requestTaken
	requestMissed // the time is over
)

// next takes the incident of the alarm that is open, or an empty text, and what the variables
// hold. It returns what to write. A request that was not taken within timeout is made again
// after pause of the number of failures.
func (h *handshake) next(want string, v requestVariables, now time.Time, timeout time.Duration, pause func(failures int) time.Duration) (requestWrite, outcome) {
	if want != h.incident {
		*h = handshake{incident: want}
	}
	if want == "" {
		h.phase = idle
		return v.withdraw(), undecided
	}
	own := v.request && v.id == want
	switch {
	case h.phase == taken:
		if v.request || v.id != want {
			return writeTaken, undecided // the PLC forgot, or another monitor wrote late
		}
		return writeNothing, undecided
	case h.phase == unread && v.id == want && !v.request:
		h.phase = taken // before this monitor had the machine
		return writeNothing, undecided
	case v.byID && v.acknowledged == want, !v.byID && v.set && own && h.phase != pausing:
		h.phase = taken
		return writeTaken, requestTaken
	case h.phase == unread, h.phase == pausing && !now.Before(h.retry):
		h.phase, h.began = asking, now
	}
	if h.phase == pausing || now.Sub(h.began) >= timeout {
		var what outcome
		if h.phase != pausing {
			h.failures++
			h.phase, h.retry, what = pausing, now.Add(pause(h.failures)), requestMissed
		}
		return v.withdraw(), what
	}
	return v.ask(want), undecided
}

// withdraw returns what ends any request.
func (v requestVariables) withdraw() requestWrite {
	if v.request || v.id != "" {
		return writeWithdraw
	}
	return writeNothing
}

// ask returns what asks the PLC for an incident.
func (v requestVariables) ask(want string) requestWrite {
	switch {
	case v.request && v.id == want:
		return writeNothing // the PLC's turn
	case v.request:
		return writeWithdraw // of an earlier alarm: the PLC must see that it ends
	case !v.byID && v.set:
		return writeNothing // of an earlier request: the PLC must take it back first
	}
	return writeAsk
}
