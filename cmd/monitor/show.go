package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/history"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

type alertsShow struct {
	cli.AlarmID
}

// stands takes how the alarm stands now.
func (s *story) stands(st monitor.Standing, all []monitor.Standing) {
	s.last.Tool, s.last.Alarm = st.Tool, st.Alarm
	if slices.ContainsFunc(all, func(m monitor.Standing) bool { return m.Machine == st.Machine && m.Tool != st.Tool }) {
		s.last.Alarm += ", in the magazine"
	}
}

// Run prints everything that happened to an alarm or a machine.
func (f *alertsShow) Run(ctx context.Context, a *alertsCommand, out cli.Output) error {
	c, to, err := loadBus(a.Config)
	if err != nil {
		return err
	}
	s := &story{id: f.ID}
	if err := s.read(ctx, to, c.Group); err != nil {
		return err
	}
	all, _, err := monitor.Alarms(ctx, to, c.Group)
	if err != nil {
		return err
	}
	st, err := find(all, f.ID)
	switch {
	case len(s.lines) == 0 && err == nil:
		return fmt.Errorf("%s never had an alarm or an advisory", st.Machine)
	case len(s.lines) == 0:
		return fmt.Errorf("no alarm or machine is called %s: see `monitor alerts ls --all`", plain.Short(f.ID, 100))
	case err == nil && s.last != nil: // else it is closed
		s.stands(st, all)
	}
	return s.print(out.Stdout)
}

// story is what happened to an alarm or a machine.
type story struct {
	id       string
	lines    []storyLine
	last     *event.Alert // nil if there is none
	raised   bool         // an alarm was
	why      *event.Alert // the last one with reasons
	evidence *event.Evidence
	skipped  int // messages that cannot be read
}

type storyLine struct {
	at         time.Time
	what, text string
}

// of reports whether the story is about a machine.
func (s *story) of(machine string) bool {
	return machine == s.id || event.ShortName(machine) == s.id
}

func (s *story) add(at time.Time, what, text string) {
	s.lines = append(s.lines, storyLine{at, what, text})
}

func (s *story) alert(a *event.Alert) {
	s.add(a.At, plain.Short(string(a.State), 40), a.Text)
	s.raised = s.raised || a.State == event.Raised
	if s.last == nil || !a.Aside() { // these may be about a machine whose alarm is another by now
		s.last = a
	}
	if a.Reasons != nil {
		s.why = a
	}
}

// read collects the story from what monitors of a group have published.
func (s *story) read(ctx context.Context, cfg bus.Config, group string) error {
	skipped, err := history.Alerts(ctx, cfg, group, func(a event.Alert) error {
		if strings.EqualFold(a.Incident, s.id) || s.of(a.Machine) {
			s.alert(&a)
		}
		return nil
	})
	if err != nil {
		return err
	}
	more, err := history.Advisories(ctx, cfg, group, func(a event.Advisory) error {
		if s.of(a.Machine) {
			s.add(a.At, fmt.Sprintf("%s %s", plain.Short(string(a.Kind), 40), plain.Short(string(a.State), 40)), a.Text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	yetMore, err := history.Evidences(ctx, cfg, group, func(e event.Evidence) error {
		if s.why != nil && e.Alert == s.why.ID {
			s.evidence = &e
		}
		return nil
	})
	s.skipped = skipped + more + yetMore
	slices.SortStableFunc(s.lines, func(a, b storyLine) int { return a.at.Compare(b.at) })
	return err
}

func (s *story) print(stdout io.Writer) error {
	if s.last != nil {
		showAlarm(s.last, stdout)
		if s.raised {
			fmt.Fprintf(stdout, "raised   by %d of %d judged windows\n", s.last.K, s.last.N)
		}
		if s.why != nil {
			if err := showReasons(s.why, s.evidence, stdout); err != nil {
				return err
			}
		}
		fmt.Fprintln(stdout)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, l := range s.lines {
		fmt.Fprintf(w, "%s\t%s\t%s\n", when(l.at), l.what, plain.Short(l.text, 1500))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return noteSkipped(s.skipped, bus.TopicAlerts, stdout)
}

// showAlarm prints what the last alert says of its alarm.
func showAlarm(last *event.Alert, stdout io.Writer) {
	fmt.Fprintf(stdout, "machine  %s\ntool     %s\nalarm    %s\nmodel    %s\n",
		plain.Short(last.Machine, 200), plain.Short(cmp.Or(last.Tool, "-"), 100), plain.Short(cmp.Or(last.Alarm, "-"), 60), plain.Short(last.Model, 100))
}

// showReasons prints why an alert was raised, and where its waveform is.
func showReasons(a *event.Alert, kept *event.Evidence, stdout io.Writer) error {
	if a.CuttingSeconds > 0 {
		fmt.Fprintf(stdout, "cut      %v since the tool came, then %s\n", time.Duration(a.CuttingSeconds*float64(time.Second)).Round(time.Second), plain.Short(cmp.Or(a.CuttingState, "cutting"), 40))
	}
	if w := a.Wear; w != nil {
		fmt.Fprintf(stdout, "wear     %.0f µm (%.0f to %.0f with 80 %%)\n", w.WearUM, w.WearLowUM, w.WearHighUM)
	}
	fmt.Fprintf(stdout, "reasons  log-odds of faulty %+.2f, of what is usual %+.2f; of what spoke for faulty\n", a.Reasons.Total, a.Reasons.Base)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, c := range a.Reasons.Channels {
		fmt.Fprintf(w, "         %3.0f %%\t%s\t%s\n", 100*c.Share, plain.Short(c.Channel, 40), plain.Short(c.Words, 60))
	}
	for _, f := range a.Reasons.Features {
		fmt.Fprintf(w, "         %3.0f %%\t%s\t%s\n", 100*f.Share, plain.Short(f.Feature, 60), values(f))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := len(a.Trace); n > 0 {
		fmt.Fprintf(stdout, "scores   %s  %d windows to %s\n", sparkline(a.Trace), n, signal.FormatTime(a.Trace[n-1].End.Local(), time.TimeOnly))
	}
	switch {
	case kept != nil:
		fmt.Fprintf(stdout, "evidence %s\n         %s\n", plain.Short(kept.URL, 300), plain.Short(kept.Text, 500))
	case a.Evidence != nil:
		fmt.Fprintf(stdout, "evidence %s (not there yet)\n", plain.Short(a.Evidence.URL, 300))
	}
	return nil
}

// values says what a feature was and usually is.
func values(f event.FeatureReason) string {
	if f.Value == nil {
		return ""
	}
	s := fmt.Sprintf("%.4g", *f.Value)
	if f.Unit != "" {
		s += " " + plain.Short(f.Unit, 20)
	}
	if f.Usual != nil {
		s += fmt.Sprintf(", usually %.4g", *f.Usual)
	}
	return s
}

// sparkline draws the scores of a trace, from ▁ to █ for 0 to 1; a window that
// was not judged is a dot.
func sparkline(trace []event.Point) string {
	const bars = "▁▂▃▄▅▆▇█"
	var b strings.Builder
	for _, p := range trace {
		switch {
		case p.Verdict != event.Healthy && p.Verdict != event.Faulty:
			b.WriteString("·")
		default:
			b.WriteRune([]rune(bars)[min(max(int(p.Score*8), 0), 7)])
		}
	}
	return b.String()
}
