package table

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// guessedEncoding is the note of PlainText about text whose encoding is guessed.
const guessedEncoding = "text that is not UTF-8, taken for Windows-1252"

// headSize is how much of a file says how its text is written.
const headSize = 64 << 10

// PlainText returns the text of a file as UTF-8 without a byte order mark: it unpacks gzip, and decodes UTF-16, with a byte
// order mark or without, and Windows-1252, which is what text is taken for that is not valid UTF-8. It refuses what [ForeignFile] names. Notes say what it did. Errors
// of reading say what is wrong and what to do, without the name of the file.
func PlainText(in io.Reader) (out io.Reader, notes []string, err error) {
	br, notes, err := Unpacked(in)
	if err != nil {
		return nil, nil, err
	}
	head, err := br.Peek(headSize)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	if what, remedy := ForeignFile(head); what != "" {
		return nil, nil, fmt.Errorf("this is %s: %s", what, remedy)
	}
	out = br
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		br.Discard(3) // cannot fail: it was peeked
	} else if name, code := encodingOf(head); code != nil {
		out, notes = code.NewDecoder().Reader(br), append(notes, name)
	}
	if bytes.IndexByte(head, '\r') >= 0 && bytes.IndexByte(head, '\n') < 0 {
		return returns{out}, append(notes, "lines that end in a carriage return alone"), nil
	}
	return out, notes, nil
}

// returns reads text whose lines end in a carriage return alone, as of old Macintoshes, with line feeds.
type returns struct{ in io.Reader }

func (r returns) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	for i, c := range b[:n] {
		if c == '\r' {
			b[i] = '\n'
		}
	}
	return n, err
}

// Unpacked returns the bytes of a file as they are, or unpacked if they are packed by gzip, which a note says.
func Unpacked(in io.Reader) (out *bufio.Reader, notes []string, err error) {
	size := &counter{in: in}
	br := bufio.NewReaderSize(size, headSize)
	if head, _ := br.Peek(2); !isPacked(head) {
		return br, nil, nil
	}
	unpacked, err := gzip.NewReader(br)
	if err != nil {
		return nil, nil, fmt.Errorf("it begins as gzip and is none (%w): copy it again", err)
	}
	return bufio.NewReaderSize(&packed{unpacked, size, 0}, headSize), []string{"unpacked from gzip"}, nil
}

// isPacked reports whether the first bytes of a file are gzip's.
func isPacked(head []byte) bool { return bytes.HasPrefix(head, []byte("\x1f\x8b")) }

// Measurements unpack to some ten times their size. From fewBytes on, more than mostRatio times is a bomb: it would fill memory or disk.
const (
	fewBytes  = 16 << 20
	mostRatio = 200
)

// counter counts the bytes that are read.
type counter struct {
	in io.Reader
	n  int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.n += int64(n)
	return n, err
}

// packed reads what is packed, and says so if it cannot be unpacked, or if that would be too much.
type packed struct {
	*gzip.Reader
	size     *counter // of what is packed
	unpacked int64
}

func (p *packed) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if p.unpacked += int64(n); p.unpacked > fewBytes && p.unpacked/mostRatio > p.size.n {
		return 0, fmt.Errorf("it unpacks to more than %d times its size, as no measurement does: unpack it by hand and look at it", mostRatio)
	}
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
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff")):
		return "text in UTF-32", utf32.UTF32(utf32.LittleEndian, utf32.ExpectBOM)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "text in UTF-16", unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
	case odd && !even:
		return "text in UTF-16 without a byte order mark", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case even && !odd:
		return "text in UTF-16 without a byte order mark", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case odd || valid(head) || slices.ContainsFunc(head, func(b byte) bool { return charmap.Windows1252.DecodeByte(b) == utf8.RuneError }):
		return "", nil
	}
	return guessedEncoding, charmap.Windows1252
}

// UTF8 returns text as UTF-8: what is not is taken for Windows-1252.
func UTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	text, _ = charmap.Windows1252.NewDecoder().String(text) // every byte is a character
	return text
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

// IsText reports whether the first bytes of a file, unpacked, can be text that PlainText returns.
func IsText(head []byte) bool {
	_, code := encodingOf(head)
	return bytes.IndexByte(head, 0) < 0 || code != nil
}

// foreignFiles are formats that no program here reads, by their first bytes, and what helps.
var foreignFiles = []struct{ magic, what, remedy string }{
	{"\x89HDF\r\n\x1a\n", "an HDF5 file", "convert it to Parquet: " + howTo},
	{"PK\x03\x04", "a ZIP archive", "unpack it: unzip FILE"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook of an old Excel", "save the table as CSV UTF-8"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it: 7z x FILE"},
	{"Rar!\x1a\x07", "a RAR archive", "unpack it: unrar x FILE"},
	{"\x28\xb5\x2f\xfd", "packed by zstd", "unpack it: zstd -d FILE"},
	{"\x1f\x8b", "packed by gzip twice", "unpack it once: gunzip FILE"},
	{"BZh", "packed by bzip2", "unpack it: bunzip2 FILE"},
	{"\xfd7zXZ\x00", "packed by xz", "unpack it: unxz FILE"},
	{"MDF     ", "an MDF file", "convert it to Parquet: " + howTo},
	{"SQLite format 3\x00", "a database of SQLite", "export its table as CSV: " + howTo},
	{"%PDF", "a PDF", "export the data as CSV"},
}

const howTo = "see \"What is not read\" in docs/reference/formats.md"

// arff begins the header of a file of Weka, jsonArray a file of JSON. workbook is the name of a part of one that is new enough to be a ZIP archive.
var (
	workbook  = regexp.MustCompile(`\[Content_Types\]\.xml|\bxl/|docProps/|_rels/|opendocument\.spreadsheet`)
	arff      = regexp.MustCompile(`(?i)^\s*(%[^\n]*\n\s*)*@relation\b`)
	markup    = regexp.MustCompile(`(?i)^<(\?xml|!doctype|html|table|workbook)\b`)
	jsonArray = regexp.MustCompile(`^\[\s*([{\["]|-?[0-9.eE+-]+\s*,)`)
)

// ForeignFile says what a file is whose first bytes show that no program here reads it, and what to do; empty for others.
func ForeignFile(head []byte) (what, remedy string) {
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) && workbook.Match(head) {
		return "a workbook", "save the table as CSV UTF-8, or convert it: " + howTo
	}
	for _, f := range foreignFiles {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.what, f.remedy
		}
	}
	if len(head) > 262 && string(head[256:262]) == "\x00ustar" {
		return "a tar archive", "unpack it: tar -xf FILE"
	}
	first := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case arff.Match(head):
		return "an ARFF file", "convert it to CSV: " + howTo
	case markup.Match(first):
		return "HTML or XML", "open it with a spreadsheet and save the table as CSV UTF-8"
	case bytes.HasPrefix(first, []byte("{")), jsonArray.Match(first):
		return "JSON", "convert it to CSV: " + howTo
	}
	return "", ""
}
