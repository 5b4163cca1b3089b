package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The token goes to standard output and is kept nowhere; who was removed is not listed.
func TestPeopleCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	do := func(args ...string) error {
		stdout.Reset()
		stderr.Reset()
		return run(t.Context(), append([]string{"people"}, append(args, "--file", "people.yaml")...), &stdout, &stderr)
	}
	if err := do("add", "kim", "--role", "operator"); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(stdout.String())
	const unrecorded = "note: tcm.audit.v1 has no record of this: name the monitor's configuration with --config or TCM_CONFIG\n"
	if want := "added kim (operator) to people.yaml. This is kim's token. It is not shown again:\n" + unrecorded; stderr.String() != want || len(token) < 26 || strings.ContainsAny(token, " \n") {
		t.Errorf("%q, token %q", stderr.String(), token)
	}
	if err := do("add", "Ana Ruiz", "--role", "engineer"); err != nil {
		t.Fatal(err)
	}
	if err := do("ls"); err != nil || stdout.String() != "name      role\nkim       operator\nAna Ruiz  engineer\n" {
		t.Errorf("%v\n%s", err, &stdout)
	}
	if err := do("ls", "-o", "json"); err != nil || strings.Join(strings.Fields(stdout.String()), "") != `[{"name":"kim","role":"operator"},{"name":"AnaRuiz","role":"engineer"}]` {
		t.Errorf("%v\n%s", err, &stdout)
	}
	info, err := os.Stat("people.yaml")
	text, _ := os.ReadFile("people.yaml")
	if err != nil || info.Mode() != 0o600 || bytes.Contains(text, []byte(token)) {
		t.Errorf("%v, %v\n%s", info.Mode(), err, text)
	}
	if err := do("rm", "kim"); err != nil || stdout.String() != "removed kim from people.yaml\n" || stderr.String() != unrecorded {
		t.Errorf("%v, %s, %s", err, &stdout, &stderr)
	}
	for _, tc := range [][]string{
		{"rm", "kim", "monitor people ls"},
		{"add", "ana ruiz", "--role", "viewer", "Ana Ruiz is there already"},
		{"add", "eve", "--role", "admin", "--role"},
		{"add", "eve", "--role"},
		{"add", "e\nve", "--role", "viewer", "printed characters"},
	} {
		if err := do(tc[:len(tc)-1]...); err == nil || !strings.Contains(err.Error(), tc[len(tc)-1]) {
			t.Errorf("%v: %v", tc, err)
		}
	}
	if err := do("ls"); err != nil || stdout.String() != "name      role\nAna Ruiz  engineer\n" {
		t.Errorf("%v\n%s", err, &stdout)
	}
}
