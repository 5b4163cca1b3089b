package track

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// value is a Column of one value, or an error.
type value struct {
	x   float64
	err error
}

func (v value) Read(dst Values) (int, error) {
	dst.Numbers[0] = v.x
	return 1, v.err
}

// Arrays that are far shorter than the longest one are facts; the rate is named if one of them says it.
func TestLeaveShort(t *testing.T) {
	const left = "arrays of at most 10 values are facts, not channels, and are left out: "
	for name, tc := range map[string]struct {
		tracks string // names and lengths
		value  float64
		kept   string
		notes  string
	}{
		"none":                {"ax 4000 temp 400", 0, "ax temp", ""},
		"a small file":        {"a 3 b 1 c 9", 0, "a b c", ""},
		"a scalar":            {"ax 10 RPM 1", 1796, "ax", left + "RPM"},
		"ten values":          {"ax 100 bx 99 n 10 m 11", 0, "ax bx m", left + "n"},
		"a rate":              {"d.Fs 1 ax 4000", 12000, "ax", left + "d.Fs|d.Fs is 12000: give --rate 12000, if that is the samples a second"},
		"a rate in words":     {"ax 4000 Sampling_Rate 1", 48e3, "ax", left + "Sampling_Rate|Sampling_Rate is 48000: give --rate 48000, if that is the samples a second"},
		"another":             {"ax 4000 SampleRate 1 dt 1", 100, "ax", left + "SampleRate, dt|SampleRate is 100: give --rate 100, if that is the samples a second"},
		"a step":              {"ax 4000 dt 1", 0.0025, "ax", left + "dt|dt is 0.0025: give --rate 400, if that is the samples a second"},
		"no rate":             {"ax 4000 fs 1", -1, "ax", left + "fs"},
		"several rates":       {"ax 4000 fs 2", 100, "ax", left + "fs"},
		"many":                {"ax 4000 a 1 b 1 c 1 d 1 e 1 f 1 g 1", 0, "ax", left + "a, b, c, d, e, and 2 more"},
		"length is not known": {"ax -1 ay -1", 0, "ax ay", ""},
	} {
		var l Listing
		var series []string
		words := strings.Fields(tc.tracks)
		for i := 0; i < len(words); i += 2 {
			info := Info{Name: words[i]}
			fmt.Sscan(words[i+1], &info.Len)
			l.Infos, series = append(l.Infos, info), append(series, words[i])
		}
		kept, err := LeaveShort(&l, series, func(int) (Column, error) { return value{tc.value, io.EOF}, nil })
		var names []string
		for _, info := range l.Infos {
			names = append(names, info.Name)
		}
		if got := strings.Join(l.Remarks, "|"); err != nil || got != tc.notes || strings.Join(kept, " ") != tc.kept || strings.Join(names, " ") != tc.kept {
			t.Errorf("%s: %q, %q, %q, %v", name, kept, names, got, err)
		}
	}
	l := Listing{Infos: []Info{{Name: "ax", Len: 4000}, {Name: "fs", Len: 1}}}
	damaged := errors.New("damaged")
	if _, err := LeaveShort(&l, []int{0, 1}, func(int) (Column, error) { return nil, damaged }); err != damaged {
		t.Error(err)
	}
}
