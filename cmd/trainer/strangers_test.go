package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/flank-tcm/flank/internal/source/inspect"
	"github.com/flank-tcm/flank/pkg/signal"
)

// strange is a file as a logger writes it, and what `trainer init` makes of it.
type strange struct {
	text       string
	args       string
	says, lays string // printed, and in layout.yaml
	dated      bool   // windows have dates
	seconds    float64
	channels   int    // 0: one
	fails      string // of init
}

// rowsOf writes rows under a head.
func rowsOf(n int, head string, row func(i int) string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		b.WriteString(row(i) + "\n")
	}
	return b.String()
}

func wide(text string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

// Files as loggers write them are read with what init writes, or are refused with a reason; in neither case is anything guessed in silence.
func TestInitStrangeFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a hundred files")
	}
	t.Parallel()
	start := time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC)
	at := func(i int) time.Time { return start.Add(time.Duration(i) * 50 * time.Millisecond) }
	ax := func(i int) string { return fmt.Sprintf("%.3f", float64(i*7%13)/10) }
	axComma := func(i int) string { return strings.Replace(ax(i), ".", ",", 1) }
	stamped := func(head, sep, format string) string {
		return rowsOf(400, head, func(i int) string { return at(i).Format(format) + sep + ax(i) })
	}
	counted := func(head string, per float64, from int64) string {
		return rowsOf(400, head, func(i int) string { return fmt.Sprintf("%d,%s", from+int64(float64(i)*0.05/per+0.5), ax(i)) })
	}
	const n = 400
	seconds := rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%s", float64(i)/20, ax(i)) })
	local := func(from time.Time, jump int, by time.Duration) string {
		return rowsOf(n, "time,ax\n", func(i int) string {
			now := from.Add(time.Duration(i) * 50 * time.Millisecond)
			if i >= jump {
				now = now.Add(by)
			}
			return now.Format("2006-01-02 15:04:05.000") + "," + ax(i)
		})
	}
	for name, tc := range map[string]strange{
		"seconds":                {text: seconds, says: `column    "time" is time`, lays: "rate: 20 ", seconds: 20},
		"ISO 8601 with a zone":   {text: stamped("time,ax\n", ",", "2006-01-02T15:04:05.000-07:00"), lays: "rate: 20 ", dated: true, seconds: 20},
		"German":                 {text: rowsOf(n, "Zeit;Beschl. X [m/s²]\n", func(i int) string { return at(i).Format("02.01.2006 15:04:05,000") + ";" + axComma(i) }), lays: "decimal: comma", dated: true, seconds: 20},
		"American":               {text: stamped("Timestamp,ax\n", ",", "1/2/2006 3:04:05.000 PM"), says: `"Timestamp" is time`, args: "--rate 20", dated: true, seconds: 20},
		"French":                 {text: stamped("Horodatage;ax\n", ";", "2006/01/02 15:04:05.000"), says: `"Horodatage" is time`, dated: true, seconds: 20},
		"Spanish, date and time": {text: rowsOf(n, "Fecha;Hora;ax\n", func(i int) string { return at(i).Format("02.01.2006;15:04:05.000;") + ax(i) }), says: `with the date in "Fecha"`, dated: true, seconds: 20},
		"time of the day":        {text: stamped("Uhrzeit;ax\n", ";", "15:04:05.000"), says: `"Uhrzeit" is time`, seconds: 20},
		"seconds with a unit":    {text: rowsOf(n, "t;ax\n", func(i int) string { return fmt.Sprintf("%d ms;%s", 50*i, ax(i)) }), says: `"t" is time`, lays: "rate: 20 ", seconds: 20},
		"an epoch with a unit":   {text: rowsOf(n, "ts;ax\n", func(i int) string { return fmt.Sprintf("%d ms;%s", at(i).UnixMilli(), ax(i)) }), says: `"ts" is time`, dated: true, seconds: 20},
		"an epoch in quotes":     {text: rowsOf(n, "epoch,ax\n", func(i int) string { return fmt.Sprintf("\"%d\",%s", at(i).UnixMilli(), ax(i)) }), says: "milliseconds since 1970", dated: true, seconds: 20},
		"µs since 1970":          {text: counted("unixtime,ax\n", 1e-6, start.UnixMicro()), says: "microseconds since 1970", dated: true, seconds: 20},
		"ns since 1970":          {text: counted("utc,ax\n", 1e-9, start.UnixNano()), says: "nanoseconds since 1970", dated: true, seconds: 20},
		"LabVIEW":                {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%s", float64(at(i).UnixMilli())/1e3+2082844800, ax(i)) }), says: "since 1904", dated: true, seconds: 20},
		"ns since 1970 and a sweep": {text: rowsOf(n, "RawTime;ax\n", func(i int) string {
			return fmt.Sprintf("%d;%.3f", start.UnixNano()+int64(i)*5e7+int64(i%3), float64(i*7%1000)/1000)
		}), says: "nanoseconds since 1970", lays: "name: ax", dated: true, seconds: 20},
		"only counters":             {text: rowsOf(n, "a,b\n", func(i int) string { return fmt.Sprintf("%d,%d", i, 2*i) }), args: "--rate 20", fails: `give --keep COLUMN for those that are, or write the layout by hand, see schemas/layout.md; "a": it seems to count rows`},
		"ms by the name":            {text: counted("t_ms,ax\n", 1e-3, 0), lays: "rate: 20 ", seconds: 20},
		"ms in brackets":            {text: counted("Time (ms),ax\n", 1e-3, 0), lays: "rate: 20 ", seconds: 20},
		"stamps to the second":      {text: stamped("time,ax\n", ",", time.DateTime), says: `"time" is time`, lays: "rate: 20 ", dated: true, seconds: 20},
		"jitter":                    {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.4f,%s", float64(i)/20+float64(i*7%11-5)/500, ax(i)) }), lays: "rate: 20 ", seconds: 20},
		"daylight saving time ends": {text: local(time.Date(2026, 10, 25, 2, 59, 50, 0, time.UTC), 200, -time.Hour), says: "daylight saving time ended", lays: "time: time", dated: true, seconds: 20},
		"daylight saving time ends, to the second": {text: rowsOf(n, "time,ax\n", func(i int) string {
			return time.Date(2026, 10, 25, 2, 59, 50, 0, time.UTC).Add(time.Duration(i)*50*time.Millisecond-time.Duration(i/200)*time.Hour).Format(time.DateTime) + "," + ax(i)
		}), says: "later times count an hour more", lays: "time: time", dated: true, seconds: 20},
		"parts of a day":        {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.10f,%s", 0.25+float64(i)/20/86400, ax(i)) }), says: "parts of a day", lays: "time_unit: day", seconds: 20},
		"parts of a day, slow":  {text: rowsOf(n, "Zeit;ax\n", func(i int) string { return fmt.Sprintf("%.9f;%s", 0.25+float64(i)*10/86400, ax(i)) }), lays: "rate: 0.1 ", seconds: 4000},
		"parts of a first day":  {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.10f,%s", float64(i)/20/86400, ax(i)) }), fails: "it may count seconds, or parts of a day as spreadsheets do, 0.05 s apart"},
		"a historian's dates":   {text: stamped("Timestamp,ax\n", ",", "02-Jan-06 15:04:05.000"), lays: "rate: 20 ", dated: true, seconds: 20},
		"minutes and seconds":   {text: stamped("time,ax\n", ",", "04:05.000"), says: `"time" is time`, lays: "rate: 20 ", seconds: 20},
		"hours and minutes":     {text: rowsOf(n, "time,ax\n", func(i int) string { return at(20*60*i).Format("15:04,") + ax(i) }), fails: `column "time", such as "06:00", is not read as times`},
		"a time behind a group": {text: strings.Replace(seconds, "time", "Untitled/Time", 1), says: `"Untitled/Time" is time`, lays: "rate: 20 ", seconds: 20},
		"catman": {text: "HBM catmanEasy\nZeit  1 - Standardmessrate\tax\ns\tN\n" + rowsOf(n, "", func(i int) string {
			return strings.Replace(fmt.Sprintf("%.2f\t", float64(i)/20), ".", ",", 1) + axComma(i)
		}), lays: "rate: 20 ", seconds: 20},
		"an uptime":             {text: rowsOf(n, "uptime_s,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%s", 1234567+float64(i)/20, ax(i)) }), lays: "rate: 20 ", seconds: 20},
		"each row is a channel": {text: strings.Repeat(strings.Repeat("0.5,1.5,", 300)+"2\n", 3) + strings.Repeat("0.7,1.1,", 300) + "3\n", args: "--rate 20", fails: "it seems that each row is a channel: turn the table"},
		"the current feed":      {text: rowsOf(n, "time,CURRENT_FEEDRATE\n", func(i int) string { return fmt.Sprintf("%.2f,%s", float64(i)/20, ax(i)) }), lays: "kind: velocity", seconds: 20},
		"seconds below one":     {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.12f,%s", 0.25+float64(i)/102400, ax(i)) }), lays: "rate: 102400 ", seconds: 400. / 102400},
		"each tenth row": {text: rowsOf(n, "time,ax,spindle load\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%s", float64(i)/20, ax(i), map[bool]string{true: ax(i + 1)}[i%10 == 0])
		}), says: `left out  "spindle load": it has a value in 40 rows of 400, so it is of another rate`, lays: "name: ax", seconds: 20},
		"each tenth row, kept": {text: rowsOf(n, "time,ax,load\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%s", float64(i)/20, ax(i), map[bool]string{true: ax(i + 1)}[i%10 == 0])
		}), args: "--keep load", says: "2 channels", lays: "name: load", seconds: 20, channels: 2},
		"wear now and then": {text: rowsOf(n, "time,ax,VB\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%s", float64(i)/20, ax(i), map[bool]string{true: fmt.Sprint(10 + i)}[i%10 == 0])
		}), says: `"VB" is vb_max_um`, lays: "name: ax", seconds: 20},
		"two rates in pairs": {text: rowsOf(n, "time1,a,time2,b\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,", float64(i)/20, ax(i)) + map[bool]string{true: fmt.Sprintf("%.3f,%s", float64(i)/12, ax(i+2)), false: ","}[i < 240]
		}), says: `left out  "b": its times are in "time2"`, lays: "name: a", seconds: 20},
		"the slower pair first": {text: rowsOf(n, "time1,a,time2,b\n", func(i int) string {
			return map[bool]string{true: fmt.Sprintf("%.2f,%s", float64(i)/2, ax(i+2)), false: ","}[i < 40] + fmt.Sprintf(",%.2f,%s", float64(i)/20, ax(i))
		}), says: `left out  "a": its times are in "time1", 0.5 s apart, and those in "time2" are 0.05 s apart`, lays: "time: time2", seconds: 20},
		"pairs of one rate": {text: rowsOf(n, "time1,a,time2,b\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%.2f,%s", float64(i)/20, ax(i), float64(i)/20+0.01, ax(i+3))
		}), says: "2 channels", lays: "time: time1", seconds: 20, channels: 2},
		"daylight saving begins":                 {text: local(time.Date(2026, 3, 29, 1, 59, 50, 0, time.UTC), 200, time.Hour), says: "daylight saving time began", lays: "rate: 20 ", dated: true, seconds: 20},
		"seconds of each tool":                   {text: rowsOf(n, "tool,time,ax\n", func(i int) string { return fmt.Sprintf("T%d,%.2f,%s", i/200, float64(i%200)/20, ax(i)) }), says: `"time" is time`, lays: "rate: 20 ", seconds: 20},
		"a date that is not read":                {text: rowsOf(n, "when,ax\n", func(i int) string { return at(i).Format("\"Jan 2, 2006 15h04m05.000\",") + ax(i) }), args: "--rate 20", says: `column "when" looks like dates or times, such as "Nov 2, 2026 06h00m00.000", and is not read: name it as`, seconds: 20},
		"a second column of dates":               {text: rowsOf(n, "time,loaded,ax\n", func(i int) string { return fmt.Sprintf("%.2f,02.11.2026 05:00:00,%s", float64(i)/20, ax(i)) }), says: `column "loaded" looks like dates or times`, seconds: 20},
		"a preamble and a footer":                {text: "PLC trace\nOperator;Kim\n\nt;ax\n" + rowsOf(n, "", func(i int) string { return fmt.Sprintf("%.2f;%s", float64(i)/20, ax(i)) }) + "End of file\nsamples;400\n", says: "lines after the table, left out", seconds: 20},
		"a footer of signs":                      {text: seconds + "----\n", says: "lines after the table, left out", seconds: 20},
		"sep= and tabs":                          {text: "sep=\t\n" + strings.ReplaceAll(seconds, ",", "\t"), lays: "separator: tab", seconds: 20},
		"a bar":                                  {text: strings.ReplaceAll(seconds, ",", "|"), lays: `separator: "|"`, seconds: 20},
		"blanks":                                 {text: strings.ReplaceAll(seconds, ",", "   "), lays: "separator: blank", seconds: 20},
		"units in a row of its own":              {text: strings.Replace(seconds, "\n", "\n[s],[g]\n", 1), lays: "unit: g", seconds: 20},
		"units without brackets":                 {text: strings.Replace(seconds, "\n", "\ns,m/s2\n", 1), lays: "unit: m/s2", seconds: 20},
		"NaN words":                              {text: strings.ReplaceAll(seconds, ",0.300", ",#N/A"), says: "taken as missing values", seconds: 20},
		"the header once more":                   {text: strings.Replace(seconds, "\n10.00,", "\ntime,ax\n10.00,", 1), says: "lines that repeat the header, skipped: 1", seconds: 20},
		"another header":                         {text: strings.Replace(seconds, "\n10.00,", "\ntime,acc\n10.00,", 1), fails: "another table begins here"},
		"UTF-16":                                 {text: wide(strings.ReplaceAll(seconds, ",", "\t")), says: "UTF-16", seconds: 20},
		"Windows-1252":                           {text: strings.Replace(seconds, "ax", "ax [m/s\xb2]", 1), says: "taken for Windows-1252", seconds: 20},
		"it grows":                               {text: seconds + "20.00,0.", says: "may be half written", seconds: 20},
		"a comma at the end":                     {text: strings.ReplaceAll(seconds, "\n", ",\n"), seconds: 20},
		"wear, and a last column without a name": {text: rowsOf(n, "time;WZ;ax;VB;\n;;[g];[µm];\n", func(i int) string { return fmt.Sprintf("%.2f;W1;%s;%d;", float64(i)/20, ax(i), i) }), says: `"VB [µm]" is vb_max_um`, lays: "tool: WZ", seconds: 20},
		"counters next to a channel":             {text: rowsOf(n, "row,energy,time,ax,Zaehler\n", func(i int) string { return fmt.Sprintf("%d,%d,%.2f,%s,%d", i, i*3+i%2, float64(i)/20, ax(i), i%100) }), says: `left out  "Zaehler": it counts in equal steps`, lays: "name: ax", seconds: 20},
		"tools in German":                        {text: rowsOf(n, "Werkzeug-Nr;vc;time;ax\n", func(i int) string { return fmt.Sprintf("%d;%d;%.2f;%s", i/200, 180+40*(i/200), float64(i)/20, ax(i)) }), says: `left out  "vc": it is constant within each tool`, lays: `tool: Werkzeug-Nr`, seconds: 20},
		"two columns of tools":                   {text: rowsOf(n, "experiment_id,tool_id,vb_um,f1\n", func(i int) string { return fmt.Sprintf("%d,T%d,%d,%s", i, i/100, i%100*3, ax(i)) }), args: "--rate 1", says: `"experiment_id": it competes with "tool_id"`, lays: "tool: tool_id", seconds: 400},
		"wear with its unit in the name": {text: rowsOf(n, "cutter,VB_mm,VBmax_2,rms\n", func(i int) string {
			return fmt.Sprintf("C%d,%.3f,%.3f,%s", i/100, float64(i%100)*0.003, float64(i*i%97), ax(i))
		}), args: "--rate 1", says: `left out  "VBmax_2": its name says the wear`, lays: "vb_max_mm: VB_mm", seconds: 400},
		"days of Excel":              {text: rowsOf(n, "Time,ax\n", func(i int) string { return fmt.Sprintf("%.9f,%s", 46328.25+float64(i)/20/86400, ax(i)) }), says: "it seems to count days since 1900, as Excel counts", lays: "time_unit: excel", dated: true, seconds: 20},
		"days of MATLAB":             {text: rowsOf(n, "Time,ax\n", func(i int) string { return fmt.Sprintf("%.9f,%s", 740288.25+float64(i)/20/86400, ax(i)) }), lays: "time_unit: matlab", dated: true, seconds: 20},
		"Julian days":                {text: rowsOf(n, "Time,ax\n", func(i int) string { return fmt.Sprintf("%.9f,%s", 2461346.75+float64(i)/20/86400, ax(i)) }), lays: "time_unit: julian", dated: true, seconds: 20},
		"seconds or days":            {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.9f,%s", 46300+float64(i)/1440, ax(i)) }), fails: "it may count seconds, or days as Excel does, 60 s apart"},
		"seconds since midnight":     {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.4f,%s", 46328.25+float64(i)/2000, ax(i)) }), lays: "rate: 2000 ", seconds: 0.2},
		"ticks of Windows":           {text: counted("Time,ax\n", 1e-7, start.UnixNano()/100+116444736000000000), says: "FILETIME of Windows", lays: "rate: 20 ", dated: true, seconds: 20},
		"ticks of .NET":              {text: counted("Time,ax\n", 1e-7, start.UnixNano()/100+621355968000000000), says: "ticks of .NET", lays: "rate: 20 ", dated: true, seconds: 20},
		"minutes":                    {text: rowsOf(n, "time_min,ax\n", func(i int) string { return fmt.Sprintf("%.7f,%s", float64(i)/1200, ax(i)) }), says: `"time_min" is time`, lays: "rate: 20 ", seconds: 20},
		"no whole rows a stamp":      {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("2026-11-02T06:00:%02dZ,%s", int(float64(i)/12.8), ax(i)) }), lays: "rate: 12.8 ", dated: true, seconds: 31.25},
		"a tool changes in a second": {text: rowsOf(n, "time,tool,ax\n", func(i int) string { return at(i).Format("2006-01-02 15:04:05,") + fmt.Sprintf("T%d,%s", i/130, ax(i)) }), lays: "rate: 20 ", dated: true, seconds: 20},
		"blocks with one stamp":      {text: rowsOf(n, "time,ax\n", func(i int) string { return at(i/32*32).Format("2006-01-02 15:04:05.000,") + ax(i) }), lays: "rate: 20 ", dated: true, seconds: 20},
		"short rows with a date":     {text: rowsOf(n, "time,tool,ax\n", func(i int) string { return at(i).Format("2006-01-02 15:04:05.00,") + "A," + ax(i) }), lays: "rate: 20 ", dated: true, seconds: 20},
		"a zone behind a blank":      {text: stamped("time,ax\n", ",", "2006-01-02 15:04:05.000000-07:00"), lays: "rate: 20 ", dated: true, seconds: 20},
		"IEC 61131-3":                {text: stamped("time;ax\n", ";", "DT#2006-01-02-15:04:05.000"), lays: "rate: 20 ", dated: true, seconds: 20},
		"Windows of three a second":  {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.3f,%s", 0.003*float64(i), ax(i)) }), lays: "rate: 333.3333333333333 ", says: "windows of 48ms", seconds: 1.2},
		"rows out of order":          {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.4f,%s", float64(i)/20+float64(i*5%11-5)/100, ax(i)) }), says: "time goes back or stands still", lays: "rate: 20 ", seconds: 20},
		"short lives of tools":       {text: rowsOf(68_000, "tool,ax\n", func(i int) string { return fmt.Sprintf("T%d,%s", i/17_000, ax(i)) }), args: "--rate 2000", says: "windows of 200ms", seconds: 34},
		"a row a minute":             {text: rowsOf(n, "time [s],ax\n", func(i int) string { return fmt.Sprintf("%d,%s", 60*i, ax(i)) }), lays: "rate: 0.016666666666666666 ", says: "windows of 1m0s", seconds: 24000},
		"bursts":                     {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.6f,%s", float64(i/8*8)/20+float64(i%8)*1e-5, ax(i)) }), fails: "rows seem to come in bursts"},
		"day and month, over the 12th": {text: rowsOf(n, "t;ax\n", func(i int) string {
			return time.Date(2026, 11, 12, 23, 59, 50, 0, time.UTC).Add(time.Duration(i)*50*time.Millisecond).Format("02/01/2006 15:04:05.000;") + ax(i)
		}), lays: `time_format: "D/M/YYYY hh:mm:ss"`, dated: true, seconds: 20},
		"WinCC": {text: rowsOf(n, "\"VarName\";\"Time_ms\";\"TimeString\";\"VarValue\";\"Validity\"\n", func(i int) string {
			return fmt.Sprintf("\"ax\";%.4f;\"%s\";%s;1", 46328250000+float64(i)*11.5741, start.Add(time.Duration(i)*time.Second).Format("02.01.2006 15:04:05"), ax(i))
		}), says: `"TimeString" is time`, lays: "rate: 1 ", dated: true, seconds: 400},
		"a tool that is named late": {text: rowsOf(n, "time,tool,ax\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%s", float64(i)/20, []string{"-", "0", "T1"}[min(i/150, 2)], ax(i))
		}), lays: "tool: tool", seconds: 20},
		"an alarm in a row":          {text: strings.Replace(rowsOf(n, "time,alarm,ax\n", func(i int) string { return fmt.Sprintf("%.2f,,%s", float64(i)/20, ax(i)) }), "\n15.00,,", "\n15.00,E-Stop,", 1), says: `left out  "alarm": it is text, such as "E-Stop"`, seconds: 20},
		"a word among whole numbers": {text: strings.Replace(rowsOf(n, "time,adc,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%d,%s", float64(i)/20, i*7%1000, ax(i)) }), "\n15.00,100,", "\n15.00,Sensor lost,", 1), says: `column "adc" has "Sensor lost" in line 302, behind numbers, and is taken for text: correct the cell`, seconds: 20},
		"a damaged number":           {text: strings.Replace(seconds, "\n15.00,", "\n15.00,x", 1), fails: "is not a number: correct it"},
		"labels as numbers": {text: rowsOf(n, "time,faulty,tool_state,RUL,ax\n", func(i int) string {
			return fmt.Sprintf("%.2f,%d,%d,%d,%s", float64(i)/20, i/200, i/100%2, (n-i)*7%100, ax(i))
		}), says: `left out  "tool_state": its name says the wear or the state`, seconds: 20},
		"three decimals with a comma": {text: rowsOf(n, "Zeit_ms;ax\n", func(i int) string { return fmt.Sprintf("%d;%d,%03d", 50*i, 20+i%7, i*7%1000) }), says: "decimal comma", lays: "decimal: comma", seconds: 20},
		"thousands with a point": {text: rowsOf(n, "t;ax\n", func(i int) string {
			return strings.Replace(fmt.Sprintf("%.2f", float64(i)/20), ".", ",", 1) + fmt.Sprintf(";%d.%03d,50", 1+i%7, i*7%1000)
		}), lays: "decimal: comma", seconds: 20},
		"commas late, by --decimal": {text: rowsOf(n, "t;ax\n", func(i int) string { return fmt.Sprintf("%d ms;%d%s", 50*i, i%7, []string{"", ",125"}[i/300]) }), args: "--decimal comma", lays: "decimal: comma", seconds: 20},
		"commas late":               {text: rowsOf(n, "t;ax\n", func(i int) string { return fmt.Sprintf("%d ms;%d%s", 50*i, 1+i%7, []string{"", ",125"}[i/300]) }), fails: "give `trainer init` --decimal comma"},
		"one name twice":            {text: strings.Replace(strings.ReplaceAll(seconds, "\n", ",1.5\n"), "time,ax,1.5", "time,ax,ax", 1), fails: `two columns are named "ax"`},
		"columns without a name":    {text: rowsOf(n, "time,ax,,\n", func(i int) string { return fmt.Sprintf("%.2f,%s,%s,", float64(i)/20, ax(i), ax(i+3)) }), says: `left out  "(unnamed)": it has no name`, seconds: 20},
		"lines of a Macintosh":      {text: strings.ReplaceAll(seconds, "\n", "\r"), says: "carriage return", seconds: 20},
		"names in Russian":          {text: strings.Replace(seconds, "time,ax", "time,Вибрация", 1), lays: `name: "Вибрация"`, seconds: 20},
		"GCDC":                      {text: rowsOf(n, ";Title, http://example.com\n;Start_time, 2026-11-02, 06:00:00.000\n;SampleRate, 20,Hz\n;Headers, time,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%s", float64(i)/20, ax(i)) }), lays: "name: ax", seconds: 20},
		"blank rows":                {text: strings.Replace(seconds, "\n10.00,", "\n,\n,\n10.00,", 1) + ",\n,\n", says: "", seconds: 20},
		"a text column of times that says nothing": {text: rowsOf(n, "Time,ts,ax\n", func(i int) string { return fmt.Sprintf("shift A,%.2f,%s", float64(i)/20, ax(i)) }), says: `column    "ts" is time`, lays: "rate: 20 ", seconds: 20},
		"dates of one day":                         {text: stamped("time,ax\n", ",", "2/1/2006 15:04:05.000"), fails: `column "time" has dates of which the day or the month may come first: give --time-format`},
		"dates of one day, by --time-format":       {text: stamped("time,ax\n", ",", "2/1/2006T15:04:05.000"), args: "--time-format D/M/YYYYThh:mm:ss", says: `"time" is time`, lays: `time_format: "D/M/YYYYThh:mm:ss"`, dated: true, seconds: 20},
		"a --time-format of nothing":               {text: seconds, args: "--time-format day", fails: "`recording: time_format`: \"day\": write it with YYYY"},
		"two rows with one time":                   {text: strings.Replace(seconds, "\n10.00,", "\n9.95,", 1), says: `"time" is time`, lays: "rate: 20 ", seconds: 20},
		"seconds since 1970, seldom":               {text: counted("time,ax\n", 0.005, 1_500_000_000), says: "from 2017-07-14 on; if it is an uptime in milliseconds, give --rate", dated: true, seconds: 4000},
		"a number for missing values":              {text: strings.ReplaceAll(seconds, ",0.300", ",-9999"), says: `column "ax": -9999 comes 31 times, and other values are from 0 to 1.2: it seems to stand for a missing value`, lays: `missing: ["-9999"]`, seconds: 20},
		"the end of a converter":                   {text: strings.ReplaceAll(seconds, ",0.300", ",32767"), says: `32767 comes 31 times, and other values are from 0 to 1.2: it may be the end of a converter`, seconds: 20},
		"a word for missing values":                {text: strings.ReplaceAll(seconds, ",0.300", ",undefined"), says: `column "ax" has "undefined" in line 8, among numbers: it is taken for a missing value`, lays: "missing: [undefined]", seconds: 20},
		"a word for missing values, late":          {text: strings.Replace(seconds, "\n15.00,0.700", "\n15.00,k.A.", 1), says: `column "ax" has "k.A." in line 302, among numbers: it is taken for a missing value`, lays: "missing: [k.A.]", seconds: 20},
		"text among numbers": {text: rowsOf(n, "time,az,ax\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%s", float64(i)/20, []string{"<10", "12.5"}[min(i%7, 1)], ax(i))
		}), says: `column "az" has "<10" in line 2, among numbers, and is taken for text`, seconds: 20},
		"rows of means at the end":               {text: seconds + "Mean,0.6\nMax,1.2\n", says: `lines after the table, left out: the first is line 402, "Mean,0.6"`, seconds: 20},
		"a word in place of a time":              {text: strings.Replace(seconds, "\n10.00,", "\nten,", 1), fails: `the row begins with "ten", and rows before it with a number or a time: correct the cell`},
		"a minus of typesetters":                 {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.2f,−%s", float64(i)/20, ax(i)) }), lays: "name: ax", seconds: 20},
		"thousands with a point, among hundreds": {text: rowsOf(n, "t;ax\n", func(i int) string { return fmt.Sprintf("%d ms;%s", 50*i, []string{"1.250", "980"}[i%2]) }), fails: `has numbers such as 1.250, and numbers from 100 to 999 without a point: give `},
		"thousands with a point, by --decimal":   {text: rowsOf(n, "t;ax\n", func(i int) string { return fmt.Sprintf("%d ms;%s", 50*i, []string{"1.250", "980"}[i%2]) }), args: "--decimal comma", lays: "decimal: comma", seconds: 20},
		"quality by OPC UA": {text: rowsOf(n, "time,ax,ax_Quality\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%s", float64(i)/20, ax(i), []string{"Good", "BadNoCommunication"}[i%90/89])
		}), says: `column "ax_Quality" says that some values are bad: they count as measured; empty their cells`, seconds: 20},
		"quality by OPC DA": {text: rowsOf(n, "time,ax,quality\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%d", float64(i)/20, ax(i), []int{192, 0}[i%90/89])
		}), says: `column "quality" says that some values are bad`, seconds: 20},
		"a row of sensitivities": {text: rowsOf(n, "time,ax,ay,az\n0,100.2,98.7,101.5\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%s,%s", float64(i+1)/20, ax(i), ax(i+3), ax(i+5))
		}), says: "line 2 has other numbers than all rows below it, and is the first sample: remove the line if it has sensitivities", seconds: 20.05, channels: 3},
		"a row of numbers of channels": {text: rowsOf(n, "a,b,c\n1,2,3\n", func(i int) string {
			return fmt.Sprintf("%.2f,%.2f,%.2f", 4*math.Sin(float64(i)), 4*math.Cos(float64(i)), 4*math.Sin(float64(2*i)))
		}), args: "--rate 20", says: "line 2 has other numbers than all rows below it, and is the first sample", seconds: 20.05, channels: 3},
		"thousands next to decimal commas": {text: rowsOf(n, "t;p;ax\n", func(i int) string { return fmt.Sprintf("%d ms;1.%03d;%s", 50*i, i, axComma(i)) }), fails: "give `trainer init` --decimal comma if it divides thousands"},
		"Milliseconds in words":            {text: rowsOf(n, "Time (Milliseconds),ax\n", func(i int) string { return fmt.Sprintf("%d,%s", 50*i, ax(i)) }), says: `"Time (Milliseconds)" is time`, lays: "rate: 20 ", seconds: 20},
		"MS":                               {text: rowsOf(n, "Time [MS],ax\n", func(i int) string { return fmt.Sprintf("%d,%s", 50*i, ax(i)) }), lays: "rate: 20 ", seconds: 20},
		"millis":                           {text: rowsOf(n, "millis,ax\n", func(i int) string { return fmt.Sprintf("%d,%s", 50*i, ax(i)) }), lays: "rate: 20 ", seconds: 20},
		"Zeit in ms":                       {text: rowsOf(n, "Zeit in ms;ax\n", func(i int) string { return fmt.Sprintf("%d;%s", 50*i, ax(i)) }), lays: "rate: 20 ", seconds: 20},
		"a unit that is not known":         {text: rowsOf(n, "time [ticks],ax\n", func(i int) string { return fmt.Sprintf("%d,%s", 50*i, ax(i)) }), fails: `column "time [ticks]": its unit, "ticks", is not known: give --rate HZ`},
		"hhmmss":                           {text: rowsOf(n, "time,ax\n", func(i int) string { return at(20*i).Format("150405,") + ax(i) }), fails: "seem to be times written as hhmmss"},
		"yyyymmddhhmmss":                   {text: rowsOf(n, "time,ax\n", func(i int) string { return at(20*i).Format("20060102150405,") + ax(i) }), args: "--rate 1", says: `left out  "time": --rate says the rate`, seconds: 400},
		"each tenth row lost":              {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%s", float64(i+i/9)/20, ax(i)) }), fails: "either rows are lost of 20 a second, or rows come 18 times a second and have coarse times: give --rate HZ"},
		"each tenth row lost, by --rate":   {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%s", float64(i+i/9)/20, ax(i)) }), args: "--rate 20", lays: "time: time", seconds: 20},
		"a row for each value": {text: rowsOf(n, "ts,name,value\n", func(i int) string {
			return at(i/4).Format("2006-01-02 15:04:05.000,") + fmt.Sprintf("s%d,%s", i%4, ax(i))
		}), fails: `column "name" seems to name the sensor of each row`},
		"a block for each sensor": {text: rowsOf(n, "time,tag,value\n", func(i int) string { return fmt.Sprintf("%.2f,s%d,%s", float64(i%100)/20, i/100, ax(i)) }), fails: `column "tag" seems to name the sensor of each row`},
		"milliseconds of their own": {text: rowsOf(n, "Date,Time,Millitm,ax\n", func(i int) string {
			return at(i).Format("01/02/2006,15:04:05,") + fmt.Sprintf("%d,%s", i*50%1000+i%3, ax(i))
		}), args: "--rate 20", says: `left out  "Millitm": it seems to hold the milliseconds of the time`, seconds: 20},
		"decimal commas in quotes": {text: rowsOf(n, "time,ax\n", func(i int) string {
			return fmt.Sprintf("%.2f,\"%s\"", float64(i)/20, strings.Replace(fmt.Sprintf("%.4f", float64(i*7%13)), ".", ",", 1))
		}), lays: "separator: comma\n  decimal: comma", seconds: 20},
		"the newest row first": {text: rowsOf(n, "time,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%s", float64(n-i)/20, ax(i)) }), fails: `and column "time", from 0.05 to 20, does not rise as times do: give --rate HZ`},
		"wear of too few µm":   {text: rowsOf(n, "time,VB [µm],ax\n", func(i int) string { return fmt.Sprintf("%.2f,%.3f,%s", float64(i)/20, float64(i)/1200, ax(i)) }), says: `column "VB [µm]" has a wear of at most 0.333 µm: is it in mm?`, seconds: 20},
		"a row without a time": {text: strings.Replace(seconds, "\n10.00,", "\n,", 1), says: `"time" is time`, lays: "rate: 20 ", seconds: 20},
		"a temperature":        {text: rowsOf(n, "time,T spindle [°C],ax\n", func(i int) string { return fmt.Sprintf("%.2f,%.1f,%s", float64(i)/20, 20+float64(i*7%50)/10, ax(i)) }), says: `left out  "T spindle [°C]": it seems to be a temperature`, seconds: 20},
		"a tool in its first row only": {text: rowsOf(n, "time,tool,ax\n", func(i int) string {
			return fmt.Sprintf("%.2f,%s,%s", float64(i)/20, []string{"T1", ""}[min(i%200, 1)], ax(i))
		}), says: `column "tool", which names the tool, is empty in 398 rows of 400`, seconds: 20},
		"tool 0":           {text: rowsOf(n, "time,tool,ax\n", func(i int) string { return fmt.Sprintf("%.2f,%d,%s", float64(i)/20, i/100%3, ax(i)) }), says: `column "tool", which names the tool, is 0 in some rows`, seconds: 20},
		"HTML":             {text: "<html><table><tr><td>1</td></tr></table></html>\n", fails: "is HTML or XML"},
		"rows and no rate": {text: rowsOf(n, "ax,ay\n", func(i int) string { return ax(i) + "," + ax(i+3) }), fails: "give --rate HZ"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t.TempDir())
			if err := os.WriteFile(dir.path("f.csv"), []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, ok := dir.initInto(t, ".", "--data f.csv "+tc.args, tc.says, tc.lays, tc.fails)
			if !ok {
				return
			}
			layout, rec, err := signal.LoadLayout(dir.path("layout.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			s, err := inspect.Inspect(t.Context(), dir.path("f.csv"), inspect.Options{Layout: layout, Columns: rec})
			if err != nil || s.Err != nil || len(s.Channels) != max(tc.channels, 1) {
				t.Fatalf("%v, %+v", err, s)
			}
			if d := s.Channels[0].Duration().Seconds(); d < tc.seconds*0.999 || d > tc.seconds*1.001 || signal.HasClock(s.Start) != tc.dated || strings.Contains(out, "dates     none") == tc.dated {
				t.Errorf("%v s from %v, want %v, dated %v:\n%s", d, s.Start, tc.seconds, tc.dated, out)
			}
		})
	}
}

// Of recordings that a pattern names the first one is looked into, and what comes next goes for all.
func TestInitPattern(t *testing.T) {
	t.Parallel()
	dir := folder(t.TempDir())
	for _, name := range []string{"r1.csv", "r2.csv"} {
		if err := os.WriteFile(dir.path(name), []byte("ax,ay\n1,2\n2,1\n3,2\n2,2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := dir.trainer(t, "init --rate 1 --out here --data r*.csv")
	if err != nil || !strings.Contains(out, "looked    into r1.csv, the first of 2 recordings") || !strings.Contains(out, "fit --config here/train.yaml --data 'r*.csv'") || !strings.Contains(out, "inspect r1.csv") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, _, err := dir.trainer(t, "init --rate 1 --out there --data s*.csv"); err == nil || !strings.Contains(err.Error(), "--data s*.csv: file does not exist: check the path; a pattern must match a file") {
		t.Error(err)
	}
}
