// Package document replaces the generated parts of pages that people write.
package document

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Put replaces a part of a file, or prints the text if no file is named.
func Put(stdout io.Writer, file, name, text string) error {
	if file == "" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	return Replace(file, name, text)
}

// Replace puts text between the lines of a file that name it:
//
//	<!-- name: begin -->
//	<!-- name: end -->
func Replace(file, name, text string) error {
	begin, end := fmt.Appendf(nil, "<!-- %s: begin -->\n", name), fmt.Appendf(nil, "<!-- %s: end -->\n", name)
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	from, to := bytes.Index(old, begin), bytes.Index(old, end)
	if from < 0 || to < from {
		return fmt.Errorf("%s: no lines %q and %q to write the text between", file, begin, end)
	}
	return os.WriteFile(file, bytes.Join([][]byte{old[:from+len(begin)], []byte(text), old[to:]}, nil), 0o644)
}
