// Package statement puts what models and alarms say into results and alerts: as numbers, rounded to what they are worth, and in
// words for the person at the machine.
package statement

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/model"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Clock returns a time of day as texts of alerts and advisories have it.
func Clock(t time.Time) string { return signal.FormatTime(t, time.TimeOnly) }

// Day returns a time with its date.
func Day(t time.Time) string { return signal.FormatTime(t, time.DateTime) }

// Alert returns a change of an alarm in words, behind the name of what it is about. Next is the tool that is put in.
func Alert(change alarm.Change, a *event.Alert, next string) string {
	since, faulty, how := Clock(a.Since), "FAULTY", fmt.Sprintf("score %.2f", a.Score)
	if a.Class == model.Different { // a word of its own: no one knows whether the tool is worn
		faulty, how = "DIFFERENT FROM BEFORE", fmt.Sprintf("%.2f-fold", a.Level)
	}
	who := " by " + By(a.By)
	if a.Note != "" {
		who += ": " + strings.TrimRight(a.Note, ".")
	}
	switch change {
	case alarm.Raised:
		if a.Reason == "tool_back" {
			return fmt.Sprintf("is back, %s since %s.%s", faulty, Day(a.Since), orAcknowledged(a))
		}
		if a.Score == 0 {
			return fmt.Sprintf("%s since %s, not announced while the alarm was masked.%s", faulty, since, instruction(a))
		}
		return fmt.Sprintf("%s since %s, %d of %d cutting windows%s, %s.%s%s", faulty, since, a.Faulty, a.Of, ofUnknown(a), how, because(a), instruction(a))
	case alarm.Reactivated:
		return fmt.Sprintf("%s again, %d of %d cutting windows%s, %s; the alarm of %s is not acknowledged.%s", faulty, a.Faulty, a.Of, ofUnknown(a), how, since, because(a))
	case alarm.Returned:
		return fmt.Sprintf("alarm of %s is over, %d of the last %d windows are %s; it waits to be acknowledged.", since, a.Faulty, a.Of, strings.ToLower(faulty))
	case alarm.Cleared:
		switch a.Reason {
		case "tool_change":
			return fmt.Sprintf("alarm of %s cleared, tool changed to %s.", since, Tool(next))
		case "acknowledged":
			return fmt.Sprintf("alarm of %s cleared, acknowledged%s.", since, who)
		case "new_tool":
			return fmt.Sprintf("alarm of %s cleared, declared new%s.", since, who)
		case "retired":
			return fmt.Sprintf("alarm of %s cleared, machine retired%s.", since, who)
		}
		return fmt.Sprintf("alarm of %s cleared, %s of the last %d windows is faulty.", since, orNone(a.Faulty), a.Of)
	case alarm.Acknowledged:
		if a.FalseAlarm {
			return fmt.Sprintf("alarm of %s acknowledged as false%s.", since, who)
		}
		return fmt.Sprintf("alarm of %s acknowledged%s.", since, who)
	case alarm.Shelved:
		return fmt.Sprintf("alarm shelved until %s%s.", a.Until.Format("2006-01-02 15:04:05 MST"), who)
	case alarm.Unshelved:
		switch a.Reason {
		case "expired":
			return "the shelf of its alarm is over."
		case "new_tool":
			return "the shelf of its alarm is over, its tool is declared new" + who + "."
		}
		return "alarm unshelved" + who + "."
	case alarm.InService:
		return "alarm in service again" + who + "."
	}
	return "alarm " + strings.ReplaceAll(string(change), "_", " ") + who + "." // suppressed, unsuppressed, out of service
}

func orAcknowledged(a *event.Alert) string {
	if a.Alarm == "acknowledged" {
		return " Its alarm was acknowledged."
	}
	return instruction(a)
}

// instruction says what to do about an alarm that calls, as a sentence behind a blank. The page has it in its own words.
func instruction(a *event.Alert) string {
	if a.Finding != "" {
		return fmt.Sprintf(" Look at it before the next part: %s.", a.Finding)
	}
	return " Change the tool before the next part."
}

// ofUnknown says how many of the windows that were looked at are unknown.
func ofUnknown(a *event.Alert) string {
	if a.Unknown == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d unknown)", a.Unknown)
}

func orNone(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// By returns who did something: a person, or the ingester, which declares tools new without a name.
func By(by string) string { return cmp.Or(by, "its ingester") }

// Tool returns the name of a tool, or words for a tool without one.
func Tool(tool string) string {
	if tool == "" {
		return "an unnamed one"
	}
	return tool
}
