package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// author may create all kinds, and has no right of the operator.
const author = "ann"

// Lint refuses what the API server refuses, and nothing else, in manifests as users write them:
// with their duplicate, misspelled and foreign fields.
func TestLintRefusesWhatTheServerRefuses(t *testing.T) {
	s := apitest.Get(t)
	namespace := authorsNamespace(t, s)
	for folder, refused := range map[string]bool{"refused": true, "accepted": false} {
		for name, manifest := range manifestsIn(t, folder) {
			t.Run(folder+" "+name, func(t *testing.T) {
				if answer := post(t, s, namespace, manifest); (answer != "") != refused {
					t.Errorf("the server says %q of:\n%s", answer, manifest)
				}
				if found := lintErrors(t, manifest); (len(found) > 0) != refused {
					t.Errorf("lint finds %q in:\n%s", found, manifest)
				}
			})
		}
	}
}

// authorsNamespace returns a namespace in which the author may create all kinds.
func authorsNamespace(t *testing.T, s *apitest.Server) string {
	t.Helper()
	namespace := s.Namespace(t)
	s.As(t, author, namespace, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"agents", "decisions", "models", "runs", "schedules", "toolsets", "workflows"}, Verbs: []string{"create"}})
	return namespace
}

// manifestsIn returns the documents in a folder of lint's test data.
func manifestsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(apitest.Root(), "internal", "cli", "lint", "testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding manifests: %v", err)
	}
	out := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, manifest := range strings.Split(string(data), "\n---\n") {
			out[fmt.Sprintf("%s %d", filepath.Base(file), i+1)] = manifest
		}
	}
	return out
}

// post creates an object on trial, with its YAML as it is, and returns why the server refuses it.
func post(t *testing.T, s *apitest.Server, namespace, manifest string) string {
	t.Helper()
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal([]byte(manifest), &head); err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("%sapis/%s/namespaces/%s/%ss?dryRun=All&fieldValidation=Strict", s.Config.Host, head.APIVersion, namespace, strings.ToLower(head.Kind))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/yaml")
	request.Header.Set("Impersonate-User", author)
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode == http.StatusCreated {
		return ""
	}
	return string(bytes.TrimSpace(body))
}

// lintErrors returns what the API server refuses, as lint finds.
func lintErrors(t *testing.T, manifest string) []string {
	t.Helper()
	report, err := lint.Files(t.Context(), []lint.File{{Name: "manifest", Data: []byte(manifest)}}, gen.Noon)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range report.Findings {
		if f.RefusedBy == lint.APIServer {
			out = append(out, f.Path+": "+f.Message)
		}
	}
	return out
}

// manifestOf returns an object as YAML.
func manifestOf(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	data, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
