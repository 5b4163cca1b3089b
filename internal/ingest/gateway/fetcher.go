package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/fetch"
	"github.com/flank-tcm/flank/internal/ingest/spool"
	"github.com/flank-tcm/flank/internal/source"
)

// FetcherConfig says what a Fetcher reads and where it sends.
type FetcherConfig struct {
	Machine  string
	SpoolDir string
	Disk     spool.Disk    // nil: SpoolDir
	Length   time.Duration // of windows
	Bus      bus.Config

	// Behind, if not nil, reports whether the machine's gateway has windows that wait to be
	// delivered: they go first.
	Behind func() bool

	// Turn, if not nil, is shared by the fetchers of a program: one at a time sends.
	Turn *sync.Mutex

	Clock source.Clock
	Log   zerolog.Logger
}

// Fetcher answers commands that ask for raw windows of a machine: it sends them from the
// spool, the oldest first, and then an answer. It uses the connection for at most half of
// the time, and lets the gateway go first. Use NewFetcher, then Run once.
type Fetcher struct {
	cfg  FetcherConfig
	disk spool.Disk
	ring *ring
	out  *bus.Producer

	mu    sync.Mutex
	queue []event.Command
	state fetchState
	wake  chan struct{}

	sent atomic.Uint64
}

// fetchState is what is remembered of commands, in the file fetch.json of the spool.
type fetchState struct {
	Commands []fetchJob `json:"commands"`
}

// fetchJob is a command that was answered, or was begun.
type fetchJob struct {
	ID     string         `json:"id"`
	Until  time.Time      `json:"until"`
	Done   bool           `json:"done,omitempty"`
	At     place          `json:"at,omitzero"` // where to go on
	Answer *event.Fetched `json:"answer,omitempty"`
}

const (
	fetchFile    = "fetch.json"
	fetchBatch   = 1 << 20          // bytes of windows that are sent at once
	fetchPause   = 2 * time.Second  // the longest pause after windows
	fetchRetry   = 10 * time.Second // after an error
	fetchQueue   = 1000             // commands that may wait
	behindPeriod = 20 * time.Millisecond
)

// NewFetcher returns a fetcher, with what an earlier one remembered of its commands.
func NewFetcher(cfg FetcherConfig) (*Fetcher, error) {
	f := &Fetcher{cfg: cfg, disk: cfg.Disk, wake: make(chan struct{}, 1)}
	f.cfg.Clock = cfg.Clock.WithDefaults()
	if f.disk == nil {
		f.disk = spool.Dir(cfg.SpoolDir)
	}
	if f.cfg.Turn == nil {
		f.cfg.Turn = new(sync.Mutex)
	}
	f.ring = &ring{disk: f.disk, length: cfg.Length, times: make(map[string]segmentTimes)}
	var damage, err error
	if f.state, damage, err = spool.ReadJSON[fetchState](f.disk, fetchFile); cmp.Or(damage, err) != nil { // it costs windows that are sent twice
		cfg.Log.Error().Err(cmp.Or(damage, err)).Str("file", fetchFile).Msg("the file is damaged: windows that were fetched may be sent again; check the disk")
	}
	if f.out, err = bus.NewProducer(cfg.Bus); err != nil {
		return nil, err
	}
	return f, nil
}

// Sent returns how many windows were sent. It is safe for concurrent use.
func (f *Fetcher) Sent() uint64 { return f.sent.Load() }

