package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flank-tcm/flank/internal/web/summary"
)

// apiError is the answer to a request that cannot be served.
type apiError struct {
	code   int
	Error  string `json:"error"`  // what is wrong
	Remedy string `json:"remedy"` // what to do
}

func (e *apiError) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.code)
	w.Write(encode(e))
}

func badRequest(what, remedy string) *apiError {
	return &apiError{http.StatusBadRequest, what, remedy}
}

func unknownMachine(name string) *apiError {
	return &apiError{
		http.StatusNotFound, fmt.Sprintf("machine %.200q is not known", name),
		"GET /api/machines lists the machines; one appears when its first result is on tcm.results.v1",
	}
}

func notKept(what string) *apiError {
	return &apiError{http.StatusNotFound, what + " is not kept by this program", "ask a monitor that judges: it keeps the past of all machines of its group"}
}

func failed(what string, err error) *apiError {
	return &apiError{http.StatusInternalServerError, what + " cannot be read: " + err.Error(), "look at the log of the monitor, and run: monitor check --config FILE"}
}

// answer is what a route returns: a value for JSON, or an error.
type answer func(*http.Request) (any, *apiError)

// api lists the routes that answer with JSON.
func (x *server) api() map[string]answer {
	return map[string]answer{
		"GET /api/machines":              func(r *http.Request) (any, *apiError) { return x.fleet(r), nil },
		"GET /api/machines/{m}":          x.getMachine,
		"GET /api/machines/{m}/history":  x.getHistory,
		"GET /api/machines/{m}/tools":    x.getTools,
		"GET /api/machines/{m}/usual":    x.getUsual,
		"GET /api/machines/{m}/spectrum": x.getSpectrum,
		"GET /api/alarms":                x.getAlarms,
		"GET /api/alarms/{incident}":     x.getAlarm,
		"GET /api/models":                x.getModels,
		"GET /api/models/{id}":           x.getModel,
		"GET /api/system":                func(r *http.Request) (any, *apiError) { return x.systemNow(r.Context()), nil },
	}
}

// zipFrom is the size in bytes from which on JSON is compressed.
const zipFrom = 1 << 10

// ServeHTTP sends the answer as JSON, compressed if it is long and the client can read that.
func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, bad := a(r)
	if bad != nil {
		bad.send(w)
		return
	}
	data := encode(v)
	hd := w.Header()
	hd.Set("Content-Type", "application/json")
	hd.Add("Vary", "Accept-Encoding")
	if len(data) > zipFrom && takesGzip(r) {
		hd.Set("Content-Encoding", "gzip")
		data = zipped(data, gzip.BestSpeed)
	}
	hd.Set("Content-Length", strconv.Itoa(len(data)))
	w.Write(data)
}

// zipped returns data compressed.
func zipped(data []byte, level int) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		panic("web: " + err.Error())
	}
	_, _ = z.Write(data) // to memory: it cannot fail
	_ = z.Close()
	return b.Bytes()
}

