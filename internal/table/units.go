package table

import "strings"

// SplitUnit divides the name of a column that ends in a unit in brackets, as "a [g]" or
// "Fx (N)". It is false for other names.
func SplitUnit(column string) (name, unit string, ok bool) {
	column = strings.TrimSpace(column)
	for _, brackets := range []string{"[]", "()"} {
		inside, closed := strings.CutSuffix(column, brackets[1:])
		i := strings.LastIndexByte(inside, brackets[0])
		if !closed || i <= 0 {
			continue
		}
		name, unit = strings.TrimSpace(inside[:i]), strings.TrimSpace(inside[i+1:])
		if name != "" && unit != "" && !strings.ContainsAny(unit, "[]()") {
			return name, unit, true
		}
	}
	return column, "", false
}

// UnitKey returns what is the same for all ways to write a unit.
func UnitKey(unit string) string {
	unit = strings.NewReplacer(" ", "", "·", "", "*", "", ".", "", "^", "", "−", "-", "²", "2", "³", "3", "µ", "u", "μ", "u").Replace(unit)
	switch unit {
	case "sec":
		return "s"
	case "msec":
		return "ms"
	case "micron":
		return "um"
	case "rpm", "rev/min", "1/min", "min-1", "U/min", "r/min":
		return "rpm"
	}
	return unit
}

// knownUnits are units that a line of a header may hold without brackets.
var knownUnits = map[string]bool{}

func init() {
	for _, unit := range strings.Fields("s ms us ns min h Hz kHz g mg m/s2 mm/s2 m/s mm/s m/min mm/min mm um m N kN lbf Nm kNm Ncm A mA V mV W kW VA Pa kPa MPa bar mbar dB % °C C °F K rpm deg ° rad l/min - –") {
		knownUnits[UnitKey(unit)] = true
	}
}

// timeWords are units of time as people write them, in seconds, in lower case.
var timeWords = map[string]float64{}

func init() {
	for unit, words := range map[float64]string{
		1:    "s sec secs second seconds sek sekunde sekunden seconde secondes segundos secondi",
		1e-3: "ms msec msecs millis millisec millisecs millisecond milliseconds millisekunden",
		1e-6: "us µs μs usec usecs µsec μsec micros microsecond microseconds mikrosekunden",
		1e-9: "ns nsec nsecs nanos nanosecond nanoseconds nanosekunden",
		60:   "min mins minute minutes minuten",
		3600: "h hr hrs hour hours std stunde stunden",
	} {
		for word := range strings.FieldsSeq(words) {
			timeWords[word] = unit
		}
	}
}

// UnitOfTime returns how many seconds a unit of time is, as people write it; false for what is none.
func UnitOfTime(unit string) (seconds float64, ok bool) {
	seconds, ok = timeWords[strings.ToLower(strings.Trim(unit, " ."))]
	return seconds, ok
}

// AllUnits reports whether a line of a header is units: each of its cells is one that is known, in brackets or not, or empty.
func AllUnits(cells []string) bool {
	some := false
	for _, cell := range cells {
		cell = strings.Trim(strings.TrimSpace(cell), "[]()")
		some = some || cell != ""
		if _, isTime := UnitOfTime(cell); cell != "" && !isTime && !knownUnits[UnitKey(cell)] {
			return false
		}
	}
	return some
}

// IsMissing reports whether a cell says that its value is missing.
func IsMissing(cell string) bool {
	if cell == "" {
		return true
	}
	switch end := cell[len(cell)-1]; strings.ToLower(cell) {
	case "nan", "na", "n/a", "null", "nil", "#n/a", "#na", "#n/d", "#nv":
		return true
	default: // -, --; errors of spreadsheets in any language, such as #DIV/0!
		return strings.Trim(cell, "-") == "" || cell[0] == '#' && (end == '!' || end == '?')
	}
}
