package operator_test

import (
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const internal = "github.com/deckhand-dev/deckhand/internal/"

// layers are the packages below internal, without tests and their helpers. A package imports
// only packages of the layers before its own.
var layers = [][]string{
	{"calendar", "celhints", "celmacros", "clock", "digest", "gomemlimit", "modelname", "networkcheck", "pattern", "specsize", "template", "untrusted", "weburl"},
	{"expr", "modelfacts", "schema"},
	{"apierr", "backlog", "celkubernetes", "decisions", "graph", "inputs", "inputtext", "labelindex", "listprices", "otlp", "otlp/semconv", "policy", "policycheck", "report", "revision", "runmetrics", "serviceaccount", "statuspatch", "turnroute"},
	{"egress", "runstatus", "snapshot"},
	{"children", "refs"},
	{"queue", "runnerpod", "workflow"},
	{"gc", "objectcache"},
	{"controller", "lint"},
	{"convert"},
	{"cli", "operator"},
}

// testHelpers are imported by tests alone.
var testHelpers = []string{"apierr/apierrtest", "apitest", "gen", "otlp/otlptest", "untrusted/untrustedtest"}

// layerOf returns the layer of a package below internal; false: it is in none.
func layerOf(path string) (int, bool) {
	name, _, _ := strings.Cut(path, "/")
	i := slices.IndexFunc(layers, func(layer []string) bool { return slices.Contains(layer, name) })
	return i, i >= 0
}

func TestPackagesImportLowerLayersOnly(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(fields[0], internal)
		if slices.Contains(testHelpers, from) {
			continue
		}
		layer, known := layerOf(from)
		if !known {
			t.Errorf("internal/%s is in no layer: add it here, and to the map in AGENTS.md", from)
			continue
		}
		for _, imported := range fields[1:] {
			if to, is := strings.CutPrefix(imported, internal); is && !mayImport(layer, from, to) {
				t.Errorf("internal/%s imports internal/%s, which is not in a layer below", from, to)
			}
		}
	}
}

// mayImport reports whether a package of a layer may import another. Only controllers may
// not import packages of their own directory.
func mayImport(layer int, from, to string) bool {
	at, known := layerOf(to)
	if !known {
		return false
	}
	above, _, _ := strings.Cut(from, "/")
	beside, _, _ := strings.Cut(to, "/")
	return at < layer || above == beside && above != "controller"
}

// Rules decide without I/O: they have no context and no client.
func TestRulesHaveNoClient(t *testing.T) {
	files, err := filepath.Glob("../controller/*/rules.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the rules: %v", err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if path == "context" || strings.HasSuffix(path, "/pkg/client") || strings.HasPrefix(path, "k8s.io/client-go") {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}
