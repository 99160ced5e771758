package api_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// A manifest that is applied twice changes nothing the second time: not with server-side
// apply, and not with the patch that kubectl apply makes of the last manifest, this one
// and the object. Otherwise GitOps tools would apply it again and again.
func TestExamplesAppliedTwiceChangeNothing(t *testing.T) {
	server := apitest.Get(t)
	for _, pattern := range []string{"examples/*.yaml", "examples/*/*.yaml", "config/samples/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(apitest.Root(), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("finding %s: %v", pattern, err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			name := strings.TrimPrefix(file, apitest.Root()+"/")
			t.Run(name+" on the server", func(t *testing.T) { appliedTwice(t, server, file, applyOnServer) })
			t.Run(name+" by the client", func(t *testing.T) { appliedTwice(t, server, file, applyByClient) })
		}
	}
}

// appliedTwice applies the objects of a file in a namespace of their own, and again.
func appliedTwice(t *testing.T, server *apitest.Server, file string, apply func(*testing.T, *apitest.Server, *unstructured.Unstructured) *unstructured.Unstructured) {
	t.Helper()
	objects, err := apitest.ReadObjects(file)
	if err != nil {
		t.Fatal(err)
	}
	namespace := server.Namespace(t)
	for _, object := range objects {
		o, is := object.(*unstructured.Unstructured)
		if !is {
			t.Fatalf("%T is not unstructured", object)
		}
		if o.GetKind() == "Namespace" || o.GetName() == "" { // a generated name cannot be applied
			continue
		}
		o.SetNamespace(namespace)
		inOwnName(t, o)
		before := apply(t, server, o.DeepCopy())
		if o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
			observed := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`))
			if err := server.Admin.Status().Patch(t.Context(), before, observed); err != nil {
				t.Fatalf("writing the status as the operator does: %v", err)
			}
		}
		after := apply(t, server, o.DeepCopy())
		if diff := cmp.Diff(before.Object, after.Object); diff != "" {
			t.Errorf("%s %s has changed (-before +after):\n%s", o.GetKind(), o.GetName(), diff)
		}
	}
}

func applyOnServer(t *testing.T, server *apitest.Server, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := server.Admin.Patch(t.Context(), o, client.Apply, client.FieldOwner("gitops")); err != nil { //nolint:staticcheck // of what has no type
		t.Fatalf("applying %s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return o
}

// applyByClient applies an object of Deckhand as kubectl does, and fails the test if the
// patch of an object that exists is not empty. Objects of other groups are created.
func applyByClient(t *testing.T, server *apitest.Server, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(text)})
	modified, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	current := o.DeepCopy()
	if err := server.Admin.Get(t.Context(), client.ObjectKeyFromObject(o), current); err != nil {
		strict := &client.CreateOptions{Raw: &metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}}
		if err := server.Admin.Create(t.Context(), o, strict); err != nil {
			t.Fatalf("creating %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		return o
	}
	if o.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
		return current
	}
	live, err := current.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(modified, modified, live)
	if err != nil {
		t.Fatal(err)
	}
	if string(patch) != "{}" {
		t.Errorf("the patch of %s %s is %s", o.GetKind(), o.GetName(), patch)
	}
	if err := server.Admin.Patch(t.Context(), current, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatalf("applying %s %s again: %v", o.GetKind(), o.GetName(), err)
	}
	return current
}
