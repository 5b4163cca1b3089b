package alarm

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 2, 2, 13, 0, 0, time.UTC)

// skew is how far Kafka's clock is from the sensors': nothing may compare the two.
const skew = 90 * time.Minute

// bench is a machine with a few tools, whose alarms it drives as the monitor does: an event first
// ends shelves that have expired, then it moves an alarm, and in the end the alarm of the tool in the
// spindle is announced if that has to be done.
type bench struct {
	set     Settings
	machine Masks
	tools   []State // one life each
	spindle int
}

// note is a change that is announced, and the tool that it is of; of no tool where it is of the machine.
type note struct {
	tool   int
	change Change
}

const noTool = -1

func (n note) String() string {
	if n.tool <= 0 {
		return string(n.change)
	}
	return fmt.Sprintf("%s@%d", n.change, n.tool+1)
}

func (b *bench) quiet(tool int) bool {
	return tool != b.spindle || b.machine.On() || b.tools[tool].On()
}

// other returns the tool that commands and windows of the magazine are of.
func (b *bench) other() int { return (b.spindle + 1) % len(b.tools) }

func notes(tool int, changes ...Change) (all []note) {
	for _, c := range changes {
		if c != None {
			all = append(all, note{tool, c})
		}
	}
	return all
}

func (b *bench) announce(now time.Time) []note {
	if b.quiet(b.spindle) {
		return nil
	}
	return notes(b.spindle, b.tools[b.spindle].Announce(b.set, now)...)
}

func (b *bench) put(m *Masks, tool int, c Change, now time.Time) []note {
	by := Mask{By: "kim", Reason: "test piece", Since: now, Until: now.Add(5 * time.Second)}
	if m.Put(b.set, c, by) != nil {
		return nil
	}
	return notes(tool, c)
}

func take(m *Masks, tool int, c Change) []note {
	if m.Take(c) != nil {
		return nil
	}
	return notes(tool, c)
}

func (b *bench) acknowledge(tool int) []note {
	changes, _ := b.tools[tool].Acknowledge()
	return notes(tool, changes...)
}

func (b *bench) window(tool int, faulty bool, at time.Time) []note {
	return notes(tool, b.tools[tool].Observe(b.set, b.quiet(tool), faulty, at, at.Add(time.Second), at.Add(skew)))
}

// step carries out an event at a time:
//
//	h F  a window of the tool in the spindle, healthy or faulty; of a second
//	g G  the same of the other tool, which is in the magazine
//	A B  acknowledges the alarm of the tool in the spindle, of the other tool
//	S U  shelves the alarm of the tool in the spindle for five seconds, unshelves it
//	R r  the same of the other tool
//	P p  suppresses the alarm of the tool in the spindle, ends that
//	Q q  takes it out of service, and puts it back
//	D d  suppresses the alarms of the machine, ends that
//	O o  takes them out of service, and puts them back
//	123  puts that tool into the spindle
//	T    declares the tool in the spindle new
//	-    is a second in which nothing is cut
func (b *bench) step(c rune, at time.Time) (out []note) {
	now := at.Add(skew)
	for i := range b.tools {
		if b.tools[i].Over(now) != nil {
			out = append(out, note{i, Unshelved})
		}
	}
	out = append(out, b.announce(now)...)
	in, s := b.spindle, &b.tools[b.spindle]
	switch c {
	case 'h', 'F':
		out = append(out, b.window(in, c == 'F', at)...)
	case 'g', 'G':
		out = append(out, b.window(b.other(), c == 'G', at)...)
	case 'A':
		out = append(out, b.acknowledge(in)...)
	case 'B':
		out = append(out, b.acknowledge(b.other())...)
	case 'S':
		out = append(out, b.put(&s.Masks, in, Shelved, now)...)
	case 'U':
		out = append(out, take(&s.Masks, in, Unshelved)...)
	case 'R':
		out = append(out, b.put(&b.tools[b.other()].Masks, b.other(), Shelved, now)...)
	case 'r':
		out = append(out, take(&b.tools[b.other()].Masks, b.other(), Unshelved)...)
	case 'P':
		out = append(out, b.put(&s.Masks, in, Suppressed, now)...)
	case 'p':
		out = append(out, take(&s.Masks, in, Unsuppressed)...)
	case 'Q':
		out = append(out, b.put(&s.Masks, in, OutOfService, now)...)
	case 'q':
		out = append(out, take(&s.Masks, in, InService)...)
	case 'D':
		out = append(out, b.put(&b.machine, noTool, Suppressed, now)...)
	case 'd':
		out = append(out, take(&b.machine, noTool, Unsuppressed)...)
	case 'O':
		out = append(out, b.put(&b.machine, noTool, OutOfService, now)...)
	case 'o':
		out = append(out, take(&b.machine, noTool, InService)...)
	case '1', '2', '3':
		if to := int(c - '1'); to != in && to < len(b.tools) {
			out = append(out, notes(in, s.TakeOut()...)...)
			b.spindle = to
		}
	case 'T':
		out = append(out, take(&s.Masks, in, Unshelved)...)
		out = append(out, notes(in, s.TakeOut()...)...)
		*s = State{}
	}
	return append(out, b.announce(now)...)
}

