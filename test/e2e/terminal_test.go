//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// newTerminal returns the environment of a user who has kubectl and kubectl-deckhand in PATH,
// and a kubeconfig of his own whose current namespace is the given one.
func newTerminal(t *testing.T, namespace string) []string {
	t.Helper()
	program, err := exec.LookPath(kubectl())
	if err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(apitest.Root(), "bin", "kubectl-deckhand")
	if _, err := os.Stat(plugin); err != nil {
		t.Fatalf("%v: make build", err)
	}
	dir := t.TempDir()
	for name, target := range map[string]string{"kubectl": program, "kubectl-deckhand": plugin} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig)
}

// newShell returns a function that runs a script at the root of the project, in the test's
// namespace, and returns what it printed.
func (p *testNamespace) newShell() func(script string) string { return p.shellIn(apitest.Root()) }

// shellIn is newShell in a directory.
func (p *testNamespace) shellIn(dir string) func(script string) string {
	p.t.Helper()
	environment := newTerminal(p.t, p.name)
	return func(script string) string {
		p.t.Helper()
		command := exec.CommandContext(p.t.Context(), "bash", "-euo", "pipefail", "-c", script)
		command.Dir = dir
		command.Env = environment
		out, err := command.CombinedOutput()
		if err != nil {
			p.t.Fatalf("typing %s: %v: %s", script, err, out)
		}
		return string(out)
	}
}
