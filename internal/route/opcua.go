package route

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
	"github.com/rs/zerolog"

	"github.com/flank-tcm/flank/internal/config"
	"github.com/flank-tcm/flank/internal/config/credential"
	"github.com/flank-tcm/flank/internal/event"
	"github.com/flank-tcm/flank/internal/plain"
	"github.com/flank-tcm/flank/internal/protocol/opcua"
	"github.com/flank-tcm/flank/pkg/signal"
)

// opcuaConfig is the OPC UA server of a machine's control or of a cell's PLC. The route writes the
// state of machines to variables there, and asks the PLC to take a tool out. This is advisory:
// it is never a safety function.
type opcuaConfig struct {
	Endpoint string           `yaml:"endpoint"` // opc.tcp://host:4840/path
	Insecure bool             `yaml:"insecure"` // allows a server beyond this computer without TLS
	Login    credential.Login `yaml:",inline"`
	TLS      *credential.TLS  `yaml:"tls"`

	HandshakeTimeout time.Duration `yaml:"handshake_timeout"` // 0 means 30 s
	Nodes            []opcuaNodes  `yaml:"nodes"`
}

// opcuaNodes names the variables of a machine by their node ids, such as ns=2;s=usk25.Alarm.
// Variables that are left out are not written.
type opcuaNodes struct {
	Machine string `yaml:"machine"` // pattern of the machines; with * ids hold {machine}, its last part

	Alarm    string `yaml:"alarm"`
	Text     string `yaml:"text"`
	WearUM   string `yaml:"wear_um"`
	Tool     string `yaml:"tool"`
	Incident string `yaml:"incident"`
	Time     string `yaml:"time"`

	// All three, or none. See handshake.
	Request      string `yaml:"request"`
	RequestID    string `yaml:"request_id"`
	Acknowledged string `yaml:"acknowledged"`
}

// Types of variables.
var (
	texts    = []ua.TypeID{ua.TypeIDString}
	integers = []ua.TypeID{ua.TypeIDByte, ua.TypeIDInt16, ua.TypeIDUint16, ua.TypeIDInt32, ua.TypeIDUint32}
	numbers  = []ua.TypeID{ua.TypeIDFloat, ua.TypeIDDouble, ua.TypeIDInt16, ua.TypeIDInt32}
)

// variable is a variable of a machine.
type variable struct {
	key     string
	id      string
	types   []ua.TypeID // that it may have
	written bool        // by the route
}

// variables returns the variables that are named, with the ids of a machine.
func (n *opcuaNodes) variables(machine string) (all []variable) {
	ids := strings.NewReplacer("{machine}", event.ShortName(machine))
	for _, v := range []variable{
		{"alarm", n.Alarm, append(texts, integers...), true},
		{"text", n.Text, texts, true},
		{"wear_um", n.WearUM, numbers, true},
		{"tool", n.Tool, texts, true},
		{"incident", n.Incident, texts, true},
		{"time", n.Time, []ua.TypeID{ua.TypeIDDateTime, ua.TypeIDString}, true},
		{"request", n.Request, []ua.TypeID{ua.TypeIDBoolean}, true},
		{"request_id", n.RequestID, texts, true},
		{"acknowledged", n.Acknowledged, []ua.TypeID{ua.TypeIDBoolean, ua.TypeIDString}, false},
	} {
		if v.id != "" {
			v.id = ids.Replace(v.id)
			all = append(all, v)
		}
	}
	return all
}

// Bounds of the time that a PLC has to acknowledge.
const (
	defaultHandshake = 30 * time.Second
	maxHandshake     = time.Hour
)

func (o *opcuaConfig) check() error {
	_, err := opcua.Load(o.Endpoint, o.Login, o.TLS, o.Insecure)
	err = cmp.Or(err,
		wrong(o.HandshakeTimeout != 0 && (o.HandshakeTimeout < time.Second || o.HandshakeTimeout > maxHandshake),
			"handshake_timeout", "%v: write the time that the PLC has to acknowledge, from 1s to %v", o.HandshakeTimeout, maxHandshake),
		wrong(len(o.Nodes) == 0, "nodes", "name the variables of at least one machine"))
	seen := make(map[string]string) // by id
	for i, n := range o.Nodes {
		err = cmp.Or(err, config.Under(fmt.Sprintf("nodes[%d]", i), n.check(seen)))
	}
	return err
}

