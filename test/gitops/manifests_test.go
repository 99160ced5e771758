package gitops_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// example returns the objects of a manifest of docs/gitops by kind and name.
func example(t *testing.T, name string) map[string]*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../../docs/gitops/" + name)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(doc), &o.Object); err != nil {
			t.Fatal(err)
		}
		objects[o.GetKind()+" "+o.GetName()] = o
	}
	return objects
}

// field returns a text of a field of an object.
func field(t *testing.T, o *unstructured.Unstructured, path ...string) string {
	t.Helper()
	text, found, err := unstructured.NestedString(o.Object, path...)
	if err != nil || !found {
		t.Fatalf("%s %s has no text %s: %v", o.GetKind(), o.GetName(), strings.Join(path, "."), err)
	}
	return text
}

// chart is the chart of this repository.
func chart(t *testing.T) (name, minor string) {
	t.Helper()
	var c struct{ Name, Version string }
	text, err := os.ReadFile("../../charts/deckhand/Chart.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.Name, c.Version[:strings.LastIndex(c.Version, ".")]
}

func TestFluxManifestsNameTheChartAndEachOther(t *testing.T) {
	objects := example(t, "flux.yaml")
	release, kustomization := objects["HelmRelease deckhand"], objects["Kustomization agents"]
	if release == nil || kustomization == nil {
		t.Fatalf("there are %v", objects)
	}
	name, minor := chart(t)
	if got := field(t, release, "spec", "chart", "spec", "chart"); got != name {
		t.Errorf("the chart is %s", got)
	}
	if got := field(t, release, "spec", "chart", "spec", "version"); got != minor+".x" {
		t.Errorf("the version is %s, and that of the chart %s", got, minor)
	}
	for _, source := range [][2]string{
		{field(t, release, "spec", "chart", "spec", "sourceRef", "kind"), field(t, release, "spec", "chart", "spec", "sourceRef", "name")},
		{field(t, kustomization, "spec", "sourceRef", "kind"), field(t, kustomization, "spec", "sourceRef", "name")},
	} {
		if objects[source[0]+" "+source[1]] == nil {
			t.Errorf("there is no %s %s", source[0], source[1])
		}
	}
	if url := field(t, objects["HelmRepository deckhand"], "spec", "url"); url != "oci://ghcr.io/deckhand-dev/charts" {
		t.Errorf("releases are not pushed to %s", url)
	}
}

func TestArgoCDManifestsNameTheChart(t *testing.T) {
	objects := example(t, "argocd.yaml")
	application := objects["Application deckhand"]
	if application == nil || objects["Application agents"] == nil {
		t.Fatalf("there are %v", objects)
	}
	name, minor := chart(t)
	if got := field(t, application, "spec", "source", "chart"); got != name {
		t.Errorf("the chart is %s", got)
	}
	if got := field(t, application, "spec", "source", "targetRevision"); got != minor+".*" {
		t.Errorf("the version is %s, and that of the chart %s", got, minor)
	}
}
