// Package plain makes text from outside safe to show.
//
// Names of machines and tools, notes, texts of events, header values and errors that quote
// them come over the network or from files, so anyone may have written them. Raw, they
// can move a cursor, forge a line of a log, hide a part of a line or become a link. Text is for
// one line of a terminal, Markdown for a document, Mail for a mail. NewWriter is the last
// barrier of a whole output.
package plain

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unsafe reports whether a character changes how the text around it is shown: C0 and C1
// controls, DEL, what reverses the direction of writing, and the separators of lines and paragraphs.
func unsafe(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Check reports a text that no name and no note may be: one that is not UTF-8, or with a
// character that changes how the text around it is shown. The error does not name the field.
func Check(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%.80q is not UTF-8", s)
	}
	for _, r := range s {
		if unsafe(r) {
			return fmt.Errorf("%.80q has the control character %U: remove it", s, r)
		}
	}
	return nil
}

// Text returns s as one line for a terminal. What cannot be printed is written as in a string of Go.
func Text(s string) string {
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// Short is Text of the first n bytes of s.
func Short(s string, n int) string {
	if n < len(s) {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return Text(s)
}

// harmless is text that means the same in Markdown as outside of it, unless it has what marked
// finds: an address, or an underscore at the edge of a word.
var (
	harmless = regexp.MustCompile(`^[\pL\pN/ .,;()%+_–-]*$`)
	marked   = regexp.MustCompile(`(?i)//|www\.|(^|[^\pL\pN])_|_([^\pL\pN]|$)`)
)

// Markdown returns s for a document in Markdown: as it is if that is harmless, else as code, in
// which Markdown knows no links, no HTML and no names of people. It fits into a cell of a table.
func Markdown(s string) string {
	s = Text(s)
	if harmless.MatchString(s) && !marked.MatchString(s) {
		return s
	}
	longest, run := 0, 0
	for _, r := range s {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + " " + strings.ReplaceAll(s, "|", `\|`) + " " + fence
}

var link = regexp.MustCompile(`(?i)(https?|ftps?|file|mailto|tel|sms|javascript|data|www)([:.])`)

// Mail returns s as one line for the text of a mail. Addresses of pages are broken, so that no mail
// program makes a link of them.
func Mail(s string) string {
	s = link.ReplaceAllString(Text(s), "$1[$2]")
	return strings.NewReplacer("<", "‹", ">", "›").Replace(s)
}

// Link returns the address of a page for a mail, or Mail of s if s is not one: a path, or an
// address by HTTP, of characters that addresses have.
func Link(s string) string {
	u, err := url.Parse(s)
	if err != nil || !address.MatchString(s) || u.User != nil || u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" || u.Scheme == "" && u.Host != "" {
		return Mail(s)
	}
	return s
}

var address = regexp.MustCompile(`^[A-Za-z0-9/:._~%?#=&+@,;!$*()-]*$`)

// NewWriter returns a writer that passes text on to w, with line ends and tabs, and writes every
// other character that changes how text is shown as \u and its number. That is valid in JSON too.
// Bytes that are not UTF-8 become U+FFFD. One call of Write is one call of w's; a character
// must not be divided between two calls.
func NewWriter(w io.Writer) io.Writer { return &writer{w} }

type writer struct{ to io.Writer }

func (w *writer) Write(b []byte) (int, error) {
	clean := strings.IndexFunc(string(b), func(r rune) bool { return stopped(r) || r == utf8.RuneError }) < 0
	if clean {
		return w.to.Write(b)
	}
	var out strings.Builder
	for _, r := range string(b) {
		if stopped(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	if _, err := io.WriteString(w.to, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

func stopped(r rune) bool { return r != '\n' && r != '\t' && unsafe(r) }
