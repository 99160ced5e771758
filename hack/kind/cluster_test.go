// Package kind_test runs the script of kind clusters with programs that record how they
// are called: docker is not on every machine.
package kind_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// recorder adds its name, arguments and input to the file CALLS. kind knows the clusters
// that CLUSTERS lists.
const recorder = `#!/usr/bin/env bash
echo "$(basename "$0") $*" >>"$CALLS"
case "$*" in
"get clusters") echo "$CLUSTERS" ;;
*"--config -"*) cat >>"$CALLS" ;;
esac
`

// call runs the script with a verb, and returns what it called and printed.
func call(t *testing.T, verb string, env ...string) (calls, output string, err error) {
	t.Helper()
	root := t.TempDir()
	script, err := os.ReadFile("cluster")
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		"hack/kind/cluster": string(script), "bin/tools/kind": recorder, "path/docker": recorder, "path/kubectl": recorder,
	} {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	record := filepath.Join(root, "calls")
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/kind/cluster"), verb)
	command.Env = append([]string{"CALLS=" + record, "KUBECONFIG=" + filepath.Join(root, "dist/kubeconfig"), "PATH=" + filepath.Join(root, "path") + ":/usr/bin:/bin"}, env...)
	printed, err := command.CombinedOutput()
	made, _ := os.ReadFile(record)
	return string(made), string(printed), err
}

func TestUpCreatesAClusterOfOneNode(t *testing.T) {
	calls, output, err := call(t, "up")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{"kind create cluster --name deckhand --image kindest/node:v1.36.1@sha256:", "- role: control-plane", "kind export kubeconfig", "kubectl wait --for=condition=Ready nodes --all"} {
		if !strings.Contains(calls, want) {
			t.Errorf("there is no %q in:\n%s", want, calls)
		}
	}
	for _, not := range []string{"disableDefaultCNI", "role: worker", "calico"} {
		if strings.Contains(calls, not) {
			t.Errorf("there is %q in:\n%s", not, calls)
		}
	}
}

func TestUpInstallsANetworkThatEnforcesPolicies(t *testing.T) {
	calls, output, err := call(t, "up", "KIND_NETWORK=calico", "KIND_WORKERS=1", "KIND_IMAGE=kindest/node:v1.35.5")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{"--image kindest/node:v1.35.5 ", "disableDefaultCNI: true", "- role: worker\n", "kubectl apply --server-side -f https://", "rollout status daemonset/calico-node"} {
		if !strings.Contains(calls, want) {
			t.Errorf("there is no %q in:\n%s", want, calls)
		}
	}
}

func TestUpKeepsAClusterThatExists(t *testing.T) {
	calls, output, err := call(t, "up", "CLUSTERS=deckhand")
	if err != nil || strings.Contains(calls, "create cluster") {
		t.Errorf("%v: %s\n%s", err, output, calls)
	}
}

func TestLoadLoadsEachImage(t *testing.T) {
	calls, output, err := call(t, "load", "TAG=t")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for image, dockerfile := range map[string]string{
		"manager": "--target manager --build-arg VERSION=unknown", "runner": "--target runner --build-arg VERSION=unknown",
		"custom-runner": "--file examples/custom-runner/Dockerfile",
		"modelserver":   "--file test/kind/Dockerfile --target modelserver", "gitserver": "--file test/kind/Dockerfile --target gitserver",
		"toolbox": "--file test/kind/Dockerfile --target toolbox", "mcp": "--file test/kind/Dockerfile --target mcp",
	} {
		built := "docker build " + dockerfile + " --tag deckhand.test/" + image + ":t .\nkind load docker-image deckhand.test/" + image + ":t --name deckhand\n"
		if !strings.Contains(calls, built) {
			t.Errorf("there is no %q in:\n%s", built, calls)
		}
	}
}

func TestUpRefusesAnUnknownNetwork(t *testing.T) {
	if _, output, err := call(t, "up", "KIND_NETWORK=x"); err == nil || !strings.Contains(output, "write default or calico") {
		t.Errorf("%v: %s", err, output)
	}
}