func (n *opcuaNodes) check(seen map[string]string) error {
	several := strings.ContainsAny(n.Machine, "*?[")
	name := n.Machine
	if several {
		name = "{machine}"
	}
	all := n.variables(name)
	_, bad := path.Match(n.Machine, "")
	err := cmp.Or(
		wrong(bad != nil || n.Machine == "", "machine", "%q: write a machine's path or its last part, or a pattern in which * stands for all but a slash", n.Machine),
		wrong(len(all) == 0, "alarm", "name a variable: at least one of alarm, text, wear_um, tool, incident, time and request"))
	for _, v := range all {
		_, bad := opcua.ParseNode(v.id)
		err = cmp.Or(err,
			wrong(several && !strings.Contains(v.id, "{machine}"), v.key, "%q: several machines would write the same variable: put {machine} into it, the last part of the machine's path", v.id),
			wrong(bad != nil, v.key, "%q is not a node id: write one as in ns=2;s=usk25.Alarm or ns=2;i=1001", v.id),
			wrong(seen[v.id] != "", v.key, "%q is the variable of %s already: give each value a variable of its own", v.id, seen[v.id]))
		if seen[v.id] = v.key; several {
			delete(seen, v.id) // another machine's
		}
	}
	named := n.Request != ""
	return cmp.Or(err, wrong(named != (n.RequestID != "") || named != (n.Acknowledged != ""), "request", "a request needs all of `request`, `request_id` and `acknowledged`: name the three, or none"))
}

func (o *opcuaConfig) resolve(file string) {
	o.Login, o.TLS = o.Login.Resolve(file), o.TLS.Resolve(file)
}

func (o *opcuaConfig) target() string {
	u, err := url.Parse(o.Endpoint)
	if err != nil {
		return "OPC UA"
	}
	return "OPC UA at " + u.Host + " (advisory, never a safety function)"
}

func (o *opcuaConfig) open(r *Route) (receiver, error) {
	q := &opcuaReceiver{cfg: *o, log: r.log, now: r.time, count: r.count, machineStates: newMachineStates(), machinesAt: make(map[string]*plcMachine)}
	q.cfg.HandshakeTimeout = cmp.Or(o.HandshakeTimeout, defaultHandshake)
	q.pause = func(failures int) time.Duration { return r.wait(failures, 0) }
	return q, nil
}

// opcuaReceiver shows the state of machines on an OPC UA server. Its lock is the lock of
// machineStates: one request is on its way at a time.
type opcuaReceiver struct {
	cfg   opcuaConfig
	log   zerolog.Logger
	now   func() time.Time
	count func(func(*stats))
	pause func(failures int) time.Duration
	*machineStates

	session    *opcua.Session
	machinesAt map[string]*plcMachine // by machine; of partitions that this monitor has
}

// plcMachine is a machine's variables on the server.
type plcMachine struct {
	variables []variable // empty: the configuration names none for the machine
	values    []*plcVariable
	written   time.Time // when its state was written on this connection; zero if it was not
	handshake handshake
	trouble   string    // why its variables cannot be written, as it was logged
	loggedAt  time.Time // when it was last logged that the PLC does not take requests
}

// plcVariable is a variable whose type is known.
type plcVariable struct {
	variable
	node *ua.NodeID
	typ  ua.TypeID
}

// Times between looks at the server.
const (
	requestEvery = time.Second      // while there may be requests
	aliveEvery   = 10 * time.Second // to keep the session
	rewriteEvery = time.Minute      // all values: a PLC may have forgotten them
	longTurn     = 2 * time.Second  // of again, well below the time of an attempt
)

// every says how often again is needed.
func (q *opcuaReceiver) every() time.Duration {
	if slices.ContainsFunc(q.cfg.Nodes, func(n opcuaNodes) bool { return n.Request != "" }) {
		return requestEvery
	}
	return aliveEvery
}

