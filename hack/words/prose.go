package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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

// manifestDirs hold YAML whose messages and comments users read.
var manifestDirs = []string{"config/policy", "examples", "charts/deckhand"}

// extractProse writes the prose of Go files and manifests below out, one text file for each source, on the lines where
// it stands in the source, so that a finding at out/x.go.txt:12 is one at x.go:12.
func extractProse(root, out string) error {
	err := goFiles(root, messageDirs, func(path string) error {
		return extractGo(root, out, path)
	})
	if err != nil {
		return err
	}
	files := os.DirFS(root)
	for _, dir := range manifestDirs {
		err := fs.WalkDir(files, dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isManifest(path) {
				return err
			}
			data, err := fs.ReadFile(files, path)
			if err != nil {
				return err
			}
			return writeLines(filepath.Join(out, path+".txt"), manifestProse(string(data)))
		})
		if err != nil {
			return err
		}
	}
	return nil
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

// isManifest leaves out what the chart copies from config.
func isManifest(path string) bool {
	return (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, "NOTES.txt")) && !strings.Contains(path, "charts/deckhand/files/")
}

// prose is text by the line on which it begins.
type prose map[int][]string

func (p prose) add(line int, text string) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "." // so that Vale does not read on
	}
	p[line] = append(p[line], text)
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
			if m := markerMessage.FindStringSubmatch(text); m != nil {
				p.add(line(c.Pos()), m[1])
			}
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

// manifestMessage is what a manifest says to people: a comment, or a message of an admission policy.
var manifestMessage = regexp.MustCompile(`(?:^|\s)#\s+(.*)$|^\s*(?:-\s+)?(?:message|description):\s+(.*)$`)

func manifestProse(text string) prose {
	p := prose{}
	number, start := 0, 0
	var paragraph []string
	flush := func() {
		p.add(start, strings.Join(paragraph, " "))
		start, paragraph = 0, nil
	}
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		m := manifestMessage.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case m == nil:
			flush()
		case strings.HasPrefix(trimmed, "#"):
			if start == 0 {
				start = number
			}
			paragraph = append(paragraph, m[1])
		default:
			flush()
			p.add(number, m[1]+m[2])
		}
	}
	flush()
	return p
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
