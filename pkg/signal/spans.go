package signal

// Span is the sample counters from First to before End.
type Span struct{ First, End int64 }

// Spans are counters that came, ascending, with a hole between two of them.
type Spans []Span

// Known returns how many of the counters from first to before end are in s.
func (s Spans) Known(first, end int64) (n int64) {
	for i := len(s) - 1; i >= 0 && s[i].End > first; i-- {
		n += max(0, min(end, s[i].End)-max(first, s[i].First))
	}
	return n
}
