//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/pkg/signal"
)

// raise returns an alert of an alarm that was raised at a time, with everything that one has.
func raise(at time.Time) event.Alert {
	number := func(v float64) *float64 { return &v }
	a := event.Alert{
		ID: "raised", Machine: millName, Tool: "T180", Hole: "H31", State: event.Raised, Alarm: "raised", Incident: millIncident, Severity: "warning",
		Since: at.Add(-4 * time.Second), At: at, Epoch: millEpoch, Seq: 4711, Faulty: 6, Of: 8, K: 5, N: 8, Score: 0.91, Model: "ecs-dbn-1d3f", Threshold: 0.62,
		Text: "usk25 tool T180 hole H31: FAULTY", CuttingState: "drilling", CuttingSeconds: 30240,
		Wear: &event.Wear{WearUM: 312, WearLowUM: 268, WearHighUM: 349, HolesLeft: number(0), HolesLeftLow: number(0), HolesLeftHigh: number(2)},
		Reasons: &event.Reasons{
			Method: "integrated_gradients", Of: "log_odds", Base: -2.1, Total: 4.3,
			Channels: []event.ChannelReason{{Channel: "ch02", Words: "2.5-4 kHz", Share: 0.41}, {Channel: "torque", Words: "mean", Share: 0.27}},
			Features: []event.FeatureReason{
				{Feature: "ch02.band08", Channel: "ch02", Words: "2.5-4 kHz", Unit: "log10 g²", Value: number(-0.163), Usual: number(-0.883), Share: 0.31},
				{Feature: "torque.mean", Channel: "torque", Words: "mean", Unit: "N·m", Value: number(31.4), Usual: number(20.2), Share: 0.27},
				{Feature: "ch05.kurtosis", Channel: "ch05", Words: "kurtosis", Value: number(6.9), Usual: number(3.1), Share: 0.12},
			},
		},
		Evidence: &event.EvidenceLink{URL: "/evidence/" + evidence.Name(millIncident, 4711) + ".arrow", From: at.Add(-5 * time.Second), To: at.Add(5 * time.Second)},
	}
	for i := range 60 {
		p := event.Point{Seq: uint64(4652 + i), End: at.Add(time.Duration(i-59) * time.Second), Score: 0.2 + 0.002*float64(i%17), Verdict: event.Healthy}
		switch {
		case i%13 == 5:
			p.Score, p.Verdict = 0, event.NotCutting
		case i > 52:
			p.Score, p.Verdict = 0.8+0.015*float64(i-52), event.Faulty
		}
		a.Trace = append(a.Trace, p)
	}
	return a
}

