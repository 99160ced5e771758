package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

//go:embed identifiers.txt
var identifiers string

// pendingFile lists the packages whose unexported names are not checked yet. Their exported names are.
const pendingFile = "hack/words/pending.txt"

// A term is a sequence of words that no name may contain, and what to write instead.
type term struct {
	words   []string
	instead string
}

func parseTerms(list string) ([]term, error) {
	var out []term
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, instead, found := strings.Cut(line, " ")
		if !found {
			return nil, fmt.Errorf("identifiers.txt: %q has no replacement", line)
		}
		out = append(out, term{split(word), strings.TrimSpace(instead)})
	}
	return out, nil
}

// split returns the words of a name in lower case: podURLBuilder is pod, url, builder.
func split(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words, word = append(words, strings.ToLower(string(word))), nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			flush()
			continue
		case unicode.IsUpper(r):
			afterLower := i > 0 && unicode.IsLower(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				flush()
			}
		}
		word = append(word, r)
	}
	flush()
	return words
}

// match returns the first term that a name contains.
func match(terms []term, name string) (term, bool) {
	words := split(name)
	for _, t := range terms {
		for i := range words {
			if i+len(t.words) <= len(words) && slices.Equal(words[i:i+len(t.words)], t.words) {
				return t, true
			}
		}
	}
	return term{}, false
}

// A name is one that a Go file declares at package level: its package, a type, function, constant or variable, or a
// field or method of a type.
type name struct {
	text     string
	position token.Position
	exported bool
}

func declared(fset *token.FileSet, file *ast.File) []name {
	ids := []*ast.Ident{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			ids = append(ids, d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				ids = append(ids, namesOf(s)...)
			}
		}
	}
	out := []name{{file.Name.Name, fset.Position(file.Name.Pos()), true}}
	for _, id := range ids {
		out = append(out, name{id.Name, fset.Position(id.Pos()), id.IsExported()})
	}
	return out
}

func namesOf(s ast.Spec) []*ast.Ident {
	switch s := s.(type) {
	case *ast.ValueSpec:
		return s.Names
	case *ast.TypeSpec:
		return append([]*ast.Ident{s.Name}, members(s.Type)...)
	default:
		return nil
	}
}

func members(t ast.Expr) []*ast.Ident {
	var fields *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return nil
	}
	var out []*ast.Ident
	for _, f := range fields.List {
		out = append(out, f.Names...)
	}
	return out
}

// checkNames reports names of the non-test Go files below dirs that contain a listed word. It also fails for a line of
// pendingFile that is not needed any more.
func checkNames(w io.Writer, root string, dirs []string) error {
	terms, err := parseTerms(identifiers)
	if err != nil {
		return err
	}
	pending, err := readPending(root)
	if err != nil {
		return err
	}
	found := 0
	err = goFiles(root, dirs, func(path string) error {
		n, err := checkFile(w, root, path, terms, pending)
		found += n
		return err
	})
	if err != nil {
		return err
	}
	for dir, needed := range pending {
		if !needed {
			found++
			fmt.Fprintf(w, "%s: %s has no listed names left: remove the line\n", pendingFile, dir)
		}
	}
	if found > 0 {
		return fmt.Errorf("%d names to change; hack/words/identifiers.txt is the list, AGENTS.md has the glossary", found)
	}
	return nil
}

// checkFile reports the names of one file. It marks its package in pending if unexported names are left to change.
func checkFile(w io.Writer, root, path string, terms []term, pending map[string]bool) (int, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.Join(root, path), nil, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	found, dir := 0, filepath.ToSlash(filepath.Dir(path))
	for _, n := range declared(fset, file) {
		t, listed := match(terms, n.text)
		_, known := pending[dir]
		switch {
		case !listed:
		case known && !n.exported:
			pending[dir] = true
		default:
			found++
			fmt.Fprintf(w, "%s:%d: %s: write %s\n", path, n.position.Line, n.text, t.instead)
		}
	}
	return found, nil
}

func readPending(root string) (map[string]bool, error) {
	data, err := os.ReadFile(filepath.Join(root, pendingFile))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out[line] = false
		}
	}
	return out, nil
}

// goFiles calls see for the Go files below dirs that people write, tests excepted, with paths relative to root.
func goFiles(root string, dirs []string, see func(path string) error) error {
	for _, dir := range dirs {
		err := fs.WalkDir(os.DirFS(root), dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || !isSource(d.Name()):
				return nil
			default:
				return see(path)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func isSource(base string) bool {
	return strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go") && !strings.HasPrefix(base, "zz_generated")
}
