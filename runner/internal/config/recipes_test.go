package config

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/control"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/python"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

const root = "../../.."

func page(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	tableRow   = regexp.MustCompile("(?m)^\\| `(.*?)\\|")
	quotedName = regexp.MustCompile("`([^`]+)`")
)

// placesToChange returns the places that a section of AGENTS.md lists: of each row, the text of
// its files.
func placesToChange(t *testing.T, title string) map[string]string {
	t.Helper()
	_, section, found := strings.Cut(page(t, "AGENTS.md"), "\n### "+title+"\n")
	if !found {
		t.Fatalf("AGENTS.md has no recipe %q", title)
	}
	section, _, _ = strings.Cut(section, "\n##")
	places := map[string]string{}
	for _, r := range tableRow.FindAllStringSubmatch(section, -1) {
		var names, text []string
		for _, p := range quotedName.FindAllStringSubmatch("`"+r[1], -1) {
			names, text = append(names, p[1]), append(text, below(t, p[1]))
		}
		places[strings.Join(names, " or ")] = strings.Join(text, "\n")
	}
	return places
}

// below returns the text of a file, or of the files in a directory.
func below(t *testing.T, name string) string {
	t.Helper()
	at := filepath.Join(root, name)
	info, err := os.Stat(at)
	if err != nil {
		t.Fatalf("AGENTS.md names %s: %v", name, err)
	}
	if !info.IsDir() {
		return page(t, name)
	}
	var all []string
	entries, err := filepath.Glob(filepath.Join(at, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if data, err := os.ReadFile(e); err == nil { // a directory is not read
			all = append(all, string(data))
		}
	}
	return strings.Join(all, "\n")
}

// enum returns the values of the enum of a field in a file of the API.
func enum(t *testing.T, file, field string) []string {
	t.Helper()
	found := regexp.MustCompile(`Enum=(\S+)\n(?:\s*// \+.*\n)*\s*` + field + ` `).FindStringSubmatch(page(t, file))
	if found == nil {
		t.Fatalf("%s has no enum of %s", file, field)
	}
	return slices.Sorted(slices.Values(strings.Split(found[1], ";")))
}

// mentions compares the places of a section with the names that they must mention.
func mentions(t *testing.T, title string, names []string, skip ...string) {
	t.Helper()
	for file, text := range placesToChange(t, title) {
		for _, name := range names {
			if !slices.Contains(skip, file) && !regexp.MustCompile(`(\b|Provider)`+name+`\b`).MatchString(text) {
				t.Errorf("%s does not mention %s; see %q in AGENTS.md", file, name, title)
			}
		}
	}
}

func TestEveryBuiltinToolIsInAllItsPlaces(t *testing.T) {
	const title = "Add a built-in tool"
	known := slices.Sorted(maps.Keys(task.Builtins))
	if diff := cmp.Diff(known, slices.Sorted(maps.Keys(builtins))); diff != "" {
		t.Errorf("runner/task/builtins.go and runner/internal/config/registry.go differ; see %q in AGENTS.md:\n%s", title, diff)
	}
	if diff := cmp.Diff(known, enum(t, "api/v1alpha1/tool_types.go", "Builtin")); diff != "" {
		t.Errorf("runner/task/builtins.go and the enum of builtin in api/v1alpha1/tool_types.go differ; see %q in AGENTS.md:\n%s", title, diff)
	}
	mentions(t, title, known,
		"runner/internal/tool", "runner/internal/config/registry.go") // the first has names of its own, the second was compared
}

func TestEveryToolInTheSandboxIsInAllItsPlaces(t *testing.T) {
	var names []string
	for name, b := range task.Builtins {
		if b.Sandbox {
			names = append(names, name)
		}
	}
	mentions(t, "Add a tool that runs in the sandbox", names)
}

func TestEveryProviderIsInAllItsPlaces(t *testing.T) {
	const title = "Add a model provider"
	known := slices.Sorted(maps.Keys(providers))
	if diff := cmp.Diff(slices.Sorted(slices.Values(append(known, providerCustom))), enum(t, "api/v1alpha1/model_types.go", "Provider")); diff != "" {
		t.Errorf("runner/internal/config/models.go and the enum of provider in api/v1alpha1/model_types.go differ; see %q in AGENTS.md:\n%s", title, diff)
	}
	mentions(t, title, known, "internal/shared/modelfacts/rows.go", "runner/internal/config/models.go") // not by these words
}

func TestThePlacesOfRecipesExist(t *testing.T) {
	for _, title := range []string{
		"Add a built-in tool", "Add a tool that runs in the sandbox", "Add a model provider", "Add a reason", "Add a field of the API", "Add a metric", "Add an event of the log",
	} {
		if len(placesToChange(t, title)) == 0 {
			t.Errorf("the recipe %q names no file", title)
		}
	}
}

// argumentsOf returns the names of the arguments of tools, by the names of the tools.
func argumentsOf(t *testing.T, tools []tool.Tool) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, one := range tools {
		var input struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(one.Input, &input); err != nil {
			t.Fatal(err)
		}
		all[one.Name] = slices.Sorted(maps.Keys(input.Properties))
	}
	return all
}

// The operator knows the names of tools and of their arguments from the tables in package task.
func TestBuiltinToolsHaveTheNamesInTheTable(t *testing.T) {
	shells, err := shell.New(nil, shell.Options{Program: "/bin/sh", Workspace: task.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	defer shells.Close()
	pythons, err := python.New(nil, python.Options{Program: "/usr/bin/python3", Workspace: task.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	defer pythons.Close()
	spec := builtinSpec{
		// Task has all its arguments with an agent that declares an input.
		ToolSpec: registry.ToolSpec{Agent: task.Agent{InputSchema: json.RawMessage(`{"type":"object"}`), Tools: []task.Tool{{Agent: "other"}}}},
		agents:   map[string]task.Agent{"other": {Name: "other"}},
		files:    files.Over(backend.New(state.New(state.Options{}), nil), files.View{Root: "/", Home: task.Workspace}),
		sandbox:  &SandboxTools{shells: shells, pythons: pythons},
	}
	arguments := map[string][]string{}
	for name, factory := range builtins {
		made, err := factory(spec)
		if err != nil {
			t.Errorf("making %s: %v", name, err)
			continue
		}
		var got []string
		for _, tl := range made {
			got = append(got, tl.Name)
		}
		maps.Copy(arguments, argumentsOf(t, made))
		if diff := cmp.Diff(slices.Sorted(slices.Values(task.Builtins[name].Tools)), slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("runner/task/builtins.go has other names for the tools of %s, -table +tools:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(task.BuiltinArguments, arguments); diff != "" {
		t.Errorf("runner/task/builtins.go has other names for the arguments, -table +tools:\n%s", diff)
	}
	if want := []string{control.NameFinish, control.NameReject}; !slices.Equal(want, task.ToolsOfEveryAgent) {
		t.Errorf("every agent has %v, in the table %v", want, task.ToolsOfEveryAgent)
	}
}