// Take takes a command that asks for windows of the machine, unless it was taken before or
// has expired. It is safe for concurrent use and does not wait.
func (f *Fetcher) Take(c event.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Clock.Now()
	i := slices.IndexFunc(f.state.Commands, func(j fetchJob) bool { return j.ID == c.ID })
	switch {
	case i >= 0 && f.state.Commands[i].Done, !now.Before(c.Until):
		return
	case slices.ContainsFunc(f.queue, func(o event.Command) bool { return o.ID == c.ID }):
		return
	case len(f.queue) >= fetchQueue:
		f.cfg.Log.Error().Str("command", c.ID).Str("by", c.By).Msgf("%d commands to fetch windows wait: this one is not answered; send it again later", fetchQueue)
		return
	}
	f.queue = append(f.queue, c)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run answers commands until ctx ends.
func (f *Fetcher) Run(ctx context.Context) {
	defer f.out.Close()
	for {
		f.mu.Lock()
		var c event.Command
		some := len(f.queue) > 0
		if some {
			c = f.queue[0]
		}
		f.mu.Unlock()
		if !some {
			select {
			case <-f.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		err := f.carryOut(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if err != nil && f.cfg.Clock.Now().Before(c.Until) {
			f.cfg.Log.Error().Err(err).Str("command", c.ID).Msg("cannot send the windows that a command asks for; trying again")
			if f.cfg.Clock.Wait(ctx, fetchRetry) != nil {
				return
			}
			f.mu.Lock()
			f.queue = append(f.queue[1:], f.queue[0]) // others may be possible
			f.mu.Unlock()
			continue
		}
		f.mu.Lock()
		f.queue = f.queue[1:]
		f.mu.Unlock()
	}
}

// errEnough ends the sending of windows: the bound is reached.
var errEnough = errors.New("enough windows")

// carryOut sends the windows that a command asks for, from where an earlier try stopped,
// and the answer.
func (f *Fetcher) carryOut(ctx context.Context, c event.Command) error {
	now := f.cfg.Clock.Now()
	if !now.Before(c.Until) {
		f.cfg.Log.Warn().Str("command", c.ID).Str("by", c.By).Time("until", c.Until).
			Msg("did not answer a command to fetch windows in the time that it names; is the clock of this computer right?")
		return nil
	}
	job := f.job(c)
	within, cancel := context.WithTimeout(ctx, c.Until.Sub(now))
	defer cancel()
	s := &sending{Fetcher: f, command: c, job: job, lost: job.Answer.Lost}
	lost, err := f.ring.each(*c.Wanted, job.At, func(k kept) error { return s.add(within, k) })
	if err == nil || errors.Is(err, errEnough) {
		s.job.Answer.More = err != nil
		err = s.flush(within)
	}
	job.Answer.Lost = s.lost + int(lost)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		job.Answer.More = true
	case err != nil:
		return err
	}
	if err := f.answer(ctx, c, job); err != nil {
		return err
	}
	f.cfg.Log.Info().Str("command", c.ID).Str("by", c.By).Int("windows", job.Answer.Windows).Msg(job.Answer.Text)
	return nil
}

// job returns what is remembered of a command, or a job that has not begun.
func (f *Fetcher) job(c event.Command) *fetchJob {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.state.Commands {
		if j.ID == c.ID && j.Answer != nil {
			answer := *j.Answer
			j.Answer = &answer
			return &j
		}
	}
	return &fetchJob{ID: c.ID, Until: c.Until, Answer: &event.Fetched{ID: c.ID + "/fetched", Command: c.ID, Machine: c.Machine}}
}

// remember writes what became of a job so far, and forgets those that have expired.
func (f *Fetcher) remember(job *fetchJob) error {
	f.mu.Lock()
	now := f.cfg.Clock.Now()
	f.state.Commands = slices.DeleteFunc(f.state.Commands, func(j fetchJob) bool { return j.ID == job.ID || now.After(j.Until) })
	kept := *job
	answer := *job.Answer
	kept.Answer = &answer
	if kept.Done {
		kept.Answer, kept.At = nil, place{}
	}
	f.state.Commands = append(f.state.Commands, kept)
	f.mu.Unlock() // Take does not wait for the disk; no one else changes the state
	if err := spool.WriteJSON(f.disk, fetchFile, f.state); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// answer completes the answer to a command and sends it.
func (f *Fetcher) answer(ctx context.Context, c event.Command, job *fetchJob) error {
	a := job.Answer
	oldest, found, err := f.ring.oldest()
	if err != nil {
		return err
	}
	a.At = f.cfg.Clock.Now().UTC()
	switch {
	case !found:
		a.Gone = true
	case c.Wanted.Timed():
		a.Oldest, a.Gone = oldest, c.Wanted.From.Before(oldest)
	default:
		a.Oldest, a.Gone = oldest, a.Windows == 0
	}
	a.Text = answerText(a)
	last, cancel := context.WithTimeout(ctx, fetchRetry)
	defer cancel()
	if err := f.out.Send(last, []bus.Message{fetch.AnswerMessage(*a)}); err != nil {
		return err
	}
	job.Done = true
	if err := f.remember(job); err != nil {
		f.cfg.Log.Warn().Err(err).Msg("cannot record that a command to fetch windows was answered: after a restart it is answered again; check the disk")
	}
	return nil
}

func answerText(a *event.Fetched) string {
	text := "sent no window"
	if a.Windows > 0 {
		text = fmt.Sprintf("sent %d windows from %s to %s", a.Windows, a.From.Format(time.RFC3339), a.To.Format(time.RFC3339))
	}
	if a.More {
		text += "; there are more, but the number or the time that was named is used up"
	}
	if a.Lost > 0 {
		text += fmt.Sprintf("; %d windows are lost by damage of the disk", a.Lost)
	}
	switch {
	case a.Oldest.IsZero():
		text += "; the spool is empty"
	case a.Gone:
		text += "; the spool begins at " + a.Oldest.Format(time.RFC3339) + ": earlier windows are not kept any more"
	}
	return text
}

// sending is a command that is being carried out.
type sending struct {
	*Fetcher
	command event.Command
	job     *fetchJob
	msgs    []bus.Message
	bytes   int
	next    place // behind the last of msgs
	lost    int   // windows lost before the segment with which this try began
	before  int   // and before the segment of the last of msgs
	from    time.Time
	to      time.Time
}

// add takes the next window, and sends those that it has if they are enough for a message.
func (s *sending) add(ctx context.Context, k kept) error {
	if s.job.Answer.Windows+len(s.msgs) >= s.command.Wanted.Windows {
		return errEnough
	}
	if s.bytes > 0 && s.bytes+k.msg.Size() > fetchBatch {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	if len(s.msgs) == 0 {
		s.from = k.msg.Time.Add(-s.cfg.Length)
	}
	s.msgs = append(s.msgs, copyOf(k.msg, s.command.ID))
	s.bytes += k.msg.Size()
	s.next, s.to, s.before = place{k.Segment, k.Seq + 1}, k.msg.Time, s.lost+int(k.lost)
	return ctx.Err()
}

// flush sends what was taken, when the gateway has nothing to deliver. Then it pauses for
// as long as that took.
func (s *sending) flush(ctx context.Context) error {
	if len(s.msgs) == 0 {
		return nil
	}
	for s.cfg.Behind != nil && s.cfg.Behind() {
		if err := s.cfg.Clock.Wait(ctx, behindPeriod); err != nil {
			return err
		}
	}
	s.cfg.Turn.Lock()
	defer s.cfg.Turn.Unlock()
	begun := s.cfg.Clock.Now()
	if err := s.out.Send(ctx, s.msgs); err != nil {
		return err
	}
	a := s.job.Answer
	if a.Windows == 0 {
		a.From = s.from
	}
	a.Windows += len(s.msgs)
	a.To, a.Lost, s.job.At = s.to, s.before, s.next
	s.sent.Add(uint64(len(s.msgs)))
	s.msgs, s.bytes = s.msgs[:0], 0
	if err := s.remember(s.job); err != nil {
		s.cfg.Log.Warn().Err(err).Msg("cannot record which windows were fetched: after a restart they are sent again; check the disk")
	}
	return s.cfg.Clock.Wait(ctx, min(s.cfg.Clock.Now().Sub(begun), fetchPause))
}