// takesGzip reports whether the client says that it can read gzip.
func takesGzip(r *http.Request) bool {
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

func (x *server) getMachine(r *http.Request) (any, *apiError) {
	name := r.PathValue("m")
	m, _ := x.snapshot(name)
	if m == nil {
		return nil, unknownMachine(name)
	}
	x.hub.mu.Lock()
	x.hub.look(name)
	x.hub.mu.Unlock()
	return m, nil
}

// Bounds of a history.
const (
	lastHour   = time.Hour
	autoPoints = 1500                 // that step=auto gives at most
	longest    = 400 * 24 * time.Hour // between from and to
)

// autoSteps are the steps that step=auto chooses from.
var autoSteps = []time.Duration{
	time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour,
}

func (x *server) getHistory(r *http.Request) (any, *apiError) {
	name := r.PathValue("m")
	from, to, bad := x.span(r.URL.Query(), lastHour)
	if bad != nil {
		return nil, bad
	}
	step, bad := stepOf(r.URL.Query().Get("step"), to.Sub(from))
	if bad != nil {
		return nil, bad
	}
	if x.History == nil {
		return nil, notKept("history")
	}
	all, err := x.History(name, from, to, step)
	if bad := x.unread(name, "history", err); bad != nil {
		return nil, bad
	}
	if all.From.IsZero() { // nothing is kept of the machine
		all.From, all.To = from.UTC(), to.UTC()
		if step == summary.ByHole {
			all.Each = 1
		} else {
			all.Step = int(step.Seconds())
		}
	}
	p := &all.Points
	for _, counts := range []*[]int{&p.Windows, &p.Cutting, &p.Healthy, &p.Faulty, &p.Unknown, &p.Learning, &p.NotCutting, &p.SensorFault, &p.Late} {
		*counts = list(*counts)
	}
	p.T, all.Tools, all.Alarms, all.Advisories = list(p.T), list(all.Tools), list(all.Alarms), list(all.Advisories)
	all.Machine = name
	return all, nil
}

// span returns the times from and to of a query. The last one is to now by default.
func (x *server) span(q url.Values, byDefault time.Duration) (from, to time.Time, bad *apiError) {
	if to, bad = timeOf(q, "to", x.hub.now()); bad != nil {
		return from, to, bad
	}
	from, bad = timeOf(q, "from", to.Add(-byDefault))
	switch {
	case bad != nil:
	case !from.Before(to):
		bad = badRequest(fmt.Sprintf("from, %s, is not before to, %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)), "choose an earlier from or a later to")
	case to.Sub(from) > longest:
		bad = badRequest(fmt.Sprintf("from %s to %s is longer than 400 days", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339)), "choose a shorter range: no more than 400 days are kept")
	}
	return from, to, bad
}

// timeOf reads a time of a query, which has one by default.
func timeOf(q url.Values, name string, byDefault time.Time) (time.Time, *apiError) {
	text := q.Get(name)
	if text == "" {
		return byDefault, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		remedy := "give a time as RFC 3339, for example " + name + "=2026-03-01T02:13:41Z"
		if strings.Contains(text, " ") {
			remedy += "; write a + in an address as %2B"
		}
		return t, badRequest(fmt.Sprintf("%s=%.60q is not a time", name, text), remedy)
	}
	return t, nil
}

// autoStep returns the least step with which a history of that length has few points.
func autoStep(span time.Duration) (step time.Duration) {
	for _, step = range autoSteps {
		if span/step <= autoPoints {
			break
		}
	}
	return step
}

// stepOf returns the step of a history of that length.
func stepOf(text string, span time.Duration) (time.Duration, *apiError) {
	const allowed = "step is auto, minute, hour, hole, or a whole number of minutes in seconds such as 300s"
	var step time.Duration
	switch text {
	case "", "auto":
		return autoStep(span), nil
	case "hole":
		return summary.ByHole, nil
	case "minute":
		step = time.Minute
	case "hour":
		step = time.Hour
	default:
		n, err := strconv.ParseUint(strings.TrimSuffix(text, "s"), 10, 31)
		if err != nil || !strings.HasSuffix(text, "s") || n == 0 || n%60 != 0 {
			return 0, badRequest(fmt.Sprintf("step=%.60q is not a step", text), allowed)
		}
		step = time.Duration(n) * time.Second
	}
	if points := span/step + 1; points > summary.MaxPoints {
		least := (span/(summary.MaxPoints-1) + time.Minute).Truncate(time.Minute)
		return 0, badRequest(fmt.Sprintf("step=%.60s gives %d points, and %d is the most", text, points, summary.MaxPoints),
			fmt.Sprintf("choose step=auto, step=%.0fs or more, or a shorter range", least.Seconds()))
	}
	return step, nil
}

// limitOf reads a limit of a query.
func limitOf(q url.Values, byDefault, most int) (int, *apiError) {
	text := q.Get("limit")
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badRequest(fmt.Sprintf("limit=%.60q is not allowed", text), fmt.Sprintf("limit is a number from 1 to %d", most))
	}
	return n, nil
}

func (x *server) getTools(r *http.Request) (any, *apiError) {
	name := r.PathValue("m")
	limit, bad := limitOf(r.URL.Query(), 20, summary.MaxTools)
	switch {
	case bad != nil:
		return nil, bad
	case x.Tools == nil:
		return nil, notKept("the list of tools")
	}
	all, err := x.Tools(name, limit)
	if bad := x.unread(name, "the list of tools", err); bad != nil {
		return nil, bad
	}
	return map[string]any{"tools": list(all)}, nil
}

// unread returns why nothing of a machine's past was read, nil if the machine only has none.
func (x *server) unread(name, what string, err error) *apiError {
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, summary.ErrNoMachine):
		return failed(what, err)
	case !x.hub.holds(name):
		return unknownMachine(name)
	}
	return nil
}

// usualJSON is the answer of /api/machines/{m}/usual.
type usualJSON struct {
	Machine string `json:"machine"`
	Tool    string `json:"tool"`
	summary.Usual
}

func (x *server) getUsual(r *http.Request) (any, *apiError) {
	name, tool := r.PathValue("m"), r.URL.Query().Get("tool")
	x.hub.mu.Lock()
	m := x.hub.machines[name]
	if m != nil && tool == "" && m.lastResult != nil {
		tool = m.lastResult.Tool
	}
	x.hub.mu.Unlock()
	j := usualJSON{Machine: name, Tool: tool}
	if x.Usual != nil {
		u, err := x.Usual(name, tool)
		if bad := x.unread(name, "what is usual for the tool", err); bad != nil {
			return nil, bad
		}
		j.Usual = u
	} else if m == nil {
		return nil, unknownMachine(name)
	}
	j.Channels = list(j.Channels)
	return j, nil
}

