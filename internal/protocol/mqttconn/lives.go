package mqttconn

import (
	"fmt"
	"sync"
	"time"
)

const (
	// lasting is how long a connection must live before it counts as good. It is longer than
	// the longest wait, so that programs that take a client id from each other in turn never have a good one.
	lasting = 30 * time.Second

	// shortLives is how many connections in a row must end sooner before that is a problem.
	shortLives = 3

	firstWait, longWait = 200 * time.Millisecond, 20 * time.Second
)

// Lives counts connections to a broker that end soon after they began. It knows when to connect
// again, and finds another program with the same client id: a broker ends the connection
// of the one when the other connects. It is safe for concurrent use.
type Lives struct {
	client, remedy string
	now            func() time.Time

	mu    sync.Mutex
	began time.Time // of the connection; zero without one
	inRow int       // connections in a row that ended early
	short uint64    // of all
	taken bool      // the broker said that another program has the client id
}

// NewLives returns the count for a client id. The remedy ends the text of [Lives.Err].
func NewLives(client, remedy string, now func() time.Time) *Lives {
	return &Lives{client: client, remedy: remedy, now: now}
}

// Wait returns how long to wait before a connection is tried after so many failures in a row. The
// wait grows with each failure and each short life, and shrinks only after a connection that has lasted.
func (l *Lives) Wait(failures int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failures += l.inRow; failures == 0 {
		return 0
	}
	return min(firstWait<<min(failures-1, 10), longWait)
}

// Begin notes that a connection begins.
func (l *Lives) Begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = l.now()
}

// End notes that the connection has ended. It returns an error once in each row of short
// lives, to be logged.
func (l *Lives) End() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lasted(); l.began.IsZero() {
		return nil
	}
	l.began = time.Time{}
	l.short++
	if l.inRow++; l.inRow != shortLives {
		return nil
	}
	return l.err()
}

// lasted forgets earlier short lives, and the connection, if that has lived for long.
func (l *Lives) lasted() {
	if !l.began.IsZero() && l.now().Sub(l.began) >= lasting {
		l.began, l.inRow, l.taken = time.Time{}, 0, false
	}
}

// TakenOver notes that the broker gave the client id to another program.
func (l *Lives) TakenOver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = true
}

// Err returns the problem after shortLives in a row, until a connection has lasted.
func (l *Lives) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lasted(); l.inRow < shortLives {
		return nil
	}
	return l.err()
}

func (l *Lives) err() error {
	if l.taken {
		return fmt.Errorf("another program connects to the MQTT broker with the client id %s; the broker ended %d connections in a row within %v: %s", l.client, l.inRow, lasting, l.remedy)
	}
	return fmt.Errorf("%d connections in a row to the MQTT broker ended within %v: does another program use the client id %s? If so, %s. If not, the broker's log says why it hangs up", l.inRow, lasting, l.client, l.remedy)
}

// Short returns how many connections ended before they had lasted.
func (l *Lives) Short() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.short
}
