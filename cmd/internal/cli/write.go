package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// File is a file that a command writes.
type File struct{ Path, Text string }

// WriteNew writes files that must not be there. If one of them is, none is written; flag is
// the flag that names another place.
func WriteNew(flag string, files ...File) error {
	for _, f := range files {
		if _, err := os.Lstat(f.Path); err == nil {
			return fmt.Errorf("%s is there already, and is not overwritten: remove it, or name another place by %s", f.Path, flag)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, f := range files {
		out, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = out.WriteString(f.Text)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return nil
}

var plainWord = regexp.MustCompile(`^[\w./:@=+-]+$`)

// Quote returns a word as a shell takes it.
func Quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// CheckFolder refuses a file that a flag names if its folder is not there: now, and not when the work is done.
func CheckFolder(flag, path string) error {
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s %s: no folder %s: make it first", flag, path, dir)
	}
	return nil
}
