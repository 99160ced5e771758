package runner_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/deckhand-dev/deckhand/"

// shared are the packages of internal that operator and runner both use. They know no
// Kubernetes.
var shared = []string{"celhints", "celmacros", "clock", "digest", "gomemlimit", "policy", "report", "schema", "template", "weburl"}

func isShared(path string) bool {
	rest, is := strings.CutPrefix(path, "internal/")
	name, _, _ := strings.Cut(rest, "/")
	return is && slices.Contains(shared, name)
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
	"internal/schema":              {},
	"runner/tool":                  {"runner/step", "internal/schema"},
	"runner/backend":               {},
	"runner/internal/journal":      {"runner/step"},
	"runner/internal/state":        {"runner/step", "runner/internal/journal", "runner/internal/compaction"},
	"runner/internal/compaction":   {"runner/step", "runner/model"},
	"runner/internal/loopdetect":   {"runner/step"},
	"runner/task":                  {"runner/step", "runner/model"},
	"runner/internal/redact":       {},
	"runner/internal/pubsub":       {},
	"runner/internal/signals":      {"runner/task"},
	"runner/internal/sandbox":      {"runner/internal/sandbox/internal/frame"},
	"runner/session":               {"runner/step"},
	"runner/registry":              {"runner/backend", "runner/events", "runner/middleware", "runner/model", "runner/session", "runner/task", "runner/tool"},
	"runner/middleware":            {"runner/step", "runner/model", "runner/tool"},
	"runner/internal/hook":         {"runner/step", "runner/model", "runner/tool", "runner/task", "runner/middleware", "runner/internal/dialerror"},
	"internal/template":            {},
	"internal/digest":              {},
	"internal/policy":              {"internal/digest", "internal/policy/shell", "internal/weburl", "internal/celhints", "internal/celmacros"},
	"internal/celhints":            {},
	"internal/celmacros":           {},
	"runner/events":                {"runner/internal/pubsub", "runner/step", "runner/task", "runner/internal/redact"},
	"internal/report":              {"runner/task"},
	"runner/internal/engine/meter": {"runner/step", "runner/task"},
	"runner/internal/engine/approval": {
		"runner/internal/engine/meter", "runner/internal/state", "runner/internal/journal", "runner/internal/signals",
		"runner/step", "runner/task", "runner/events", "runner/internal/redact", "internal/digest",
	},
	"runner/internal/engine/toolcall": {
		"runner/internal/engine/meter", "runner/internal/engine/approval", "runner/internal/state", "runner/internal/journal",
		"runner/internal/signals", "runner/step", "runner/task", "runner/events", "runner/tool", "runner/middleware",
		"runner/internal/redact", "internal/digest",
	},
	"runner/internal/engine": {
		"runner/internal/engine/meter", "runner/internal/engine/approval", "runner/internal/engine/toolcall",
		"runner/step", "runner/model", "runner/tool", "runner/internal/journal", "runner/internal/state",
		"runner/task", "runner/events", "runner/internal/redact", "runner/internal/signals", "runner/middleware", "runner/internal/compaction", "runner/internal/loopdetect", "internal/digest",
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