// connect returns a session. The caller holds the lock, here and below.
func (q *opcuaReceiver) connect(ctx context.Context) error {
	if q.session != nil {
		if q.session.Usable(q.now()) {
			return nil
		}
		q.session.Close()
		q.session = nil
	}
	cfg, err := opcua.Load(q.cfg.Endpoint, q.cfg.Login, q.cfg.TLS, q.cfg.Insecure)
	if err != nil {
		return err
	}
	if q.session, err = opcua.Dial(ctx, cfg); err != nil {
		return err
	}
	for _, m := range q.machinesAt { // the server may be another one now
		m.values, m.written = nil, time.Time{}
	}
	return nil
}

// at returns a machine's variables, nil if the configuration names none.
func (q *opcuaReceiver) at(machine string) *plcMachine {
	m := q.machinesAt[machine]
	if m == nil {
		m = new(plcMachine)
		for _, n := range q.cfg.Nodes {
			if matches(n.Machine, &Event{Machine: machine}) {
				m.variables = n.variables(machine)
				break
			}
		}
		q.machinesAt[machine] = m
	}
	if len(m.variables) == 0 {
		return nil
	}
	return m
}

// permanent reports whether a status of a variable stays until someone changes the server or
// the configuration.
func permanent(s ua.StatusCode) bool {
	switch s {
	case ua.StatusBadNodeIDUnknown, ua.StatusBadNodeIDInvalid, ua.StatusBadNotWritable, ua.StatusBadNotReadable, ua.StatusBadUserAccessDenied,
		ua.StatusBadTypeMismatch, ua.StatusBadWriteNotSupported, ua.StatusBadOutOfRange, ua.StatusBadAttributeIDInvalid:
		return true
	}
	return false
}

// statusError returns the error of a variable, nil if the status is not bad.
func statusError(v variable, s ua.StatusCode) error {
	if s>>31 == 0 {
		return nil
	}
	err := fmt.Errorf("variable %s (`%s`): %w", plain.Short(v.id, 120), v.key, s)
	if permanent(s) {
		return &refusal{err}
	}
	return err
}

// learn asks for the types of a machine's variables, once a session.
func (q *opcuaReceiver) learn(ctx context.Context, m *plcMachine) error {
	if m.values != nil {
		return nil
	}
	for name, other := range q.machinesAt {
		if first := m.variables[0].id; other.values != nil && other.variables[0].id == first {
			return &refusal{fmt.Errorf("variable %s is written for %s already: give each of the two an entry of its own in `nodes`, by its whole path", plain.Short(first, 120), name)}
		}
	}
	var all []*plcVariable
	var ask []opcua.Attribute
	for _, v := range m.variables {
		node, err := opcua.ParseNode(v.id)
		if err != nil {
			return &refusal{fmt.Errorf("%q is not a node id: the machine's name does not fit into it", plain.Short(v.id, 120))}
		}
		all = append(all, &plcVariable{variable: v, node: node})
		ask = append(ask, opcua.Attribute{Node: node, ID: ua.AttributeIDDataType}, opcua.Attribute{Node: node, ID: ua.AttributeIDValue},
			opcua.Attribute{Node: node, ID: ua.AttributeIDUserAccessLevel})
	}
	values, err := q.session.Read(ctx, ask)
	if err != nil {
		return err
	}
	for i, v := range all {
		typ, value, access := values[3*i], values[3*i+1], values[3*i+2]
		if err := statusError(v.variable, typ.Status); err != nil {
			return err
		}
		if n, ok := typ.V.(*ua.NodeID); ok && n.Namespace() == 0 && n.IntID() <= id.DateTime {
			v.typ = ua.TypeID(n.IntID())
		} else {
			v.typ = value.Type
		}
		if !slices.Contains(v.types, v.typ) {
			return &refusal{fmt.Errorf("variable %s (`%s`) is of type %s: it must be one of %s", plain.Short(v.id, 120), v.key, typeName(v.typ), typeNames(v.types))}
		}
		need, what := byte(2), "written"
		if !v.written {
			need, what = 1, "read"
		}
		if a, ok := access.V.(byte); ok && a&need == 0 {
			return &refusal{fmt.Errorf("variable %s (`%s`) may not be %s by this user: grant the right on the server", plain.Short(v.id, 120), v.key, what)}
		}
	}
	m.values = all
	return nil
}

