package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/flank-tcm/flank/cmd/internal/pages"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event/evidence"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/flank-tcm/flank/pkg/alarm"
	"github.com/flank-tcm/flank/pkg/signal"
)

// tokenFile is the file of the data directory that holds the page's token.
const tokenFile = "page-token"

// servePage starts the page. It shows the channels of the model, or of the
// simulated drill before there is one.
func (p *plant) servePage() error {
	layout := signal.GunDrill()
	if p.model != nil {
		layout = p.model.Layout
	}
	var err error
	if p.evidence, err = evidence.Open(filepath.Join(p.DataDir, "evidence"), evidence.DefaultKeep); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	page, guard, login, err := p.guard()
	if err != nil {
		return err
	}
	if p.history, err = pages.OpenHistory(filepath.Join(p.DataDir, "history"), monitor.DefaultGroup, p.log); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	p.closers = append(p.closers, func() { pages.CloseHistory(p.history, p.log) })
	if guard != nil {
		guard.Audit = p.audit.Record
	}
	view := web.Config{Layout: layout, Evidence: p.evidence.Handler(), Facts: p.facts}
	pages.ShowHistory(&view, p.history)
	if guard != nil && guard.Find != nil {
		control, stop, err := pages.Control(p.bus)
		if err != nil {
			return err
		}
		view.Control, p.closers = control, append(p.closers, stop)
	}
	p.hub = web.NewHub(view)
	pages.Remember(p.hub, p.history, p.log)
	p.hub.Status(web.Status{Phase: web.Starting, Fraction: -1})
	if guard == nil {
		return nil
	}
	url, stop, err := page.Serve(guard, p.hub.Handler(), p.log)
	if err != nil {
		return fmt.Errorf("%w with --page, or stop the program that uses %s", err, p.Page)
	}
	p.pageURL, p.closers = url, append(p.closers, stop)
	fmt.Fprintf(p.stderr, "page     %s\n%s", url, login)
	return nil
}

// guard returns what protects the page, nil if there is none, and a line that says how to
// log in.
func (p *plant) guard() (page pages.Config, g *web.Guard, login string, err error) {
	if p.Page == "off" {
		return page, nil, "", nil
	}
	page = pages.Config{Listen: p.Page, Read: pages.ReadOpen}
	token, login, err := p.ownToken()
	if err != nil {
		return page, nil, "", err
	}
	if g, err = page.Guard(token, p.log); err != nil {
		return page, nil, "", fmt.Errorf("--page: %w", err)
	}
	return page, g, login, nil
}

// ownToken returns the token in the data directory, which it makes on the first start, and
// a line that says it. Where the token would travel for everyone to read there is none, and the page
// only shows.
func (p *plant) ownToken() (token credential.Secret, login string, err error) {
	if host, _, err := net.SplitHostPort(p.Page); err == nil && !credential.IsLocal(host) {
		return credential.Secret{}, "         it only shows, as tokens would travel for everyone to read: answer alarms on this computer with --page 127.0.0.1:8080, or run monitor, whose page has TLS\n", nil
	}
	token.File = filepath.Join(p.DataDir, tokenFile)
	_, err = os.Stat(token.File)
	if err == nil {
		return token, fmt.Sprintf("         the token to answer alarms is in %s\n", token.File), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return token, "", fmt.Errorf("--data-dir: %w", err)
	}
	text := credential.NewToken()
	if err := config.WritePrivateFile(token.File, []byte(text+"\n")); err != nil {
		return token, "", fmt.Errorf("--data-dir: %w", err)
	}
	return token, fmt.Sprintf("         token to answer alarms: %s (kept in %s)\n", text, token.File), nil
}

// facts returns what the page shows of the model that judges, nothing before there is one.
func (p *plant) facts(machine, _ string) web.Facts {
	m := p.shown.Load()
	if m == nil {
		return web.Facts{}
	}
	facts := monitor.FactsOf(m)(machine)
	facts.Threshold = alarm.Default.Threshold
	return facts
}