// play carries out one event a second. It returns what was announced where, as in "4:raised", or
// "4:raised@2" of another tool than the first.
func (b *bench) play(script string) string {
	var out []string
	for i, c := range script {
		for _, n := range b.step(c, start.Add(time.Duration(i)*time.Second)) {
			out = append(out, fmt.Sprintf("%d:%v", i, n))
		}
	}
	return strings.Join(out, " ")
}

// newBench returns a machine whose tools have no alarm; the first one is in the spindle.
func newBench(t rapid.TB, s Settings, tools int) *bench {
	t.Helper()
	s, err := s.Complete()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{set: s, tools: make([]State, tools)}
}

var (
	latched = Settings{K: 3, N: 5, Latch: true, ReAlarm: 10 * time.Second}
	loose   = Settings{K: 3, N: 5, ReAlarm: 10 * time.Second}
)

// row is a script and what is to be announced.
type row struct {
	s            Settings
	script, want string
}

func check(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, tc := range rows {
		if got := newBench(t, tc.s, 2).play(tc.script); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.script, got, tc.want)
		}
	}
}

// One tool, and people.
func TestAlarm(t *testing.T) {
	slow := Settings{K: 2, N: 3, OnHold: 3 * time.Second, OffHold: 4 * time.Second}
	late := Settings{K: 2, N: 3, OnHold: 3 * time.Second, Latch: true}
	check(t, map[string]row{
		"three in a row":                             {latched, "hhFFF", "4:raised"},
		"three of five":                              {latched, "FhFhF", "4:raised"},
		"three of six are too thin":                  {latched, "FhhFhFhhh", ""},
		"single faulty windows never alarm":          {latched, "FhhhhFhhhhFhhhhF", ""},
		"latched: waits to be acknowledged":          {latched, "FFFhhhhhhhhhA", "2:raised 7:returned 12:acknowledged 12:cleared"},
		"latched: there again, not acknowledged":     {latched, "FFFhhhhhhFFF", "2:raised 7:returned 11:reactivated"},
		"not latched: clears when none of n is":      {loose, "FFFhhhhhFFF", "2:raised 7:cleared 10:raised"},
		"acknowledged: the same wear stays quiet":    {latched, "FFFAFFFFFF", "2:raised 3:acknowledged"},
		"acknowledged, healed, worn again":           {latched, "FFFAhhhhhFFF", "2:raised 3:acknowledged 8:cleared 11:raised"},
		"acknowledging nothing":                      {latched, "AhA", ""},
		"acknowledged once is enough":                {latched, "FFFAA", "2:raised 3:acknowledged"},
		"a new tool clears":                          {latched, "FFFTFF", "2:raised 3:cleared"},
		"a new tool starts counting again":           {latched, "FFTFhF", ""},
		"a new tool does not wait for re_alarm":      {latched, "FFFTFFF", "2:raised 3:cleared 6:raised"},
		"one of one is every faulty window's alarm":  {Settings{K: 1, N: 1}, "FhFh", "0:raised 1:cleared 2:raised 3:cleared"},
		"hysteresis: over at one, not below three":   {Settings{K: 3, N: 5, Clear: 1}, "FFFhhhh", "2:raised 6:cleared"},
		"on hold: two of three for three seconds":    {slow, "FFhhhFFFF", "8:raised"},
		"off hold: none of three for four seconds":   {slow, "FFFFhhhhhhh", "3:raised 9:cleared"},
		"off hold: a faulty window begins it again":  {slow, "FFFFhhhhFhhhhhhh", "3:raised 14:cleared"},
		"off hold: idling proves nothing":            {slow, "FFFFhhh-------h", "3:raised"},
		"acknowledged while it is on again":          {late, "FFFFhhhFFAFF", "3:raised 6:returned 9:acknowledged 9:cleared 11:raised"},
		"acknowledged while it is off again":         {late, "FFFFhhhFFhhAFFFF", "3:raised 6:returned 11:acknowledged 11:cleared 15:raised"},
		"acknowledged: off_hold goes on":             {slow, "FFFFhhhhhAh", "3:raised 9:acknowledged 10:cleared"},
		"clears by itself: on_hold begins with that": {slow, "FFFFhhhhhhFFFF", "3:raised 9:cleared 13:raised"},
	})
}

