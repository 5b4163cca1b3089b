package machinetool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config/credential"
)

// Agent is an agent of MTConnect, versions 1.x and 2.x. Open it before it is read.
type Agent struct {
	URL    string // http://host:5000, or https://
	Device string // name or uuid, of an agent of several; empty: all
	Items  Items  // as document.find takes them
	TLS    *credential.TLS

	// Timeout is for how long the creationTime of its answers may stand still; 0 means defaultTimeout.
	Timeout time.Duration

	client  *http.Client
	created string    // of the last answer
	since   time.Time // when the first answer of that creationTime came
}

// maxDocument is the most bytes of an answer. Answers of agents have up to 1 MB.
const maxDocument = 8 << 20

// Open reads the files of TLS. It reports what cannot be used. It does not connect.
func (a *Agent) Open() error {
	if _, err := a.current(); err != nil {
		return err
	}
	if err := a.Items.Check(); err != nil {
		return err
	}
	cfg, err := a.TLS.Client()
	if err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	a.client = &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: cfg, MaxIdleConnsPerHost: 1, MaxConnsPerHost: 1,
			DisableCompression: true, MaxResponseHeaderBytes: 1 << 16,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// Close closes the connection.
func (a *Agent) Close() { a.client.CloseIdleConnections() }

// current returns the address of what is true now.
func (a *Agent) current() (string, error) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("url: write the agent's address, such as http://agent:5000, without user and query")
	}
	if a.Device != "" {
		u = u.JoinPath(url.PathEscape(a.Device))
	}
	return u.JoinPath("current").String(), nil
}

// String returns the agent's address.
func (a *Agent) String() string { return a.URL }

// Read asks the agent once.
func (a *Agent) Read(ctx context.Context) (Reading, error) {
	doc, err := a.document(ctx)
	if err == nil {
		err = a.fresh(doc.Created, time.Now())
	}
	if err != nil {
		return Reading{}, err
	}
	return doc.reading(a.Items), nil
}

// fresh reports an answer that is the same document as before: an agent that hangs, or a cache on the way, goes on
// to serve the last one. Its clock need not be right. An agent that does not say when it answers is believed.
func (a *Agent) fresh(created string, now time.Time) error {
	if created == "" || created != a.created {
		a.created, a.since = created, now
		return nil
	}
	if stood := now.Sub(a.since); stood >= cmp.Or(a.Timeout, defaultTimeout) {
		return fmt.Errorf("%s: %w for %v, creationTime %.40q: restart the MTConnect agent, or take away the cache on the way", a.URL, errStandsStill, stood.Round(time.Second), created)
	}
	return nil
}

// errStandsStill is the error of a control that has said nothing new for the timeout, although it answers.
var errStandsStill = errors.New("the same document")

// errHung is the error of an agent that took the question, or began to answer, and went on to say nothing.
var errHung = errors.New("no whole answer within the timeout: restart the MTConnect agent, or correct `url`")

func (a *Agent) document(ctx context.Context) (*document, error) {
	at, err := a.current()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/xml, text/xml")
	res, err := a.client.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%s: %w", at, errHung)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: correct `url`, or start the MTConnect agent", err)
	}
	defer res.Body.Close()
	body := &io.LimitedReader{R: res.Body, N: maxDocument + 1}
	doc, err := parse(body)
	switch refused := (*refusal)(nil); {
	case body.N == 0:
		return nil, fmt.Errorf("%s: the answer has more than %d MiB: name one `device`", at, maxDocument>>20)
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: %w", at, errHung)
	case errors.As(err, &refused):
		return nil, fmt.Errorf("%s: %w", at, err)
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: the answer is HTTP %.80s: correct `url` and `device`", at, res.Status)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return doc, nil
}

// feedRate returns the text of a feed rate in mm/min, empty if it is not available. MTConnect gives
// PathFeedrate and AxisFeedrate in mm/s, except their overrides, which are percentages. (MTConnect
// part 2, "SAMPLE types": units of PATH_FEEDRATE and AXIS_FEEDRATE.)
func (i item) feedRate() (string, error) {
	if i.Type != "PathFeedrate" && i.Type != "AxisFeedrate" || i.SubType == "OVERRIDE" {
		return "", fmt.Errorf("%.40q is a %.80q, which is not in mm/s: name a PathFeedrate or an AxisFeedrate", i.ID, strings.TrimSuffix(i.Type+":"+i.SubType, ":"))
	}
	v, err := strconv.ParseFloat(i.Text, 64)
	if err != nil {
		return i.Text, nil // empty; or reading says that it is not a number
	}
	return strconv.FormatFloat(v*60, 'f', -1, 64), nil
}

// reading finds the items.
func (d *document) reading(items Items) Reading {
	texts := map[string]string{}
	var errs []error
	for _, ask := range items.named() {
		item, err := d.find(ask.item)
		text := item.Text
		if err == nil && ask.key == "feed_rate" {
			text, err = item.feedRate()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", ask.key, err))
			continue
		}
		texts[ask.key] = text
	}
	r := reading(texts)
	r.Problem = errors.Join(append(errs, r.Problem)...)
	return r
}
