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
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

const module = "github.com/deckhand-dev/deckhand/"

// shared are the packages of internal that operator and runner both use, from the linter's
// rule for the runner. They do not import Kubernetes.
var shared = sync.OnceValue(func() []string {
	file, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		panic(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules struct {
						Runner struct {
							Allow []string
						}
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(file, &config); err != nil {
		panic(err)
	}
	var names []string
	for _, allowed := range config.Linters.Settings.Depguard.Rules.Runner.Allow {
		names = append(names, strings.TrimPrefix(allowed, module+"internal/"))
	}
	return names
})

func isShared(path string) bool {
	rest, is := strings.CutPrefix(path, "internal/")
	name, _, _ := strings.Cut(rest, "/")
	return is && slices.Contains(shared(), name)
}

// maxPublic bounds the packages of the library that others build on.
const maxPublic = 22

func TestTheLibraryHasASmallFace(t *testing.T) {
	var public []string
	for pkg := range imports(t) {
		if strings.HasPrefix(pkg, "runner") && !strings.Contains(pkg, "/internal/") {
			public = append(public, pkg)
		}
	}
	if len(public) > maxPublic {
		t.Errorf("%d packages are public, want at most %d; move what a custom runner does not need below runner/internal: %v", len(public), maxPublic, public)
	}
}

// imports are what each package of the runner, and each that it shares with the operator,
// imports, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...", "../internal/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if path := strings.TrimPrefix(fields[0], module); strings.HasPrefix(path, "runner") || isShared(path) {
			all[path] = fields[1:]
		}
	}
	return all
}

// ours are the imports from this module, without the module's name.
func ours(imported []string) []string {
	var all []string
	for _, p := range imported {
		if rest, ok := strings.CutPrefix(p, module); ok {
			all = append(all, rest)
		}
	}
	return all
}

