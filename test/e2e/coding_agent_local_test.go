//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// The coding agent does the same work in a directory of this machine, as its page says, and asks
// at the terminal before it deletes something.
func TestCodingAgentWithoutACluster(t *testing.T) {
	t.Parallel()
	source, manifest := seedSource(t), localManifest(t)
	typed := localCommand(t)
	for old, replacement := range map[string]string{"agent.yaml": manifest, "~/src/app": source} {
		if !strings.Contains(typed, old) {
			t.Fatalf("the page types %s, without %s", typed, old)
		}
		typed = strings.ReplaceAll(typed, old, replacement)
	}
	printed := atTerminal(t, typed, "Approve this call? [y: approve, n: deny] ", "y\n")
	for _, want := range []string{
		"Commands of the agent are confined", `"command": "rm -r bin && git status --short"`, "Approve by ",
		"Denied by policy rule deckhand-publishes", "It is made positive now. The tests pass.", "Finished · 6 steps",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("the terminal lacks %q", want)
		}
	}
	if strings.Contains(printed, codingAgentKey) {
		t.Error("the terminal shows the key")
	}
	changed := git(t, source, "diff", "--stat") + git(t, source, "status", "--short", "--ignored")
	if !strings.Contains(changed, "1 file changed, 1 insertion(+), 1 deletion(-)") || !strings.HasSuffix(changed, "\n M tide.go\n") {
		t.Errorf("in the directory is changed: %s", changed)
	}
	if t.Failed() {
		t.Log(printed)
	}
}

// codingAgentKey is the key of the stand-in for the model.
const codingAgentKey = "sk-demo-0123456789"

// localCommand is the command of the page.
func localCommand(t *testing.T) string {
	t.Helper()
	page := readFile(t, "examples/coding-agent/README.md")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "kubectl deckhand run --local ") {
			return line
		}
	}
	t.Fatal("the page has no command with --local")
	return ""
}

// localManifest is agent.yaml as the page says: without the Secret, and with a Model of the
// user's, which is a server on this machine that has the answers of model-server.yaml.
func localManifest(t *testing.T) string {
	t.Helper()
	configMap, _, _ := strings.Cut(readFile(t, "examples/coding-agent/model-server.yaml"), "\n---\n")
	var answers corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(configMap), &answers); err != nil {
		t.Fatal(err)
	}
	var script modeltest.Script
	if err := json.Unmarshal([]byte(answers.Data["script.json"]), &script); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(modeltest.NewServer(script))
	t.Cleanup(server.Close)
	secret, rest, found := strings.Cut(readFile(t, "examples/coding-agent/agent.yaml"), "\n---\n")
	if !found || !strings.Contains(secret, "kind: Secret") {
		t.Fatal("agent.yaml does not begin with a Secret")
	}
	file := filepath.Join(t.TempDir(), "agent.yaml")
	rest = strings.ReplaceAll(rest, "http://coder-model/v1", server.URL+"/v1")
	if err := os.WriteFile(file, []byte(rest), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// seedSource is a clone of what the stand-in for the git server has.
func seedSource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join(apitest.Root(), "test/gitserver/seed/*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of the repository: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(filepath.Base(file), ".txt")), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", "--all")
	git(t, dir, "-c", "user.name=Dev", "-c", "user.email=dev@example.com", "commit", "--quiet", "--message=First")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return string(out)
}

// atTerminal types a command at a terminal, answers one question, and returns what is printed
// until the command ends.
func atTerminal(t *testing.T, typed, question, answer string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", typed)
	command.Env = append(newTerminal(t, "default"), "OPENAI_API_KEY="+codingAgentKey, "NO_COLOR=1", "XDG_STATE_HOME="+t.TempDir())
	terminal, err := pty.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var printed bytes.Buffer
	for piece := make([]byte, 4096); ; {
		n, err := terminal.Read(piece)
		printed.Write(piece[:n])
		if answer != "" && strings.HasSuffix(printed.String(), question) {
			if _, err := io.WriteString(terminal, answer); err != nil {
				t.Fatal(err)
			}
			answer = ""
		}
		if err != nil { // EIO when the command has ended
			break
		}
	}
	if err := command.Wait(); err != nil || answer != "" {
		t.Fatalf("%s: %v; asked: %t\n%s", typed, err, answer == "", printed.String())
	}
	return printed.String()
}