func typeName(t ua.TypeID) string {
	if t == ua.TypeIDNull {
		return "unknown"
	}
	return strings.TrimPrefix(t.String(), "TypeID")
}

func typeNames(all []ua.TypeID) string {
	var names []string
	for _, t := range all {
		names = append(names, typeName(t))
	}
	return strings.Join(names, ", ")
}

// alarmCodes are the states of an alarm for a PLC that has no texts. Numbers are for good.
var alarmCodes = map[string]int{"normal": 0, "raised": 1, "acknowledged": 2, "returned": 3, "shelved": 4, "suppressed": 5, "out_of_service": 6}

// alarmCode returns the number of a state. One that is not known counts as raised.
func alarmCode(state string) int {
	if n, ok := alarmCodes[state]; ok {
		return n
	}
	return 1
}

// maxText is how many bytes of a text are written: PLCs have strings of a fixed length.
const maxText = 254

// plcText returns a text as it is written to a PLC.
func plcText(s string) string {
	s = strings.ToValidUTF8(plain.Short(s, maxText), "")
	for len(s) > maxText {
		s = s[:len(s)-1]
	}
	return strings.ToValidUTF8(s, "")
}

// unknownWear is the wear of a tool that has none.
const unknownWear = -1

// value returns the value of a variable for the state of a machine, false if it stays as it is.
func (v *plcVariable) value(s *standing) (any, bool) {
	state := machineState(s)
	switch v.key {
	case "alarm":
		if v.typ == ua.TypeIDString {
			return plcText(state.Alarm), true
		}
		return number(v.typ, float64(alarmCode(state.Alarm))), true
	case "text":
		if state.Incident != "" {
			return plcText(s.raised.Text), true
		}
		return plcText(state.Text), true
	case "wear_um":
		if e := s.last; e != nil && e.Wear != nil {
			return number(v.typ, e.Wear.WearUM), true
		}
		return number(v.typ, unknownWear), state.Incident == "" // after a restart the wear of an open alarm is not known
	case "tool":
		return plcText(state.Tool), true
	case "incident":
		return plcText(state.Incident), true
	case "time":
		if v.typ == ua.TypeIDDateTime {
			return state.At.UTC(), true
		}
		if !signal.HasClock(state.At) {
			return "", true
		}
		return state.At.UTC().Format(time.RFC3339), true
	}
	return nil, false
}

// number returns a number of a type, rounded and within its range.
func number(t ua.TypeID, x float64) any {
	switch t {
	case ua.TypeIDFloat:
		return float32(x)
	case ua.TypeIDDouble:
		return x
	case ua.TypeIDByte:
		return uint8(max(0, min(math.Round(x), math.MaxUint8)))
	case ua.TypeIDInt16:
		return int16(max(math.MinInt16, min(math.Round(x), math.MaxInt16)))
	case ua.TypeIDUint16:
		return uint16(max(0, min(math.Round(x), math.MaxUint16)))
	case ua.TypeIDUint32:
		return uint32(max(0, min(math.Round(x), math.MaxUint32)))
	}
	return int32(max(math.MinInt32, min(math.Round(x), math.MaxInt32)))
}

// write writes values of variables.
func (q *opcuaReceiver) write(ctx context.Context, all []*plcVariable, values []any) error {
	if len(all) == 0 {
		return nil
	}
	var writes []opcua.Write
	for i, v := range all {
		one, err := ua.NewVariant(values[i])
		if err != nil {
			panic("route: opcua: " + err.Error())
		}
		writes = append(writes, opcua.Write{Node: v.node, Value: one})
	}
	status, err := q.session.Write(ctx, writes)
	if err != nil {
		return err
	}
	for i, s := range status {
		if err := statusError(all[i].variable, s); err != nil {
			return err
		}
	}
	return nil
}