// alarmsOf reads which alarms a query asks for.
func alarmsOf(q url.Values) (filter summary.AlarmFilter, bad *apiError) {
	filter.Machine = q.Get("machine")
	if filter.From, bad = timeOf(q, "from", time.Time{}); bad != nil {
		return filter, bad
	}
	if filter.To, bad = timeOf(q, "to", time.Time{}); bad != nil {
		return filter, bad
	}
	if !filter.From.IsZero() && !filter.To.IsZero() && !filter.From.Before(filter.To) {
		return filter, badRequest("from is not before to", "choose an earlier from or a later to")
	}
	filter.Limit, bad = limitOf(q, 100, summary.MaxAlarms)
	return filter, bad
}

func (x *server) getAlarms(r *http.Request) (any, *apiError) {
	filter, bad := alarmsOf(r.URL.Query())
	switch {
	case bad != nil:
		return nil, bad
	case x.Alarms == nil:
		return nil, notKept("the list of alarms")
	}
	all, err := x.Alarms(filter)
	if bad := x.unread(filter.Machine, "the list of alarms", err); bad != nil {
		return nil, bad
	}
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	for i := range all {
		x.setState(&all[i])
	}
	return map[string]any{"alarms": list(all)}, nil
}

// setState says how an alarm stands that is open, also in the magazine: its last alert may say
// only that its tool left the spindle. x.hub.mu must be held.
func (x *server) setState(a *summary.Alarm) {
	m := x.hub.machines[a.Machine]
	if m == nil {
		return
	}
	if i := slices.IndexFunc(m.tools, func(t summary.ToolAlarm) bool { return t.Incident == a.Incident }); i >= 0 {
		a.State, a.Magazine = m.tools[i].Alarm, m.inMagazine(m.tools[i])
	}
}

var incidentName = regexp.MustCompile(`^A-[A-Z2-7]{8}$`)

// isIncident reports whether text has the form of the name of an alarm.
func isIncident(text string) bool { return incidentName.MatchString(text) }

// alarmJSON is everything that the page of an alarm shows.
type alarmJSON struct {
	Machine  string         `json:"machine"`
	Incident string         `json:"incident"`
	Alarm    *summary.Alarm `json:"alarm,omitempty"` // left out if this program keeps no past
	Tile     *Tile          `json:"tile,omitempty"`  // of the machine; left out if nothing of it has come
	Alerts   []alertJSON    `json:"alerts"`          // in the order in which they were sent
	Evidence []evidenceJSON `json:"evidence"`
	Previous string         `json:"previous,omitempty"` // the machine's alarm before this one
	Next     string         `json:"next,omitempty"`
}

// alarmSnapshotJSON is the data of the event "snapshot" of the page of an alarm.
type alarmSnapshotJSON struct {
	pageHead
	Known bool       `json:"known"` // false: nothing of the alarm has come, and Alarm is left out
	Alarm *alarmJSON `json:"alarm,omitempty"`
}

func (x *server) getAlarm(r *http.Request) (any, *apiError) {
	incident := r.PathValue("incident")
	if !isIncident(incident) {
		return nil, badRequest(fmt.Sprintf("%.40q is not the name of an alarm", incident), "names of alarms look like A-K3ZQ7M2P")
	}
	a, _, err := x.alarm(x.machineOf(incident), incident)
	switch {
	case err != nil:
		return nil, failed("the alarm", err)
	case a == nil:
		return nil, &apiError{
			http.StatusNotFound, "alarm " + incident + " is not known",
			"its alerts may be older than tcm.alerts.v1 keeps them; GET /api/alarms lists the alarms",
		}
	}
	return a, nil
}

// alarm returns what is known of an alarm, of the past and of now, and the cursor of a page
// that has seen it. It returns nil if nothing is known.
func (x *server) alarm(machine, incident string) (*alarmJSON, cursor, error) {
	a := &alarmJSON{Machine: machine, Incident: incident}
	if x.Alarm != nil {
		d, err := x.Alarm(incident)
		if err != nil && !errors.Is(err, summary.ErrNoAlarm) {
			return nil, cursor{}, err
		}
		if err == nil {
			a.Machine, a.Alerts, a.Evidence, a.Previous, a.Next = d.Machine, wired(d.Alerts, wireAlert), wired(d.Evidence, wireEvidence), d.Previous, d.Next
			a.Alarm = &d.Alarm
			x.hub.mu.Lock()
			x.setState(a.Alarm)
			x.hub.mu.Unlock()
		}
	}
	m, at := x.snapshot(a.Machine)
	if m != nil {
		a.Tile = m.Tile
		a.Alerts = with(a.Alerts, m.Alerts, incident, func(x alertJSON) (string, string) { return x.Incident, x.ID })
		a.Evidence = with(a.Evidence, m.Evidence, incident, func(x evidenceJSON) (string, string) { return x.Incident, x.ID })
	}
	if len(a.Alerts) == 0 && a.Alarm == nil {
		return nil, at, nil
	}
	a.Alerts, a.Evidence = list(a.Alerts), list(a.Evidence)
	return a, at, nil
}

