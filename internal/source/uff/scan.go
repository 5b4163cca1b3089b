package uff

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errCut says that the file ends before a data set does.
var errCut = errors.New("the file ends in it: copy it again")

// scanner reads the lines of a file, which may have bytes between them.
type scanner struct {
	in     io.ReaderAt
	size   int64
	r      *bufio.Reader
	at     int64  // byte that comes next
	from   int64  // byte at which the line last read begins
	line   int    // its number, from 1
	text   string // its beginning
	jumped bool   // bytes were passed over: lines cannot be counted
}

// seek goes on at a byte of the file.
func (s *scanner) seek(at int64) {
	s.r = bufio.NewReaderSize(io.NewSectionReader(s.in, at, s.size-at), 64<<10)
	s.jumped = s.jumped || at > 0
	s.at = at
}

// most is the most bytes of a line that are kept: records have 80.
const most = 160

// next reads the next line. It returns io.EOF after the last.
func (s *scanner) next() error {
	s.from = s.at
	s.line++
	s.text = ""
	for {
		part, err := s.r.ReadSlice('\n')
		s.at += int64(len(part))
		if s.text == "" {
			s.text = strings.TrimRight(string(part[:min(len(part), most)]), "\r\n")
		}
		switch {
		case err == io.EOF && s.at > s.from, err == nil:
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// where says where the line last read begins.
func (s *scanner) where() string {
	if s.jumped {
		return fmt.Sprintf("byte %d", s.from)
	}
	return fmt.Sprintf("line %d", s.line)
}

// isMark reports whether a line begins or ends a data set.
func isMark(line string) bool {
	return strings.HasPrefix(line, "    -1") && strings.TrimSpace(line) == "-1"
}

// marked reports whether the end of a data set is at a byte of the file, or on the next line.
func (s *scanner) marked(at int64) bool {
	var b [most]byte
	n, _ := s.in.ReadAt(b[:], min(at, s.size))
	line, _, _ := strings.Cut(strings.TrimLeft(string(b[:n]), "\r\n"), "\n")
	return isMark(line)
}

// toMark passes over lines up to the end of a data set.
func (s *scanner) toMark() error {
	for {
		if err := s.next(); err == io.EOF {
			return errCut
		} else if err != nil {
			return err
		}
		if isMark(s.text) {
			return nil
		}
	}
}
