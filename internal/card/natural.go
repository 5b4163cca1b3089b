package card

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CompareNames compares names of tools as people count them: T2 comes before T10. It
// returns -1, 0 or 1, and 0 only for equal names, so the order is total.
//
// A run of digits counts as one number. Case matters only between names that are equal
// otherwise, and so do leading zeros: T2, t2, T02, T10.
func CompareNames(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		var order int
		if isDigit(x[0]) && isDigit(y[0]) {
			var m, n string
			m, x = leadingNumber(x)
			n, y = leadingNumber(y)
			order = cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n))
		} else {
			var r, s rune
			r, x = leadingRune(x)
			s, y = leadingRune(y)
			order = cmp.Compare(r, s)
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leadingNumber returns the digits that s begins with, without leading zeros, and the
// rest of s.
func leadingNumber(s string) (digits, rest string) {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return strings.TrimLeft(s[:n], "0"), s[n:]
}

// leadingRune returns the first character of s in lower case, and the rest of s.
func leadingRune(s string) (r rune, rest string) {
	r, n := utf8.DecodeRuneInString(s)
	return unicode.ToLower(r), s[n:]
}