// One tool, and masks of it and of the machine.
func TestMasks(t *testing.T) {
	check(t, map[string]row{
		"shelved before: announced when the time is over": {latched, "SFFFF-hh", "0:shelved 5:unshelved 5:raised"},
		"shelved before: announced when taken off":        {latched, "SFFFU", "0:shelved 4:unshelved 4:raised"},
		"shelved after: announced once":                   {latched, "FFFSFFFFF", "2:raised 3:shelved 8:unshelved"},
		"came and went on the shelf: still unknown":       {latched, "DFFFhhhhhhd", "0:suppressed 10:unsuppressed 10:raised 10:returned"},
		"came and went on the shelf, not latched":         {loose, "DFFFhhhhhhd", "0:suppressed 10:unsuppressed"},
		"raised, cleared behind the mask":                 {loose, "FFFDhhhhhhd", "2:raised 3:suppressed 8:cleared 10:unsuppressed"},
		"returned behind the mask":                        {latched, "FFFDhhhhhFFFd", "2:raised 3:suppressed 12:unsuppressed"},
		"reactivated behind the mask":                     {latched, "FFFhhhhhDFFFd", "2:raised 7:returned 8:suppressed 12:unsuppressed"},
		"acknowledged behind the mask: not announced":     {latched, "DFFFAdhhhhh", "0:suppressed 4:acknowledged 5:unsuppressed"},
		"the last of two masks tells":                     {latched, "DOFFFdo", "0:suppressed 1:out_of_service 5:unsuppressed 6:in_service 6:raised"},
		"the tool's, then the machine's":                  {latched, "PDFFFpd", "0:suppressed 1:suppressed 5:unsuppressed 6:unsuppressed 6:raised"},
		"the machine's, then the tool's":                  {latched, "PDFFFdp", "0:suppressed 1:suppressed 5:unsuppressed 6:unsuppressed 6:raised"},
		"three of the tool":                               {latched, "QPSFFFqp", "0:out_of_service 1:suppressed 2:shelved 6:in_service 7:unshelved 7:unsuppressed 7:raised"},
		"a shelf that is over before the window":          {latched, "S--FFF", "0:shelved 5:unshelved 5:raised"},
		"a new tool is not shelved":                       {latched, "STFFF", "0:shelved 1:unshelved 4:raised"},
		"a new tool is out of service still":              {latched, "OTFFFo", "0:out_of_service 5:in_service 5:raised"},
		"a new tool lacks the masks of its life":          {latched, "PTFFFp", "0:suppressed 4:raised"},
		"a new tool clears what was announced":            {latched, "FFFST", "2:raised 3:shelved 4:unshelved 4:cleared"},
		"a new tool clears silently what was not":         {latched, "SFFFT", "0:shelved 4:unshelved"},
		"a longer shelf replaces the first":               {latched, "S--S-----", "0:shelved 3:shelved 8:unshelved"},
		"nothing to take off":                             {latched, "Urpqdo", ""},
		"masked twice":                                    {latched, "DDOOPPQQ", "0:suppressed 2:out_of_service 4:suppressed 6:out_of_service"},
	})
}

