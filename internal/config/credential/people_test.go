package credential

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func hashOf(token string) string { return hashText(sha256.Sum256([]byte(token))) }

// What a file of people may hold, and the errors of one that cannot be used.
func TestParsePeople(t *testing.T) {
	one, two := hashOf("one"), hashOf("two")
	for why, tc := range map[string]struct {
		text string
		want []Person
		says []string // of an error
	}{
		"nothing":            {"", nil, nil},
		"no one":             {"people: []\n", nil, nil},
		"two people":         {"people:\n  - {name: kim, role: operator, token: '" + one + "'}\n  - {name: Ana Ruiz, role: viewer, token: '" + two + "'}\n", []Person{{"kim", Operator}, {"Ana Ruiz", Viewer}}, nil},
		"one name":           {"people:\n  - {name: kim, role: operator, token: '" + one + "'}\n  - {name: Kim, role: viewer, token: '" + two + "'}\n", nil, []string{"people.yaml:3: name", `"Kim"`, "line 2"}},
		"one token":          {"people:\n  - {name: kim, role: operator, token: '" + one + "'}\n\n  - {name: ana, role: viewer, token: '" + one + "'}\n", nil, []string{"people.yaml:4: token", "ana and kim (line 2)", "monitor people add"}},
		"unknown key":        {"people:\n  - {name: kim, role: operator, token: '" + one + "', phone: 1}\n", nil, []string{"people.yaml:2", "phone"}},
		"unknown role":       {"people:\n  - name: kim\n    role: admin\n    token: '" + one + "'\n", nil, []string{"people.yaml:3: role", `"admin"`, "viewer, operator or engineer"}},
		"no role":            {"people:\n  - {name: kim, token: '" + one + "'}\n", nil, []string{"people.yaml:2: role"}},
		"no name":            {"people:\n  - {role: viewer, token: '" + one + "'}\n", nil, []string{"people.yaml:2: name"}},
		"blanks":             {"people:\n  - {name: ' kim', role: viewer, token: '" + one + "'}\n", nil, []string{"people.yaml:2: name", "blanks"}},
		"a control sequence": {"people:\n  - {name: \"k\\e[2Jim\", role: viewer, token: '" + one + "'}\n", nil, []string{"people.yaml:2: name", `k\x1b[2J`}},
		"a long name":        {"people:\n  - {name: " + strings.Repeat("k", 101) + ", role: viewer, token: '" + one + "'}\n", nil, []string{"people.yaml:2: name", "100 bytes"}},
		"a token itself":     {"people:\n  - {name: kim, role: viewer, token: secret-of-kim}\n", nil, []string{"people.yaml:2: token", "sha256:", "monitor people add"}},
		"half a hash":        {"people:\n  - {name: kim, role: viewer, token: '" + one[:20] + "'}\n", nil, []string{"people.yaml:2: token"}},
		"a hash in capitals": {"people:\n  - {name: kim, role: viewer, token: 'sha256:" + strings.ToUpper(one[7:]) + "'}\n", nil, []string{"people.yaml:2: token", "lower case"}},
		"a list alone":       {"- {name: kim}\n", nil, []string{"people.yaml:1"}},
		"not YAML":           {"people: [\n", nil, []string{"people.yaml", "not YAML"}},
	} {
		all, err := parsePeople([]byte(tc.text), "people.yaml")
		if (err == nil) != (tc.says == nil) {
			t.Errorf("%s: %v", why, err)
			continue
		}
		for _, part := range tc.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", why, err, part)
			}
		}
		if err != nil && (strings.Contains(err.Error(), "secret-of-kim") || strings.Contains(err.Error(), one[7:])) {
			t.Errorf("%s: the token is in %q", why, err)
		}
		var got []Person
		for _, e := range all {
			got = append(got, Person{e.Name, e.Role})
		}
		if err == nil && !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", why, got, tc.want)
		}
	}
}

