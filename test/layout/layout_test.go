// Package layout_test holds the table of rooms in AGENTS.md.
package layout_test

import (
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/deckhand-dev/deckhand/"
)

// ofTheRunner are the packages of the runner that the operator and the command line import.
var ofTheRunner = []string{"runner/step", "runner/task", "runner/events", "runner/tool/request"}

// A room is a row of the table: what lies below its paths, but for deeper paths of other rooms.
type room struct {
	name  string
	paths []string
}

func rooms(t *testing.T) []room {
	t.Helper()
	page, err := os.ReadFile(root + "/AGENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Rooms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var all []room
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-zA-Z ]+) \| (.*) \| .* \|$`).FindAllStringSubmatch(section, -1) {
		r := room{name: row[1]}
		for _, path := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			r.paths = append(r.paths, expand(path[1])...)
		}
		if r.paths != nil {
			all = append(all, r)
		}
	}
	if len(all) < 9 {
		t.Fatalf("AGENTS.md has %d rooms", len(all))
	}
	return all
}

// expand returns the paths of one with alternatives in braces.
func expand(path string) (all []string) {
	before, rest, has := strings.Cut(path, "{")
	if !has {
		return []string{path}
	}
	alternatives, after, _ := strings.Cut(rest, "}")
	for a := range strings.SplitSeq(alternatives, ",") {
		all = append(all, before+a+after)
	}
	return all
}

// of returns the index of the room of a package; -1: it is in none.
func of(all []room, pkg string) int {
	for path := pkg; path != "."; path = filepath.Dir(path) {
		if i := slices.IndexFunc(all, func(r room) bool { return slices.Contains(r.paths, path) }); i >= 0 {
			return i
		}
	}
	return -1
}

// ours returns what each package of this module that belongs in a room imports of it.
func ours(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./api/...", "./cmd/...", "./internal/...", "./runner/...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(strings.ReplaceAll(line, module, ""))
		all[fields[0]] = fields[1:]
	}
	return all
}

// onlyForTests reports whether tests alone import a package.
func onlyForTests(pkg string) bool {
	return strings.HasPrefix(pkg, "internal/testing") || strings.HasSuffix(pkg, "test")
}

func TestPackagesImportTheirRoomAndLowerOnes(t *testing.T) {
	rooms := rooms(t)
	used := make([]bool, len(rooms))
	for pkg, imported := range ours(t) {
		at := of(rooms, pkg)
		if onlyForTests(pkg) {
			continue
		}
		if at < 0 {
			t.Errorf("%s is in no room: add it to the table in AGENTS.md", pkg)
			continue
		}
		used[at] = true
		for _, i := range imported {
			if to := of(rooms, i); to >= 0 && to < at || onlyForTests(i) {
				t.Errorf("%s (%s) imports %s", pkg, rooms[at].name, i)
			}
			if strings.HasPrefix(pkg, "internal/") && strings.HasPrefix(i, "runner") && !slices.Contains(ofTheRunner, i) {
				t.Errorf("%s imports %s, want at most %v of the runner", pkg, i, ofTheRunner)
			}
		}
	}
	for i, r := range rooms {
		if !used[i] {
			t.Errorf("the room %s is empty", r.name)
		}
	}
}

// What checks manifests or runs an Agent without a cluster links no client of Kubernetes: make try would compile
// hundreds of packages for nothing.
func TestNoClientIsLinkedWithoutACluster(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./internal/cli/lint", "./internal/run/runnerpod/podtask",
		"./cmd/deckhand-local", "./cmd/runner-local", "./test/modelserver")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for path := range strings.Lines(string(out)) {
		if strings.HasPrefix(path, "k8s.io/client-go/") || strings.HasPrefix(path, "sigs.k8s.io/controller-runtime/") {
			t.Errorf("%s is linked", strings.TrimSpace(path))
		}
	}
}

// Every path of the table is there.
func TestRoomsExist(t *testing.T) {
	for _, r := range rooms(t) {
		for _, path := range r.paths {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("the room %s: %v", r.name, err)
			}
		}
	}
}

// Rules decide without I/O: they have no context and no client.
func TestRulesHaveNoClient(t *testing.T) {
	files, err := filepath.Glob(root + "/internal/controller/*/rules.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the rules: %v", err)
	}
	for _, file := range files {
		for _, path := range importsOf(t, file) {
			if path == "context" || strings.HasSuffix(path, "/pkg/client") || strings.HasPrefix(path, "k8s.io/client-go") {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

// importsOf returns what a file imports.
func importsOf(t *testing.T, file string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
	}
	return all
}
