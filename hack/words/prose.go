package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// messageDirs hold the messages that users and models read.
var messageDirs = []string{"api", "cmd", "internal", "runner"}

// godocDirs are the packages whose doc comments people read who do not change Deckhand: the API, and what a custom
// runner is built of. Doc comments of other packages are for those who change their code.
var godocDirs = []string{
	"api/v1alpha1", "runner", "runner/backend", "runner/events", "runner/internal/hook", "runner/middleware", "runner/model",
	"runner/session", "runner/step", "runner/task", "runner/tool",
}

// extractProse writes the prose of Go files and manifests below out, one text file for each source, on the lines where
// it stands in the source, so that a finding at out/x.go.txt:12 is one at x.go:12.
func extractProse(root, out string) error {
	err := goFiles(root, messageDirs, func(path string) error {
		return extractGo(root, out, path)
	})
	if err != nil {
		return err
	}
	return extractManifests(root, out)
}

func extractGo(root, out, path string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.Join(root, path), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if !slices.Contains(godocDirs, filepath.ToSlash(filepath.Dir(path))) {
		file.Comments, file.Doc = nil, nil
		ast.Inspect(file, dropDocs)
	}
	return writeLines(filepath.Join(out, path+".txt"), goProse(fset, file))
}

// prose is text by the line on which it begins.
type prose map[int][]string

func (p prose) add(line int, text string) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	// Vale reads on after a full stop that no capital letter follows.
	p[line] = append(p[line], strings.ToUpper(text[:1])+text[1:])
}

// goProse is the doc comments of exported declarations, and the string literals that read as sentences.
func goProse(fset *token.FileSet, file *ast.File) prose {
	p := prose{}
	line := func(pos token.Pos) int { return fset.Position(pos).Line }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && isSentence(text) {
				p.add(line(n.Pos()), text)
			}
		}
		p.addDoc(line, exportedDoc(n))
		return true
	})
	p.addDoc(line, file.Doc)
	return p
}

// exportedDoc is the doc comment of an exported declaration, or nil.
func exportedDoc(n ast.Node) *ast.CommentGroup {
	switch n := n.(type) {
	case *ast.Field:
		if len(n.Names) == 0 || n.Names[0].IsExported() {
			return n.Doc
		}
	case *ast.TypeSpec:
		if n.Name.IsExported() {
			return n.Doc
		}
	case *ast.ValueSpec:
		if n.Names[0].IsExported() {
			return n.Doc
		}
	case *ast.FuncDecl:
		if n.Name.IsExported() {
			return n.Doc
		}
	case *ast.GenDecl:
		if exported(n) {
			return n.Doc
		}
	}
	return nil
}

func dropDocs(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Field:
		n.Doc = nil
	case *ast.TypeSpec:
		n.Doc = nil
	case *ast.ValueSpec:
		n.Doc = nil
	case *ast.GenDecl:
		n.Doc = nil
	case *ast.FuncDecl:
		n.Doc = nil
	}
	return true
}

func exported(d *ast.GenDecl) bool {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				return true
			}
		case *ast.ValueSpec:
			if s.Names[0].IsExported() {
				return true
			}
		}
	}
	return false
}

// markerMessage is the message of a validation marker, which an API server shows.
var markerMessage = regexp.MustCompile(`message="((?:[^"\\]|\\.)*)"`)

// markerExpression is a CEL expression that makes such a message.
var markerExpression = regexp.MustCompile(`messageExpression="((?:[^"\\]|\\.)*)"`)

// literal is a string of CEL.
var literal = regexp.MustCompile(`'((?:[^'\\]|\\.)*)'`)

func (p prose) addMarker(line int, text string) {
	if m := markerMessage.FindStringSubmatch(text); m != nil {
		p.add(line, m[1])
	}
	if m := markerExpression.FindStringSubmatch(text); m != nil {
		p.addLiterals(line, m[1])
	}
}

// addLiterals adds the strings of a CEL expression that have more than one word.
func (p prose) addLiterals(line int, expression string) {
	for _, m := range literal.FindAllStringSubmatch(expression, -1) {
		if text := strings.TrimLeft(m[1], " ;,:"); len(strings.Fields(text)) > 1 {
			p.add(line, text)
		}
	}
}

func (p prose) addDoc(line func(token.Pos) int, doc *ast.CommentGroup) {
	if doc == nil {
		return
	}
	start, paragraph := 0, []string{}
	flush := func() {
		p.add(start, strings.Join(paragraph, " "))
		start, paragraph = 0, nil
	}
	for _, c := range doc.List {
		text := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		switch {
		case strings.HasPrefix(text, "+"):
			flush()
			p.addMarker(line(c.Pos()), text)
		case text == "" || strings.HasPrefix(c.Text, "//\t"):
			flush()
		default:
			if start == 0 {
				start = line(c.Pos())
			}
			paragraph = append(paragraph, text)
		}
	}
	flush()
}

var sentenceEnd = regexp.MustCompile(`[a-z][.] `)

// isSentence tells messages from code and from lists of words.
func isSentence(text string) bool {
	words := len(strings.Fields(text))
	list := words > 20 && !strings.ContainsAny(text, ",;") && !sentenceEnd.MatchString(text)
	return words >= 4 && !list && !strings.ContainsAny(text[:1], "{<") && !strings.Contains(text, "self.")
}

func writeLines(path string, p prose) error {
	if len(p) == 0 {
		return nil
	}
	last := 0
	for line := range p {
		last = max(last, line)
	}
	var b strings.Builder
	for line := 1; line <= last; line++ {
		b.WriteString(strings.Join(p[line], " | "))
		b.WriteByte('\n')
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