// The page of an alarm: what to do, why, the score before, waveform and spectra, who did what;
// on paper it is one page.
func TestPageAlarm(t *testing.T) {
	at := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	first := healthy()
	first.Alarm, first.Incident = "raised", millIncident
	m, b := newMill(t, signal.GunDrill(), first)
	name := evidence.Name(millIncident, 4711)
	kept := m.writeEvidence(t, name, at)
	m.hub.Alert(raise(at))
	b.open("#/a/" + millIncident)
	b.until(`document.querySelector('.alarm-page .summary-card')?.dataset.state === 'raised' && document.querySelector('.summary-card').matches('.alarm')`)
	b.until(`document.querySelector('.summary-card .facts').textContent.includes('6 of 8 faulty, 5 raise an alarm') && document.querySelector('.summary-card .facts').textContent.includes('0 holes left (0 to 2)')`)
	b.until(`document.querySelector('.summary-card [value=acknowledge]').dataset.incident === '` + millIncident + `' && document.querySelector('.summary-card [value=acknowledge]').dataset.machine === '` + millName + `'`)
	b.until(`[...document.querySelectorAll('#features .compared')].map((x) => x.textContent).join('|') === '2.3 × its usual value (+7.2 dB)|11.2 N·m above its usual value|2.2 × its usual value'`)
	b.until(`document.querySelector('.past-card canvas').width > 100 && document.querySelector('.past-card .draw').getAttribute('aria-label').includes('60 windows')`)
	b.until(`document.querySelector('#evidence-says').textContent.startsWith('Being recorded')`)
	b.quiet("/api/me")

	// The evidence comes later.
	m.hub.Evidence(event.Evidence{
		ID: "raised/evidence", Alert: "raised", Machine: millName, Incident: millIncident, URL: "/evidence/" + name + ".arrow",
		From: at.Add(-5 * time.Second), To: at.Add(5 * time.Second), Windows: kept.Windows, Bytes: kept.Bytes, SHA256: kept.SHA256, Complete: true, Text: "10 windows",
	})
	b.until(`[...document.querySelectorAll('.evidence-channel')].map((x) => x.dataset.channel).join() === 'ch02,ch05,torque'`)
	b.until(`document.querySelectorAll('.evidence-channel .spectrogram canvas').length === 3 && document.querySelectorAll('.evidence-channel .spectrum canvas').length === 3`)
	if n := js[int](b, `fetch(document.querySelector('#evidence-file').href).then((r) => r.arrayBuffer()).then((b) => new TextDecoder().decode(b.slice(0, 6)) === 'ARROW1' ? b.byteLength : 0)`); int64(n) != kept.Bytes {
		t.Errorf("the Arrow file has %d bytes, want %d", n, kept.Bytes)
	}
	js[bool](b, `([...document.querySelectorAll('.pick button')].find((x) => x.textContent === 'ch01').click(), true)`)
	b.until(`document.querySelectorAll('.evidence-channel').length === 4`)
	js[bool](b, `([...document.querySelectorAll('.pick button')].find((x) => x.textContent === 'ch01').click(), true)`)

	// Who did what, on one page of paper. An alarm that is over keeps the mark of its beginning.
	// The clock of the sensors is behind the one of people: the alarm is over all the same.
	for i, e := range []event.Alert{
		{State: event.Acknowledged, Alarm: "acknowledged", By: "kim", Note: "change at hole end"},
		{State: event.MarkedFalse, Alarm: "acknowledged", By: "kim"},
		{State: event.UnmarkedFalse, Alarm: "acknowledged", By: "lee"},
		{State: event.Cleared, Alarm: "normal", Reason: "tool_change"},
		{State: event.Acknowledged, Alarm: "normal", By: "lee", Magazine: true}, // the condition was over
	} {
		e.ID, e.Machine, e.Tool, e.Incident, e.Severity, e.Since, e.At, e.Epoch, e.Seq, e.Of, e.Model = fmt.Sprint(i), millName, "T180", millIncident, "info", at.Add(-4*time.Second), at.Add(time.Duration(i+1)*time.Minute), millEpoch, 4712, 8, "m"
		if e.State == event.Cleared {
			e.At = at.Add(30 * time.Second)
		}
		if m.hub.Alert(e); e.Magazine {
			break
		}
		switch e.State {
		case event.Cleared:
			m.judge(func(r *event.Result) { r.Alarm, r.Incident, r.Tool = "normal", "", "T181" })
			b.until(`document.querySelector('.summary-card').dataset.state === 'raised' && document.querySelector('#waits')`)
		case event.Acknowledged:
			b.until(`document.querySelector('.summary-card').dataset.state === 'acknowledged' && document.querySelector('#history').textContent.includes('By kim. “change at hole end”')`)
		case event.MarkedFalse:
			b.until(`document.querySelector('#marked') !== null && document.querySelector('[value=unmark_false]') !== null`)
		}
	}
	b.until(`document.querySelector('.summary-card').dataset.state === 'over' && document.querySelector('.summary-card').matches('.calm') && document.querySelector('#history').textContent.includes('The tool was changed.')`)
	if marks := js[string](b, `[...document.querySelectorAll('#history use')].map((x) => x.getAttribute('href')).join() + ' ' + document.querySelector('.summary-card use').getAttribute('href')`); marks != "#raised,#acknowledged,#info,#info,#cleared,#acknowledged #raised" {
		t.Errorf("the marks are %s", marks)
	}
	b.until(`document.querySelector('#marked') === null`)
	if n := pages(b.paper()); n != 1 {
		t.Errorf("the alarm is %d pages on paper", n)
	}
	b.everyWidth("alarm")
	b.quiet("/api/me")

	// On a phone the header leaves room, and the alarm is four screens long.
	b.size(400)
	b.reload()
	b.until(`document.querySelectorAll('.evidence-channel .spectrogram canvas').length === 1 && document.querySelector('#history li') !== null`)
	if top, all := js[int](b, `document.querySelector('.top').offsetHeight`), js[int](b, `document.documentElement.scrollHeight`); top > 100 || all > 4*900 {
		t.Errorf("on a phone the header is %d pixels high and the page %d", top, all)
	}
}

