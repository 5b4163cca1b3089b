// Command sbom lists what is in the programs of a release: as CycloneDX for programs, and with the texts of
// all licences for people. It fails if a licence is not one that we may pass on under ours.
//
//	go run ./scripts/sbom --version 1.2.3 --commit 0123abc --time 1700000000 --sbom flank.cdx.json --licences THIRD-PARTY-LICENSES.txt PROGRAM...
package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// vendored are the parts of other makers that lie in this repository, as their licence files name them.
const vendored = "internal/web/static/vendor"

// allowed are the licences of parts that we may pass on under Apache-2.0 if we keep their texts.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// texts tell licences apart. The first that is in a file names it.
var texts = []struct{ id, text string }{
	{"AGPL-3.0", "gnu affero general public license"},
	{"LGPL-3.0", "gnu lesser general public license"},
	{"GPL-3.0", "gnu general public license"},
	{"MPL-2.0", "mozilla public license"},
	{"Apache-2.0", "apache license"},
	{"BSD-3-Clause", "neither the name"},
	{"BSD-3-Clause", "names of its contributors may"},
	{"BSD-2-Clause", "redistribution and use in source and binary forms"},
	{"ISC", "permission to use, copy, modify, and or distribute this software for any purpose"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose"},
	{"MIT", "permission is hereby granted, free of charge"},
	{"FTL", "the freetype license"}, // or, as we choose, the GPL
	{"CC-BY-4.0", "creative commons attribution 4.0"},
	{"EPL-2.0", "eclipse public license"},
}

var blanks = regexp.MustCompile(`[\s*#/]+`)

// identify returns the id that SPDX gives a licence, or "" for a text that it does not know. Only the first
// text of a file counts: below it may be the notices of parts.
func identify(text []byte) string {
	plain := strings.ToLower(blanks.ReplaceAllString(string(text[:min(len(text), 4000)]), " "))
	first, id := len(plain), ""
	for _, t := range texts {
		at := strings.Index(plain, t.text)
		if at < 0 {
			continue
		}
		if strings.HasPrefix(t.id, "BSD") { // the clauses of one licence follow each other
			at = max(strings.Index(plain, "redistribution and use"), 0)
		}
		if at < first {
			first, id = at, t.id
		}
	}
	return id
}

// part is something of another maker, or the Go library.
type part struct {
	name, version, sum string
	ids                []string
	texts              map[string][]byte // by the name of the file
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|edl-|epl-)[^/]*$`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents)[^/]*$`)
)

// readLicences reads the licence files of a folder into p. A part that lets us choose is taken under a licence
// that is allowed.
func (p *part) readLicences(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var others []string
	for _, e := range entries {
		licence := licenceFile.MatchString(e.Name())
		if e.IsDir() || !licence && !noticeFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		p.texts[e.Name()] = text
		if !licence {
			continue
		}
		if id := identify(text); slices.Contains(allowed, id) {
			p.ids = append(p.ids, id)
		} else {
			others = append(others, fmt.Sprintf("%s is %s", e.Name(), cmp.Or(id, "not a licence that this program knows")))
		}
	}
	slices.Sort(p.ids)
	p.ids = slices.Compact(p.ids)
	if len(p.ids) == 0 {
		return fmt.Errorf("%s %s: no licence that is allowed (%s): %s", p.name, p.version, strings.Join(allowed, ", "), cmp.Or(strings.Join(others, "; "), "no licence file"))
	}
	return nil
}

// replacements is where modules of this repository stand that take the place of published ones.
const replacements = "./third_party/"

