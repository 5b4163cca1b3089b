package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

type plant struct {
	Kafka struct {
		Brokers []string `yaml:"brokers"`
		TLS     *struct {
			CA   string `yaml:"ca"`
			Cert string `yaml:"cert"`
		} `yaml:"tls"`
	} `yaml:"kafka"`
	Silence  time.Duration `yaml:"silence"`
	Machines []struct {
		Path string `yaml:"machine"`
	} `yaml:"machines"`
	Inner `yaml:",inline"`
	file  string
}

// Inner is a part whose keys are at the top.
type Inner struct {
	Spool string `yaml:"spool"`
	MiB   int64  `yaml:"spool_mib"`
}

// A variable replaces what the file says of its key, and leaves the other keys alone.
func TestEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		environ []string
		change  func(*plant)
	}{
		"none":                   {[]string{"HOME=/root", "TCM", "TCM_CONFIG=x.yaml", "tcm_silence=1s"}, func(*plant) {}},
		"a word":                 {[]string{"TCM_SPOOL=/var/spool"}, func(p *plant) { p.Spool = "/var/spool" }},
		"a number, of an inline": {[]string{"TCM_SPOOL_MIB=7"}, func(p *plant) { p.MiB = 7 }},
		"a time":                 {[]string{"TCM_SILENCE=90s"}, func(p *plant) { p.Silence = 90 * time.Second }},
		"a list":                 {[]string{"TCM_KAFKA_BROKERS=[c:1, d:2]"}, func(p *plant) { p.Kafka.Brokers = []string{"c:1", "d:2"} }},
		"below a pointer":        {[]string{"TCM_KAFKA_TLS_CERT=new.pem"}, func(p *plant) { p.Kafka.TLS.Cert = "new.pem" }},
		"a list of mappings": {[]string{"TCM_MACHINES=[{machine: a}, {machine: b}]"}, func(p *plant) {
			p.Machines = append(p.Machines[:0:0], p.Machines[0], p.Machines[0])
			p.Machines[1].Path = "b"
		}},
		"with signs of YAML's in": {[]string{`TCM_SPOOL="C: {x}, #1"`}, func(p *plant) { p.Spool = "C: {x}, #1" }},
		"the broad one first":     {[]string{"TCM_KAFKA_TLS_CERT=z", "TCM_KAFKA={tls: {ca: y, cert: y}}"}, func(p *plant) { p.Kafka.TLS.CA, p.Kafka.TLS.Cert = "y", "z" }},
	} {
		t.Run(name, func(t *testing.T) {
			read := func() *plant {
				p := &plant{file: "plant.yaml"}
				text := "kafka: {brokers: [a:1], tls: {ca: ca.pem, cert: old.pem}}\nsilence: 1m\nmachines: [{machine: a}]\nspool: spool\nspool_mib: 5\n"
				if err := Decode([]byte(text), "plant.yaml", p); err != nil {
					t.Fatal(err)
				}
				return p
			}
			got, want := read(), read()
			tc.change(want)
			if err := environment(got, tc.environ); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v\nwant %+v", got, want)
			}
		})
	}
}

// An error names the variable, and what it must be.
func TestEnvironmentErrors(t *testing.T) {
	for environ, want := range map[string][]string{
		"TCM_SPOOL_MIB=many":        {"environment variable TCM_SPOOL_MIB", "must be a whole number"},
		"TCM_SILENCE=":              nil, // as an empty value in a file: the default stays
		"TCM_KAFKA={brokrs: [a:1]}": {"environment variable TCM_KAFKA", "unknown key `brokrs`"},
		"TCM_KAFKA_BROKERS=[a:1":    {"environment variable TCM_KAFKA_BROKERS"},
		"TCM_SPOOL=x}, {spool: y":   {"environment variable TCM_SPOOL"},
	} {
		err := environment(new(plant), []string{environ})
		if (err == nil) != (want == nil) {
			t.Errorf("%s: %v", environ, err)
			continue
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", environ, err, text)
			}
		}
	}
}

// No two keys have the same variable, which would be ambiguous.
func TestVariablesDiffer(t *testing.T) {
	type twice struct {
		A struct {
			B string `yaml:"b"`
		} `yaml:"a"`
		AB string `yaml:"a_b"`
	}
	if err := Distinct(new(twice)); err == nil || !strings.Contains(err.Error(), "TCM_A_B") {
		t.Errorf("%v", err)
	}
	if err := Distinct(new(plant)); err != nil {
		t.Error(err)
	}
}

// No value of a variable panics, and every error names the variable.
func FuzzEnvironment(f *testing.F) {
	f.Add("KAFKA_BROKERS", "[c:1, d:2]")
	f.Add("KAFKA", "{tls: {ca: y, cert: y}}")
	f.Add("MACHINES", "[{machine: a}, {machine: b}]")
	f.Add("SPOOL", "x}, {spool: y")
	f.Add("SILENCE", "&a [*a]")
	f.Fuzz(func(t *testing.T, key, value string) {
		name := environmentPrefix + key
		if err := environment(new(plant), []string{name + "=" + value}); err != nil && !strings.Contains(err.Error(), "environment variable TCM_") {
			t.Fatalf("%q: %v does not name it", name, err)
		}
	})
}

// A program that reads a part of another program's file keeps the other keys in a map, which has no variables.
func TestOtherKeys(t *testing.T) {
	var c struct {
		Spool string         `yaml:"spool"`
		Rest  map[string]any `yaml:",inline"`
	}
	if err := Decode([]byte("spool: a\nsilence: 1m\n"), "plant.yaml", &c); err != nil {
		t.Fatal(err)
	}
	if err := environment(&c, []string{"TCM_SPOOL=b", "TCM_SILENCE=2m"}); err != nil || c.Spool != "b" || c.Rest["silence"] != "1m" {
		t.Errorf("%+v, %v", c, err)
	}
}