// Tools that leave the spindle and come back.
func TestMagazine(t *testing.T) {
	minute := latched
	minute.ReAlarm = time.Minute
	check(t, map[string]row{
		"back within re_alarm: silent":                     {latched, "FFF2-1------", "2:raised 3:cleared"},
		"back within re_alarm: raised when it runs out":    {latched, "FFF2-1-------", "2:raised 3:cleared 12:raised"},
		"back when it runs out":                            {latched, "FFF2--------1", "2:raised 3:cleared 12:raised"},
		"back a second before":                             {latched, "FFF2-------1-", "2:raised 3:cleared 12:raised"},
		"out again before it runs out":                     {latched, "FFF2-1-2-----------", "2:raised 3:cleared"},
		"out with the event that runs it out":              {latched, "FFF2-1------2-", "2:raised 3:cleared 12:raised 12:cleared"},
		"the second call begins it again":                  {latched, "FFF2--------12-1------", "2:raised 3:cleared 12:raised 13:cleared"},
		"the second call begins it again, and it runs out": {latched, "FFF2--------12-1-------", "2:raised 3:cleared 12:raised 13:cleared 22:raised"},
		"a tool that stays is not called again":            {latched, "FFF---------------", "2:raised"},
		"acknowledged: back and ends without an alert":     {latched, "FFFA2-1hhhhh----", "2:raised 3:acknowledged 4:cleared"},
		"acknowledged, back, over, worn again: called":     {minute, "FFFA2-1hhhhhFFF", "2:raised 3:acknowledged 4:cleared 14:raised"},
		"acknowledged in the magazine":                     {latched, "FFF2B1-----------", "2:raised 3:cleared 4:acknowledged"},
		"acknowledged while silent":                        {latched, "FFF2-1A------", "2:raised 3:cleared 6:acknowledged"},
		"acknowledged by the event that runs it out":       {latched, "FFF2-1------A", "2:raised 3:cleared 12:raised 12:acknowledged"},
		"acknowledged, out and back: cleared once":         {latched, "FFFA212121", "2:raised 3:acknowledged 4:cleared"},
		"returned: both are sent again":                    {latched, "FFFhhhhh2---1", "2:raised 7:returned 8:cleared 12:raised 12:returned"},
		"returned while silent":                            {latched, "FFF2-1hhhhh--", "2:raised 3:cleared 12:raised 12:returned"},
		"reactivated while silent: raised says it":         {minute, "FFFhhhhh2-1FFF", "2:raised 7:returned 8:cleared"},
		"reactivated is a call too":                        {latched, "FFFhhhhhhFFF2--1------", "2:raised 7:returned 11:reactivated 12:cleared 21:raised"},
		"returned is not":                                  {latched, "FFFhhhhh2---1--------", "2:raised 7:returned 8:cleared 12:raised 12:returned"},
		"returned, acknowledged in the magazine":           {latched, "FFFhhhhh2B1-----", "2:raised 7:returned 8:cleared 9:acknowledged"},
		"raised in the magazine: called when it is back":   {latched, "FF2G--1", "6:raised"},
		"came and went in the magazine":                    {latched, "FF2Gggggg1", "9:raised 9:returned"},
		"came and went in the magazine, not latched":       {loose, "FF2Gggggg1", ""},
		"over in the magazine, not latched":                {loose, "FFF2ggggg1", "2:raised 3:cleared"},
		"over in the magazine, raised there again":         {loose, "FFF2gggggGGG1", "2:raised 3:cleared 12:raised"},
		"over, and worn again in the spindle":              {Settings{K: 3, N: 5, ReAlarm: time.Minute}, "FFF2ggggg1FFF", "2:raised 3:cleared 12:raised"},
		"windows that were counted wait":                   {latched, "FF2hh1F", "6:raised"},
		"the next tool has its own":                        {latched, "FFF2FFF1FFF", "2:raised 3:cleared 6:raised@2 7:cleared@2"},
		"two in turn: each once in ten seconds":            {latched, "FFF2FFF1-2-1-2-1-2-1", "2:raised 3:cleared 6:raised@2 7:cleared@2 12:raised 13:cleared 17:raised@2 19:cleared@2"},

		"a shelf waits with the tool":                       {latched, "SFFF2-1U", "0:shelved 5:unshelved 6:raised"},
		"a shelf ends in the magazine":                      {latched, "S2----", "0:shelved 5:unshelved"},
		"a shelf of the magazine hides the alarm when back": {latched, "FF2GR1-----", "4:shelved 9:unshelved 9:raised"},
		"taken off in the magazine":                         {latched, "FF2GRr1", "4:shelved 5:unshelved 6:raised"},
		"a shelf does not hide the next tool":               {latched, "S2FFF", "0:shelved 4:raised@2"},
		"shelved after the call, out and back":              {latched, "FFFS2-1------", "2:raised 3:shelved 4:cleared 8:unshelved 12:raised"},
		"the tool's suppression waits with it":              {latched, "P2FFF1FFFp", "0:suppressed 4:raised@2 5:cleared@2 9:unsuppressed 9:raised"},
		"the tool's service waits with it":                  {latched, "Q2FFF1FFFq", "0:out_of_service 4:raised@2 5:cleared@2 9:in_service 9:raised"},
		"the machine's hides both":                          {latched, "DFFF2FFFd1", "0:suppressed 8:unsuppressed 8:raised@2 9:cleared@2 9:raised"},
		"a mask that ends within re_alarm":                  {latched, "FFFD2-1d-----", "2:raised 3:suppressed 4:cleared 7:unsuppressed 12:raised"},
		"a mask that ends after re_alarm":                   {latched, "FFFD2-1-------d", "2:raised 3:suppressed 4:cleared 14:unsuppressed 14:raised"},
		"masked and back: an end that no one hears":         {loose, "FFFD2-1hhhhhd", "2:raised 3:suppressed 4:cleared 12:unsuppressed"},
	})
}