// modules returns the modules that are compiled into programs, without ours.
func modules(programs []string) ([]part, error) {
	found := map[string]part{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				if strings.HasPrefix(m.Replace.Path, replacements) {
					continue
				}
				return nil, fmt.Errorf("%s: %s is replaced: a release is built from published modules, and from folders of %s", program, m.Path, replacements)
			}
			found[m.Path] = part{name: m.Path, version: m.Version, sum: m.Sum, texts: map[string][]byte{}}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("the programs list no modules: were they built with -mod=vendor?")
	}
	parts := slices.SortedFunc(maps.Values(found), func(a, b part) int { return cmp.Compare(a.name, b.name) })
	args := []string{"list", "-mod=readonly", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for _, p := range parts {
		args = append(args, p.name)
	}
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		name, dir, _ := strings.Cut(line, "\t")
		if name != parts[i].name || dir == "" {
			return nil, fmt.Errorf("%s is not in the module cache: run go mod download", parts[i].name)
		}
		if err := parts[i].readLicences(dir); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// others returns the parts that are not modules: Go's library, and what lies in this repository.
func others(root string) ([]part, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	std := part{name: "std", version: strings.TrimPrefix(runtime.Version(), "go"), texts: map[string][]byte{}}
	if err := std.readLicences(strings.TrimSpace(string(goroot))); err != nil {
		return nil, err
	}
	parts := []part{std}
	files, err := filepath.Glob(filepath.Join(root, vendored, "*.LICENSE"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		p := part{name: strings.TrimSuffix(filepath.Base(file), ".LICENSE"), ids: []string{identify(text)}, texts: map[string][]byte{filepath.Base(file): text}}
		if !slices.Contains(allowed, p.ids[0]) {
			return nil, fmt.Errorf("%s: not a licence that is allowed (%s)", file, strings.Join(allowed, ", "))
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// object is a JSON object; its keys are written in order.
type object = map[string]any

// purl returns the address of a part in all registries.
func (p part) purl() string {
	switch {
	case p.sum != "":
		return "pkg:golang/" + p.name + "@" + p.version
	case p.name == "std":
		return "pkg:golang/std@" + p.version
	}
	return "pkg:generic/" + p.name
}

// bom returns the list of parts as CycloneDX 1.6.
func bom(version, commit string, at time.Time, parts []part) ([]byte, error) {
	components, refs := []object{}, []string{}
	for _, p := range parts {
		var licences []object
		for _, id := range p.ids {
			licences = append(licences, object{"license": object{"id": id}})
		}
		c := object{"type": "library", "bom-ref": p.purl(), "name": p.name, "purl": p.purl(), "licenses": licences}
		if p.version != "" {
			c["version"] = p.version
		}
		if p.sum != "" {
			c["properties"] = []object{{"name": "go:sum", "value": p.sum}}
		}
		components, refs = append(components, c), append(refs, p.purl())
	}
	ours := "pkg:golang/github.com/flank-tcm/flank@v" + version
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(object{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": object{
			"timestamp": at.UTC().Format(time.RFC3339),
			"component": object{"type": "application", "bom-ref": ours, "name": "flank", "version": version, "purl": ours,
				"licenses": []object{{"license": object{"id": "Apache-2.0"}}}, "properties": []object{{"name": "git:commit", "value": commit}}},
		},
		"components": components, "dependencies": []object{{"ref": ours, "dependsOn": refs}},
	})
	return b.Bytes(), err
}

// notices returns the texts that we must pass on.
func notices(parts []part) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "The programs hold %d parts of other makers. Their licences:\n", len(parts))
	for _, p := range parts {
		for _, file := range slices.Sorted(maps.Keys(p.texts)) {
			fmt.Fprintf(&b, "\n%s\n%s %s: %s\n\n%s", strings.Repeat("=", 80), p.name, p.version, file, p.texts[file])
		}
	}
	return b.Bytes()
}

func run() error {
	version, commit := flag.String("version", "", "version of the release"), flag.String("commit", "", "commit that it is built from")
	at := flag.Int64("time", 0, "time of the commit, in seconds since 1970")
	sbom, licences := flag.String("sbom", "", "where to write the CycloneDX file"), flag.String("licences", "", "where to write the texts of the licences")
	flag.Parse()
	if *sbom == "" || *licences == "" || flag.NArg() == 0 {
		return errors.New("name --sbom FILE, --licences FILE and the programs")
	}
	parts, err := modules(flag.Args())
	if err != nil {
		return err
	}
	more, err := others(".")
	if err != nil {
		return err
	}
	parts = append(parts, more...)
	text, err := bom(*version, *commit, time.Unix(*at, 0), parts)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(*sbom, text, fs.FileMode(0o644)), os.WriteFile(*licences, notices(parts), 0o644))
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}
