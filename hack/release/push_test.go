package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a program that adds its name and arguments to the file CALLS, and whether
// it has credentials.
const recorder = `#!/usr/bin/env bash
echo "$(basename "$0") $*${HELM_REGISTRY_CONFIG:+ $(cat "$HELM_REGISTRY_CONFIG")}" >>"$CALLS"
`

// pushed runs hack/release/push in a directory where the programs that it calls record
// how, and returns the calls.
func pushed(t *testing.T, changelog string) (string, error) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"hack/release", "bin/tools", "path", "dist/images/manager"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root, "hack/release/push", string(read(t, "push")), 0o755)
	write(t, root, "CHANGELOG.md", changelog, 0o644)
	write(t, root, "dist/images.txt", "example.com/d/manager:v1.2.3@sha256:abc\n", 0o644)
	for _, program := range []string{"bin/cluster", "bin/tools/helm", "path/gh"} {
		write(t, root, program, recorder, 0o755)
	}
	calls := filepath.Join(root, "calls")
	script := exec.CommandContext(t.Context(), filepath.Join(root, "hack/release/push"), "v1.2.3", "dist", "example.com/d")
	script.Env = append(os.Environ(), "CALLS="+calls, "PATH="+filepath.Join(root, "path")+":"+os.Getenv("PATH"), "REGISTRY_USER=u", "REGISTRY_TOKEN=t")
	output, err := script.CombinedOutput()
	t.Logf("%s", output)
	made, _ := os.ReadFile(calls)
	return string(made), err
}

func TestPushPublishesImagesChartAndNotes(t *testing.T) {
	calls, err := pushed(t, "# Changelog\n\n## Unreleased\n\nlater\n\n## 1.2.3 - 2026-12-01\n\nnew things\n\n## 1.2.2\n\nold things\n")
	if err != nil {
		t.Fatal(err)
	}
	const auth = ` {"auths": {"example.com": {"auth": "dTp0"}}}`
	for _, want := range []string{
		"cluster push dist/images/manager example.com/d/manager:v1.2.3" + auth,
		"helm push dist/deckhand-1.2.3.tgz oci://example.com/d/charts" + auth,
		"gh release create v1.2.3 --verify-tag --title v1.2.3 --notes",
		"new things", "dist/images.txt",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("there is no call %s in:\n%s", want, calls)
		}
	}
	if strings.Contains(calls, "later") || strings.Contains(calls, "old things") {
		t.Errorf("the notes have changes of other releases:\n%s", calls)
	}
}

func TestPushNeedsNotes(t *testing.T) {
	if calls, err := pushed(t, "# Changelog\n\n## Unreleased\n"); err == nil || calls != "" {
		t.Errorf("a release without notes was pushed: %v\n%s", err, calls)
	}
}
