package config

import (
	"strings"
	"testing"
)

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "0GB": 0, "1B": 1, "1kB": 1000, "1.5 MB": 1_500_000, "250GB": 250e9, "\"64GiB\"": 64 << 30, "2TiB": 2 << 40, "3TB": 3e12, "1KiB": 1024, "5MiB": 5 << 20,
	} {
		var got struct{ A Bytes }
		if err := Decode([]byte("a: "+text+"\n"), "c.yaml", &got); err != nil || got.A != want {
			t.Errorf("%s: %d, %v, want %d", text, got.A, err, want)
		}
	}
	for _, text := range []string{"5", "-1GB", "GB", "1Gb", "1GBB", "1GiBi", "many", "NaNB", "InfGB", "9e30TB", "8388608TiB", "[1GB]", "{a: 1GB}", "''", "1 2GB", "0x1p62TB"} {
		var got struct{ A Bytes }
		err := Decode([]byte("# first\na: "+text+"\n"), "c.yaml", &got)
		if err == nil || !strings.HasPrefix(err.Error(), "c.yaml:2: `") || !strings.Contains(err.Error(), "such as 250GB or 64GiB, or 0") {
			t.Errorf("%s: %d, %v", text, got.A, err)
		}
	}
}

func FuzzBytes(f *testing.F) {
	for _, text := range []string{"0", "250GB", "1.5 MiB", "-1B", "1e300TB", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if b, err := ParseBytes(text); err == nil && b < 0 {
			t.Errorf("%q is %d bytes", text, b)
		}
	})
}
