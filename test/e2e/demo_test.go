//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/internal/apitest"
)

var (
	// demoBlock is what README.md shows of the demo.
	demoBlock = regexp.MustCompile("(?ms)^```\n(\\$ kubectl apply -f examples/demo/.*?)^```$")
	// unstable are the parts of the demo that differ from one time to the next.
	unstable = []struct {
		part *regexp.Regexp
		mask string
	}{
		{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{3} `), "00:00:00.000 "},
		{regexp.MustCompile(`(?m) +(\d+[smhd])+$`), " 0s"},                       // the column AGE
		{regexp.MustCompile(`(?m) (created|configured|unchanged)$`), " created"}, // a second demo
		{regexp.MustCompile(`(?m)^Context ".*" modified\.$`), `Context "" modified.`},
	}
)

func maskVariable(text string) string {
	for _, u := range unstable {
		text = u.part.ReplaceAllString(text, u.mask)
	}
	return strings.TrimSpace(text)
}

// README.md shows what the demo prints, and the demo prints what the commands
// print that it shows.
func TestDemo(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(apitest.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := demoBlock.FindSubmatch(page)
	if shown == nil {
		t.Fatal("README.md does not show the demo")
	}
	printed := runDemo(t)
	if diff := cmp.Diff(maskVariable(string(shown[1])), maskVariable(printed)); diff != "" {
		t.Errorf("README.md -, the demo +:\n%s\nThe demo printed:\n%s", diff, printed)
	}
}

// runDemo runs the demo with a copy of the kubeconfig, whose current namespace
// it changes, and returns what it printed.
func runDemo(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath(kubectl())
	if err != nil {
		t.Fatal(err)
	}
	config, err := exec.CommandContext(t.Context(), program, "config", "view", "--raw").Output()
	if err != nil {
		t.Fatalf("reading the kubeconfig: %v", err)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(own, config, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "bin", "kubectl")); err != nil {
		t.Fatal(err)
	}
	deleteAfterTest(t, "demo")

	command := exec.CommandContext(t.Context(), "hack/demo.sh")
	command.Dir = apitest.Root()
	command.Env = append(os.Environ(), "CLUSTER_DIR="+dir, "KUBECONFIG="+own)
	var complaints strings.Builder
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("running the demo: %v\n%s\n%s", err, out, complaints.String())
	}
	return string(out)
}

// deleteAfterTest deletes a namespace at the end of a test, unless it exists
// already.
func deleteAfterTest(t *testing.T, name string) {
	t.Helper()
	if _, err := cluster.api.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		return
	}
	t.Cleanup(func() {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_ = cluster.admin.Delete(context.WithoutCancel(t.Context()), ns)
	})
}
