package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// waitsFor expects that the Run waits and that its message has all texts.
func (b *fixture) waitsFor(reason string, texts ...string) {
	b.t.Helper()
	b.reconcileUntilStable()
	b.expect("Unknown " + reason)
	for _, want := range texts {
		if got := message(b.get()); !strings.Contains(got, want) {
			b.t.Errorf("the message does not say %q: %s", want, got)
		}
	}
}

// The kubelet does not start a container before all ConfigMaps exist that its pod mounts. No event
// says so here: the operator looks itself, with its own rights.
func TestRunNamesTheConfigMapThatIsMissing(t *testing.T) {
	b := newFixture(t)
	b.supply = runnerpod.Defaults{CABundle: &v1alpha1.ConfigMapKeyRef{Name: "ca", Key: "ca.crt"}}
	b.update(func(a *v1alpha1.Agent) {
		a.Spec.Workspace.Files = []v1alpha1.WorkspaceFiles{{ConfigMapRef: v1alpha1.ConfigMapRef{Name: "rules"}, Path: "docs/rules"}, {ConfigMapRef: v1alpha1.ConfigMapRef{Name: "style"}, Path: "docs/style"}}
	})
	create := func(name, key string) {
		b.Create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Data: map[string]string{key: "x"}})
	}
	b.waitsFor("Starting")
	b.now = b.now.Add(4 * time.Second)
	b.waitsFor("Pending", "ConfigMap rules (spec.workspace.files of the Agent) not found in namespace "+b.namespace,
		"kubectl create configmap rules -n "+b.namespace+" --from-file=FILE; the Run continues", "limits.pending")
	create("rules", "a.md")
	b.waitsFor("Pending", "ConfigMap style (")
	create("style", "b.md")
	b.waitsFor("Pending", "ConfigMap ca (runner.caBundleConfigMapRef of the chart) not found", "--from-file=ca.crt=FILE")
	create("ca", "tls.crt")
	b.waitsFor("Pending", "ConfigMap ca (runner.caBundleConfigMapRef of the chart) has no key ca.crt")
	if err := b.Admin.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "ca"}, BinaryData: map[string][]byte{"ca.crt": {1}}}); err != nil {
		t.Fatal(err)
	}
	b.waitsFor("Starting", "Starting attempt 1")
	b.startRunner(b.onlyPod())
	b.waitsFor("Starting")
}
