// Package pages is what the commands that serve a page have in common: where it is served and to whom, its history, and the
// routes of alerts.
package pages

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/flank-tcm/flank/cmd/internal/cli"
	"github.com/flank-tcm/flank/internal/bus"
	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/metric"
	"github.com/flank-tcm/flank/internal/monitor"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/table/wear"
	"github.com/flank-tcm/flank/internal/web"
	"github.com/rs/zerolog"
)

// Config says where the page is served, and who may use it. In a configuration it is a
// mapping, or the address alone.
type Config struct {
	Listen   string      `yaml:"listen"`   // address; empty: no page
	People   string      `yaml:"people"`   // file of people who may log in
	Read     string      `yaml:"read"`     // ReadOpen or readToken
	TLS      certificate `yaml:"tls"`      // without it plain HTTP
	Hosts    []string    `yaml:"hosts"`    // more names of the page
	Insecure bool        `yaml:"insecure"` // tokens may travel without TLS
	Notice   string      `yaml:"notice"`   // lines that people see before they log in, at most maxNotice bytes
}

// certificate names the files of a page's certificate.
type certificate struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

const maxNotice = 2048

// Values of Config.Read.
const (
	ReadOpen  = "open"  // everyone sees the page
	readToken = "token" // only who has logged in
)

// UnmarshalYAML reads a page, or its address alone.
func (p *Config) UnmarshalYAML(unmarshal func(any) error) error {
	var address string
	if unmarshal(&address) == nil {
		p.Listen = address
		return nil
	}
	type mapping Config
	return unmarshal((*mapping)(p))
}

// Resolve returns p with its paths as seen from the folder of a configuration file.
func (p Config) Resolve(file string) Config {
	p.People = config.ResolvePath(file, p.People)
	p.TLS = certificate{Cert: config.ResolvePath(file, p.TLS.Cert), Key: config.ResolvePath(file, p.TLS.Key)}
	return p
}

// Check reports settings that cannot be used, or that would let tokens travel for all to
// read, as a config.KeyError that begins at `page`. token is the one that people share, if
// there is one.
func (p Config) Check(token credential.Secret) error {
	if p.Listen == "" {
		return nil
	}
	login := p.People != "" || !token.IsZero()
	return cmp.Or(
		wrong(p.People != "" && !token.IsZero(), "people", "with it each person has a token of their own: remove `page_token`"),
		wrong(p.Read != ReadOpen && p.Read != readToken, "read", "%q: must be %s or %s", p.Read, ReadOpen, readToken),
		wrong(p.Read == readToken && !login, "read", "no one could log in: name `people`, see `monitor people add`"),
		wrong((p.TLS.Cert == "") != (p.TLS.Key == ""), "tls", "a certificate needs its key, and a key its certificate: name `cert` and `key`"),
		p.checkHosts(),
		config.Under("page.notice", p.checkNotice(login)),
		p.checkListen(login))
}

// wrong returns a config.KeyError if a setting is wrong.
func wrong(is bool, name, format string, args ...any) error {
	return config.Under("page."+name, config.Wrong(is, format, args...))
}

func (p Config) checkHosts() error {
	for _, h := range p.Hosts {
		if _, _, err := net.SplitHostPort(h); h == "" || err == nil {
			return wrong(true, "hosts", "%q: must be a name without a port, such as flank.plant.example", h)
		}
	}
	return nil
}

// checkListen reports an address at which tokens would travel for all to read.
func (p Config) checkListen(login bool) error {
	host, _, err := net.SplitHostPort(p.Listen)
	return wrong(err == nil && login && !credential.IsLocal(host) && p.TLS.Cert == "" && !p.Insecure, "listen",
		"%q is reached from other computers, and tokens would travel for everyone to read: name `tls: {cert: FILE, key: FILE}`, "+
			"or listen on 127.0.0.1 behind a proxy with TLS, or accept that with `insecure: true`", p.Listen)
}

