package api_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// The server takes every example as it is. Who makes a Decision must say so in
// their own name, which tests have another of than most people.
func TestExamplesAreTaken(t *testing.T) {
	server := apitest.Get(t)
	for _, pattern := range []string{"*.yaml", "decisions/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(apitest.Root(), "examples", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("looking for examples: %v", err)
		}
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) { taken(t, server, file) })
		}
	}
}

var manifest = regexp.MustCompile("(?ms)^```yaml\n(apiVersion:.*?)^```$")

// The server takes every manifest that is shown on a page.
func TestManifestsOnPagesAreTaken(t *testing.T) {
	server := apitest.Get(t)
	for _, pattern := range []string{"README.md", "docs/*.md"} {
		pages, err := filepath.Glob(filepath.Join(apitest.Root(), pattern))
		if err != nil || len(pages) == 0 {
			t.Fatalf("looking for pages: %v", err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			manifestsTaken(t, server, filepath.Base(page), text)
		}
	}
}

func manifestsTaken(t *testing.T, server *apitest.Server, page string, text []byte) {
	t.Helper()
	for i, m := range manifest.FindAllSubmatch(text, -1) {
		if bytes.Contains(m[1], []byte("kind: SecurityContextConstraints")) {
			continue // of OpenShift
		}
		t.Run(fmt.Sprintf("%s %d", page, i+1), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(file, m[1], 0o600); err != nil {
				t.Fatal(err)
			}
			taken(t, server, file)
		})
	}
}

// taken creates what a file holds, in a namespace of its own.
func taken(t *testing.T, server *apitest.Server, file string) {
	t.Helper()
	objects, err := apitest.ReadObjects(file)
	if err != nil {
		t.Fatal(err)
	}
	namespace := server.Namespace(t)
	for _, o := range objects {
		o.SetNamespace(namespace)
		inOwnName(t, o)
		strict := &client.CreateOptions{Raw: &metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}}
		if err := server.Admin.Create(t.Context(), o, strict); err != nil {
			t.Errorf("%s %s: %v", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
}

// inOwnName has a Decision be of who makes it here, and of their groups.
func inOwnName(t *testing.T, o client.Object) {
	t.Helper()
	free, ok := o.(*unstructured.Unstructured)
	if !ok || free.GetKind() != "Decision" {
		return
	}
	if err := unstructured.SetNestedField(free.Object, "admin", "spec", "by"); err != nil {
		t.Fatal(err)
	}
	if _, named, err := unstructured.NestedStringSlice(free.Object, "spec", "groups"); !named || err != nil {
		return
	}
	if err := unstructured.SetNestedStringSlice(free.Object, []string{"system:authenticated"}, "spec", "groups"); err != nil {
		t.Fatal(err)
	}
}
