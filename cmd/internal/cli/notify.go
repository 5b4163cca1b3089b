package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
)

// service asks what runs whether it is ready, and tells systemd how the program is doing, if systemd started it
// with Type=notify: that it is ready as soon as what runs is, that it reloads, that it is stopping, and, as often
// as WatchdogSec asks, that it is alive. A program that waits for Kafka is alive: its status says what it waits
// for, as `systemctl status` shows. One whose ready does not return is not, and systemd starts it again.
type service struct {
	log    zerolog.Logger
	absent bool // no systemd waits for news
	cancel context.CancelFunc

	mu       sync.Mutex
	ready    func() error // of what runs; nil while nothing does
	runs     int          // how often ready was set
	wasReady bool         // what runs has been ready
	told     bool         // systemd knows that the program is ready
	status   string       // that systemd knows
	stopped  bool
}

// note is what a program that is ready says about itself.
type note string

func (n note) Error() string { return string(n) }

// ReadyNote returns an error with which what Reloading watches says that the program is ready, and how it is
// doing: `systemctl status` shows the text. It returns nil without a text.
func ReadyNote(text string) error {
	if text == "" {
		return nil
	}
	return note(text)
}

// notifyEvery is how often a program is asked whether it is ready, unless the watchdog wants it more often.
const notifyEvery = 500 * time.Millisecond

// startService says that the program starts. It gives signs of life until ctx ends, which says that the
// program is stopping, or until stop is called.
func startService(ctx context.Context, log zerolog.Logger, every time.Duration) *service {
	s := &service{log: log, status: "starting"}
	s.absent = !s.say("STATUS=starting")
	patience, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn().Err(err).Msg("WATCHDOG_USEC cannot be read: systemd's watchdog gets no sign of life")
	}
	if patience > 0 {
		every = min(every, patience/3)
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go func() {
		for {
			s.tell()
			if patience > 0 {
				s.say(daemon.SdNotifyWatchdog)
			}
			select {
			case <-time.After(every):
			case <-ctx.Done():
				s.stop()
				return
			}
		}
	}()
	return s
}

// watch makes ready say from now on whether the program is ready; nil while nothing runs. It returns whether
// what was watched before has been ready.
func (s *service) watch(ready func() error) (before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.wasReady = s.wasReady, false
	s.ready = ready
	s.runs++
	return before
}

// reload says that what runs ends, and that the program goes on after it: it is ready again when what is
// watched next is. Signs of life go on meanwhile. It returns whether what runs has been ready.
func (s *service) reload() (before bool) {
	before = s.watch(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.told || s.stopped {
		return before // systemd waits for the first READY=1, or for the end
	}
	s.told, s.status = false, "reloading"
	s.say(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
	s.say("STATUS=" + s.status)
	return before
}

// tell says what has changed.
func (s *service) tell() {
	s.mu.Lock()
	ready, run := s.ready, s.runs
	s.mu.Unlock()
	if ready == nil {
		return
	}
	err := ready() // it may hang, so it is not asked under the lock
	status := "ready"
	if err != nil {
		status = err.Error()
	}
	if errors.As(err, new(note)) {
		err = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if run != s.runs || s.stopped {
		return // what was asked does not run any more
	}
	s.wasReady = s.wasReady || err == nil
	if err == nil && !s.told {
		s.told = s.say(daemon.SdNotifyReady)
	}
	if status != s.status {
		s.status = status
		s.say("STATUS=" + oneLine(status))
	}
}

// stop says once that the program is stopping. It does not wait for a ready that hangs.
func (s *service) stop() {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.stopped = true
		s.say(daemon.SdNotifyStopping)
	}
}

// say sends one message, and reports whether systemd has it.
func (s *service) say(state string) bool {
	if s.absent {
		return false
	}
	sent, err := daemon.SdNotify(false, state)
	if err != nil {
		s.log.Warn().Err(err).Msg("systemd does not hear about the state of the program: NOTIFY_SOCKET cannot be reached")
	}
	return sent
}

// oneLine returns text as one line of the protocol, in which a new line begins another variable.
func oneLine(text string) string {
	line := []rune(text)
	for i, r := range line {
		if r < ' ' {
			line[i] = ' '
		}
	}
	return string(line)
}
