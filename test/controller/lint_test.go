package controller_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/controller/ready"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// Lint finds errors in those objects that do not become Ready, and in no others. Each document of
// the test data is a list of objects.
func TestLintFindsWhatIsNotReady(t *testing.T) {
	if testing.Short() {
		t.Skip("reconciles one object after the other, so it runs without the race detector")
	}
	files, err := filepath.Glob(filepath.Join(apitest.Root(), "internal", "cli", "lint", "testdata", "notready", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding manifests: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, manifest := range strings.Split(string(data), "\n---\n") {
			t.Run(fmt.Sprintf("%s %d", filepath.Base(file), i+1), func(t *testing.T) {
				b := newFixture(t)
				want := b.notReady([]byte(manifest))
				if diff := cmp.Diff(want, lintErrors(t, manifest)); diff != "" || len(want) == 0 {
					t.Errorf("errors of lint, -not Ready +found:\n%s\n%s", diff, manifest)
				}
			})
		}
	}
}

// lintErrors returns the objects in which lint finds errors.
func lintErrors(t *testing.T, manifest string) []string {
	t.Helper()
	report, err := lint.Files(t.Context(), []lint.File{{Name: "manifest", Data: []byte(manifest)}}, gen.Noon)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range report.Findings {
		if f.Severity == lint.Error {
			found[f.Kind+"/"+f.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// notReady creates the objects of a list, reconciles each, and returns those that are not Ready.
func (b *fixture) notReady(list []byte) []string {
	b.t.Helper()
	var objects struct{ Items []map[string]any }
	if err := yaml.Unmarshal(list, &objects); err != nil {
		b.t.Fatal(err)
	}
	for _, content := range objects.Items {
		o := &unstructured.Unstructured{Object: content}
		o.SetNamespace(b.namespace)
		b.Create(b.t, o)
	}
	reconcilers := ready.Reconcilers(b.indexed(), b.events, func() time.Time { return b.now })
	var out []string
	for _, content := range objects.Items {
		o := &unstructured.Unstructured{Object: content}
		key := client.ObjectKeyFromObject(o)
		if _, err := reconcilers[o.GetKind()].Reconcile(b.t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			b.t.Fatalf("reconciling %s: %v", o.GetName(), err)
		}
		if err := b.Admin.Get(b.t.Context(), key, o); err != nil {
			b.t.Fatal(err)
		}
		var status v1alpha1.AgentStatus // conditions are the same in all kinds
		inner, _, err := unstructured.NestedMap(o.Object, "status")
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": inner["conditions"]}, &status)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
			out = append(out, o.GetKind()+"/"+o.GetName())
		}
	}
	slices.Sort(out)
	return out
}
