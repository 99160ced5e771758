package runner_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/deckhand-dev/deckhand/"

// maxPublic bounds the packages of the library that others build on.
const maxPublic = 22

func TestTheLibraryHasASmallFace(t *testing.T) {
	var public []string
	all, err := exec.CommandContext(t.Context(), "go", "list", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for pkg := range strings.FieldsSeq(string(all)) {
		if !strings.Contains(pkg, "/internal/") {
			public = append(public, pkg)
		}
	}
	if len(public) > maxPublic {
		t.Errorf("%d packages are public, want at most %d; move what a custom runner does not need below runner/internal: %v", len(public), maxPublic, public)
	}
}

// A type with more methods than maxMethods stands in at most maxFiles files: beyond both,
// a reader cannot follow it.
const (
	maxMethods = 30
	maxFiles   = 6
)

// tooLarge are the types that are larger than that and are still to be split.
var tooLarge []string

func TestTypesHaveFewMethodsOrFewFiles(t *testing.T) {
	methods, files := map[string]int{}, map[string]map[string]bool{}
	for _, dir := range []string{"runner", "internal"} {
		forEachMethod(t, "..", dir, func(path, receiver string) {
			name := filepath.Dir(path) + "." + receiver
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			methods[name]++
			files[name][path] = true
		})
	}
	for name, n := range methods {
		large := n > maxMethods && len(files[name]) > maxFiles
		switch known := slices.Contains(tooLarge, name); {
		case large && !known:
			t.Errorf("%s has %d methods in %d files, want at most %d methods or %d files: split it by concept", name, n, len(files[name]), maxMethods, maxFiles)
		case known && !large:
			t.Errorf("%s has %d methods in %d files: remove it from tooLarge", name, n, len(files[name]))
		}
	}
	for _, name := range tooLarge {
		if methods[name] == 0 {
			t.Errorf("%s is not there: remove it from tooLarge", name)
		}
	}
}

// forEachMethod calls see with each method below a directory, tests left out: its file,
// relative to root, and the type of its receiver.
func forEachMethod(t *testing.T, root, dir string, see func(path, receiver string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv != nil {
				see(path, receiverOf(f))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// receiverOf is the name of the type that a method belongs to.
func receiverOf(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	for {
		switch e := of.(type) {
		case *ast.StarExpr:
			of = e.X
		case *ast.IndexExpr:
			of = e.X
		case *ast.IndexListExpr:
			of = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// maxWay is how many files a reader follows for one thing that the runner does.
const maxWay = 4

// drawn is a file of the engine in a drawing.
var drawn = regexp.MustCompile(`(?m)^[ └├│─]*([a-z]+/[a-z]+\.go) `)

func TestWaysThroughTheEngineAreShort(t *testing.T) {
	page, err := os.ReadFile("../docs/designs/008-the-runner-in-packages.md")
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]int{}
	for section := range strings.SplitSeq(string(page), "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		for _, m := range drawn.FindAllStringSubmatch(text, -1) {
			ways[title]++
			found, err := filepath.Glob("internal/" + m[1])
			below, errBelow := filepath.Glob("internal/engine/" + m[1])
			if len(found)+len(below) != 1 || err != nil || errBelow != nil {
				t.Errorf("%s: %s is drawn but is not there", title, m[1])
			}
		}
	}
	for _, title := range []string{"A tool call", "An approval", "A resume"} {
		if n := ways[title]; n == 0 || n > maxWay {
			t.Errorf("%s goes through %d files, want 1 to %d", title, n, maxWay)
		}
	}
}
