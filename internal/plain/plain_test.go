package plain_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/flank-tcm/flank/internal/plain"
)

// hostile are names that someone may send in the hope that they are shown raw.
var hostile = []string{
	"T1\nalarm cleared", "T1\r\nBcc: all@plant.example", "\x1b[2J\x1b[31mT1", "\x9b31mT1", "\u009b31mT1", "T1\u202e1T", "\u2066T1\u2069", "T1\u2028T2",
	"a\x00b", "\x7f", "\xff\xfe", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[T1](https://evil.example)", "![](https://evil.example/p.png)",
	"https://evil.example/login", "www.evil.example", "HTTPS://evil.example", "someone@evil.example", "@everyone", "| T1 | T2 |", "`T1`", "``T1", "# T1", "*T1*", "_T1_",
	"javascript:alert(1)", "mailto:x@evil.example", "&lt;b&gt;", "\\<b>",
}

func FuzzText(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 10)
	}
	f.Add("Bohrer Ø 12 µm – 3,5 %", 5)
	f.Fuzz(func(t *testing.T, s string, n int) {
		for name, got := range map[string]string{"Text": plain.Text(s), "Short": plain.Short(s, max(n, 0)), "Mail": plain.Mail(s), "Markdown": plain.Markdown(s)} {
			if strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(got) {
				t.Errorf("%s of %q = %q: not one line that can be printed", name, s, got)
			}
		}
		if got := plain.Mail(s); strings.ContainsAny(got, "<>") || strings.Contains(strings.ToLower(got), "http:") || strings.Contains(strings.ToLower(got), "https:") || strings.Contains(strings.ToLower(got), "www.") {
			t.Errorf("Mail of %q = %q: a mail program makes a link or a tag of it", s, got)
		}
		checkMarkdown(t, s, plain.Markdown(s))
		var b bytes.Buffer
		if k, err := io.WriteString(plain.NewWriter(&b), s); err != nil || k != len(s) {
			t.Fatalf("NewWriter: wrote %d of %d bytes, %v", k, len(s), err)
		}
		for _, r := range b.String() {
			if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) {
				t.Errorf("NewWriter passes %U on from %q", r, s)
			}
		}
		if plain.Check(s) == nil && b.String() != s {
			t.Errorf("NewWriter changes %q, which Check takes, to %q", s, b.String())
		}
	})
}

// checkMarkdown reports a text that is neither of harmless characters nor one span of code.
func checkMarkdown(t *testing.T, s, got string) {
	t.Helper()
	fence := got[:len(got)-len(strings.TrimLeft(got, "`"))]
	if fence == "" {
		if strings.ContainsAny(got, "<>[]`*#|!@&\\:~\"'") || strings.Contains(strings.ToLower(got), "www.") {
			t.Errorf("Markdown of %q = %q: has marks of Markdown", s, got)
		}
		return
	}
	inner, ok := strings.CutSuffix(strings.TrimPrefix(got, fence), fence)
	if !ok || strings.Contains(inner, fence) || strings.Contains(strings.ReplaceAll(inner, `\|`, ""), "|") {
		t.Errorf("Markdown of %q = %q: not one span of code within a cell", s, got)
	}
}

func TestCheck(t *testing.T) {
	for s, good := range map[string]bool{
		"": true, "T08": true, "Bohrer Ø 12 – neu, 100 %": true, "刀具 7": true, "👷‍♀️": true,
		"a\nb": false, "a\tb": false, "\x1b[0m": false, "\u0085": false, "\u202e": false, "\u2029": false, "\xff": false,
	} {
		if err := plain.Check(s); (err == nil) != good {
			t.Errorf("Check(%q) = %v, want good %v", s, err, good)
		}
	}
}

func TestShortKeepsCharactersWhole(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "a", 2: "a", 3: "aØ", 4: "aØb", 9: "aØb"} {
		if got := plain.Short("aØb", n); got != want {
			t.Errorf("Short(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestLink(t *testing.T) {
	for s, want := range map[string]string{
		"/evidence/A-K3ZQ7M2P.arrow":     "/evidence/A-K3ZQ7M2P.arrow",
		"https://page.plant:9102/a?b=c":  "https://page.plant:9102/a?b=c",
		"javascript:alert(1)":            "javascript[:]alert(1)",
		"//evil.example/x":               "//evil.example/x",
		"https://plant@evil.example/":    "https[:]//plant@evil.example/",
		"https://page/\r\nBcc: a@b.c":    `https[:]//page/\r\nBcc: a@b.c`,
		"https://page/<script>":          "https[:]//page/‹script›",
		"/evidence/x see www.evil.test/": "/evidence/x see www[.]evil.test/",
	} {
		if got := plain.Link(s); got != want {
			t.Errorf("Link(%q) = %q, want %q", s, got, want)
		}
	}
}
