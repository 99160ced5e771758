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

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

var (
	// demoBlock is what README.md shows of the demo.
	demoBlock = regexp.MustCompile("(?ms)^```\n(\\$ kubectl apply -f examples/demo/.*?)^```$")
	// sessionBlock is the session with the command line that continues the demo, and
	// sessionCommand a command in it.
	sessionBlock   = regexp.MustCompile("(?ms)^## A session$.*?^```\n(.*?)^```$")
	sessionCommand = regexp.MustCompile(`(?m)^\$ (.*)$`)
	// unstable are the parts of the demo that differ from one time to the next.
	unstable = []struct {
		part *regexp.Regexp
		mask string
	}{
		{regexp.MustCompile(`(?m) +(\d+[smhd])+$`), " 0s"},                       // the column AGE
		{regexp.MustCompile(`(?m)^(■ .*) · 0s$`), "$1"},                          // of a Run of a second or more
		{regexp.MustCompile(`(?m) (created|configured|unchanged)$`), " created"}, // a second demo
		{regexp.MustCompile(`(?m)^Waiting for .*\n`), ""},
		{regexp.MustCompile(`(?m)^(← [\w ]+) \([0-9.]+m?s\):`), "$1:"},   // of a call that took a while
		{regexp.MustCompile(`Ready    Unknown  `), "Ready    True     "}, // reports about a Model are collected
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
// print that it shows. The session of docs/command-line.md continues it.
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
	deleteAfterTest(t, "demo")
	environment := newTerminal(t, metav1.NamespaceDefault)
	compare := func(where, shown, printed string) {
		if diff := cmp.Diff(maskVariable(shown), maskVariable(printed)); diff != "" {
			t.Errorf("%s -, printed +:\n%s\nIt was printed:\n%s", where, diff, printed)
		}
	}
	compare("README.md", string(shown[1]), runScript(t, environment, "hack/demo.sh"))

	if page, err = os.ReadFile(filepath.Join(apitest.Root(), "docs/command-line.md")); err != nil {
		t.Fatal(err)
	}
	session := sessionBlock.FindSubmatch(page)
	if session == nil {
		t.Fatal("docs/command-line.md does not show a session")
	}
	var printed strings.Builder
	for _, command := range sessionCommand.FindAllStringSubmatch(string(session[1]), -1) {
		printed.WriteString("$ " + command[1] + "\n" + runScript(t, environment, "bash", "-c", "exec 2>&1; "+command[1]) + "\n")
	}
	compare("docs/command-line.md", string(session[1]), printed.String())
}

// runScript runs a program at the root of the project and returns what it printed.
func runScript(t *testing.T, environment []string, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = apitest.Root()
	command.Env = environment
	var complaints strings.Builder
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("running %s %v: %v\n%s\n%s", program, args, err, out, complaints.String())
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
