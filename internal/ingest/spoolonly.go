package ingest

import (
	"fmt"
	"time"
)

const (
	spoolOnlyEvery = time.Minute      // how often the log says that nothing is sent
	lastsAfter     = 10 * time.Second // of windows from which it is estimated how long a spool lasts
)

// spoolOnly says how many windows wait and how long the spool lasts while none is sent; empty if
// windows are sent.
func (m *machine) spoolOnly(now time.Time) string {
	if !m.all.SpoolOnly {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gw == nil {
		return "spool only: windows are not sent"
	}
	s := m.gw.Stats()
	text := fmt.Sprintf("spool only: windows are not sent, %d wait in the spool", s.Pending)
	left, known := lasts(m.spoolLimit(), m.beganWith, s.SpoolBytes, now.Sub(m.began))
	switch {
	case !known:
		return text
	case left <= 0:
		return text + ", which is full"
	}
	return text + fmt.Sprintf(", which is full in some %v", left.Round(time.Minute))
}

// spoolLimit returns how many bytes the windows that wait may take; 0 if that is not known. In mode edge
// delivered windows are in the spool, too, and make room.
func (m *machine) spoolLimit() int64 {
	if m.edge() != nil {
		return 0
	}
	return m.MiB << 20
}

// lasts returns how long a spool takes to reach its limit, if it goes on as since it was opened. It
// reports false if that is not known.
func lasts(limit, before, bytes int64, since time.Duration) (left time.Duration, known bool) {
	if limit > 0 && bytes >= limit {
		return 0, true
	}
	if limit == 0 || since < lastsAfter || bytes <= before {
		return 0, false
	}
	perSecond := float64(bytes-before) / since.Seconds()
	const most = 1000 * 24 * time.Hour
	return time.Duration(min(float64(limit-bytes)/perSecond, most.Seconds())) * time.Second, true
}

// SpoolOnly says that no machine's windows are sent, and for how long the first spool lasts; empty if windows are sent. It
// is safe for concurrent use.
func (s *Supervisor) SpoolOnly() string {
	if !s.cfg.SpoolOnly {
		return ""
	}
	var pending uint64
	var first time.Duration
	some := false
	for _, m := range s.machines {
		m.mu.Lock()
		if m.gw != nil {
			st := m.gw.Stats()
			pending += st.Pending
			if left, known := lasts(m.spoolLimit(), m.beganWith, st.SpoolBytes, time.Since(m.began)); known && (!some || left < first) {
				first, some = left, true
			}
		}
		m.mu.Unlock()
	}
	text := fmt.Sprintf("spool only: windows are not sent, %d wait", pending)
	if some {
		text += fmt.Sprintf(", and the first spool is full in some %v", first.Round(time.Minute))
	}
	return text
}
