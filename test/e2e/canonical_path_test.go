//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// evilPaths are ways to write the path of a new workflow. The repository brings
// the links ci, hub and AGENTS.md.
var evilPaths = []string{
	"/workspace/.github/workflows/evil.yml", ".github/workflows/evil.yml", "/workspace//.github//workflows/evil.yml",
	"/workspace/./.github/./workflows/evil.yml", "ci/evil.yml", "/workspace/ci/evil.yml", "hub/workflows/evil.yml",
}

// writesEvilPaths is a model that tries them all, then what it may write and what it
// may not read, and repeats its prompt.
func writesEvilPaths() modeltest.Dialogue {
	var all []modeltest.Call
	for _, path := range evilPaths {
		all = append(all, call("Write", args{"path": path, "content": "on: push\n"}))
	}
	all = append(all, call("Write", args{"path": "code/new.go", "content": "package tide\n"}), call("Read", args{"path": "ci/ci.yml"}))
	return turns(modeltest.Turn{Calls: all}, modeltest.Turn{Text: "I was told: {{.LastUserMessage}}"})
}

// A policy rule on the path of a file denies other spellings of that path and links from the
// repository, too: the published branch has no new workflow.
func TestPolicySeesCanonicalPaths(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	url := p.serveGit()
	clone := `set -e; git clone -q "http://$GIT_USER:$GIT_PASSWORD@` + strings.TrimPrefix(url, "http://") + `" app; cd app
		git config user.name dev; git config user.email dev@example.com
		`
	p.create(claimOf("work", "1Gi"))
	p.work("bring-links", "work", clone+`mkdir -p .github/workflows src
		echo 'on: schedule' >.github/workflows/ci.yml; echo 'package tide' >src/old.go
		ln -s .github/workflows ci; ln -s .github hub; ln -s src code; ln -sf .github/workflows/ci.yml AGENTS.md
		git add -A; git commit -qm 'Bring links'; git push -q origin HEAD:refs/heads/main; cd ..; rm -rf app`)
	p.agent("evil-paths", func(a *v1alpha1.Agent) {
		a.Spec.Workspace.Git = &v1alpha1.Git{URL: url, SecretRef: &v1alpha1.SecretRef{Name: gitName}, Publish: v1alpha1.PublishBranch}
		a.Spec.Policy = []v1alpha1.PolicyRule{{ // as docs/policy.md writes it, and for Read, too
			Name: "ci-is-ours", When: `tool in ["Read", "Write", "Edit"] && args.path.startsWith("/workspace/.github/")`,
			Answer: v1alpha1.PolicyDeny, Reason: "The pipelines are not yours to change.",
		}}
	})
	run := p.ends(p.run("evil-paths"), "True Finished")
	results := p.toolResults("evil-paths-1")
	if len(results) != len(evilPaths)+2 {
		t.Fatalf("the results of the tool calls are %q", results)
	}
	// The calls of the turn run in parallel, so their results come in any order.
	denied := 0
	for _, result := range results {
		switch {
		case strings.HasPrefix(result, "Error: Denied by policy rule ci-is-ours"):
			denied++
		case result != "Created /workspace/src/new.go (13 bytes)":
			t.Errorf("the results of the tool calls are %q", result)
		}
	}
	if denied != len(evilPaths)+1 {
		t.Errorf("%d calls are denied, want each Write of %q and the Read of ci/ci.yml", denied, evilPaths)
	}
	if log := p.log(t.Context(), "evil-paths-1"); strings.Contains(log, "on: schedule") ||
		!strings.Contains(log, "AGENTS.md of the workspace is not shown to the agent: its policy does not allow Read of /workspace/.github/workflows/ci.yml") {
		t.Errorf("the log does not say that AGENTS.md is left out, or shows it:\n%s", log)
	}
	if got := run.Status.Progress.Result.Text; got != "I was told: Do it." {
		t.Errorf("the result is %q", got)
	}
	if run.Status.Progress.Result.Published == nil {
		t.Fatalf("nothing is published: %+v", run.Status.Progress.Result)
	}
	tree := p.work("look", "work", clone+`git ls-tree -r --name-only origin/deckhand/evil-paths`)
	if strings.Contains(tree, "evil") || !strings.Contains(tree, ".github/workflows/ci.yml\n") || !strings.Contains(tree, "src/new.go\n") {
		t.Errorf("the branch holds:\n%s", tree)
	}
}
