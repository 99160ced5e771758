package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	syaml "sigs.k8s.io/yaml"
)

var (
	// fieldPath is a path of fields in a message, such as spec.http.auth or limits.pending.
	fieldPath = regexp.MustCompile(`(?:^|[\s("'=])((?:[a-z][A-Za-z]*\.)+[a-z][A-Za-z]*)(?:$|[\s,;:)"'=]|\.(?:$|\s))`)
	// index is what stands behind the name of a list: spec.tools[].timeout.
	index = regexp.MustCompile(`\[[^\]]*\]`)
	// policyMessage is a message of an admission policy.
	policyMessage = regexp.MustCompile(`(?m)^\s*(?:-\s+)?(?:message|messageExpression):\s+(.*)$`)
)

// A user who follows a message to a field that does not exist gets an error from the API
// server.
func TestFieldsInMessagesExist(t *testing.T) {
	known, roots := knownFields(t)
	checked := 0
	for where, texts := range messages(t) {
		for _, path := range fieldPaths(texts) {
			if first, _, _ := strings.Cut(path, "."); !roots[first] {
				continue
			}
			checked++
			if !known[path] {
				t.Errorf("%s: no kind has the field %s", where, path)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d paths of fields were found", checked)
	}
}

// fieldPaths are the paths of fields in texts.
func fieldPaths(texts []string) []string {
	var all []string
	for _, text := range texts {
		for _, m := range fieldPath.FindAllStringSubmatch(index.ReplaceAllString(text, ""), -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// knownFields are the paths of the fields of all kinds, and the names with which a path
// begins.
func knownFields(t *testing.T) (known, roots map[string]bool) {
	t.Helper()
	known, roots = map[string]bool{}, map[string]bool{"spec": true, "status": true}
	for _, kind := range []string{"Model", "Toolset", "Agent", "Workflow", "Run", "Decision", "Schedule"} {
		schema := schemaOf(t, kind)
		addPaths(known, nil, schema)
		for name, field := range schema.Properties["spec"].Properties {
			if len(field.Properties) > 0 && name != "input" { // users choose the names below input
				roots[name] = true
			}
		}
	}
	return known, roots
}

// addPaths adds the path of each field, and the ends of each path, because messages leave
// out the beginning. Fields of Kubernetes that the schema does not list are not known.
func addPaths(known map[string]bool, path []string, s apiextensionsv1.JSONSchemaProps) {
	for i := range path {
		known[strings.Join(path[i:], ".")] = true
	}
	if s.Items != nil && s.Items.Schema != nil {
		addPaths(known, path, *s.Items.Schema)
	}
	for name, field := range s.Properties {
		addPaths(known, append(slices.Clip(path), name), field)
	}
}

func schemaOf(t *testing.T, kind string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	file := filepath.Join(root, "charts/deckhand/files/crd/deckhand.dev_"+strings.ToLower(kind)+"s.yaml")
	if err := syaml.Unmarshal([]byte(read(t, file)), &crd); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// messages returns the string literals of operator and runner, and the messages of
// admission policies, by the place where they stand.
func messages(t *testing.T) map[string][]string {
	t.Helper()
	const policies = "charts/deckhand/files/policy"
	out := map[string][]string{}
	for _, dir := range []string{"internal", "runner", policies} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test"):
			case strings.HasSuffix(path, ".go"):
				addLiterals(t, out, path)
			case dir == policies:
				for _, m := range policyMessage.FindAllStringSubmatch(read(t, path), -1) {
					out[path] = append(out[path], m[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func addLiterals(t *testing.T, out map[string][]string, path string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, is := n.(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") && !strings.Contains(text, "\n ") {
			where := set.Position(literal.Pos()).String()
			out[where] = append(out[where], text)
		}
		return true
	})
}
