package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestIdentify(t *testing.T) {
	bsd := "Copyright 2009 A. Body\n\nRedistribution and use in source and binary\nforms, with or without modification"
	for text, want := range map[string]string{
		"":                               "",
		"All rights reserved.":           "",
		bsd:                              "BSD-2-Clause",
		bsd + "\n * Neither the name of": "BSD-3-Clause",
		"\n   Apache License\n Version 2.0" + bsd:                                                "Apache-2.0",
		"MIT License\n\nPermission is hereby granted,\nfree of charge, to":                       "MIT",
		"Permission to use, copy, modify, and/or distribute this software\nfor any purpose":      "ISC",
		"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007":                                    "GPL-3.0",
		"Mozilla Public License Version 2.0":                                                     "MPL-2.0",
		"your choice of exactly one of: The FreeType License, or the GNU General Public License": "FTL",
		"Eclipse Public License - v 2.0":                                                         "EPL-2.0",
	} {
		if got := identify([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A part without a licence, or with one that is not allowed alone, is refused; one that lets us choose is taken.
func TestLicencesOfAPart(t *testing.T) {
	const mit, gpl = "Permission is hereby granted, free of charge", "GNU General Public License"
	for name, tc := range map[string]struct {
		files map[string]string
		want  string // "" or a part of the error
	}{
		"none":    {map[string]string{"README.md": mit}, "no licence file"},
		"MIT":     {map[string]string{"LICENSE": mit, "NOTICE": "a"}, ""},
		"GPL":     {map[string]string{"COPYING": gpl}, "COPYING is GPL-3.0"},
		"choice":  {map[string]string{"LICENSE-MIT": mit, "LICENSE-GPL": gpl}, ""},
		"unknown": {map[string]string{"LICENSE": "pay me"}, "not a licence that this program knows"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := part{name: "example.org/x", version: "v1.0.0", texts: map[string][]byte{}}
			err := p.readLicences(dir)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%v, want %q", err, tc.want)
			}
			if err == nil && (!slices.Equal(p.ids, []string{"MIT"}) || len(p.texts) != len(tc.files)) {
				t.Errorf("licences %v, %d texts", p.ids, len(p.texts))
			}
		})
	}
}

// Everything that is compiled into this test, as into the programs, has a licence that is allowed, and so do
// the parts in this repository. The list names our own program and every part once.
func TestProgramsHaveLicences(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	program := filepath.Join(t.TempDir(), "ingest")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../cmd/ingest").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	parts, err := modules([]string{program, program})
	if err != nil {
		t.Fatal(err)
	}
	more, err := others("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(more) < 4 {
		t.Errorf("Go's library and the parts in %s are %d", vendored, len(more))
	}
	parts = append(parts, more...)
	text, err := bom("1.2.3", "0123abc", time.Unix(1_700_000_000, 0), parts)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Components []struct {
			Name, Purl string
			Licenses   []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range list.Components {
		if seen[c.Purl] || len(c.Licenses) == 0 || !slices.Contains(allowed, c.Licenses[0].License.ID) {
			t.Errorf("%s: twice, or without a licence: %+v", c.Purl, c)
		}
		seen[c.Purl] = true
	}
	if !seen["pkg:golang/github.com/apache/arrow/go/v15@v15.0.2"] || !seen["pkg:generic/uPlot"] {
		t.Errorf("the list lacks parts: %s", text)
	}
	if slices.ContainsFunc(parts, func(p part) bool { return p.name == "github.com/goccy/go-json" }) {
		t.Error("the list has a module that one of ours takes the place of")
	}
	if all := string(notices(parts)); !strings.Contains(all, "github.com/apache/arrow/go/v15 v15.0.2: LICENSE.txt") {
		t.Error("the licence of Arrow is not passed on")
	}
}

// A program without modules is refused, and one that is not a Go program.
func TestNoProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, programs := range [][]string{nil, {file}} {
		if _, err := modules(programs); err == nil {
			t.Errorf("%v: accepted", programs)
		}
	}
}
