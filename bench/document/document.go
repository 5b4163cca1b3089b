// Package document writes pages: from templates, and the generated parts of pages that people write.
package document

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/template"
)

// Fill returns a template of text/template filled with data. Figures in it are {{f "%.2f" .Mean}}. Both are parts of the program: Fill panics if they do
// not fit.
func Fill(text string, data any, functions template.FuncMap) string {
	var b strings.Builder
	t := template.New("").Funcs(template.FuncMap{"f": Figure, "held": Held, "join": strings.Join}).Funcs(functions)
	if err := template.Must(t.Parse(text)).Execute(&b, data); err != nil {
		panic("document: " + err.Error())
	}
	return b.String()
}

// Figure returns v as fmt prints it, a dash if it is undefined.
func Figure(format string, v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

// Held says of a goal whether it is.
func Held(yes bool) string {
	if yes {
		return "**held**"
	}
	return "**not held**"
}

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