// The alarm of a tool in the magazine is open: the list of machines, the machine's page and the
// alarm's own say so, and a person acknowledges it there.
func TestPageMagazine(t *testing.T) {
	s := newShop(t, 2)
	machine, incident := s.raise(0)
	s.change(0)
	b := openBrowser(t, s.url())
	b.login(operatorToken)
	b.until(tile(machine, ".magazine") + `?.textContent === '1 tool in the magazine with an open alarm'`)
	b.until(`document.querySelector('.summary').textContent.includes('0 alarms')`) // it calls no one
	b.fits("fleet-magazine")
	b.open("#/m/" + machine)
	row := fmt.Sprintf(`document.querySelector('.card.magazine tr[data-incident="%s"]')`, incident)
	b.until(row + `?.innerText.replace(/\s+/g, ' ').startsWith('T1 ` + incident + ` Alarm, in the magazine')`)
	b.until(`document.querySelector('.machine .now').dataset.state === 'normal'`)
	b.accessible("magazine")
	b.everyWidth("machine-magazine")
	b.order(".card.magazine [value=shelve]", "spare part on its way", "")
	b.until(row + `?.innerText.includes('Shelved, in the magazine') && ` + row + `.querySelector('[value=unshelve]')`)
	b.order(".card.magazine [value=unshelve]", "", "")
	b.until(row + `?.innerText.includes('Alarm, in the magazine')`)

	b.open("#/a/" + incident)
	b.until(`document.querySelector('.summary-card')?.dataset.state === 'raised' && document.querySelector('.summary-card').matches('.warn') && document.querySelector('#waits').textContent === 'in the magazine'`)
	b.until(`document.querySelector('.summary-card .does').textContent === 'Its tool T1 is in the magazine. The alarm is open and comes back with the tool.'`)
	b.accessible("alarm in the magazine")
	b.everyWidth("alarm-magazine")
	b.order(".summary-card [value=acknowledge]", "it is ground tonight", "")
	b.until(`document.querySelector('.summary-card').dataset.state === 'acknowledged' && !document.querySelector('.summary-card [value=acknowledge]') && document.querySelector('#history').textContent.includes('By kim')`)
	for i, action := range []event.Action{event.Shelve, event.Unshelve, event.Acknowledge} {
		if c := s.sent()[i]; c.Action != action || c.Incident != incident || c.Machine != machine || c.Check() != nil {
			t.Errorf("sent %+v, want %s of %s, %v", c, action, incident, c.Check())
		}
	}

	// The tool is declared new, and its alarm is over.
	s.hub.Alert(event.Alert{ID: "new", Machine: machine, Tool: "T1", State: event.ToolIsNew, Alarm: "normal", By: "kim", At: time.Now(), Since: time.Now(), Epoch: "00000000000000a1"})
	b.open("#/m/" + machine)
	b.until(`document.querySelector('.machine .now')?.dataset.state === 'normal' && !document.querySelector('.card.magazine')`)
	b.quiet("/api/")
}

// paper returns the page as it is printed.
func (b *browser) paper() []byte {
	b.t.Helper()
	yes := true
	res, err := chromedp.Call(b.ctx, page.PrintToPDF, page.PrintToPDFParams{PrintBackground: &yes, PreferCSSPageSize: &yes})
	if err != nil {
		b.t.Fatal(err)
	}
	if *shots != "" {
		if err := os.WriteFile(filepath.Join(*shots, "alarm.pdf"), res.Data, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	return res.Data
}

// All times of the page are in its zone, also inside sentences.
func TestPageAlarmHasOneClock(t *testing.T) {
	at := time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC)
	m, b := newMill(t, signal.GunDrill(), healthy())
	m.hub.Alert(raise(at))
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"}); err != nil {
		t.Fatal(err)
	}
	for zone, want := range map[string][]string{
		"":    {"Faulty since 08:29:56", "Mar 2, 2026, 08:30:00", "Mar 2, 2026, 08:29:56"},
		"utc": {"Faulty since 23:29:56", "Mar 1, 2026, 23:30:00", "Mar 1, 2026, 23:29:56"},
	} {
		address := js[string](b, fmt.Sprintf(`(localStorage.setItem('flank.zone', %q), localStorage.setItem('flank.language', 'en'), location.origin)`, zone)) + "/#/a/" + millIncident
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(address)) // it is loaded again
		for _, text := range want {
			b.until(fmt.Sprintf(`document.querySelector('.alarm-page')?.innerText.includes(%q)`, text))
		}
		said := js[string](b, `document.querySelector('.alarm-page').innerText`)
		other := map[string]string{"": "23:29", "utc": "08:29"}[zone]
		if strings.Contains(said, other) {
			t.Errorf("in zone %q the page says %s too:\n%s", zone, other, said)
		}
	}
}

// An alarm that the page does not have says so and what helps.
func TestPageAlarmThatIsGone(t *testing.T) {
	_, b := newMill(t, signal.GunDrill(), healthy())
	b.open("#/a/A-ZZZZZZZZ")
	b.until(`document.querySelector('#main').innerText.includes('A-ZZZZZZZZ is not here') && document.querySelector('#main pre').textContent === 'monitor alerts show A-ZZZZZZZZ'`)
	b.quiet("/api/me", "/api/alarms/A-ZZZZZZZZ")
}

// pages returns how many pages a PDF has.
func pages(pdf []byte) int {
	return bytes.Count(pdf, []byte("/Type /Page\n")) + bytes.Count(pdf, []byte("/Type /Page/"))
}