// with returns what is kept with what came since of an incident, each id once.
func with[E any](kept, came []E, incident string, of func(E) (incident, id string)) []E {
	known := make(map[string]bool)
	for _, e := range kept {
		_, id := of(e)
		known[id] = true
	}
	for _, e := range came {
		if name, id := of(e); name == incident && !known[id] {
			kept = append(kept, e)
		}
	}
	return kept
}

// alarmSnapshot returns what the page of an alarm shows first.
func (x *server) alarmSnapshot(r *http.Request, machine, incident string) (alarmSnapshotJSON, cursor) {
	a, at, err := x.alarm(machine, incident)
	if err != nil {
		a = nil // the page asks /api/alarms/{incident}, which says why
	}
	return alarmSnapshotJSON{x.head(r), a != nil, a}, at
}

// only leaves of an update what the page of an alarm shows.
func (u *machineUpdate) only(incident string) {
	u.Results, u.Window, u.Advisories = nil, nil, nil
	u.Alerts = slices.DeleteFunc(u.Alerts, func(a alertJSON) bool { return a.Incident != incident })
	u.Evidence = slices.DeleteFunc(u.Evidence, func(e evidenceJSON) bool { return e.Incident != incident })
}

// machineOf returns the machine of an alarm, empty if it is not known.
func (x *server) machineOf(incident string) string {
	x.hub.mu.Lock()
	for name, m := range x.hub.machines {
		if _, open := m.standing(); open == incident || m.holds(incident) {
			x.hub.mu.Unlock()
			return name
		}
	}
	x.hub.mu.Unlock()
	if x.Alarm == nil {
		return ""
	}
	d, err := x.Alarm(incident)
	if err != nil {
		return ""
	}
	return d.Machine
}

func (x *server) getModels(r *http.Request) (any, *apiError) {
	if x.ListModels == nil {
		return nil, notKept("a list of models")
	}
	all, err := x.ListModels(r.Context())
	if err != nil {
		return nil, failed("tcm.models.v1", err)
	}
	all.Models, all.Deployments = list(all.Models), list(all.Deployments)
	return all, nil
}

func (x *server) getModel(r *http.Request) (any, *apiError) {
	if x.Model == nil {
		return nil, notKept("a list of models")
	}
	id := r.PathValue("id")
	m, err := x.Model(r.Context(), id)
	switch {
	case err != nil:
		return nil, failed("tcm.models.v1", err)
	case m == nil:
		return nil, &apiError{http.StatusNotFound, fmt.Sprintf("model %.64q is not known", id), "GET /api/models lists the models; trainer publish puts one on tcm.models.v1"}
	}
	m.Channels, m.Deployments = list(m.Channels), list(m.Deployments)
	m.Machines = x.judgedBy(id)
	if c := m.Card; c != nil {
		c.Reasons, c.Unknown, c.Data, c.Classes = list(c.Reasons), list(c.Unknown), list(c.Data), list(c.Classes)
		for i, d := range c.Data {
			c.Data[i].Machines, c.Data[i].Offsets = list(d.Machines), list(d.Offsets)
		}
	}
	if err := x.fillUse(m); err != nil {
		return nil, failed("history", err)
	}
	return m, nil
}

// useSpan is how far back the page of a model looks.
const useSpan = 28 * 24 * time.Hour

// fillUse sets what the history knows of a model.
func (x *server) fillUse(m *ModelDetail) error {
	var use summary.ModelUse
	if x.ModelUse != nil {
		var err error
		if use, err = x.ModelUse(m.ID, x.hub.now().Add(-useSpan), x.hub.now()); err != nil {
			return err
		}
	}
	m.UnknownRate = unknownRate{T: list(use.T), Share: []float64{}, Windows: list(use.Judged)}
	for i, n := range use.Judged {
		m.UnknownRate.Share = append(m.UnknownRate.Share, float64(use.Unknown[i])/float64(n))
	}
	m.Trials, m.Drift = list(use.Trials), list(use.Drift)
	return nil
}

// judgedBy returns the machines whose last result is of a model, by name.
func (x *server) judgedBy(id string) []string {
	x.hub.mu.Lock()
	defer x.hub.mu.Unlock()
	names := []string{}
	for name, m := range x.hub.machines {
		if m.lastResult != nil && m.lastResult.Model == id {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