// A person who is added is found by the token that was printed, and by no other. Removed,
// the token is worth nothing, without a restart.
func TestPeople(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	if _, err := OpenPeople(file); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "monitor people add") {
		t.Errorf("no file: %v", err)
	}
	tokens := make(map[string]string)
	add := func(name string, role Role) {
		t.Helper()
		token, err := AddPerson(file, Person{name, role})
		if err != nil || len(token) < 26 {
			t.Fatalf("%q, %v", token, err)
		}
		tokens[name] = token
	}
	add("kim", Operator)
	people, err := OpenPeople(file)
	if err != nil {
		t.Fatal(err)
	}
	found := func(name string) Role {
		t.Helper()
		p, ok, err := people.Find(sha256.Sum256([]byte(tokens[name])))
		if err != nil || ok != (p.Name == name) {
			t.Fatalf("%+v, %v, %v", p, ok, err)
		}
		return p.Role
	}
	if found("kim") != Operator {
		t.Error("kim is not found")
	}
	add(`Ana "A" Ruiz: #1`, Engineer) // what YAML gives a meaning to
	add("no", Viewer)
	if found(`Ana "A" Ruiz: #1`) != Engineer || found("no") != Viewer || found("kim") != Operator {
		t.Error("people who were added later are not found")
	}
	if _, ok, _ := people.Find(sha256.Sum256([]byte(tokens["kim"][1:]))); ok {
		t.Error("a part of a token will do")
	}
	if _, err := AddPerson(file, Person{"KIM", Viewer}); err == nil || !strings.Contains(err.Error(), "kim is there already") {
		t.Errorf("twice: %v", err)
	}
	if err := RemovePerson(file, "kim"); err != nil || found("kim") != "" {
		t.Errorf("removed: %v", err)
	}
	if err := RemovePerson(file, "kim"); err == nil || !strings.Contains(err.Error(), "monitor people ls") {
		t.Errorf("removed twice: %v", err)
	}
	all, err := ListPeople(file)
	if err != nil || !slices.Equal(all, []Person{{`Ana "A" Ruiz: #1`, Engineer}, {"no", Viewer}}) {
		t.Errorf("%v, %v", all, err)
	}
	text, err := os.ReadFile(file)
	for _, token := range tokens {
		if err != nil || strings.Contains(string(text), token) {
			t.Errorf("the file holds a token: %v\n%s", err, text)
		}
	}
	for _, p := range []Person{{"kim\n", Viewer}, {"kim", "admin"}} {
		if _, err := AddPerson(file, p); err == nil {
			t.Errorf("%+v was added", p)
		}
	}
	for _, name := range []string{`Ana "A" Ruiz: #1`, "no"} {
		if err := RemovePerson(file, name); err != nil {
			t.Error(err)
		}
	}
	if all, err := ListPeople(file); len(all) != 0 || err != nil {
		t.Errorf("an empty file: %v, %v", all, err)
	}
}

// A file that others may read, or that is damaged, lets no one in; repaired, it counts again.
func TestPeopleFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	token, err := AddPerson(file, Person{"kim", Operator})
	if err != nil {
		t.Fatal(err)
	}
	people, err := OpenPeople(file)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		why   string
		text  []byte
		mode  fs.FileMode
		times time.Time // of the last change
		says  string    // of an error
	}{
		{"as it was", good, 0o600, time.Now(), ""},
		{"for the group", good, 0o640, time.Now(), ""},
		{"as Kubernetes mounts it", good, 0o440, time.Now(), ""},
		{"for the group to change", good, 0o660, time.Now(), "chmod g-w,o="},
		{"for everyone", good, 0o604, long, "mode 0604"},
		{"read only", good, 0o400, long, ""},
		{"damaged", good[:len(good)-9], 0o600, long, "people.yaml"},
		{"repaired, with the same time", good, 0o600, long, ""},
		{"far too long", append(make([]byte, maxPeople), good...), 0o600, time.Now(), "name another file"},
		{"as it was again", good, 0o600, time.Now(), ""},
	} {
		os.Chmod(file, 0o600)
		if err := errors.Join(os.WriteFile(file, tc.text, 0o600), os.Chmod(file, tc.mode), os.Chtimes(file, tc.times, tc.times)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, ok, err := people.Find(sha256.Sum256([]byte(token)))
			if ok != (tc.says == "") || err == nil != ok || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v, %v", tc.why, ok, err)
			}
		}
		if _, err := OpenPeople(file); (err == nil) != (tc.says == "") {
			t.Errorf("%s: at start %v", tc.why, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := people.Find(sha256.Sum256([]byte(token))); ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v, %v", ok, err)
	}
}

// A change that keeps length and time of the file is seen if it comes soon after.
func TestPeopleSameTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.yaml")
	at := time.Now().Add(time.Hour) // never old, however slow this computer is
	write := func(token string) {
		t.Helper()
		text := fmt.Sprintf("people: [{name: kim, role: viewer, token: %q}]\n", hashOf(token))
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	people, err := OpenPeople(file)
	if err != nil {
		t.Fatal(err)
	}
	write("two")
	if _, ok, err := people.Find(sha256.Sum256([]byte("two"))); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, ok, err := people.Find(sha256.Sum256([]byte("one"))); ok || err != nil {
		t.Errorf("the old token: %v, %v", ok, err)
	}
}

// Any text gives people with names, roles and hashes of their own, or an error; and what is
// written of them is read as the same.
func FuzzPeople(f *testing.F) {
	f.Add("people:\n  - {name: kim, role: operator, token: '" + hashOf("one") + "'}\n")
	f.Add("people:\n  - &a {name: kim, role: operator, token: '" + hashOf("one") + "'}\n  - *a\n")
	f.Add("people:\n- name: \"\\u2028\"\n  role: viewer\n  token: 'sha256:'\n")
	f.Add("people: {a: b}\n---\n")
	file := filepath.Join(f.TempDir(), "people.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parsePeople([]byte(text), file)
		if err != nil {
			if !strings.Contains(err.Error(), file) {
				t.Errorf("%q does not name the file", err)
			}
			return
		}
		for i, e := range all {
			if _, err := e.check(); err != nil || indexOf(all, e.Name) != i {
				t.Errorf("%+v: %v", e, err)
			}
		}
		if err := writePeople(file, all); err != nil {
			t.Fatal(err)
		}
		if again, err := readPeople(file); err != nil || !slices.Equal(again, all) {
			t.Errorf("%v, written and read %v, %v", all, again, err)
		}
	})
}