// checkNotice reports a text for people before they log in that no one would see, or that cannot be shown.
func (p Config) checkNotice(login bool) error {
	switch {
	case p.Notice == "":
		return nil
	case !login:
		return errors.New("no one can log in, so no one would see it: name `people`, see `monitor people add`")
	case len(p.Notice) > maxNotice:
		return fmt.Errorf("%d bytes: at most %d", len(p.Notice), maxNotice)
	}
	for line := range strings.Lines(p.Notice) {
		if err := plain.Check(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// Guard returns what lets requests through to the handlers of the page. It reports files that cannot be
// used. p must be resolved and checked; hosts are names of the page in addition to p.Hosts.
func (p Config) Guard(token credential.Secret, log zerolog.Logger, hosts ...string) (*web.Guard, error) {
	w := web.Protection{
		Listen: p.Listen, Hosts: append(hosts, p.Hosts...), ReadsNeedToken: p.Read == readToken, Notice: strings.TrimSpace(p.Notice),
		Log: func(r web.Refusal) {
			log.Warn().Str("event", "page_refused").Str("address", r.Address).Str("reason", r.Reason).Str("detail", r.Detail).
				Uint64("not_logged", r.Unlogged).Msg("the page refused a request")
		},
	}
	switch {
	case p.People != "":
		people, err := credential.OpenPeople(p.People)
		if err != nil {
			return nil, &config.KeyError{Key: "page.people", Err: err}
		}
		w.Find = people.Find
	case !token.IsZero():
		if _, err := token.Token(); err != nil {
			return nil, fmt.Errorf("token of the page: %w", err)
		}
		w.Find = func(sum [sha256.Size]byte) (web.Person, bool, error) { return findShared(token, sum) }
	}
	if p.TLS.Cert != "" {
		files := credential.TLS{Cert: p.TLS.Cert, Key: p.TLS.Key}
		cfg, err := files.Renewed(func(err error) {
			log.Error().Err(err).Msg("the page goes on with its old certificate: replace both files")
		})
		if err != nil {
			return nil, &config.KeyError{Key: "page.tls", Err: err}
		}
		w.TLS = cfg
	}
	return web.NewGuard(w), nil
}

// findShared says whether a hash belongs to the token that people share: then it is an operator without
// a name.
func findShared(token credential.Secret, sum [sha256.Size]byte) (web.Person, bool, error) {
	text, err := token.Token()
	if err != nil {
		return web.Person{}, false, err
	}
	want := sha256.Sum256([]byte(text))
	if subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
		return web.Person{}, false, nil
	}
	return web.Person{Role: credential.Operator}, true, nil
}

// Serve answers HTTP requests on the page's address by h behind the guard, until stop is
// called. It returns the URL of the server.
func (p Config) Serve(g *web.Guard, h http.Handler, logger zerolog.Logger) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return "", nil, fmt.Errorf("page: %w: choose another address", err)
	}
	srv := g.Server(g.Handler(h))
	srv.ErrorLog = cli.ServerLog(logger, "the server of the page")
	serve, scheme := srv.Serve, "http"
	if srv.TLSConfig != nil {
		serve, scheme = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }, "https"
	}
	go func() {
		if err := serve(g.Listener(l)); !errors.Is(err, http.ErrServerClosed) {
			logger.Error().Err(err).Msg("the server of the page has stopped: restart the program")
		}
	}()
	url = scheme + "://" + l.Addr().String()
	logger.Info().Str("page", url).Msg("page")
	return url, func() {
		srv.Close()
		l.Close() // a server that does not serve yet leaves it open
	}, nil
}

// Metrics counts what the guard refuses.
func Metrics(g *web.Guard) metric.Collector {
	return metric.By("reason", g.Refusals(), []metric.Metric[uint64]{
		metric.Counter("tcm_page_refused_total", "Requests and connections that the page refused.", func(n uint64) uint64 { return n }),
	})
}

// Control returns what lets pages send commands. Call stop at the end.
func Control(to bus.Config) (control *web.Control, stop func(), err error) {
	out, err := bus.NewProducer(to)
	if err != nil {
		return nil, nil, err
	}
	return monitor.Control(to, out, wear.Rule{}.StateClass), out.Close, nil
}
