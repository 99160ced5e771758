package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// messageDirs hold the messages that users and models read.
var messageDirs = []string{"api", "cmd", "internal", "runner"}

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

// goProse returns the comments of a file that stand on lines of their own, and the string literals that read as
// sentences. Comments behind code are notes of a few words.
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
		return true
	})
	code := codeLines(fset, file)
	for _, group := range file.Comments {
		if !code[line(group.Pos())] {
			p.addDoc(line, group)
		}
	}
	return p
}

// codeLines returns the lines on which code ends or begins.
func codeLines(fset *token.FileSet, file *ast.File) map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup, *ast.File:
		default:
			lines[fset.Position(n.Pos()).Line], lines[fset.Position(n.End()).Line] = true, true
		}
		return true
	})
	return lines
}

// markerMessage is the message of a validation marker, which an API server shows.
var markerMessage = regexp.MustCompile(`message="((?:[^"\\]|\\.)*)"`)

// markerExpression matches a CEL expression that makes a message.
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

// directive matches a comment for a tool, such as //go:build and //nolint.
var directive = regexp.MustCompile(`^//[a-z]`)

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
		case text == "" || strings.HasPrefix(c.Text, "//\t") || directive.MatchString(c.Text):
			flush()
		default:
			if item, isItem := strings.CutPrefix(text, "- "); isItem {
				flush()
				text = item
			}
			if start == 0 {
				start = line(c.Pos())
			}
			paragraph = append(paragraph, text)
		}
	}
	flush()
}

var sentenceEnd = regexp.MustCompile(`[a-z][.] `)

// isSentence reports whether a text is a message, and not code or a list of words.
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

// manifestDirs hold YAML whose messages and comments users read.
var manifestDirs = []string{
	"config/default", "config/demo", "config/manager", "config/metrics-authentication", "config/mutation", "config/samples", "examples",
	"charts/deckhand",
}

// makefile has the texts of make help.
const makefile = "Makefile"

// extractManifests writes the prose of manifests and of the Makefile.
func extractManifests(root, out string) error {
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
	data, err := fs.ReadFile(files, makefile)
	if err != nil {
		return err
	}
	return writeLines(filepath.Join(out, makefile+".txt"), helpProse(string(data)))
}

// isManifest leaves out the CRDs, whose texts are those of api.
func isManifest(path string) bool {
	return (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, "NOTES.txt")) && !strings.Contains(path, "/crd/")
}

// manifestMessage matches the texts for users in a manifest: comments, and messages of admission policies.
var manifestMessage = regexp.MustCompile(`(?:^|\s)#\s+(.*)$|^\s*(?:-\s+)?(?:message|description):\s+(.*)$`)

// manifestExpression is the CEL expression that makes a message of an admission policy.
var manifestExpression = regexp.MustCompile(`^\s*(?:-\s+)?messageExpression:\s+(.*)$`)

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
		if e := manifestExpression.FindStringSubmatch(trimmed); e != nil {
			p.addLiterals(number, e[1])
		}
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
			p.add(number, m[1]+strings.Trim(m[2], `"'`))
		}
	}
	flush()
	return p
}

// help is the text that make help prints about a target.
var help = regexp.MustCompile(`^[a-z][a-z-]*:.*?## (.*)$`)

func helpProse(text string) prose {
	p := prose{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if m := help.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			p.add(number, m[1])
		}
	}
	return p
}
