//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/signal"
)

// Two taps say that a tool is worn or broken, or the wear is written with a decimal comma. What may be a mistake is asked about once. Targets are
// large enough for gloves.
func TestPageLabel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	token, err := credential.AddPerson(file, credential.Person{Name: "kim", Role: credential.Operator})
	if err != nil {
		t.Fatal(err)
	}
	people, err := credential.OpenPeople(file)
	if err != nil {
		t.Fatal(err)
	}
	kept := make(chan event.Label, 10)
	hub := web.NewHub(web.Config{Layout: signal.GunDrill(), Control: &web.Control{
		Label: func(_ context.Context, l event.Label, _ map[string]string, anyway bool) ([]string, error) {
			if l.WearUM != nil && !anyway {
				return []string{"wear falls"}, nil
			}
			kept <- l
			return nil, nil
		},
	}})
	hub.Status(web.Status{Phase: web.Monitoring, Fraction: -1})
	hub.Result(event.Result{
		ID: event.WindowID(machine, "00000000000000a1", 1), Machine: machine, Tool: "T1", ToolLife: "2", Epoch: "00000000000000a1", Seq: 1, Start: time.Now(), End: time.Now(),
		Verdict: event.Healthy, Posterior: []float64{0.9, 0.1}, Score: 0.1, Model: "m", Alarm: "normal",
	})
	b := openBrowser(t, guarded(t, hub, web.Protection{Find: people.Find, ReadsNeedToken: true})+"/#/m/"+machine)
	b.giveToken(token)
	const button, open = "button[value=add_label]", "#ask .taps button"
	b.until(`document.querySelector('` + button + `')`)
	expect := func(want string) {
		t.Helper()
		b.until(`!document.querySelector('#ask')`)
		select {
		case l := <-kept:
			if got := l.Tool + " " + l.ToolLife + " " + l.Known() + " " + l.By; got != want {
				t.Errorf("kept %s, want %s", got, want)
			}
		default:
			t.Errorf("no label was kept, want %s", want)
		}
	}
	b.press(button)
	b.until(`document.querySelector('` + open + `')`)
	if height := js[float64](b, `Math.min(...[...document.querySelectorAll('`+open+`')].map((x) => Math.min(x.getBoundingClientRect().height, x.getBoundingClientRect().width)))`); height < 64 {
		t.Errorf("a tap has to hit %v pixels", height)
	}
	b.fits("label")
	b.press(open + "[value=worn]")
	expect("T1 2 worn kim")
	b.press(button)
	b.until(`document.querySelector('` + open + `')`)
	b.press(open + "[value=broken]")
	expect("T1 2 broken kim")
	b.press(button)
	b.until(`document.querySelector('` + open + `')`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('#ask input[name=wear]').value = "0,34"`))
	b.press("#go")
	b.until(`document.querySelector('#ask-says').textContent.includes('wear falls') && !document.querySelector('#go').disabled`)
	b.press("#go")
	expect("T1 2 340 µm kim")
	b.quiet("401", "404", "409", "/api/commands") // 404: the hub keeps no past
}
