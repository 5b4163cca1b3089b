package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/deploy"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/envelope"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/table"
	"github.com/flank-tcm/flank/internal/train/compare"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
	"github.com/flank-tcm/flank/pkg/window"
)

// replaySpan says which windows are replayed, and shows how far that is.
type replaySpan struct {
	from, to time.Time // zero: no bound
	machines deploy.Glob
	progress *cli.Progress
}

func (s replaySpan) has(start time.Time) bool {
	return !start.Before(s.from) && (s.to.IsZero() || start.Before(s.to))
}

// sendMargin is by how much later than their window Kafka may get features, after an outage.
const sendMargin = 24 * time.Hour

// beyond reports whether a message, and so the rest of its partition, lies beyond the span: it
// is of a machine that was live then, and not of a recording that was sent later.
func (s replaySpan) beyond(m bus.Message) bool {
	if s.to.IsZero() || !m.Time.After(s.to.Add(sendMargin)) {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, string(m.Header("ce_time")))
	return err == nil && at.After(m.Time.Add(-sendMargin))
}

// job is something that a member of a team does with its replay.
type job func(*member)

// member of a team replays its machines.
type member struct {
	*compare.Replay[*monitor.Replayed]
	features window.Features // of the window at hand
	jobs     chan job
}

// replayTeam replays several machines at once, each by one member and in order.
type replayTeam struct {
	members []*member
	wg      sync.WaitGroup
}

// waitingJobs is how many jobs may wait for a member.
const waitingJobs = 256

func newReplayTeam(n int, models [2]*model.Model, s alarm.Settings, labels *compare.Labels) *replayTeam {
	t := &replayTeam{}
	judging := func(m *model.Model) func(string) *monitor.Replayed { return monitor.Replays(m, s) }
	for range n {
		t.members = append(t.members, &member{Replay: compare.NewReplay(models, judging, labels), jobs: make(chan job, waitingJobs)})
	}
	for _, m := range t.members {
		t.wg.Go(func() {
			for do := range m.jobs {
				do(m)
			}
		})
	}
	return t
}

// do gives a job to the member that has a machine.
func (t *replayTeam) do(machine string, j job) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(machine)) // a hash takes all
	t.members[h.Sum32()%uint32(len(t.members))].jobs <- j
}

// finish waits until all jobs are done, and returns how many windows were judged.
func (t *replayTeam) finish() (judged uint64) {
	for _, m := range t.members {
		close(m.jobs)
	}
	t.wg.Wait()
	for _, m := range t.members {
		judged += m.Judged
	}
	return judged
}

// report returns what the team found, once it has finished.
func (t *replayTeam) report(names [2]string) *compare.Report {
	all := compare.New(nil)
	for _, m := range t.members {
		all.Merge(m.Comparison)
	}
	return all.Report(names)
}

// replayKafka replays features on Kafka.
func replayKafka(ctx context.Context, to bus.Config, models [2]*model.Model, span replaySpan, team *replayTeam) error {
	forms, err := formsOf(models)
	if err != nil {
		return err
	}
	began := span.from
	end := cmp.Or(span.to, time.Now())
	err = bus.ReadMerged(ctx, to, bus.TopicFeatures, span.from, span.beyond, func(m bus.Message) error {
		if !span.machines.Match(m.Key) {
			return nil
		}
		if began.IsZero() {
			began = m.Time
		}
		span.progress.Report("replaying", permille(m.Time.Sub(began), end.Sub(began)), 1000)
		team.do(m.Key, func(by *member) { by.observe(&m, forms, span) })
		return nil
	})
	if err == nil {
		span.progress.Report("replaying", 1000, 1000)
	}
	return err
}

// permille returns which part of a whole is done, below 1000.
func permille(done, whole time.Duration) int {
	return min(max(int(1000*float64(done)/float64(max(whole, 1))), 0), 999)
}