// show writes the state of a machine, and takes the next step of its request.
func (q *opcuaReceiver) show(ctx context.Context, m *plcMachine, s *standing) error {
	if err := q.learn(ctx, m); err != nil {
		return err
	}
	var all []*plcVariable
	var values []any
	for _, v := range m.values {
		if value, ok := v.value(s); ok {
			all, values = append(all, v), append(values, value)
		}
	}
	if err := q.write(ctx, all, values); err != nil {
		return err
	}
	m.written = q.now()
	return q.step(ctx, m, s)
}

// named returns the variable of a key, nil if the machine has none.
func (m *plcMachine) named(key string) *plcVariable {
	if i := slices.IndexFunc(m.values, func(v *plcVariable) bool { return v.key == key }); i >= 0 {
		return m.values[i]
	}
	return nil
}

// step takes the next step of a machine's request.
func (q *opcuaReceiver) step(ctx context.Context, m *plcMachine, s *standing) error {
	request, id, acknowledged := m.named("request"), m.named("request_id"), m.named("acknowledged")
	if request == nil {
		return nil
	}
	var ask []opcua.Attribute
	for _, v := range []*plcVariable{request, id, acknowledged} {
		ask = append(ask, opcua.Attribute{Node: v.node, ID: ua.AttributeIDValue})
	}
	values, err := q.session.Read(ctx, ask)
	if err != nil {
		return err
	}
	for i, v := range []*plcVariable{request, id, acknowledged} {
		if err := statusError(v.variable, values[i].Status); err != nil {
			return err
		}
	}
	seen := requestVariables{byID: acknowledged.typ == ua.TypeIDString}
	seen.request, _ = values[0].V.(bool) // a variable without a value is one that is not set
	seen.id, _ = values[1].V.(string)
	seen.set, _ = values[2].V.(bool)
	seen.acknowledged, _ = values[2].V.(string)
	want := ""
	if s.last != nil && s.last.calls() {
		want = cmp.Or(plcText(s.last.Incident), "open") // a call without a name is one all the same
	}
	before := m.handshake
	what, found := m.handshake.next(want, seen, q.now(), q.cfg.HandshakeTimeout, q.pause)
	switch what {
	case writeAsk:
		err = q.write(ctx, []*plcVariable{id, request}, []any{want, true})
		if refused(err) { // one of the two may be written: the pair would mean something else
			_ = q.write(ctx, []*plcVariable{request, id}, []any{false, ""})
		}
	case writeTaken:
		err = q.write(ctx, []*plcVariable{request, id}, []any{false, want})
	case writeWithdraw:
		err = q.write(ctx, []*plcVariable{request, id}, []any{false, ""})
	}
	if err != nil {
		m.handshake = before // the step is made again
		return err
	}
	q.noteRequest(m, found, s.machine, want, seen.set && !seen.request)
	return nil
}

// noteRequest counts and logs what became of a machine's request for an incident. set: the PLC's acknowledgement is set
// although nothing is asked.
func (q *opcuaReceiver) noteRequest(m *plcMachine, found outcome, machine, incident string, set bool) {
	switch found {
	case requestTaken:
		q.log.Info().Str("event", "request_taken").Str("machine", machine).Str("incident", incident).Msg("the PLC took the tool-expired request")
		q.count(func(s *stats) { s.requestsTaken++ })
	case requestMissed:
		q.count(func(s *stats) { s.requestsMissed++ })
		if m.handshake.failures > 1 && q.now().Sub(m.loggedAt) < repeatAfter {
			return
		}
		m.loggedAt = q.now()
		q.log.Warn().Str("event", "request_not_taken").Str("machine", machine).Str("incident", incident).Int("attempt", m.handshake.failures).
			Time("retry_at", m.handshake.retry).Bool("acknowledged_is_set", set).
			Msgf("the PLC did not acknowledge the tool-expired request within %v; the request is withdrawn and made again: check the PLC's program", q.cfg.HandshakeTimeout)
	}
}

