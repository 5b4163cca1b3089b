package web

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds of one address. Behind a proxy all people have the proxy's address.
const (
	freeFailures      = 5               // wrong tokens before the address must wait
	maxWait           = 8 * time.Second // after a wrong token
	forgetFailures    = 10 * time.Minute
	maxFailing        = 4096 // addresses with wrong tokens that are remembered
	streamsOfAnAddr   = 32
	connsOfAnAddress  = 128
	connsOfAllAddress = 1024
)

// limits counts what each address does.
type limits struct {
	mu      sync.Mutex
	failing map[string]failures
	streams map[string]int
	conns   map[string]int
	all     int // of conns
}

func newLimits() limits {
	return limits{failing: make(map[string]failures), streams: make(map[string]int), conns: make(map[string]int)}
}

// failures are the wrong tokens of one address.
type failures struct {
	times int
	last  time.Time
	until time.Time // tokens of the address are refused without a look
}

// wait returns how long an address must wait before its next token is looked at.
func (l *limits) wait(address string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing[address].until.Sub(now)
}

// fail counts a wrong token. From the sixth on, each doubles the wait.
func (l *limits) fail(address string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, known := l.failing[address]
	if !known {
		l.makeRoom(now)
	}
	if now.Sub(f.last) > forgetFailures {
		f.times = 0
	}
	f.times++
	f.last = now
	if n := f.times - freeFailures; n > 0 {
		f.until = now.Add(min(time.Second<<min(n-1, 10), maxWait))
	}
	l.failing[address] = f
}

// makeRoom forgets old addresses if there are too many: a quarter at once, so that an
// attacker with many addresses does not make each of them dear.
func (l *limits) makeRoom(now time.Time) {
	if len(l.failing) < maxFailing {
		return
	}
	maps.DeleteFunc(l.failing, func(_ string, f failures) bool { return now.Sub(f.last) > forgetFailures })
	if len(l.failing) < maxFailing {
		return
	}
	byAge := slices.SortedFunc(maps.Keys(l.failing), func(a, b string) int { return l.failing[a].last.Compare(l.failing[b].last) })
	for _, address := range byAge[:maxFailing/4] {
		delete(l.failing, address)
	}
}

// joinStream takes a place for an event stream, if there is one.
func (l *limits) joinStream(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return take(l.streams, address, streamsOfAnAddr)
}

func (l *limits) leaveStream(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	give(l.streams, address)
}

// joinConn takes a place for a connection, if there is one.
func (l *limits) joinConn(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= connsOfAllAddress || !take(l.conns, address, connsOfAnAddress) {
		return false
	}
	l.all++
	return true
}

func (l *limits) leaveConn(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	give(l.conns, address)
}

func take(places map[string]int, address string, most int) bool {
	if places[address] >= most {
		return false
	}
	places[address]++
	return true
}

func give(places map[string]int, address string) {
	if places[address]--; places[address] <= 0 {
		delete(places, address)
	}
}

// addressOf returns the address by which limits count a client: of IPv6 its network of 64
// bits, in which one computer may have any address.
func addressOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "unknown"
	}
	a := at.Addr().Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	network, err := a.Prefix(64)
	if err != nil {
		return "unknown"
	}
	return network.String()
}

// lineBudget bounds the lines of the log: some at once, then one every few seconds.
type lineBudget struct {
	mu       sync.Mutex
	left     float64
	last     time.Time
	unlogged uint64
}

const (
	linesAtOnce  = 20
	secondsALine = 5
)

// take reports whether a line may be logged, and how many were not since the last one.
func (b *lineBudget) take(now time.Time) (ok bool, unlogged uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last.IsZero() {
		b.left = linesAtOnce
	}
	b.left = min(linesAtOnce, b.left+now.Sub(b.last).Seconds()/secondsALine)
	b.last = now
	if b.left < 1 {
		b.unlogged++
		return false, 0
	}
	b.left--
	unlogged, b.unlogged = b.unlogged, 0
	return true, unlogged
}