// A tool changer with 40 tools, five of them worn, each tool in for six seconds of a part of four
// minutes. docs/concepts/alarms.md has these figures.
func TestToolChanger(t *testing.T) {
	raised := func(reAlarm time.Duration, acknowledge bool) (n int) {
		s := Default
		s.ReAlarm = reAlarm
		b := newBench(t, s, 40)
		for second := range 10 * 3600 {
			at := start.Add(time.Duration(second) * time.Second)
			var out []note
			if tool := second / 6 % 40; tool != b.spindle {
				out = notes(b.spindle, b.tools[b.spindle].TakeOut()...)
				b.spindle = tool
				out = append(out, b.announce(at.Add(skew))...)
			}
			c := 'h'
			if b.spindle%8 == 0 {
				c = 'F'
			}
			for _, e := range append(out, b.step(c, at)...) {
				if e.change == Raised {
					n++
					if acknowledge {
						b.acknowledge(e.tool)
					}
				}
			}
		}
		return n
	}
	for _, tc := range []struct {
		reAlarm     time.Duration
		acknowledge bool
		want        int
	}{{time.Second, false, 750}, {Default.ReAlarm, false, 250}, {Default.ReAlarm, true, 5}} {
		if got := raised(tc.reAlarm, tc.acknowledge); got != tc.want {
			t.Errorf("re_alarm %v, acknowledged: %v: %d raised in ten hours, want %d", tc.reAlarm, tc.acknowledge, got, tc.want)
		}
	}
}

