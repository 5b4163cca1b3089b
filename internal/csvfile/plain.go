package csvfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Guess is the note of Plain about text whose encoding is guessed.
const Guess = "text that is not UTF-8, taken for Windows-1252"

// headSize is how much of a file says how its text is written.
const headSize = 64 << 10

// Plain returns the text of a file as UTF-8 without a byte order mark: it unpacks gzip, and decodes UTF-16, with a byte
// order mark or without, and Windows-1252, which is what text is taken for that is not valid UTF-8. Notes say what it did. Errors
// of reading say what is wrong and what to do, without the name of the file.
func Plain(in io.Reader) (out io.Reader, notes []string, err error) {
	br := bufio.NewReaderSize(in, headSize)
	if IsPacked(peek(br)) {
		unpacked, err := gzip.NewReader(br)
		if err != nil {
			return nil, nil, fmt.Errorf("it begins as gzip and is none (%w): copy it again", err)
		}
		notes = append(notes, "unpacked from gzip")
		br = bufio.NewReaderSize(packed{unpacked}, headSize)
	}
	head, err := br.Peek(headSize)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		br.Discard(3) // cannot fail: it was peeked
		return br, notes, nil
	}
	if name, code := encodingOf(head); code != nil {
		return code.NewDecoder().Reader(br), append(notes, name), nil
	}
	return br, notes, nil
}

func peek(br *bufio.Reader) []byte {
	head, _ := br.Peek(512)
	return head
}

// IsPacked reports whether the first bytes of a file are gzip's.
func IsPacked(head []byte) bool { return bytes.HasPrefix(head, []byte("\x1f\x8b")) }

// packed reads what is packed, and says so if it cannot be unpacked.
type packed struct{ *gzip.Reader }

func (p packed) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the packed file is cut off: copy it again")
	case err != nil && err != io.EOF:
		err = fmt.Errorf("the packed file is damaged (%w): copy it again", err)
	}
	return n, err
}

// encodingOf returns how text is written that is not UTF-8, in words, and what decodes it; nil for UTF-8 and for what is not text.
func encodingOf(head []byte) (name string, code encoding.Encoding) {
	switch odd, even := zeros(head); {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "text in UTF-16", unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
	case odd && !even:
		return "text in UTF-16 without a byte order mark", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case even && !odd:
		return "text in UTF-16 without a byte order mark", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case odd || valid(head) || slices.ContainsFunc(head, func(b byte) bool { return charmap.Windows1252.DecodeByte(b) == utf8.RuneError }):
		return "", nil
	}
	return Guess, charmap.Windows1252
}

// zeros reports whether at least four of five bytes at odd places, and at even ones, are zero, as in ASCII that is written in UTF-16. Places count from 0.
func zeros(head []byte) (odd, even bool) {
	var n [2]int
	for i, b := range head {
		if b == 0 {
			n[i%2]++
		}
	}
	enough := 4 * (len(head) / 2)
	return len(head) > 3 && 5*n[1] > enough, len(head) > 3 && 5*n[0] > enough
}

// valid reports whether text is UTF-8, but for a character that is cut off at its end.
func valid(head []byte) bool {
	for cut := range min(utf8.UTFMax, len(head)+1) {
		whole, rest := head[:len(head)-cut], head[len(head)-cut:]
		if utf8.Valid(whole) && (cut == 0 || !utf8.FullRune(rest)) {
			return true
		}
	}
	return false
}

// IsText reports whether the first bytes of a file, as they are, can be text that Plain returns.
func IsText(head []byte) bool {
	if IsPacked(head) {
		return true
	}
	_, code := encodingOf(head)
	return bytes.IndexByte(head, 0) < 0 || code != nil
}
