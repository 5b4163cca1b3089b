package track

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// shortest is how many values a fact of a recording has at most, and how many times as many its longest track has at least.
const shortest = 10

// LeaveShort leaves out the tracks of a listing that are facts, not channels, such as a rate or a speed, and of series the same ones. Notes
// name them, and what may be the rate. The column is of a track.
func LeaveShort[S any](l *Listing, series []S, column func(track int) (Column, error)) (kept []S, err error) {
	var longest int64
	for _, info := range l.Infos {
		longest = max(longest, info.Len)
	}
	isShort := func(info Info) bool { return info.Len >= 0 && info.Len <= shortest && info.Len*shortest <= longest }
	var names []string
	rate := ""
	for i, info := range l.Infos {
		if !isShort(info) {
			kept = append(kept, series[i])
			continue
		}
		if names = append(names, info.Name); rate == "" && info.Len == 1 {
			if rate, err = rateOf(info.Name, func() (Column, error) { return column(i) }); err != nil {
				return nil, err
			}
		}
	}
	if len(names) == 0 {
		return series, nil
	}
	l.Infos = slices.DeleteFunc(l.Infos, isShort)
	if more := len(names) - 5; more > 0 {
		names = append(names[:5], fmt.Sprintf("and %d more", more))
	}
	l.Remark("arrays of at most %d values are facts, not channels, and are left out: %s", shortest, strings.Join(names, ", "))
	if rate != "" {
		l.Remark("%s", rate)
	}
	return kept, nil
}

// Names of the samples a second, and of the seconds between them, without signs and case.
var (
	saysRate = regexp.MustCompile(`^(fs|f?sampl(e|ing)(rate|freq|frequency)|(rate|freq|frequency)hz)$`)
	saysStep = regexp.MustCompile(`^(dt|deltat|sampl(e|ing)(interval|period|time))$`)
	signs    = regexp.MustCompile(`[^a-z]`)
)

// rateOf says what rate an array of one value means, by its name; nothing if it means none.
func rateOf(name string, open func() (Column, error)) (string, error) {
	last := signs.ReplaceAllString(strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]), "")
	if !saysRate.MatchString(last) && !saysStep.MatchString(last) {
		return "", nil
	}
	c, err := open()
	if err != nil {
		return "", err
	}
	var v [1]float64
	if _, err := fill(c, Values{Numbers: v[:]}); err != nil {
		return "", err
	}
	rate := v[0]
	if saysStep.MatchString(last) {
		rate = 1 / rate
	}
	if !(rate > 0 && 1/rate > 0) {
		return "", nil
	}
	return fmt.Sprintf("%s is %v: give --rate %.7g, if that is the samples a second", name, v[0], rate), nil
}
