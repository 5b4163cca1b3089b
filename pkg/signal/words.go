package signal

import (
	"fmt"
	"strconv"
	"strings"
)

// Describe returns what feature i is in words, without the channel, such as
// "kurtosis" or "2.5-4 kHz", and the unit of its value, such as "g" or "log10 g²".
// Words are empty for a channel of kind [Feature], which is its own value; the unit
// is empty if it is not known, or the feature is a plain number.
func (e *Extractor) Describe(i int) (what, unit string) {
	channel := e.channels[i][0]
	c := e.layout.channels[channel]
	if c.Kind == Feature {
		return "", c.Unit
	}
	suffix := strings.TrimPrefix(e.names[i], c.Name+".")
	stem := strings.TrimRight(suffix, "0123456789")
	number, _ := strconv.Atoi(suffix[len(stem):])
	for j := range registry {
		f := &registry[j]
		if f.name != suffix && (number == 0 || f.suffix != stem) {
			continue
		}
		what = f.words
		switch f.name {
		case "bands":
			edges := e.edges(channel)
			half := c.Rate / 2 / float64(edges[len(edges)-1])
			what = span(half*float64(edges[number-1]), half*float64(edges[number]))
		case "packets":
			wide := c.Rate / 2 / packetCount
			what = span(wide*float64(number-1), wide*float64(number))
		default:
			if number > 0 {
				what += " " + strconv.Itoa(number)
			}
		}
		switch {
		case f.unit == "1" || f.unit == "log10 1":
		case strings.Contains(f.unit, "U") && c.Unit == "": // of an unknown unit
		case strings.Contains(f.unit, "U²") && strings.ContainsAny(c.Unit, "·/"):
			unit = strings.ReplaceAll(f.unit, "U", "("+c.Unit+")")
		default:
			unit = strings.ReplaceAll(f.unit, "U", c.Unit)
		}
		return what, unit
	}
	panic("signal: Describe: feature " + e.names[i] + " is of no family")
}

// Band returns the frequencies in Hz between which feature i sums up the power of its channel:
// its value is log10 of the mean square in that band. It is false if the feature is not the
// energy of a band.
func (e *Extractor) Band(i int) (low, high float64, ok bool) {
	channel := e.channels[i][0]
	c := e.layout.channels[channel]
	digits, ok := strings.CutPrefix(e.names[i], c.Name+".band")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil || c.Kind == Feature {
		return 0, 0, false
	}
	edges := e.edges(channel)
	half := c.Rate / 2 / float64(edges[len(edges)-1])
	return half * float64(edges[number-1]), half * float64(edges[number]), true
}

// edges returns the edges of the bands of a channel, in bins; the last is at half
// the rate.
func (e *Extractor) edges(channel int) []int { return e.board.channels[channel].measures.edges }

// span names a range of frequencies in Hz, to two digits or three.
func span(low, high float64) string {
	unit := "Hz"
	if high >= 1000 {
		low, high, unit = low/1000, high/1000, "kHz"
	}
	return fmt.Sprintf("%s-%s %s", short(low), short(high), unit)
}

func short(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}
