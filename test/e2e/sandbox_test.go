//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// withShell gives an agent a shell in the toolbox.
func withShell(a *v1alpha1.Agent) {
	a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Builtin: v1alpha1.BuiltinShell})
	a.Spec.Sandbox = &v1alpha1.Sandbox{Image: imageOf("toolbox")}
}

// onVolume keeps the files and the journal of an agent's Runs on claims.
func onVolume(a *v1alpha1.Agent) { a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume }

// furnished puts files into the workspace of an agent, below attacks.
func (p *testNamespace) furnished(files map[string]string) func(*v1alpha1.Agent) {
	p.t.Helper()
	p.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "attacks"}, Data: files})
	return func(a *v1alpha1.Agent) {
		a.Spec.Workspace.Files = append(a.Spec.Workspace.Files, v1alpha1.WorkspaceFiles{ConfigMapRef: v1alpha1.ConfigMapRef{Name: "attacks"}, Path: "attacks"})
	}
}

// sh is a call of the shell.
func sh(command string, more ...args) args {
	all := args{"command": command}
	for _, some := range more {
		maps.Copy(all, some)
	}
	return all
}

// withTimeout is how long a command may take.
func withTimeout(seconds int) args { return args{"timeout_seconds": seconds} }

// toolResults are what the calls of an attempt came to, in their order, as the model
// read it.
func (p *testNamespace) toolResults(pod string) []string {
	p.t.Helper()
	var all []string
	for line := range strings.Lines(p.log(p.t.Context(), pod)) {
		var e events.Line
		var data struct{ Step step.Step }
		if json.Unmarshal([]byte(line), &e) != nil || e.Type != step.EventStepFinished || json.Unmarshal(e.Data, &data) != nil {
			continue
		}
		if data.Step.Role == step.RoleTool {
			all = append(all, data.Step.Text())
		}
	}
	return all
}

// execIn runs a command in a container, as a user who may exec into pods.
func (p *testNamespace) execIn(pod, container string, command ...string) (string, error) {
	p.t.Helper()
	line := append([]string{"exec", "--namespace", p.name, pod, "-c", container, "--"}, command...)
	out, err := exec.CommandContext(p.t.Context(), kubectl(), line...).CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}

// execUntil runs a command in a container until it goes well.
func (p *testNamespace) execUntil(pod, container string, command ...string) {
	p.t.Helper()
	var said string
	err := until(p.t.Context(), func(context.Context) (bool, error) {
		var failed error
		said, failed = p.execIn(pod, container, command...)
		return failed == nil, nil
	})
	if err != nil {
		p.t.Fatalf("%q in %s of Pod %s: %v: %s", command, container, pod, err, said)
	}
}