// Who may know whom: a package that is listed imports only these of ours.
var mayImport = map[string][]string{
	"runner/step":                  {},
	"runner/model":                 {"runner/step"},
	"internal/pattern":             {},
	"internal/schema":              {"internal/pattern"},
	"runner/internal/tool/facts":   {},
	"runner/internal/callreport":   {"runner/step"},
	"runner/internal/model/source": {},
	"runner/internal/place":        {"runner/task"},
	"runner/internal/tool/args":    {"internal/schema", "runner/internal/tool/facts"},
	"runner/tool":                  {"runner/step", "runner/internal/tool/args", "runner/internal/tool/facts"},
	"runner/internal/toolbox":      {"runner/step", "runner/tool", "runner/internal/tool/args"},
	"runner/backend":               {"internal/clock", "internal/pattern", "runner/internal/backend/memlimit"},
	"runner/internal/journal":      {"runner/step"},
	"runner/internal/state":        {"runner/step", "runner/internal/journal", "runner/internal/compaction"},
	"runner/internal/compaction":   {"runner/step", "runner/model"},
	"runner/internal/attachment":   {"runner/step"},
	"runner/internal/loopdetect":   {"runner/step"},
	"runner/internal/textcall":     {"runner/step"},
	"runner/task":                  {"runner/step", "runner/model"},
	"runner/internal/redact":       {},
	"runner/internal/pubsub":       {},
	"runner/internal/signals":      {"runner/task"},
	"runner/internal/sandbox":      {"runner/internal/sandbox/internal/frame"},
	"runner/session":               {"runner/step"},
	"runner/internal/stepsize":     {"runner/step"},
	"runner/internal/wordsearch":   {"runner/step", "runner/session"},
	"runner/internal/mirror":       {"runner/step", "runner/session", "runner/internal/stepsize"},
	"runner/registry":              {"runner/backend", "runner/events", "runner/middleware", "runner/model", "runner/session", "runner/task", "runner/tool"},
	"runner/middleware":            {"runner/step", "runner/model", "runner/tool"},
	"runner/internal/hook":         {"runner/step", "runner/model", "runner/tool", "runner/task", "runner/middleware", "runner/internal/callreport", "runner/internal/dialerror", "runner/internal/address"},
	"internal/template":            {},
	"internal/digest":              {},
	"internal/policy":              {"internal/digest", "internal/pattern", "internal/policy/shell", "internal/weburl", "internal/celhints", "internal/celmacros", "internal/template"},
	"internal/turnroute":           {"internal/celhints"},
	"internal/inputtext":           {"internal/expr", "internal/schema", "internal/template"},
	"internal/expr":                {"internal/celhints", "internal/celmacros", "internal/pattern", "internal/template"},
	"internal/celhints":            {},
	"internal/celmacros":           {},
	"internal/modelname":           {},
	"internal/modelfacts":          {"internal/modelname"},
	"internal/networkcheck":        {},
	"runner/events":                {"runner/step", "runner/task", "internal/digest"},
	"runner/internal/eventlog":     {"runner/events", "runner/internal/pubsub", "runner/step", "runner/internal/redact"},
	"internal/report":              {"runner/task"},
	"internal/otlp":                {"internal/clock"},
	"internal/otlp/semconv":        {},
	"runner/internal/telemetry":    {"internal/otlp", "internal/otlp/semconv", "runner/events", "runner/internal/eventlog", "runner/internal/pubsub", "runner/internal/redact", "runner/step", "runner/task"},
	"runner/internal/engine/meter": {"runner/step", "runner/task", "runner/internal/place"},
	"runner/internal/engine/approval": {
		"runner/internal/engine/meter", "runner/internal/state", "runner/internal/journal", "runner/internal/signals",
		"runner/step", "runner/task", "runner/events", "runner/internal/redact", "internal/digest",
	},
	"runner/model/openai/internal/responses": {
		"runner/step", "runner/model", "runner/model/provider", "runner/internal/model/httpapi",
	},
	"runner/internal/engine/toolcall": {
		"runner/internal/engine/meter", "runner/internal/engine/approval", "runner/internal/state", "runner/internal/journal",
		"runner/internal/signals", "runner/step", "runner/task", "runner/events", "runner/tool", "runner/internal/tool/facts", "runner/middleware",
		"runner/internal/callreport", "runner/internal/redact", "internal/digest", "runner/model",
	},
	"runner/internal/engine": {
		"runner/internal/engine/meter", "runner/internal/engine/approval", "runner/internal/engine/toolcall",
		"runner/step", "runner/model", "runner/tool", "runner/internal/tool/facts", "runner/internal/journal", "runner/internal/state",
		"runner/task", "runner/events", "runner/internal/redact", "runner/internal/signals", "runner/middleware", "runner/internal/callreport", "runner/internal/model/source", "runner/internal/place", "runner/internal/compaction", "runner/internal/loopdetect", "runner/internal/textcall", "internal/digest",
	},
}

func TestPackagesKnowOnlyWhatTheyMay(t *testing.T) {
	all := imports(t)
	for pkg, allowed := range mayImport {
		imported, ok := all[pkg]
		if !ok {
			t.Errorf("%s is listed but is not there", pkg)
		}
		for _, p := range ours(imported) {
			if !slices.Contains(allowed, p) {
				t.Errorf("%s imports %s", pkg, p)
			}
		}
	}
	for _, p := range all["runner/step"] {
		if strings.Contains(p, ".") {
			t.Errorf("runner/step imports %s; it imports the standard library alone", p)
		}
	}
}

// The linter checks the packages that it allows the runner, too.
func TestTheLinterChecksSharedPackages(t *testing.T) {
	config, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	want := "**/internal/{" + strings.Join(shared(), ",") + "}/**/*.go"
	if len(shared()) == 0 || !strings.Contains(string(config), want) {
		t.Errorf(".golangci.yml: files of the rule runner must have %q", want)
	}
}

func TestTheRunnerKnowsNoKubernetes(t *testing.T) {
	for pkg, imported := range imports(t) {
		for _, p := range imported {
			if strings.Contains(p, "k8s.io") {
				t.Errorf("%s imports %s", pkg, p)
			}
		}
		for _, p := range ours(imported) {
			if !strings.HasPrefix(p, "runner/") && !isShared(p) {
				t.Errorf("%s imports %s: the runner knows nothing of the operator", pkg, p)
			}
		}
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
