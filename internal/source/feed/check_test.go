package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flank-tcm/flank/pkg/window"
)

// said is a frame of a tenth of a second, or of n samples, as a sender says it.
type said struct {
	session, first, n int64
	at                time.Duration // after origin
	group             int
	later             time.Duration // after the frame before it came
	value             float32
}

// steps returns frames of both rates from a tenth of a second on.
func steps(session, from, to int64, shift time.Duration) (frames []said) {
	for k := from; k < to; k++ {
		at := time.Duration(k)*100*time.Millisecond + shift
		frames = append(frames, said{session, 4 * k, 4, at, 0, 50 * time.Millisecond, 0}, said{session, k, 1, at, 1, 50 * time.Millisecond, 0})
	}
	return frames
}

// only returns the frames of group g of a, each behind one of the other group of b.
func only(g int, a, b []said) (frames []said) {
	for i := range a {
		if a[i].group == g {
			frames = append(frames, b[i-g], a[i])
		}
	}
	return frames
}

// seconds1 are frames of a second each of the highest rate.
func seconds1(at ...int64) (frames []said) {
	for _, s := range at {
		frames = append(frames, said{1, 40 * s, 40, time.Duration(s) * time.Second, 0, time.Second, float32(s)})
	}
	return frames
}

// numbering are frames of the highest rate whose counter is the number of the frame.
func numbering(n, samples int64) (frames []said) {
	for k := range n {
		at := time.Duration(k*samples) * 25 * time.Millisecond
		frames = append(frames, said{1, k, samples, at, 0, time.Duration(samples) * 25 * time.Millisecond, float32(k)})
	}
	return frames
}

// valued are the frames with another value.
func valued(frames []said, value float32) []said {
	frames = slices.Clone(frames)
	for i := range frames {
		frames[i].value = value
	}
	return frames
}

// jumping are the frames with another counter of the highest rate.
func jumping(frames []said, by int64) []said {
	frames = slices.Clone(frames)
	for i := range frames {
		if frames[i].group == 0 {
			frames[i].first += by
		}
	}
	return frames
}

// mix returns frames of two senders in turn, n of each.
func mix(n int, a, b []said) (frames []said) {
	for len(a)+len(b) > 0 {
		i, j := min(n, len(a)), min(n, len(b))
		frames = append(append(frames, a[:i]...), b[:j]...)
		a, b = a[i:], b[j:]
	}
	return frames
}

// verdicts returns how many frames are taken under each session, in order, and how many are refused for
// each reason. Resumed, if not nil, is a window from before.
func verdicts(t *testing.T, resumed *window.Window, frames []said) (sessions []string, refused string) {
	t.Helper()
	f := open(Config{Machine: drill, Layout: layout(t)})
	now := origin
	f.check.now = func() time.Time { return now }
	if resumed != nil {
		f.Resumed(resumed.Session, resumed.Context, resumed.First, resumed.Start)
	}
	var count [Reasons]int
	last, n := int64(0), 0
	for i, x := range frames {
		now = now.Add(x.later)
		b := bare(f.Layout(), x.group, x.session, x.first, x.first+x.n, "")
		b.Time, b.Samples[0][0] = origin.Add(x.at), x.value
		taken, gone := f.check.check(arrival{block: b, peer: fmt.Sprint("frame ", i)})
		for _, r := range gone {
			count[r.reason]++
			if r.err == nil || r.err.Error() == "" {
				t.Error("a frame is refused without a word")
			}
		}
		for _, a := range taken {
			if n > 0 && a.block.Session != last {
				sessions, n = append(sessions, fmt.Sprintf("%d.%d:%d", last&0xffff, last>>runBits, n)), 0
			}
			last = a.block.Session
			n++
		}
	}
	sessions = append(sessions, fmt.Sprintf("%d.%d:%d", last&0xffff, last>>runBits, n))
	for r, c := range count {
		if c > 0 {
			refused += fmt.Sprintf(" %v:%d", Reason(r), c)
		}
	}
	if waiting := len(f.check.waiting); waiting > 0 {
		refused += fmt.Sprintf(" waiting:%d", waiting)
	}
	return sessions, strings.TrimSpace(refused)
}

