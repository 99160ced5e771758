package layout_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// otherReceivers are the types with another receiver, with the reason.
var otherReceivers = map[string]string{
	"internal/workflow/graph.pass": "p is a node in this package",
}

// A receiver is the initial of a word of its type, or the initials of consecutive words: a filesPod has f, p or fp.
func TestReceiversAreInitials(t *testing.T) {
	unused := maps.Clone(otherReceivers)
	for _, file := range goFiles(t) {
		for typ, names := range receivers(t, file) {
			id := filepath.ToSlash(filepath.Dir(file)) + "." + typ
			for _, name := range names {
				switch {
				case slices.Contains(initials(typ), name):
				case otherReceivers[id] != "":
					delete(unused, id)
				default:
					t.Errorf("%s: the receiver %s of %s is not of %v", file, name, typ, initials(typ))
				}
			}
		}
	}
	for id := range unused {
		t.Errorf("%s has the receiver of its name: remove it from otherReceivers", id)
	}
}

// goFiles returns the Go files of all modules, relative to the root, without tests.
func goFiles(t *testing.T) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			all = append(all, path)
		case d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "dist", "testdata", "node_modules"}, name)):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil || len(all) < 500 {
		t.Fatalf("finding Go files: %d, %v", len(all), err)
	}
	return all
}

// receivers returns the names of the receivers in a file, by their types. A generated file has none.
func receivers(t *testing.T, file string) map[string][]string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	if ast.IsGenerated(parsed) {
		return names
	}
	for _, d := range parsed.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Recv != nil && len(f.Recv.List[0].Names) > 0 {
			typ := typeName(f.Recv.List[0].Type)
			names[typ] = append(names[typ], f.Recv.List[0].Names[0].Name)
		}
	}
	return names
}

// typeName returns the name of the type of a receiver, without a star and type parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// initials returns the initials of each sequence of words in a name, in lower case.
func initials(name string) (all []string) {
	words := []rune{unicode.ToLower(rune(name[0]))}
	for i := 1; i < len(name); i++ {
		begins := unicode.IsUpper(rune(name[i])) && (!unicode.IsUpper(rune(name[i-1])) || i+1 < len(name) && unicode.IsLower(rune(name[i+1])))
		if begins {
			words = append(words, unicode.ToLower(rune(name[i])))
		}
	}
	for from := range words {
		for to := from + 1; to <= len(words); to++ {
			all = append(all, string(words[from:to]))
		}
	}
	return all
}