// observe replays the window of a message.
func (by *member) observe(m *bus.Message, forms map[string]*window.Form, span replaySpan) {
	e, err := envelope.Of(m)
	switch {
	case err == nil && m.Key != e.Machine:
		err = errors.New("the key names another machine than the headers")
	case err != nil:
	case forms[e.Features] == nil:
		by.Refuse(m.Key, "their features are of another layout, or another release, than the models take")
		return
	default:
		err = forms[e.Features].Open(e, &by.features)
	}
	w := &by.features
	switch {
	case err != nil:
		by.Refuse(m.Key, "the message cannot be read")
	case !signal.HasClock(w.Start) && !(span.from.IsZero() && span.to.IsZero()):
		by.Refuse(m.Key, "they are of a recording that does not say when it began: leave out --since and --until")
	case span.has(w.Start):
		by.Observe(w, m.Time, math.NaN())
	}
}

// formsOf returns the forms of features that the models may judge by, by fingerprint.
func formsOf(models [2]*model.Model) (map[string]*window.Form, error) {
	forms := make(map[string]*window.Form)
	for _, m := range models {
		own, err := m.Form()
		if err != nil {
			return nil, err
		}
		std, err := window.NewForm(m.Layout, m.Window, signal.FeatureSpec{}, nil)
		if err != nil {
			return nil, err
		}
		for _, f := range []*window.Form{own, std} {
			if forms[f.Fingerprint()] == nil {
				forms[f.Fingerprint()] = f
			}
		}
	}
	return forms, nil
}

// replayTables replays tables in the order of their first rows.
func replayTables(ctx context.Context, args []string, span replaySpan, team *replayTeam) error {
	paths, err := tablePaths(args)
	if err != nil {
		return err
	}
	reader := compare.NewWindowReader()
	for i, path := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := replayTable(ctx, path, span, team, reader); err != nil {
			return fmt.Errorf("--table %s: %w", path, err)
		}
		span.progress.Report("replaying", i+1, len(paths))
	}
	return nil
}

func replayTable(ctx context.Context, path string, span replaySpan, team *replayTeam, reader *compare.WindowReader) error {
	text, err := table.Meta(path)
	if err != nil {
		return err
	}
	origin := new(table.Origin)
	if there, err := origin.Parse(text, origin); err != nil {
		return err
	} else if !there {
		origin = nil
	}
	begin := func(columns []string) error { return reader.Table(origin, columns) }
	return table.Scan(path, begin, func(row table.Row) error {
		row.Machine = cmp.Or(row.Machine, event.Unnamed)
		if !span.machines.Match(row.Machine) {
			return nil
		}
		um := row.VBMaxUM
		if row.Details != nil {
			um = compare.VB(um, row.Details.VBMeanUM)
		}
		w := new(window.Features) // its member judges it while the next row is read
		err := reader.Read(row, w)
		switch {
		case errors.Is(err, compare.ErrOrder):
			team.do(row.Machine, func(by *member) { by.Refuse(row.Machine, compare.ErrOrder.Error()) })
		case err != nil:
			return err
		case span.has(w.Start):
			team.do(row.Machine, func(by *member) { by.Observe(w, w.End(), um) })
		}
		return ctx.Err()
	})
}

// tablePaths returns the tables that arguments name, files, patterns or folders, in the order
// of their first rows.
func tablePaths(args []string) ([]string, error) {
	first := make(map[string]time.Time)
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			arg = filepath.Join(arg, "*.*")
		}
		paths, err := filepath.Glob(arg)
		if err != nil {
			return nil, fmt.Errorf("--table %s: %w", arg, err)
		}
		paths = slices.DeleteFunc(paths, func(p string) bool { _, err := table.FormatOf(p); return err != nil })
		if len(paths) == 0 {
			return nil, fmt.Errorf("--table %s: no table there: check the path; tables end in .parquet, .arrow or .csv", arg)
		}
		for _, path := range paths {
			if first[path], err = firstStart(path); err != nil {
				return nil, err
			}
		}
	}
	return slices.SortedFunc(maps.Keys(first), func(a, b string) int {
		return cmp.Or(first[a].Compare(first[b]), cmp.Compare(a, b))
	}), nil
}

// errEnough ends the reading of a table.
var errEnough = errors.New("enough")

// firstStart returns when the window of the first row of a table began; zero if there is none,
// or it does not say.
func firstStart(path string) (at time.Time, err error) {
	err = table.Scan(path, func([]string) error { return nil }, func(r table.Row) error {
		at = r.Start
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return at, err
}