// A gateway that was started again goes on in the run that is on disk.
func TestCheckResumed(t *testing.T) {
	t.Parallel()
	on := &window.Window{Session: 1 ^ 3<<runBits, First: 360, Start: origin.Add(9 * time.Second)}
	for name, tc := range map[string]struct {
		frames            []said
		sessions, refused string
	}{
		"its frames go on":                {steps(1, 80, 100, 0), "1.3:40", ""},
		"it began again in the meantime":  {steps(1, 0, 20, 60*time.Second), "1.4:40", ""},
		"it began another session":        {steps(2, 0, 20, 60*time.Second), "2.0:40", ""},
		"the same session, run 0 on disk": {steps(1^3<<runBits, 0, 20, 60*time.Second), "1.2:40", ""},
		"an old frame comes first":        {append([]said{{9, 0, 4, -time.Hour, 0, 0, 0}}, steps(1, 90, 100, 0)...), "1.3:20", "stale:1"},
	} {
		sessions, refused := verdicts(t, on, tc.frames)
		if got := strings.Join(sessions, " "); got != tc.sessions || refused != tc.refused {
			t.Errorf("%s: taken %s, refused %q; want %s, %q", name, got, refused, tc.sessions, tc.refused)
		}
	}
}

// What senders say is compared with what they said before; a frame that lies stops no stream, and a sender that
// begins again loses nothing.
func TestCheck(t *testing.T) {
	t.Parallel()
	second := time.Second
	join := func(parts ...[]said) []said { return slices.Concat(parts...) }
	good := steps(1, 0, 100, 0)
	for name, tc := range map[string]struct {
		frames   []said
		sessions string
		refused  string
	}{
		"one stream":                             {good, "1.0:200", ""},
		"frames are missing":                     {join(good[:40], good[100:]), "1.0:140", ""},
		"hours are missing":                      {join(good, steps(1, 360_000, 360_010, 60*second)), "1.0:200 1.1:20", ""},
		"minutes are missing":                    {join(good, steps(1, 3600, 3610, second)), "1.0:220", ""},
		"the first frame of a rate lies":         {join(good[:1], []said{{1, 1e9, 1, 0, 1, 0, 0}}, good[1:]), "1.0:200", "counter:1"},
		"all comes again":                        {join(good, good), "1.0:400", ""},
		"a counter far ahead":                    {join(good[:60], []said{{1, 1e11, 4, 3 * second, 0, 0, 0}}, good[60:]), "1.0:200", "counter:1"},
		"a counter some seconds ahead":           {join(good[:60], []said{{1, 120 + 200, 4, 3 * second, 0, 0, 0}}, good[60:]), "1.0:200", "counter:1"},
		"a counter far behind":                   {join(good[:160], []said{{1, 0, 4, 8 * second, 0, 0, 0}}, good[160:]), "1.0:200", "counter:1"},
		"a time far ahead after a gap":           {join(good[:60], []said{{1, 124, 4, 1e6 * second, 0, 0, 0}}, good[64:]), "1.0:196", "counter:1"},
		"a time far ahead, counter right":        {join(good[:60], []said{{1, 120, 4, 1e6 * second, 0, 0, 0}}, good[61:]), "1.0:200", ""},
		"two lies that differ":                   {join(good[:60], []said{{1, 1e9, 4, 3 * second, 0, 0, 0}, {1, 7e9, 4, 3 * second, 0, 0, 0}}, good[60:]), "1.0:200", "counter:2"},
		"the first frame lies":                   {join([]said{{1, 1e9, 4, 0, 0, 0, 0}}, good), "1.0:1 1.1:200", ""},
		"the counter counts frames":              {numbering(60, 40), "1.0:1", "counter:58 waiting:1"},
		"short frames, likewise":                 {numbering(600, 4), "1.0:1", "counter:598 waiting:1"},
		"chunks of two uploaders":                {join(good[:20], good[40:60], good[20:40], good[60:]), "1.0:200", ""},
		"frames in another order":                {join(seconds1(0, 1), seconds1(4, 5), seconds1(2, 3), seconds1(6, 7), seconds1(10, 11), seconds1(8, 9)), "1.0:12", ""},
		"a frame ahead that stays":               {join(seconds1(0, 1), seconds1(6), seconds1(2, 3, 4, 5, 6, 7)), "1.0:9", ""},
		"two senders of one session":             {mix(2, good, valued(steps(1, 0, 100, 300*time.Millisecond), 1)), "1.0:200", "counter:198 waiting:2"},
		"three senders":                          {mix(2, mix(2, good, steps(2, 0, 100, 0)), steps(3, 0, 50, 0)), "1.0:2 3.0:2 2.0:2 3.0:2 1.0:198", "other_sender:294"},
		"two begin next to one":                  {join(good[:60], mix(2, good[60:], mix(2, steps(2, 0, 35, 3*second), steps(3, 0, 35, 3*second)))), "1.0:62 2.0:2 1.0:138", "other_sender:136 waiting:2"},
		"a counter of one rate jumps":            {join(good[:60], jumping(good[60:], 4e9)), "1.0:62 1.1:3 1.0:68", "counter:67"},
		"it jumps by some seconds":               {join(good[:60], jumping(good[60:], 4000)), "1.0:62 1.1:3 1.0:68", "counter:67"},
		"the counter jumps and stays":            {join(good, steps(1, 1e9, 1e9+50, 10*second-1e8*second)), "1.0:200 1.1:100", ""},
		"the clock jumps, counters go on":        {join(good, steps(1, 100, 150, 3600*second)), "1.0:300", ""},
		"it begins again, same session":          {join(good, steps(1, 0, 100, 60*second)), "1.0:200 1.1:200", ""},
		"it begins again, and again":             {join(good, steps(1, 0, 50, 60*second), steps(1, 0, 50, 120*second)), "1.0:200 1.1:100 1.2:100", ""},
		"it begins again, another session":       {join(good, steps(2, 0, 100, 60*second)), "1.0:200 2.0:200", ""},
		"its clock was set back":                 {join(good, steps(2, 0, 100, -60*second)), "1.0:200 2.0:200", ""},
		"the session before comes again":         {join(good, steps(2, 0, 50, 60*second), good[190:], steps(2, 50, 60, 60*second)), "1.0:200 2.0:120", "stale:10"},
		"an old frame":                           {join(good[:60], []said{{9, 0, 4, -100 * second, 0, 0, 0}}, good[60:]), "1.0:200", "stale:1"},
		"a frame that waits comes again":         {join(good[:60], []said{{1, 1e9, 4, 3 * second, 0, 0, 0}, {1, 1e9, 4, 3 * second, 0, 0, 0}}, good[60:]), "1.0:200", "counter:1 stale:1"},
		"two senders, frame by frame":            {mix(1, good, steps(2, 0, 100, 0)), "1.0:1 2.0:1 1.0:199", "other_sender:199"},
		"two senders, step by step":              {mix(2, good, steps(2, 0, 100, 0)), "1.0:2 2.0:2 1.0:198", "other_sender:198"},
		"two senders, ten by ten":                {mix(10, good, steps(2, 0, 100, 20*second)), "1.0:10 2.0:10 1.0:190", "other_sender:190"},
		"two senders, the same session":          {mix(2, good, steps(1, 5000, 5100, 0)), "1.0:200", "counter:198 waiting:2"},
		"one rate begins again, its session too": {join(good, only(1, steps(1, 0, 60, 10*second), steps(1, 100, 160, 0))), "1.0:203 1.1:3 1.0:57", "counter:57"},
		"the first of two falls silent": {join(mix(2, good[:20], steps(2, 0, 10, 0)), steps(2, 10, 200, 0)),
			"1.0:2 2.0:2 1.0:18 2.0:183", "other_sender:215"},
	} {
		sessions, refused := verdicts(t, nil, tc.frames)
		if got := strings.Join(sessions, " "); got != tc.sessions || refused != tc.refused {
			t.Errorf("%s: taken %s, refused %q; want %s, %q", name, got, refused, tc.sessions, tc.refused)
		}
	}
}