func TestSince(t *testing.T) {
	b := newBench(t, latched, 1)
	b.play("FhhhhhhFhFF") // the first F is out of sight when the alarm is raised
	s := &b.tools[0]
	if !s.Raised || !s.Since.Equal(start.Add(7*time.Second)) || !s.At.Equal(start.Add(11*time.Second)) || !s.Called.Equal(start.Add(10*time.Second+skew)) {
		t.Errorf("state %+v, want since +7s, at +11s, called at +10s of Kafka's clock", s)
	}
	if f, of := s.Count(b.set); f != 3 || of != 5 {
		t.Errorf("count %d of %d, want 3 of 5", f, of)
	}
	if f, of := s.Count(Settings{N: 64}); f != 4 || of != 11 {
		t.Errorf("count %d of %d, want 4 of 11", f, of)
	}
	s.Unknown = 0b10000000011
	if n, all := s.Unknowns(b.set), s.Unknowns(Settings{N: 64}); n != 2 || all != 3 || s.Check() != nil {
		t.Errorf("%d and %d unknown, want 2 and 3", n, all)
	}
	s.Unknown |= 1 << 11
	if s.Check() == nil {
		t.Error("twelve windows of eleven are unknown")
	}
	for range 2 {
		b.play("hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh")
	}
	if f, of := s.Count(Settings{N: 64}); f != 0 || of != 64 || s.Unknown != 0 || s.Check() != nil {
		t.Errorf("count %d of %d, want 0 of 64; %v", f, of, s.Check())
	}
	b.play("A")
	if s.Raised || !s.Since.IsZero() || !s.At.IsZero() || !s.Called.IsZero() {
		t.Errorf("normal again: %+v", s)
	}
}

// Windows that overlap do not cut twice: a hold of three seconds is three
// seconds, not six windows of one.
func TestOverlappingWindows(t *testing.T) {
	for name, tc := range map[string]struct {
		step time.Duration
		want int
	}{
		"each half second": {500 * time.Millisecond, 4},
		"each second":      {time.Second, 2},
		"with pauses":      {5 * time.Second, 2},
		"the same again":   {0, 2}, // the clock stands: windows are taken as they are
		"backwards":        {-time.Second, 2},
	} {
		var s State
		set := Settings{K: 1, N: 1, OnHold: 3 * time.Second}
		got := -1
		for i := range 10 {
			at := start.Add(time.Duration(i) * tc.step)
			if s.Observe(set, false, true, at, at.Add(time.Second), at) == Raised {
				got = i
				break
			}
		}
		if got != tc.want {
			t.Errorf("%s: raised by window %d, want %d", name, got, tc.want)
		}
	}
}

// Announce and Silent by themselves: the monitor needs the time at which an alarm will call.
func TestAnnounce(t *testing.T) {
	set := Settings{K: 1, N: 1, Latch: true, ReAlarm: 10 * time.Minute}
	now := start.Add(skew)
	var s State
	silent := func(want bool, until time.Time) {
		t.Helper()
		if got, is := s.Silent(set); is != want || !got.Equal(until) {
			t.Errorf("silent: %v until %v, want %v until %v", is, got, want, until)
		}
	}
	if got := s.Announce(set, now); got != nil {
		t.Errorf("normal: %v", got)
	}
	silent(false, time.Time{})
	if got := s.Observe(set, true, true, start, start.Add(time.Second), now); got != None || s.Announced || !s.Called.IsZero() {
		t.Errorf("raised in the magazine: %v, %+v", got, s)
	}
	silent(false, time.Time{}) // never called
	if got := s.Announce(set, now); fmt.Sprint(got) != "[raised]" || !s.Announced || !s.Called.Equal(now) {
		t.Errorf("put in: %v, %+v", got, s)
	}
	silent(false, time.Time{}) // announced
	if got := s.Announce(set, now.Add(time.Hour)); got != nil {
		t.Errorf("announced twice: %v", got)
	}
	if got := s.TakeOut(); fmt.Sprint(got) != "[cleared]" || s.Announced || !s.Raised {
		t.Errorf("taken out: %v, %+v", got, s)
	}
	if got := s.TakeOut(); got != nil {
		t.Errorf("taken out twice: %v", got)
	}
	end := now.Add(10 * time.Minute)
	silent(true, end)
	if got := s.Announce(set, end.Add(-1)); got != nil || s.Announced {
		t.Errorf("a moment too soon: %v", got)
	}
	s.Observe(set, true, false, start, start.Add(time.Second), now)
	if got := s.Announce(set, end); fmt.Sprint(got) != "[raised returned]" || !s.Called.Equal(end) {
		t.Errorf("in time: %v, %+v", got, s)
	}
	s.TakeOut()
	silent(true, end.Add(10*time.Minute))
	if got, err := s.Acknowledge(); err != nil || fmt.Sprint(got) != "[acknowledged]" || s.Raised {
		t.Errorf("acknowledged in the magazine: %v, %v, %+v", got, err, s)
	}
	silent(false, time.Time{})
}

