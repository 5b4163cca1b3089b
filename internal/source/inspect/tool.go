package inspect

import (
	"fmt"

	"github.com/flank-tcm/flank/internal/source"
)

// toolOf says in words after what the tool of a recording is named, if it is the file.
func toolOf(path string, opt Options) string {
	name := source.Recording{Path: path}.Name()
	switch {
	case opt.Layout == nil:
		return fmt.Sprintf("%s, after the file's name, unless the layout names a column of tools", name)
	case opt.Columns.Tool == "":
		return fmt.Sprintf("%s, after the file's name; the layout has no tool column", name)
	}
	return ""
}
