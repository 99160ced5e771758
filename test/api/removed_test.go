package api_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// heardWarnings are the warnings of an API server.
type heardWarnings []string

func (w *heardWarnings) HandleWarningHeader(_ int, _, text string) { *w = append(*w, text) }

// Limits that a place never had have no property. kubectl is strict: it is refused. Another client is
// warned, and the field is dropped, as docs/reference/deprecation.md says.
func TestLimitsThatNoPlaceHasAreUnknown(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	heard := &heardWarnings{}
	config := rest.CopyConfig(s.Config)
	config.WarningHandler = heard
	c, err := client.New(config, client.Options{Scheme: s.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for path, manifest := range map[string]string{
		"spec.limits.whenReached":          "kind: Run\nspec: {agent: a, prompt: Do it., limits: {whenReached: Ask}}",
		"spec.nodes[0].limits.whenReached": "kind: Workflow\nspec: {nodes: [{name: a, agent: a, prompt: Do it., limits: {whenReached: Ask}}]}",
		"spec.finallyLimits.deadline":      "kind: Workflow\nspec: {nodes: [{name: a, agent: a, prompt: Do it.}], finally: [{name: b, agent: a, prompt: Do it.}], finallyLimits: {deadline: 1h}}",
	} {
		*heard = nil
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("apiVersion: deckhand.dev/v1alpha1\n"+manifest), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(namespace)
		u.SetGenerateName("unknown-")
		want := fmt.Sprintf("unknown field %q", path)
		if err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(t.Context(), u.DeepCopy()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a strict client is told %v, want %q", path, err, want)
		}
		if err := c.Create(t.Context(), u); err != nil || len(*heard) != 1 || !strings.Contains((*heard)[0], want) {
			t.Errorf("%s: another client is told %v with the warnings %q, want %q", path, err, *heard, want)
		}
		if text := fmt.Sprint(u.Object["spec"]); strings.Contains(text, "whenReached") || strings.Contains(text, "deadline") {
			t.Errorf("%s: stored is %s", path, text)
		}
	}
}