func TestAcknowledgeRefused(t *testing.T) {
	b := newBench(t, latched, 1)
	s := &b.tools[0]
	if changes, err := s.Acknowledge(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no alarm is raised") || changes != nil {
		t.Errorf("normal: %v, %v", changes, err)
	}
	b.play("FFFA")
	if changes, err := s.Acknowledge(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "acknowledged already") || changes != nil {
		t.Errorf("acknowledged: %v, %v", changes, err)
	}
}

func TestMasksAreBoundedAndAudited(t *testing.T) {
	set := Settings{MaxShelf: time.Hour}
	good := Mask{By: "kim", Reason: "test piece", Since: start, Until: start.Add(time.Hour)}
	for name, tc := range map[string]struct {
		spoil func(m *Mask)
		want  string
	}{
		"no name":  {func(m *Mask) { m.By = "" }, "say who it is"},
		"reason":   {func(m *Mask) { m.Reason = "" }, "give a reason"},
		"too long": {func(m *Mask) { m.Until = m.Until.Add(time.Second) }, "at most 1h0m0s (alarm.max_shelf), not 1h0m1s"},
		"for ever": {func(m *Mask) { m.Until = time.Time{} }, "later than now"},
		"over":     {func(m *Mask) { m.Until = m.Since }, "later than now"},
	} {
		by := good
		tc.spoil(&by)
		var m Masks
		if err := m.Put(set, Shelved, by); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), tc.want) || m.On() {
			t.Errorf("%s: %v, %+v, want %q", name, err, m, tc.want)
		}
	}
	var m Masks
	if err := m.Put(set, Shelved, good); err != nil || *m.Shelf != good {
		t.Errorf("%v, %+v", err, m.Shelf)
	}
	if over := m.Over(good.Until.Add(-1)); over != nil || m.Shelf == nil {
		t.Errorf("%v a moment too soon", over)
	}
	if over := m.Over(good.Until); over == nil || *over != good || m.On() {
		t.Errorf("over at its end: %v, %+v", over, m)
	}
	if over := m.Over(good.Until); over != nil {
		t.Errorf("over twice: %v", over)
	}
	for put, take := range map[Change]Change{Shelved: Unshelved, Suppressed: Unsuppressed, OutOfService: InService} {
		var m Masks
		if err := m.Take(take); !errors.Is(err, ErrRefused) {
			t.Errorf("%s of nothing: %v", take, err)
		}
		if err := m.Put(set, put, Mask{By: "kim", Since: start, Until: start.Add(1)}); !errors.Is(err, ErrRefused) || m.On() {
			t.Errorf("%s without a reason: %v", put, err)
		}
		if err := m.Put(set, put, good); err != nil || !m.On() || m.Word(Masks{}) != string(put) {
			t.Errorf("%s: %v, %+v", put, err, m)
		}
		second := Mask{By: "sam", Reason: "set-up", Since: start, Until: start.Add(time.Minute)}
		if err := m.Put(set, put, second); put == Shelved != (err == nil) || err != nil && !strings.HasSuffix(err.Error(), "by kim: test piece") {
			t.Errorf("%s twice: %v", put, err)
		}
		if at := *m.at(put); put == Shelved && *at != second || put != Shelved && *at != (Mask{By: "kim", Reason: "test piece", Since: start}) {
			t.Errorf("%s: %+v: only a shelf has an end", put, at)
		}
		if err := m.Take(take); err != nil || m.On() {
			t.Errorf("%s: %v, %+v", take, err, m)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("raised is a mask")
		}
	}()
	_ = m.Put(set, Raised, good)
}

