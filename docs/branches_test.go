package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// source is a file of Go.
type source struct {
	folder string // from the root of the repository
	test   bool
	*ast.File
}

// readSources parses every file of Go.
func readSources(t *testing.T) (files []source) {
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		files = append(files, source{filepath.ToSlash(filepath.Dir(file))[len(".."):], strings.HasSuffix(file, "_test.go"), parsed})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// branching returns how many functions there are, tests left out, and of how many the cyclomatic complexity is above 10, as gocyclo counts it.
func branching(files []source) (functions, above int) {
	for _, f := range files {
		for _, d := range f.Decls {
			if f, function := d.(*ast.FuncDecl); function {
				functions++
				if complexity(f) > 10 {
					above++
				}
			}
		}
	}
	return functions, above
}

// complexity is one more than the branches of a function: if, for, case, && and ||.
func complexity(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(len(node.List), 1)
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestComplexity(t *testing.T) {
	for text, want := range map[string]int{
		"{}":                                   1,
		"{ if a && b || c { } }":               4,
		"{ for range 3 { for ; ; { } } }":      3,
		"{ switch a { case 1, 2: default: } }": 2,
		"{ select { case <-a: default: } }":    2,
		"{ _ = func() { if a { } } }":          2,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() "+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := complexity(file.Decls[0].(*ast.FuncDecl)); got != want {
			t.Errorf("%s: %d, not %d", text, got, want)
		}
	}
}

// unused returns the exported functions, types, constants and variables of libraries, but those for tests and those that
// stand in for a library of others, that no file of another package names.
func unused(files []source) map[string]bool {
	names := make(map[string]bool)
	for _, f := range files {
		if !f.test && f.Name.Name != "main" && !strings.HasPrefix(f.folder, "/bench") && !strings.HasPrefix(f.folder, "/internal/testkit") && !strings.HasPrefix(f.folder, "/third_party") {
			for _, name := range exported(f.File) {
				names[f.folder[1:]+"."+name] = true
			}
		}
	}
	for _, f := range files {
		imported := make(map[string]string)
		for _, i := range f.Imports {
			at, _ := strconv.Unquote(i.Path.Value)
			name := path.Base(at)
			if i.Name != nil {
				name = i.Name.Name
			}
			imported[name] = strings.TrimPrefix(at, module)
		}
		ast.Inspect(f.File, func(node ast.Node) bool {
			if s, ok := node.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && "/"+imported[x.Name] != f.folder {
					delete(names, imported[x.Name]+"."+s.Sel.Name)
				}
			}
			return true
		})
	}
	return names
}

// exported returns the exported names that a file declares for its package.
func exported(f *ast.File) (names []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names = append(names, id.Name)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					add(s.Names...)
				}
			}
		}
	}
	return names
}
