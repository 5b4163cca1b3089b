package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/flank-tcm/flank/internal/event"
)

// showReasons prints why an alert was raised, and where its waveform is.
func showReasons(a *event.Alert, kept *event.Evidence, stdout io.Writer) error {
	if a.CuttingSeconds > 0 {
		fmt.Fprintf(stdout, "cut      %v since the tool came, then %s\n", time.Duration(a.CuttingSeconds*float64(time.Second)).Round(time.Second), printable(cmp.Or(a.CuttingState, "cutting"), 40))
	}
	if w := a.Wear; w != nil {
		fmt.Fprintf(stdout, "wear     %.0f µm (%.0f to %.0f with 80 %%)\n", w.WearUM, w.WearLowUM, w.WearHighUM)
	}
	fmt.Fprintf(stdout, "reasons  log-odds of faulty %+.2f, of what is usual %+.2f; of what spoke for faulty\n", a.Reasons.Total, a.Reasons.Base)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, c := range a.Reasons.Channels {
		fmt.Fprintf(w, "         %3.0f %%\t%s\t%s\n", 100*c.Share, printable(c.Channel, 40), printable(c.Words, 60))
	}
	for _, f := range a.Reasons.Features {
		fmt.Fprintf(w, "         %3.0f %%\t%s\t%s\n", 100*f.Share, printable(f.Feature, 60), values(f))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := len(a.Trace); n > 0 {
		fmt.Fprintf(stdout, "scores   %s  %d windows to %s\n", sparkline(a.Trace), n, a.Trace[n-1].End.Local().Format(time.TimeOnly))
	}
	switch {
	case kept != nil:
		fmt.Fprintf(stdout, "evidence %s\n         %s\n", printable(kept.URL, 300), printable(kept.Text, 500))
	case a.Evidence != nil:
		fmt.Fprintf(stdout, "evidence %s (not there yet)\n", printable(a.Evidence.URL, 300))
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
		s += " " + printable(f.Unit, 20)
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
