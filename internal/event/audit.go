package event

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/plain"
)

// AuditType is the CloudEvents type of an audit record.
const AuditType = "io.tcm.audit.v1"

// What audit records are about, in addition to the actions of commands.
const (
	Login        Action = "login"         // on a page: someone gave a token
	Logout       Action = "logout"        // on a page
	Access       Action = "access"        // on a page: a request that was refused before anything was asked for
	UnreadAction Action = "command"       // a command whose action cannot be read, or that the page does not offer
	PublishModel Action = "publish_model" // trainer publish
	PromoteModel Action = "promote"       // trainer promote, of a champion or a shadow
	RollbackTo   Action = "rollback"      // trainer rollback
	RetireModel  Action = "retire_model"  // trainer retire
	RemoveModel  Action = "remove_model"  // trainer models rm
	AddLabel     Action = "add_label"     // trainer labels add and import, and on a page
	RevokeLabel  Action = "revoke_label"  // trainer labels revoke
	AddPerson    Action = "add_person"    // monitor people add
	RemovePerson Action = "remove_person" // monitor people rm
	Redrive      Action = "redrive"       // monitor dlq redrive
	SetContext   Action = "set_context"   // ingest tool
	ApplyTopics  Action = "apply_topics"  // ingest topics apply
	GrowTopics   Action = "grow_topics"   // ingest topics grow
	Reload       Action = "reload"        // SIGHUP: the configuration was read again
)

// AuditActions lists every action of audit records, in the order of schemas/audit.schema.json.
var AuditActions = slices.Concat([]Action{Login, Logout, Access, UnreadAction}, Actions, []Action{
	PublishModel, PromoteModel, RollbackTo, RetireModel, RemoveModel, AddLabel, RevokeLabel, AddPerson, RemovePerson, Redrive, SetContext, ApplyTopics, GrowTopics, Reload,
})

// Identified says how it is known who acted.
type Identified string

// The ways, the strongest first.
const (
	BySession     Identified = "session"      // a page's session, which began with the person's own token
	ByToken       Identified = "token"        // the person's own token of a page
	BySharedToken Identified = "shared_token" // the token that people share, or a session that began with it; the name is what was typed
	ByTerminal    Identified = "terminal"     // a user of a computer; the name is what was typed
	ByCommand     Identified = "command"      // a message on tcm.commands.v1; the name is what its sender wrote
	BySignal      Identified = "signal"       // a signal to the process
	ByNothing     Identified = "nothing"      // no one has shown who they are
)

// identifiedBy lists every way, in the order of schemas/audit.schema.json.
var identifiedBy = []Identified{BySession, ByToken, BySharedToken, ByTerminal, ByCommand, BySignal, ByNothing}

// Outcome is what became of an action.
type Outcome string

// The outcomes. A page or a terminal accepts a command once it is on tcm.commands.v1. The monitor
// accepts it once it is carried out. Both records name the command.
const (
	Accepted Outcome = "accepted"
	Denied   Outcome = "refused"
)

// Audit says who did what, from where, and whether it was accepted. It holds no token, password
// or key, also where someone gave one as a name: see Clean.
type Audit struct {
	ID      string    `json:"id"` // each record has its own
	At      time.Time `json:"at"` // by the clock of Host
	Program string    `json:"program"`
	Host    string    `json:"host"` // computer of the program
	Actor   Actor     `json:"actor"`
	Action  Action    `json:"action"`
	Machine string    `json:"machine,omitempty"`
	Alarm   string    `json:"alarm,omitempty"`   // short name of the alarm
	Model   string    `json:"model,omitempty"`   // model id
	Object  string    `json:"object,omitempty"`  // what else was acted on: a tool, a person, a glob, a file, numbers of dead letters
	Command string    `json:"command,omitempty"` // id of the command
	Group   string    `json:"group,omitempty"`   // consumer group of the monitor that carried the command out, or refused it
	Outcome Outcome   `json:"outcome"`
	Reason  string    `json:"reason,omitempty"` // refused: why
	More    uint64    `json:"more,omitempty"`   // refusals of this kind since the last record of them that have no record of their own
}