// noteOpen counts the requests that the PLCs have not taken.
func (q *opcuaReceiver) noteOpen() {
	n := 0
	for _, m := range q.machinesAt {
		if p := m.handshake.phase; p == asking || p == pausing {
			n++
		}
	}
	q.count(func(s *stats) { s.requestsOpen = n })
}

func (q *opcuaReceiver) deliver(ctx context.Context, e *Event) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.noteOpen()
	s := q.of(e.message.Partition, e.Machine)
	m := q.at(e.Machine)
	if !s.apply(e) || m == nil {
		return nil
	}
	m.written = time.Time{}
	if err := q.connect(ctx); err != nil {
		return err
	}
	err := q.show(ctx, m, s)
	if refused(err) || s.retired {
		m.written, m.values = q.now(), nil // again tries later, as someone may have corrected the server
	}
	return err
}

// again writes what the server may lack, and takes the next steps of requests. It goes on past
// a machine whose variables the server refuses.
func (q *opcuaReceiver) again(ctx context.Context, partition int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.noteOpen()
	if err := q.connect(ctx); err != nil {
		return err
	}
	began := time.Now()
	for _, s := range q.in(partition) {
		m := q.at(s.machine)
		if m == nil || s.retired { // another machine may have its variables by now
			continue
		}
		if time.Since(began) > longTurn {
			break // the rest is due the next time
		}
		var err error
		switch due := q.now().Sub(m.written) >= rewriteEvery; {
		case due:
			err = q.show(ctx, m, s)
		case m.values != nil && m.handshake.phase != taken && m.handshake.phase != idle: // it waits for the PLC
			err = q.step(ctx, m, s)
		default:
			continue
		}
		switch {
		case refused(err):
			if text := err.Error(); text != m.trouble {
				m.trouble = text
				q.log.Error().Str("event", "variable_refused").Str("machine", s.machine).Err(err).
					Msgf("the server refuses a variable of a machine; the others are written, and this one is tried again every %v", rewriteEvery)
			}
			m.written, m.values = q.now(), nil
		case err != nil:
			return err
		default:
			m.trouble = ""
		}
	}
	_, err := q.session.Read(ctx, []opcua.Attribute{{Node: ua.NewNumericNodeID(0, id.Server_ServerStatus_State), ID: ua.AttributeIDValue}})
	return err
}

func (q *opcuaReceiver) take(partition int, events []*Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget(partition)
	q.machineStates.take(partition, events)
}

// drop forgets a partition. The variables stay as they are: the monitor that has the partition
// now goes on with them.
func (q *opcuaReceiver) drop(partition int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forget(partition)
	q.machineStates.drop(partition)
	q.noteOpen()
}

func (q *opcuaReceiver) forget(partition int) {
	for _, machine := range q.partitions[partition] {
		delete(q.machinesAt, machine)
	}
}

// probe logs in and looks at the variables of machines that are named without a pattern.
func (q *opcuaReceiver) probe(ctx context.Context) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.connect(ctx); err != nil {
		return "", err
	}
	found := "the server answers"
	if q.cfg.TLS != nil {
		found += ", Basic256Sha256"
	}
	if q.cfg.Login.User != "" {
		found += ", user " + q.cfg.Login.User
	}
	machines, variables := 0, 0
	for _, n := range q.cfg.Nodes {
		if strings.ContainsAny(n.Machine, "*?[") {
			continue
		}
		m := &plcMachine{variables: n.variables(n.Machine)}
		if err := q.learn(ctx, m); err != nil {
			return "", err
		}
		machines, variables = machines+1, variables+len(m.variables)
	}
	if machines > 0 {
		found += fmt.Sprintf(", has %d variables of %d machines", variables, machines)
	}
	return found, nil
}

// try is deliver for an event that only tests the route. It writes nothing: a PLC cannot tell
// a test from an alarm.
func (q *opcuaReceiver) try(ctx context.Context) (string, error) {
	found, err := q.probe(ctx)
	return found + "; nothing was written: a PLC cannot tell a test from an alarm", err
}

func (q *opcuaReceiver) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.session != nil {
		q.session.Close()
		q.session = nil
	}
}
