//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"testing"

	permissions "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/signal"
)

// media makes the browser say that its person wants something of pages.
func (b *browser) media(feature, value string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}}); err != nil {
		b.t.Fatal(err)
	}
}

// allow gives or denies a page of this browser a permission.
func (b *browser) allow(permission string, setting permissions.PermissionSetting) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, permissions.SetPermission, permissions.SetPermissionParams{Permission: &permissions.PermissionDescriptor{Name: permission}, Setting: setting, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID}); err != nil {
		b.t.Fatal(err)
	}
}

// heard counts tones and notifications of the page from now on.
const heard = `(() => {
	window.tones = 0;
	window.notes = [];
	const start = OscillatorNode.prototype.start;
	OscillatorNode.prototype.start = function (...at) { window.tones++; return start.apply(this, at); };
	window.Notification = new Proxy(Notification, { construct(what, [title, options]) { window.notes.push([title, options.body, options.tag]); return new what(title, options); } });
	return true;
})()`

// A page calls people by a sound and by notifications of the browser, each only if they turned
// it on, and once for each alarm.
func TestPageCallsPeople(t *testing.T) {
	s := newShop(t, 3)
	s.raise(2) // before the page is opened: it does not call for this one
	b := openBrowser(t, s.url())
	b.until(`document.querySelectorAll('.tile').length === 3`)
	js[bool](b, heard)
	js1[bool](b, "store.js", "(window.shared = x.head, true)")
	button := func(word string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('button[aria-pressed]')].find((x) => x.textContent === %q)`, word)
	}
	press := func(word string) {
		t.Helper()
		js[bool](b, "("+button(word)+".id = 'pressed', true)")
		b.do(chromedp.Click(chromedp.CSS("#pressed")))
		js[bool](b, "(document.querySelector('#pressed').id = '', true)")
	}
	spoken := func(i int) {
		t.Helper()
		machine, _ := s.raise(i)
		b.until(fmt.Sprintf(`document.querySelector('#spoken').textContent.includes(%q)`, machine[len(machine)-5:]))
	}
	count := func(tones, notes int) {
		t.Helper()
		if got := js[[]int](b, `[tones, notes.length]`); got[0] != tones || got[1] != notes {
			t.Errorf("%d tones and %d notifications, want %d and %d", got[0], got[1], tones, notes)
		}
	}

	// Nothing is turned on.
	spoken(0)
	count(0, 0)

	// Without permission the page says how to give it.
	b.allow("notifications", permissions.PermissionSettingDenied)
	press("Notification")
	b.until(`document.body.textContent.includes('The browser did not allow notifications')`)
	if js[string](b, button("Notification")+".getAttribute('aria-pressed')") != "false" {
		t.Error("notifications are on without permission")
	}

	b.allow("notifications", permissions.PermissionSettingGranted)
	press("Notification")
	b.until(button("Notification") + `.getAttribute('aria-pressed') === 'true'`)
	press("Sound")
	b.until(`tones === 3`) // people hear what it is like
	machine, incident := s.raise(1)
	b.until(`notes.length === 1 && tones === 6`)
	note := js[[]string](b, `notes[0]`)
	if short := machine[len(machine)-5:]; note[0] != "Alarm on "+short || note[1] == "" || note[2] != incident {
		t.Errorf("notification %q, want one of %s, with what to do, tagged %s", note, short, incident)
	}

	// The same alarm does not call again: after a minute, when it is acknowledged, or on another page.
	b.login(operatorToken)
	b.order(fmt.Sprintf(".tile[data-machine='%s'] [value=acknowledge]", machine), "", "")
	b.until(tile(machine, ".state strong") + `.textContent.includes('Acknowledged')`)
	b.open("#/m/" + machine)
	b.until(`document.querySelector('.machine .now')?.dataset.state === 'acknowledged'`)
	b.open("#/")
	b.until(`document.querySelectorAll('.tile').length === 3`)
	count(6, 1)

	// The page of a machine names its own alarm, and counts the alarms of others. What it named does not hide another one.
	b.open("#/m/" + machine)
	b.until(`document.querySelector('.machine .now')?.dataset.state === 'acknowledged'`)
	s.raise(1)
	b.until(`tones === 9 && notes.length === 2 && document.querySelector('#spoken').textContent.startsWith('Alarm on ')`)
	s.raise(1) // another one, of the same machine: as many machines as before
	b.until(`tones === 12 && notes.length === 3`)
	s.end(0)
	b.until(`shared.get().alarms === 2`)
	s.raise(0)
	b.until(`tones === 15 && document.querySelector('#spoken').textContent === '3 machines with an alarm.'`)
	s.end(1)

	// A page that shows no machines calls too, for those that it does not name.
	b.open("#/system")
	b.until(`document.querySelector('h1')?.textContent === 'System' && document.body.textContent.includes('Windows judged')`)
	b.until(`shared.get().alarms === 2`)
	machine, incident = s.raise(1)
	b.until(`tones === 18 && document.querySelector('#spoken').textContent === '3 machines with an alarm.'`)

	// The page of all machines does not call again for what was called by number.
	b.open("#/")
	b.until(fmt.Sprintf("document.querySelector(\".tile[data-machine='%s'] [value=acknowledge][data-incident='%s']\")", machine, incident))
	count(18, 3)

	// Off is off.
	for _, word := range []string{"Sound", "Notification"} {
		press(word)
		b.until(button(word) + `.getAttribute('aria-pressed') === 'false'`)
	}
	spoken(0)
	count(18, 3)
	b.quiet("/api/") // this program keeps no past
}

// After a reload the browser keeps the sound back until someone presses something. The page
// says so.
func TestPageSaysThatItIsSilent(t *testing.T) {
	s := newShop(t, 1)
	b := openBrowser(t, s.url())
	b.until(`document.querySelectorAll('.tile').length === 1`)
	js[bool](b, `(localStorage.setItem('flank.sound', 'on'), true)`)
	b.do(chromedp.Reload())
	b.until(`document.querySelector('#silent')?.textContent === 'No sound yet: press anywhere'`)
	b.fits("silent")
	b.do(chromedp.Click(chromedp.CSS(".clock")))
	b.until(`!document.querySelector('#silent')`)
	b.quiet("AudioContext")
}

// Nothing on the page moves by itself for a person who wants less motion.
func TestPageReducesMotion(t *testing.T) {
	s := newShop(t, 0)
	s.hub.Status(web.Status{Phase: web.Training, Fraction: -1})
	b := openBrowser(t, s.url())
	const moving = `document.getAnimations().filter((a) => a.playState === 'running' && (a.effect.getComputedTiming().iterations === Infinity || a.effect.getComputedTiming().duration > 1)).length`
	b.until(moving + ` > 0`) // the bar of a progress that is not known
	b.media("prefers-reduced-motion", "reduce")
	b.until(moving + ` === 0`)
	if got := js[string](b, `getComputedStyle(document.documentElement).scrollBehavior`); got != "auto" {
		t.Errorf("the page scrolls with behavior %s", got)
	}
	b.quiet("/api/")
}

// With forced colours, as people with low vision choose them, everything is drawn in the
// system's colours, also what is drawn on canvases, and can be read.
func TestPageInForcedColours(t *testing.T) {
	_, b := newMill(t, signal.GunDrill(), healthy())
	b.until(`document.querySelectorAll('.lane canvas').length === 7 && document.querySelectorAll('.channel canvas').length === 14`)
	for _, scheme := range []string{"light", "dark"} {
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: scheme},
		}}); err != nil {
			t.Fatal(err)
		}
		b.until(`matchMedia('(forced-colors: active)').matches`)
		b.shot("forced-" + scheme)
		// The colours of charts are the system's.
		for _, name := range []string{"ink", "muted", "trace", "faulty", "band", "line", "soft", "alarm-tint"} {
			got := js[string](b, fmt.Sprintf(`getComputedStyle(document.getElementById('main')).getPropertyValue('--%s').trim()`, name))
			if !systemColour.MatchString(got) {
				t.Errorf("%s: charts draw %s in %s, which is not a colour of the system", scheme, name, got)
			}
		}
		for what, ratio := range js[map[string]float64](b, contrast) {
			if ratio < 4.5 {
				t.Errorf("%s: %s has a contrast of %.1f with its ground, want 4.5 or more", scheme, what, ratio)
			}
		}
	}
	b.quiet("/api/me")
}

var systemColour = regexp.MustCompile(`^(CanvasText|GrayText|Highlight|color-mix\(in srgb, (CanvasText|Highlight) \d+%, Canvas\))$`)

// contrast is the WCAG contrast of lines on canvases, and of the button that is pressed, with
// the ground that is painted behind them.
const contrast = `(() => {
	const c = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
	const light = (colour) => {
		c.clearRect(0, 0, 1, 1);
		c.fillStyle = colour;
		c.fillRect(0, 0, 1, 1);
		const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].map((v) => (v /= 255, v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
	const style = (e) => getComputedStyle(document.querySelector(e)), own = (name) => style('#main').getPropertyValue(name), card = style('.lanes').backgroundColor;
	const pressed = style('.seg [aria-pressed=true]');
	return { 'the line of the mean score': ratio(own('--ink'), card), 'a waveform': ratio(own('--trace'), card), 'the range that is pressed': ratio(pressed.color, pressed.backgroundColor) };
})()`

// The layout of a machine changes while a page looks at it: the page shows the new channels and
// goes on.
func TestPageLayoutChanges(t *testing.T) {
	m, b := newMill(t, signal.GunDrill(), healthy())
	b.until(`document.querySelectorAll('.channel').length === 14 && document.querySelector('#channels-usual')`)
	m.mu.Lock()
	m.layout = layoutOf(t, "lathe", "force-x", "force-y", "spindle")
	m.mu.Unlock()
	b.until(`document.querySelectorAll('.channel').length === 3 && document.querySelector('#channels-count').textContent.includes('lathe')`)
	b.until(`[...document.querySelectorAll('.channel')].map((x) => x.dataset.channel).join() === 'force-x,force-y,spindle'`)
	waveform := `document.querySelector('.channel').scrollIntoView() ?? document.querySelector('.channel .scale span').textContent !== ''` // what cannot be seen is not drawn
	b.until(waveform)
	m.mu.Lock()
	m.layout = signal.GunDrill()
	m.mu.Unlock()
	b.until(`document.querySelectorAll('.channel').length === 14 && (` + waveform + `)`)
	m.judge(func(r *event.Result) { r.Tool = "T181" })
	b.until(`document.querySelector('.machine-head .facts').textContent.includes('T181')`)
	b.quiet("/api/me")
}

// Engineers suppress an alarm and take it out of service, with a reason. No one else sees the
// buttons.
func TestPageOfEngineers(t *testing.T) {
	s := newShop(t, 2)
	machine, incident := s.raise(0)
	b := openBrowser(t, s.url()+"#/m/"+machine)
	const engineers = `[...document.querySelectorAll('.now [value]')].map((x) => x.value).filter((x) => /suppress|service/.test(x)).join()`
	b.until(`document.querySelector('.now [value=acknowledge]')`)
	for _, token := range []string{viewerToken, operatorToken} {
		b.login(token)
		b.until(`document.querySelector('.now [value=shelve]')`)
		if got := js[string](b, engineers); got != "" {
			t.Errorf("with token %s the page offers %s", token, got)
		}
		b.press(".who button")
		b.until(`document.querySelector('.who').textContent === 'Log in'`)
	}
	b.login(engineerToken)
	b.until(engineers + ` === 'suppress,out_of_service'`)
	b.accessible("buttons of engineers")
	for _, step := range []struct {
		press  event.Action
		reason string
		state  string // of the page
		then   string // that the page offers
	}{
		{event.Suppress, "setup", "suppressed", "unsuppress,out_of_service"},
		{event.OutOfService, "new spindle", "out_of_service", "in_service"},
		{event.InService, "", "raised", "suppress,out_of_service"},
		{event.Suppress, "trial", "suppressed", "unsuppress,out_of_service"},
		{event.Unsuppress, "", "raised", "suppress,out_of_service"},
	} {
		button := fmt.Sprintf(".now [value=%s]", step.press)
		if step.reason != "" { // it cannot be sent without
			b.press(button)
			b.until(`document.querySelector('#ask')?.open`)
			if js[bool](b, `document.querySelector('#order').checkValidity()`) {
				t.Errorf("%s can be sent without a reason", step.press)
			}
			b.shot("engineer-" + string(step.press))
			b.press("#ask button[type=button]")
			b.until(`!document.querySelector('#ask')`)
		}
		b.order(button, step.reason, "")
		b.until(engineers + fmt.Sprintf(" === %q && document.querySelector('.now').dataset.state === %q", step.then, step.state))
		if all := s.sent(); len(all) == 0 {
			t.Fatalf("%s: nothing was sent", step.press)
		} else if c := all[len(all)-1]; c.Action != step.press || c.Machine != machine || c.Incident != incident || c.By != "ada" || c.Note != step.reason || c.Check() != nil {
			t.Errorf("sent %+v, want %s of %s, %v", c, step.press, machine, c.Check())
		}
	}
	b.fits("engineer")
	b.quiet("/api/")
}
