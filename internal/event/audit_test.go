package event

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// A record keeps no secret, wherever someone put it, and no text that changes how a line is shown.
func TestAuditKeepsNoSecret(t *testing.T) {
	const token, session = "QX5GZ7J2M4T6WYBNC3DKLRA7UE", "mB2qEiQ0sB9tWq5lYkq0x_Zt7-4bq1kJm3o2fQxJ9aU"
	for name, tc := range map[string]struct {
		text   string // as someone gives it
		secret string // of it
	}{
		"a token":                   {token, token},
		"a token in a sentence":     {"kim " + token + " please", token},
		"a token in a path":         {"acme/spore/" + token + "/usk25", token},
		"two tokens":                {token + token, token},
		"a bearer":                  {"Bearer s3cr3t-of-kim", "s3cr3t-of-kim"},
		"basic":                     {"Authorization: Basic a2ltOnMzY3JldA==", "a2ltOnMzY3JldA=="},
		"a password":                {"password=hunter2", "hunter2"},
		"a password in JSON":        {`{"password": "hunter 2"}`, "hunter 2"},
		"a password in a setting":   {"sasl.password : hunter2", "hunter2"},
		"a token in a query":        {"http://plant:9102/?token=hunter2&x=1", "hunter2"},
		"a cookie":                  {"flank_session_9102=" + session, session},
		"a session":                 {session, session},
		"a user in an address":      {"https://kim:hunter2@plant.example/x", "hunter2"},
		"a key":                     {"-----BEGIN PRIVATE KEY-----\nMC4CAQAw\n-----END PRIVATE KEY-----", "MC4CAQAw"},
		"a key on one line":         {"-----BEGIN EC PRIVATE KEY-----MC4CAQAw", "MC4CAQAw"},
		"a key in hexadecimal":      {"8f14e45fceea167a5a36dedd4bea2543", "8f14e45fceea167a5a36dedd4bea2543"},
		"an escape":                 {"kim\x1b[2Jroot", "\x1b"},
		"a line end":                {"kim\nroot: accepted", "\n"},
		"another direction":         {"kim\u202etoor", "\u202e"},
		"a secret behind an escape": {"\x1bpassword=hunter2", "hunter2"},
	} {
		places := 0
		for _, of := range []reflect.Type{reflect.TypeFor[Audit](), reflect.TypeFor[Actor]()} {
			for i := range of.NumField() {
				if of.Field(i).Type.Kind() != reflect.String {
					continue
				}
				if field := of.Field(i).Name; of == reflect.TypeFor[Audit]() && (field == "ID" || field == "Command") {
					continue // ids are as random as a token
				}
				var a Audit
				v := reflect.ValueOf(&a).Elem()
				if of == reflect.TypeFor[Actor]() {
					v = v.FieldByName("Actor")
				}
				v.Field(i).SetString(tc.text)
				places++
				if kept := fmt.Sprintf("%#v", a.Clean()); strings.Contains(a.Clean().text(), tc.secret) {
					t.Errorf("%s in %s.%s is kept: %s", name, of, of.Field(i).Name, kept)
				}
			}
		}
		if places < 13 {
			t.Fatalf("tried %d places", places)
		}
	}
}

// text returns all texts of a record.
func (a Audit) text() string {
	return strings.Join([]string{a.Program, a.Host, a.Actor.Name, a.Actor.Role, string(a.Actor.Identified), a.Actor.From, string(a.Action), a.Machine, a.Alarm, a.Model, a.Object,
		a.Group, string(a.Outcome), a.Reason}, "\x00")
}

// Names that people give are kept as they are.
func TestAuditKeepsNames(t *testing.T) {
	for _, text := range []string{
		"acme/spore/bay2/line1/usk25", "usk25-drill-carbide-8mm-coolant-through-batch-17", "Jörg Müller", "ecs-dbn-1f3a9c02d4e5", "acme/spore/bay2/**", "192.0.2.7", "2001:db8::/64",
		"anna@usk25-monitor", "refused: alarm A-K3ZQ7M2P is closed", "the token is wrong", `C:\spool`, "T08",
	} {
		if a := (Audit{Machine: text, Actor: Actor{Name: text}, Outcome: Denied, Reason: text}).Clean(); a.Machine != text || a.Actor.Name != text || a.Reason != text {
			t.Errorf("%q became %q", text, a.Machine)
		}
	}
}