// Actor is who acted, as far as the program knows.
type Actor struct {
	Name       string     `json:"name,omitempty"` // see Identified for what it is worth
	Role       string     `json:"role,omitempty"` // on a page: viewer, operator or engineer
	Identified Identified `json:"identified"`
	From       string     `json:"from,omitempty"` // address of the client, or user@computer of a terminal
}

// Bounds of the texts of a record, in bytes.
const (
	auditName = 200
	auditText = 500
)

// maxSearched is the longest text that is searched for secrets, in bytes.
const maxSearched = 1 << 16

// Withheld stands in a record for text that is a secret or looks like one.
const Withheld = "[withheld]"

// secrets find what may be a token, a password or a key in a text, and say what to put there.
var secrets = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*-----.*?(-----END [A-Z ]*-----|$)`), Withheld},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "$1 " + Withheld},
	{regexp.MustCompile(`(?i)((?:pass(?:word|wd|phrase)?|token|secret|credential|api[_-]?key|private[_-]?key|authorization|cookie|flank_session\w*)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&]+)`), "${1}" + Withheld},
	{regexp.MustCompile(`://[^\s/@]*@`), "://" + Withheld + "@"},
	{regexp.MustCompile(`[A-Z2-7]{26,}`), Withheld}, // a token as `monitor people add` makes it
}

// random finds what may be a key in base 64 or in hexadecimal digits.
var random = regexp.MustCompile(`[A-Za-z0-9+_-]{32,}={0,2}`)

// withhold returns text without what may be a secret.
func withhold(s string) string {
	for _, x := range secrets {
		s = x.find.ReplaceAllString(s, x.put)
	}
	return random.ReplaceAllStringFunc(s, func(run string) string {
		const digits = "0123456789"
		mixed := len(run) >= 40 && strings.ContainsAny(run, digits) && strings.ToLower(run) != run && strings.ToUpper(run) != run
		if mixed || strings.Trim(run, digits+"abcdefABCDEF") == "" {
			return Withheld
		}
		return run
	})
}

// plainText returns s as one line of at most n bytes without what may be a secret. What it returns
// it leaves as it is.
func plainText(s string, n int) string {
	if len(s) > maxSearched {
		return Withheld
	}
	s = strings.TrimSpace(withhold(s))
	if plain.Check(s) != nil {
		s = plain.Text(s)
	}
	for len(s) > n || !utf8.ValidString(s) {
		s = s[:min(n, len(s)-1)]
	}
	return strings.TrimSpace(s)
}

// Clean returns the record as it may be kept and shown: its texts, which anyone may have written,
// are one line each, bounded, and without anything that looks like a token, a password or a key. Ids
// of commands and alarms that are not of their form are left out.
func (a Audit) Clean() Audit {
	if !commandID.MatchString(a.ID) {
		a.ID = NewCommandID()
	}
	if !slices.Contains(AuditActions, a.Action) {
		a.Action = UnreadAction
	}
	if !slices.Contains(identifiedBy, a.Actor.Identified) {
		a.Actor.Identified = ByNothing
	}
	if a.Outcome != Accepted {
		a.Outcome = Denied
	} else {
		a.Reason = ""
	}
	if !incident.MatchString(a.Alarm) {
		a.Alarm = ""
	}
	if !commandID.MatchString(a.Command) {
		a.Command = ""
	}
	a.Actor.Name, a.Actor.Role, a.Actor.From = plainText(a.Actor.Name, auditName), plainText(a.Actor.Role, auditName), plainText(a.Actor.From, auditName)
	a.Program, a.Host, a.Group = cmp.Or(plainText(a.Program, auditName), "unknown"), cmp.Or(plainText(a.Host, auditName), "unknown"), plainText(a.Group, auditName)
	a.Machine, a.Model, a.Object = plainText(a.Machine, auditText), plainText(a.Model, auditName), plainText(a.Object, auditText)
	a.Reason = plainText(a.Reason, auditText)
	a.At = a.At.UTC()
	return a
}
