//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The loss report. Each promise of reliability is a row, and each row a test. A row measures
// figures with goals. Rows count ids at both ends of the pipeline; they do not use the
// programs' own counters.

var (
	chaosScale  = flag.Float64("chaos.scale", 0, "share of the full counts, up to 1; never less than the counts of CI")
	chaosReport = flag.String("chaos.report", "", "write the report to this file; rows that do not run come from the last run")
	chaosRows   = flag.String("chaos.rows", "", "folder of the rows of the report")
)

// promise is a row of the report and its test.
type promise struct {
	name string
	says string
	test func(*testing.T, *record)
}

var promises = []promise{
	{"1-ingest-killed", "A closed window is never lost when the ingester dies", ingestKilled},
	{"2-live-killed", "Of a live source only the open window may be lost, and it is declared", liveKilled},
	{"3-monitor-killed", "The monitor's death loses no decision and repeats no alarm", monitorKilled},
	{"4a-broker-away", "An outage of the broker is absorbed", brokerAway},
	{"4b-network-bad", "A bad network is survived", networkBad},
	{"5-broker-killed", "A broker's crash loses nothing", brokerKilled},
	{"5c-cluster", "A cluster of three brokers survives one, and waits for two", clusterKilled},
	{"6-log-cut", "What a broker loses in a power cut comes back", logCut},
	{"7a-spool-damaged", "A corrupt spool never blocks the start", spoolDamaged},
	{"7b-backlog", "A long backlog starts fast and small", backlog},
	{"8-disk-full", "A full disk is survived", diskFull},
	{"9-mutants", "Malformed messages are survived", mutants},
	{"10-poison", "Poison does not slow good data", poison},
	{"11-receiver-dead", "A slow or dead receiver of alerts blocks nothing", receiverDead},
	{"12-monitor-paused", "A suspended monitor neither repeats nor forgets", monitorPaused},
	{"13-clock-jumps", "Clocks that jump cost nothing", clockJumps},
	{"14-monitors-restarted", "A rolling restart of the monitors loses nothing and holds up each machine for at most 3 s", monitorsRestarted},
	{"20-access-refused", "Access without a reason is refused, and secrets are renewed without loss (21)", accessRefused},
	{"22-secrets", "Nothing leaks", secretsLeak},
}

// record holds the measurements of a row.
type record struct {
	Name    string
	Scale   float64 // share of the full counts; 0 means the counts of CI
	At      time.Time
	Seconds float64
	Load    float64 // programs that wanted a processor, mean of start and end
	Broker  string
	Commit  string
	Figures []figure
	Skipped string // why, if the row could not run

	t *testing.T
}

// figure is one line of the report.
type figure struct {
	What, Count, Goal, Measured string
	Held                        bool
	Note                        string // explains the figure, or why it was not held
}

// n returns how often something is done.
func (r *record) n(full, short int) int {
	return max(short, int(*chaosScale*float64(full)))
}

// exact notes a figure that depends only on the programs. The test fails if the figure is not
// held.
func (r *record) exact(f figure, held bool) {
	r.t.Helper()
	r.measured(f, held)
	if !held {
		r.t.Errorf("%s, %s: %s, want %s", f.What, f.Count, f.Measured, f.Goal)
	}
}

// measured notes a figure that other load on the machine may spoil.
func (r *record) measured(f figure, held bool) {
	r.t.Helper()
	f.Held = held
	r.Figures = append(r.Figures, f)
	r.t.Logf("%s, %s: %s (goal %s, held %v)", f.What, f.Count, f.Measured, f.Goal, held)
}

// skip notes why the row cannot run here.
func (r *record) skip(why string) {
	r.Skipped = why
	r.t.Skip(why)
}

func TestChaos(t *testing.T) {
	for _, row := range promises {
		t.Run(row.name, func(t *testing.T) {
			r := &record{Name: row.name, Scale: *chaosScale, At: time.Now().UTC(), Broker: brokerName(), Commit: commit(), t: t}
			before := load()
			defer func() {
				r.Seconds, r.Load = time.Since(r.At).Seconds(), (before+load())/2
				if t.Failed() && !slices.ContainsFunc(r.Figures, func(f figure) bool { return !f.Held }) {
					r.Figures = append(r.Figures, figure{What: "the row's test", Count: "1", Goal: "passes", Measured: "failed before its end"})
				}
				r.keep()
			}()
			row.test(t, r)
		})
	}
	if *chaosReport == "" {
		return
	}
	records := make(map[string]record)
	for _, row := range promises {
		var r record
		if text, err := os.ReadFile(filepath.Join(*chaosRows, row.name+".json")); err == nil && json.Unmarshal(text, &r) == nil {
			records[row.name] = r
		}
	}
	before, err := os.ReadFile(*chaosReport)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(*chaosReport, []byte(report(records)+byHand(string(before))), 0o644); err != nil {
		t.Fatal(err)
	}
}

