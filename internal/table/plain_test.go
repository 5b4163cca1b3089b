package table

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// Text is the same however it is written, and a note says how that was.
func TestPlainText(t *testing.T) {
	const text = "Zeit;Kraft [µN]\r\n0;1\r\n0,1;2\r\n"
	zip := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		io.WriteString(w, s)
		w.Close()
		return b.String()
	}
	in := func(e interface{ String(string) (string, error) }) string {
		s, err := e.String(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	little, big := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder(), unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder()
	for name, tc := range map[string]struct{ in, notes string }{
		"UTF-8":                    {text, ""},
		"with a byte order mark":   {"\xef\xbb\xbf" + text, ""},
		"UTF-16":                   {in(little), "text in UTF-16"},
		"UTF-16 without a mark":    {in(big), "text in UTF-16 without a byte order mark"},
		"Windows-1252":             {in(charmap.Windows1252.NewEncoder()), guessedEncoding},
		"gzip":                     {zip(text), "unpacked from gzip"},
		"gzip of UTF-16":           {zip(in(little)), "unpacked from gzip; text in UTF-16"},
		"gzip with two members":    {zip(text[:9]) + zip(text[9:]), "unpacked from gzip"},
		"a character that is long": {strings.Replace(strings.Repeat("x", headSize-1)+"µ", "xx", text, 1), ""},
	} {
		out, notes, err := PlainText(strings.NewReader(tc.in))
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := io.ReadAll(out)
		if err != nil || !strings.HasPrefix(string(got), text[:2]) || !strings.Contains(string(got), text[2:]) || strings.Join(notes, "; ") != tc.notes {
			t.Errorf("%s: %.60q, notes %q, %v", name, got, notes, err)
		}
		if head := tc.in[:min(len(tc.in), 512)]; !isPacked([]byte(head)) && !IsText([]byte(head)) {
			t.Errorf("%s is not text", name)
		}
	}
	for name, tc := range map[string]struct{ in, want string }{
		"cut off":  {zip(text)[:30], "the packed file is cut off"},
		"damaged":  {strings.Replace(zip(text), "\x1f\x8b\x08\x00\x00", "\x1f\x8b\x08\x00\x01", 1)[:20] + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "the packed file is "},
		"no gzip":  {"\x1f\x8b\x00 this is something else", "is none"},
		"one byte": {"\x1f\x8b", "is none"},
		"a bomb":   {zip(strings.Repeat("1,1\n", 8<<20)), "it unpacks to more than 200 times its size"},
	} {
		out, _, err := PlainText(strings.NewReader(tc.in))
		if err == nil {
			_, err = io.ReadAll(out)
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	for _, binary := range []string{"TDSm\x0e\x00\x00\x00\x69\x12", "\x00\x00\x00\x00\x00\x00\x00\x00", "MATLAB\x00\x01\x00IM"} {
		if IsText([]byte(binary)) {
			t.Errorf("%q is text", binary)
		}
	}
}

// What cannot be read is named for what it is.
func TestForeignFile(t *testing.T) {
	for head, want := range map[string]string{
		"PK\x03\x04\x14\x00": "a ZIP archive", "PK\x03\x04\x14\x00\x00\x00\x08\x00[Content_Types].xml": "a workbook", "PK\x03\x04\x14\x00\x00\x00docProps/app.xml": "a workbook", "PK\x03\x04mimetypeapplication/vnd.oasis.opendocument.spreadsheet": "a workbook", "Rar!\x1a\x07\x01": "a RAR archive", "7z\xbc\xaf\x27\x1c": "a 7z archive", "\x89HDF\r\n\x1a\n": "HDF5", "% made by X\n\n@RELATION drill\n": "ARFF", " {\"a\": [1]}": "JSON", "[[1,2],[3,4]]": "JSON", "[\n  {": "JSON", "[0.5, 1]": "JSON", "\xef\xbb\xbf{": "JSON", "BZh91AY": "bzip2", "\x28\xb5\x2f\xfd\x00": "zstd",
		"x.csv" + strings.Repeat("\x00", 252) + "ustar\x0000": "a tar archive", "x.csv" + strings.Repeat("\x00", 252) + "ustar  \x00": "a tar archive", strings.Repeat("1,2\n", 64) + "\nustar,3\n": "",
		"time,ax\n": "", "[s],[g]\n0,1\n": "", "% time ax\n0 1\n": "", "": "",
	} {
		what, remedy := ForeignFile([]byte(head))
		if (what == "") != (want == "") || !strings.Contains(what, want) || (what == "") != (remedy == "") {
			t.Errorf("%q is %q: %q, want %q", head, what, remedy, want)
		}
	}
}

// FuzzPlain checks that text comes out as UTF-8 unless it is not text, and that nothing panics.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "\xff\xfea\x00", "\xfe\xff\x00a", "\xef\xbb\xbfa", "\x1f\x8b\x08", "K\xf6ln", "a\x00b\x00c\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, notes, err := PlainText(bytes.NewReader(in))
		if err != nil {
			return
		}
		text, err := io.ReadAll(io.LimitReader(out, 1<<20))
		if err == nil && len(notes) > 0 && !isPacked(in) && !bytes.Equal(bytes.ToValidUTF8(text, nil), text) {
			t.Errorf("%q is not UTF-8, from %q by %v", text, in, notes)
		}
	})
}
