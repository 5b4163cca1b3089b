package route

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/pkg/signal"
)

// alertmanagerConfig is the Alertmanager of Prometheus, with API v2.
//
// An alert fires there while the alarm of a machine calls people: while it is open,
// acknowledged or not, and not shelved, suppressed or out of service. Each open advisory
// fires as an alert of its own. A firing alert is sent again every Resend. So an
// Alertmanager that lost it gets it again, and one whose monitor has stopped resolves it
// after its resolve_timeout. An alert that no longer fires is sent once more with
// endsAt. Labels name the machine and do not change meanwhile; annotations give the
// reason and the time.
type alertmanagerConfig struct {
	URL    string            `yaml:"url"`    // below which api/v2/alerts is
	Resend time.Duration     `yaml:"resend"` // 0 means 1 min
	Labels map[string]string `yaml:"labels"` // that every alert gets, such as team
	Token  credential.Secret `yaml:"token"`  // sent as bearer token

	Login credential.Login `yaml:",inline"` // or basic authentication
	TLS   *credential.TLS  `yaml:"tls"`
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (a *alertmanagerConfig) check() error {
	for name := range a.Labels {
		if !labelName.MatchString(name) || slices.Contains([]string{"alertname", "machine", "tool", "subject", "severity"}, name) {
			return badKey("labels", "%q: name labels by letters, digits and _, and by none of alertname, machine, tool, subject and severity", name)
		}
	}
	login := a.Login.User != ""
	return cmp.Or(
		config.Under("url", credential.CheckURL(a.URL, "http", "https", !a.Token.IsZero() || login)),
		wrong(a.Resend != 0 && a.Resend < time.Second, "resend", "%v: must be some time below Alertmanager's resolve_timeout, such as 1m", a.Resend),
		wrong(login && !a.Token.IsZero(), "user", "both a token and a password: name one of them"),
		config.Under("token", a.Token.Check()),
		checkLogin(a.Login),
		checkFiles(a.TLS))
}

func (a *alertmanagerConfig) resolve(file string) {
	a.Token, a.Login, a.TLS = a.Token.Resolve(file), a.Login.Resolve(file), a.TLS.Resolve(file)
}

func (a *alertmanagerConfig) target() string { return "Alertmanager at " + host(a.URL) }

func (a *alertmanagerConfig) open(r *Route) (receiver, error) {
	to := &alertmanagerReceiver{cfg: *a, client: newHTTP(a.TLS, r.opt.Dial), now: r.time, machineStates: newMachineStates()}
	to.cfg.Resend = cmp.Or(a.Resend, time.Minute)
	return to, nil
}

type alertmanagerReceiver struct {
	cfg    alertmanagerConfig
	client *http.Client
	now    func() time.Time
	*machineStates
}

// postableAlert is an alert as API v2 takes it.
// (prometheus/alertmanager, api/v2/openapi.yaml, postableAlert.)
type postableAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt,omitzero"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

func (a *alertmanagerReceiver) deliver(ctx context.Context, e *Event) error {
	if e.isTest() {
		alert := a.alert("FlankTest", e, e)
		alert.EndsAt = a.now().Add(time.Minute).UTC()
		return a.post(ctx, []postableAlert{alert})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.of(e.message.Partition, e.Machine)
	if !s.apply(e) {
		return nil
	}
	var alert postableAlert
	switch {
	case e.Type == event.AdvisoryType:
		alert = a.alert(advisoryName(e.Kind), e, e)
		if e.State == "cleared" {
			alert.EndsAt = a.now().UTC()
		}
	case e.calls():
		alert = a.alert(alarmName, e, s.raised)
	default:
		why := s.raised
		if why == nil || why.Incident != e.Incident { // it is about no alarm that fired
			why = e
		}
		alert = a.alert(alarmName, e, why)
		alert.EndsAt = a.now().UTC()
	}
	return a.post(ctx, []postableAlert{alert})
}

// alarmName is the label alertname of alarms.
const alarmName = "ToolAlarm"

// advisoryNames are the labels alertname of advisories by their kind.
var advisoryNames = map[string]string{
	"sensor": "SensorFault", "silence": "MachineSilent", "samples_lost": "SamplesLost", "machine_stopped": "JudgingStopped",
	"windows_refused": "WindowsRefused", "unknown": "ModelUnknown", "drift": "FeatureDrift",
}

// advisoryName returns the label alertname of an advisory: within v1 there may be more kinds.
func advisoryName(kind string) string { return cmp.Or(advisoryNames[kind], "Advisory") }

// alert returns an alert about e, which why explains.
func (a *alertmanagerReceiver) alert(name string, e, why *Event) postableAlert {
	p := postableAlert{Labels: make(map[string]string), Annotations: make(map[string]string)}
	maps.Copy(p.Labels, a.cfg.Labels)
	put := func(m map[string]string, key, value string) {
		if value != "" {
			m[key] = strings.ToValidUTF8(value, "\uFFFD")
		}
	}
	put(p.Labels, "alertname", name)
	put(p.Labels, "machine", e.Machine)
	// An event that ends an alert has the labels of the one that began it, though it
	// may be less severe, or of the next tool.
	put(p.Labels, "severity", "warning")
	if e.Type == event.AdvisoryType {
		subject := e.Subject
		if advisoryNames[e.Kind] == "" { // the end of one kind ends no other that has its name
			subject = strings.TrimSuffix(e.topic(), "/")
		}
		put(p.Labels, "subject", subject)
		if e.Kind == "drift" {
			p.Labels["severity"] = "info"
		}
		put(p.Annotations, "status", plain.Text(e.Status))
	} else {
		put(p.Labels, "tool", e.Tool)
	}
	put(p.Annotations, "summary", plain.Text(why.Text))
	if why != e {
		put(p.Annotations, "news", plain.Text(e.Text))
	}
	put(p.Annotations, "state", plain.Text(e.Alarm))
	put(p.Annotations, "incident", plain.Text(e.Incident))
	put(p.Annotations, "model", plain.Text(e.Model))
	put(p.Annotations, "hole", plain.Text(why.Hole))
	if why.Score > 0 {
		put(p.Annotations, "score", fmt.Sprintf("%.2f", why.Score))
	}
	if e.State == "acknowledged" {
		put(p.Annotations, "acknowledged_by", plain.Text(e.By))
	}
	put(p.Annotations, "evidence", why.link())
	if u, err := url.Parse(why.link()); err == nil && u.IsAbs() {
		p.GeneratorURL = why.link()
	}
	// A recording may have no clock, and the sensors' may be ahead of Alertmanager's.
	if p.StartsAt = e.Since.UTC(); !signal.HasClock(p.StartsAt) || p.StartsAt.After(a.now()) {
		p.StartsAt = a.now().UTC()
	}
	return p
}

func (a *alertmanagerReceiver) take(partition int, events []*Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.machineStates.take(partition, events)
}

func (a *alertmanagerReceiver) drop(partition int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.machineStates.drop(partition)
}

func (a *alertmanagerReceiver) every() time.Duration { return a.cfg.Resend }

func (a *alertmanagerReceiver) again(ctx context.Context, partition int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var firing []postableAlert
	for _, s := range a.in(partition) {
		if s.last != nil && s.last.calls() {
			firing = append(firing, a.alert(alarmName, s.last, s.raised))
		}
		for _, e := range s.sorted() {
			firing = append(firing, a.alert(advisoryName(e.Kind), e, e))
		}
	}
	if len(firing) == 0 {
		return nil
	}
	return a.post(ctx, firing)
}

func (a *alertmanagerReceiver) post(ctx context.Context, alerts []postableAlert) error {
	body, err := json.Marshal(alerts)
	if err != nil {
		panic("route: alertmanager: " + err.Error())
	}
	req, secrets, err := a.request(ctx, http.MethodPost, "alerts")
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return post(a.client, req, body, secrets, a.now())
}

// request returns a request to something of API v2, and the secrets in it.
func (a *alertmanagerReceiver) request(ctx context.Context, method, name string) (req *http.Request, secrets []string, err error) {
	to, err := url.Parse(strings.TrimRight(a.cfg.URL, "/") + "/api/v2/" + name)
	if err != nil {
		return nil, nil, err
	}
	req = (&http.Request{Method: method, URL: to, Host: to.Host, Header: make(http.Header)}).WithContext(ctx)
	secrets, err = a.login(req)
	return req, secrets, err
}

// login puts the token or the password into a request.
func (a *alertmanagerReceiver) login(req *http.Request) (secrets []string, err error) {
	if a.cfg.Login.User == "" {
		return bearer(req, a.cfg.Token)
	}
	password, err := a.cfg.Login.Password()
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(a.cfg.Login.User, password)
	return []string{password}, nil
}

// probe asks for the status, which needs the same rights as sending.
func (a *alertmanagerReceiver) probe(ctx context.Context) (string, error) {
	req, secrets, err := a.request(ctx, http.MethodGet, "status")
	if err != nil {
		return "", err
	}
	found, err := dialProbe(ctx, req.URL, a.cfg.TLS)
	if err != nil {
		return "", err
	}
	if err := post(a.client, req, nil, secrets, a.now()); err != nil {
		return "", fmt.Errorf("%w: is this an Alertmanager, and is `url` without api/v2?", err)
	}
	return found + ", API v2", nil
}

func (a *alertmanagerReceiver) close() { a.client.CloseIdleConnections() }