// byHandMark begins what people have written at the end of docs/figures/reliability.md.
const byHandMark = "\n<!-- Written by hand from here on: make chaos keeps it. -->\n"

// byHand returns the hand-written part at the end of a report.
func byHand(report string) string {
	if _, text, ok := strings.Cut(report, byHandMark); ok {
		return byHandMark + text
	}
	return ""
}

// keep writes r where the report finds it.
func (r *record) keep() {
	if *chaosRows == "" {
		return
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = os.MkdirAll(*chaosRows, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(*chaosRows, r.Name+".json"), text, 0o644)
	}
	if err != nil {
		r.t.Error(err)
	}
}

// report returns docs/figures/reliability.md, without what is written by hand.
func report(records map[string]record) string {
	var b strings.Builder
	b.WriteString(reportHead)
	fmt.Fprintf(&b, "%s\n", machineLine())
	total, held := 0, 0
	var table, notes strings.Builder
	for _, row := range promises {
		number, _, _ := strings.Cut(row.name, "-")
		r, ok := records[row.name]
		if !ok || r.Skipped != "" {
			fmt.Fprintf(&table, "| %s | %s | – | – | %s | **not run** |\n", number, row.says, r.Skipped)
			continue
		}
		for _, f := range r.Figures {
			total++
			verdict := "**NOT held**"
			if f.Held {
				held++
				verdict = "held"
			}
			fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s |\n", number, f.What, f.Count, f.Goal, f.Measured, verdict)
			if f.Note != "" {
				fmt.Fprintf(&notes, "- **%s, %s.** %s\n", number, f.What, f.Note)
			}
		}
	}
	fmt.Fprintf(&b, "\n## Figures\n\n%d of %d held.\n\n| row | scenario | count | goal | measured | |\n|---|---|---|---|---|---|\n%s", held, total, &table)
	fmt.Fprintf(&b, "\n## What to know of them\n\n%s", &notes)
	b.WriteString("\n## Runs\n\nLoad is how many programs wanted a processor, the mean of the row's start and end.\n\n| row | promise | counts | date | commit | broker | took | load |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range promises {
		if r, ok := records[row.name]; ok {
			number, _, _ := strings.Cut(row.name, "-")
			counts := "full"
			switch {
			case r.Scale == 0:
				counts = "**CI's**"
			case r.Scale < 1:
				counts = fmt.Sprintf("**%.2g of full**", r.Scale)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %.0f s | %.1f |\n", number, row.says, counts, r.At.Format("2006-01-02 15:04"), r.Commit, r.Broker, r.Seconds, r.Load)
		}
	}
	return b.String()
}

const reportHead = `# Loss report

Written by ` + "`make chaos`" + `; do not edit, but for what follows the runs. Each row is a promise, each figure a test that fails CI where it depends on nothing but the programs.
At reduced counts CI runs rows 1 to 3, 5, 7, 9, 10 and 13, and the nightly run all of these rows (` + "`make chaos-short`" + `).

## Method

The programs run as separate processes with a broker for each row. The tests kill them with SIGKILL at random moments, so that
no code of theirs runs afterwards. Windows are counted by id on tcm.windows.v1, results and alerts by id on their topics; the
programs' own counters do not count. A window counts as delivered only if its samples equal, bit by bit, the row of the recording
that its seq names: a lost, exchanged or damaged window cannot hide. A result counts if it is valid by its schema and agrees with an undisturbed
monitor on another broker: same verdict, same score, same state of the alarm. Messages with the same
id must be equal byte by byte, as readers drop repeats by id. SIGKILL takes a process, not the machine: what a power cut does to the disk is
` + "`internal/ingest/spool`" + `'s simulation, in row 8, and row 6.

Rows may run one by one (` + "`make chaos ROWS='5-.*'`" + `) and at different times; the table of runs says when each ran, on which commit, and how much
else the machine had to do. Figures of time and throughput suffer from that; counts do not.

`
