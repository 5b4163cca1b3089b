package plain

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Name returns the name of a tool as every program writes it: without white space at its ends, with one blank
// for each white space within, and in Unicode's normal form C. Names that look the same are the same. It
// reports a name with a character that cannot be seen. The error does not name the field.
func Name(s string) (string, error) {
	s = strings.TrimSpace(s)
	if err := Check(s); err != nil {
		return "", err
	}
	for _, r := range s {
		if invisible(r) {
			return "", fmt.Errorf("%.80q has the invisible character %U: remove it", s, r)
		}
	}
	return norm.NFC.String(strings.Join(strings.Fields(s), " ")), nil
}

// invisible reports a character that leaves no mark, and is not white space: formats such as the zero-width
// blank and the soft hyphen, private characters, and fillers that count as letters.
func invisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800'
}

// Fold returns what is left of a Name if case, width and leading zeros of numbers are taken away, and
// blanks. Tools whose names fold to the same are probably one tool.
func Fold(name string) string {
	var b strings.Builder
	digits := false // a digit other than a leading zero has come
	text := []rune(strings.ToLower(strings.ToUpper(norm.NFKC.String(name))))
	for i, r := range text {
		r = digit(r)
		if r == '0' && !digits && i+1 < len(text) && unicode.IsDigit(text[i+1]) || unicode.IsSpace(r) {
			continue
		}
		digits = unicode.IsDigit(r)
		b.WriteRune(r)
	}
	return b.String()
}

// digit returns a digit of any script as one of ASCII, and other characters as they are.
func digit(r rune) rune {
	if r < 128 || !unicode.IsDigit(r) {
		return r
	}
	zero := r // digits of a script follow each other from 0 to 9
	for range 9 {
		if !unicode.IsDigit(zero - 1) {
			break
		}
		zero--
	}
	return '0' + (r-zero)%10
}
