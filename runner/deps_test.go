package runner_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/deckhand-dev/deckhand/"

// imports are what each package of the runner imports, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		all[strings.TrimPrefix(fields[0], module)] = fields[1:]
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
	"runner/step":       {},
	"runner/model":      {"runner/step"},
	"runner/schema":     {},
	"runner/tool":       {"runner/step", "runner/schema"},
	"runner/backend":    {},
	"runner/journal":    {"runner/step", "runner/compaction"},
	"runner/compaction": {"runner/step", "runner/model"},
	"runner/loopdetect": {"runner/step"},
	"runner/task":       {"runner/step", "runner/model"},
	"runner/redact":     {},
	"runner/bus":        {},
	"runner/sandbox":    {"runner/sandbox/internal/frame"},
	"runner/session":    {"runner/step"},
	"runner/middleware": {"runner/step", "runner/model", "runner/tool"},
	"runner/hook":       {"runner/step", "runner/model", "runner/tool", "runner/task", "runner/middleware", "runner/internal/dialerror"},
	"runner/binding":    {},
	"runner/digest":     {},
	"runner/policy":     {"runner/digest", "runner/policy/shell", "runner/internal/weburl", "runner/celmacros"},
	"runner/celmacros":  {},
	"runner/events":     {"runner/bus", "runner/step", "runner/task", "runner/redact"},
	"runner/report":     {"runner/task"},
	"runner/engine": {
		"runner/step", "runner/model", "runner/tool", "runner/journal",
		"runner/task", "runner/events", "runner/redact", "runner/middleware", "runner/compaction", "runner/loopdetect", "runner/digest",
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
			if !strings.HasPrefix(p, "runner/") {
				t.Errorf("%s imports %s: the runner knows nothing of the operator", pkg, p)
			}
		}
	}
}