// The lowest mask of the table of docs/concepts/alarms.md is named, of the tool or of its machine.
func TestWord(t *testing.T) {
	mask := &Mask{By: "kim", Reason: "test piece", Until: start}
	for word, m := range map[string]Masks{
		"raised":         {},
		"shelved":        {Shelf: mask},
		"suppressed":     {Shelf: mask, Suppression: mask},
		"out_of_service": {Shelf: mask, Suppression: mask, Service: mask},
	} {
		for lower, n := range map[string]Masks{"": m, "suppressed": {Suppression: mask}, "out_of_service": {Service: mask}} {
			want := word
			if lower == "out_of_service" || lower == "suppressed" && word != "out_of_service" {
				want = lower
			}
			a, b := State{Raised: true, Masks: m}, State{Raised: true, Masks: n}
			if a.Word(n) != want || b.Word(m) != want || a.Beneath() != "raised" {
				t.Errorf("%s with the machine %q: %s; the other way: %s", word, lower, a.Word(n), b.Word(m))
			}
		}
	}
	for want, s := range map[string]State{"normal": {}, "raised": {Raised: true}, "acknowledged": {Raised: true, Acked: true}, "returned": {Raised: true, Returned: true}} {
		if got := s.Word(Masks{}); got != want || s.Beneath() != want {
			t.Errorf("%+v: %s over %s, want %s", s, got, s.Beneath(), want)
		}
	}
}

func TestSettings(t *testing.T) {
	const h = time.Hour
	for _, s := range []Settings{
		{}, {K: 1}, {K: 0, N: 4}, {K: 5, N: 4}, {K: 3, N: 65}, {K: -1, N: 1}, {K: 3, N: 5, Clear: 3}, {K: 3, N: 5, Clear: -1},
		{K: 1, N: 1, OnHold: -1}, {K: 1, N: 1, OnHold: h + 1}, {K: 1, N: 1, OffHold: -1}, {K: 1, N: 1, OffHold: h + 1},
		{K: 1, N: 1, MaxShelf: -1}, {K: 1, N: 1, MaxShelf: 7*24*h + 1}, {K: 1, N: 1, ReAlarm: -1}, {K: 1, N: 1, ReAlarm: 24*h + 1},
		{K: 1, N: 1, Threshold: -0.1}, {K: 1, N: 1, Threshold: 1.1}, {K: 1, N: 1, Threshold: math.NaN()},
	} {
		if _, err := s.Complete(); err == nil || s.Check() == nil {
			t.Errorf("%+v was taken", s)
		}
	}
	for _, s := range []Settings{
		Default, {K: 1, N: 1}, {K: 64, N: 64, Clear: 63}, {K: 1, N: 1, OnHold: h, OffHold: h, MaxShelf: 7 * 24 * h, ReAlarm: 24 * h, Threshold: 1},
	} {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		want := s
		if want.MaxShelf == 0 {
			want.MaxShelf, want.ReAlarm, want.Threshold = 8*h, 10*time.Minute, 0.5
		}
		if got, err := s.Complete(); err != nil || got != want {
			t.Errorf("%+v: %+v, %v", s, got, err)
		}
	}
	if _, err := (Settings{K: 3, N: 5, Clear: 3}).Complete(); err == nil || !strings.Contains(err.Error(), "between 0 and k-1, which is 2") {
		t.Errorf("clear: %v", err)
	}
}

// From the threshold on a window counts; without one that is the model's own
// decision, which calls a window faulty from 0.5 on.
func TestThreshold(t *testing.T) {
	for _, tc := range []struct {
		threshold, score float64
		want             bool
	}{
		{0, 0.5, true}, {0, math.Nextafter(0.5, 0), false}, {0.8, 0.8, true}, {0.8, 0.79, false}, {1, 1, true}, {1, 0.999, false},
	} {
		s, err := Settings{K: 1, N: 1, Threshold: tc.threshold}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		if s.IsFaulty(tc.score) != tc.want {
			t.Errorf("threshold %v: a score of %v counts: %v", tc.threshold, tc.score, !tc.want)
		}
	}
}
