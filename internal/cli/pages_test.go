package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// ago is a time before the present of a session.
func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: gen.Noon.Add(time.Hour - d)} }

// tookFor is a Run that was created some time ago, and took a time or still works.
func tookFor(before, took time.Duration) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.CreationTimestamp, r.Status.CompletionTime = *ago(before), nil
		if took > 0 {
			r.Status.CompletionTime = ago(before - took)
		}
	}
}

// spent is what a Run used, with its cost in words.
func spent(steps, tokens int64, cost string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.Status.Progress = &v1alpha1.RunProgress{Counts: v1alpha1.Counts{Steps: steps}, Usage: v1alpha1.Usage{TotalTokens: tokens, Cost: cost}}
	}
}

// pushes is a Run that asks whether it may make a call of the shell.
func pushes(name, namespace, id, command string, asked time.Duration) *v1alpha1.Run {
	rule := "approval of " + task.BuiltinShell
	return namedRun(name, v1alpha1.ReasonAwaitingApproval, spent(4, 7375, "0.023625USD"), func(r *v1alpha1.Run) {
		r.Namespace = namespace
		r.CreationTimestamp, r.Status.StartTime = *ago(3 * time.Minute), ago(170*time.Second)
		r.Status.Progress.Pending = []v1alpha1.PendingRequest{{
			ID: id, Kind: requests.KindApproval, Tool: "Shell", Rule: rule, Digest: callDigest, AskedAt: ago(asked),
			Question: fmt.Sprintf("The policy has a rule for this, %q.", rule), Args: fmt.Sprintf(`{"command":%q}`, command),
		}}
	})
}

// shipped are the Runs of the Workflow on the page of the command line.
func shipped() []client.Object {
	ship, objects := released()
	ship.Status.Target = &v1alpha1.RunTarget{Kind: v1alpha1.TargetWorkflow, Name: "release"}
	ship.Status.Conditions = namedRun("ship", v1alpha1.ReasonRunning).Status.Conditions
	ship.Status.Nodes = []v1alpha1.NodeStatus{
		{Name: "build", State: "Succeeded"},
		{Name: "test", State: "Succeeded"},
		{Name: "gate", State: "Running", Reason: v1alpha1.ReasonAwaitingApproval, StartedAt: ago(90 * time.Second)},
		{Name: "deploy", State: "Waiting"},
	}
	mods := map[string][]func(*v1alpha1.Run){
		"ship":               {spent(9, 9500, "0.10USD"), tookFor(12*time.Minute, 0)},
		"ship-build":         {spent(4, 1020, "0.03USD"), tookFor(12*time.Minute, 2*time.Minute)},
		"ship-test-1":        {spent(5, 4300, "0.07USD"), tookFor(10*time.Minute, 8*time.Minute)},
		"ship-test-1-helper": {spent(2, 1100, "0.05USD"), tookFor(9*time.Minute, 7*time.Minute)},
	}
	for _, o := range objects {
		for _, mod := range mods[o.GetName()] {
			if run, is := o.(*v1alpha1.Run); is {
				mod(run)
			}
		}
	}
	return objects
}

// The pages show what the program prints: -update rewrites their blocks.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	const commandLine, codingAgent = "docs/command-line.md", "examples/coding-agent/README.md"
	fix := pushes("fix", gen.Namespace, "s4c1-cb203a67b7783996230206ec46bc0664", "rm -rf dist && git push origin main", 2*time.Minute)
	unlisted := func(host string, n int64) v1alpha1.RefusedHost {
		return v1alpha1.RefusedHost{Host: host, Port: 443, Reason: v1alpha1.RefusedNotListed, Count: n}
	}
	for name, tc := range map[string]struct {
		page, line string
		objects    []client.Object
		typed      string
		// before is the text of the page before the block, if the page does not show the command in it.
		before string
	}{
		"list": {commandLine, "list", []client.Object{fix}, "", ""},
		"tree": {commandLine, "tree ship", shipped(), "", ""},
		"cost": {commandLine, "cost --since 7d", nil, "", ""},
		"hosts": {commandLine, "hosts fetcher", []client.Object{
			fetcher("proxy.golang.org", "pages"),
			refusedRun("old", "fetcher", 1, 3, unlisted("sum.golang.org", 3)),
			refusedRun("new", "fetcher", 30, 6, unlisted("sum.golang.org", 4), v1alpha1.RefusedHost{Host: "pages", Port: 80, Reason: v1alpha1.RefusedNotPublic, Count: 2}),
		}, "", ""},
		"approve": {commandLine, "approve fix", []client.Object{fix}, "y\n", ""},
		"pending": {codingAgent, "pending fix-tide -n default", []client.Object{
			pushes("fix-tide", "default", "s11c2-522561a6cbbb50fb1a9f23eae2aca3bb", "rm -r bin && git status --short", 4*time.Second),
		}, "", "kubectl deckhand pending fix-tide\n```\n\n```\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, deepCopies(tc.objects)...)
			if name == "cost" {
				s = spending(t)
				s.edit(t, "cheap", used(0, 0, 0, 0))
				if err := s.client.Delete(t.Context(), namedRun("cheap", "")); err != nil {
					t.Fatal(err)
				}
			}
			s.runnerSays(metav1.ConditionTrue, "")
			if tc.typed != "" {
				s.types(t, tc.typed)
			}
			if code := s.run(t, strings.Fields(tc.line)...); code != exit.OK {
				t.Fatal(s.text())
			}
			got := s.text()
			if tc.typed != "" { // the question is on the standard error
				got = s.err.String() + tc.typed + s.out.String()
			}
			before := tc.before
			if before == "" {
				before = "$ kubectl deckhand " + tc.line + "\n"
			}
			comparePage(t, filepath.Join("..", "..", tc.page), before, got)
		})
	}
}

func deepCopies(objects []client.Object) []client.Object {
	var copies []client.Object
	for _, o := range objects {
		copies = append(copies, o.DeepCopyObject().(client.Object))
	}
	return copies
}

// comparePage compares the text of a page between before and the end of the block with what a command printed.
func comparePage(t *testing.T, path, before, got string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), before)
	shown, tail, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatalf("%s has no block behind %q", path, before)
	}
	if *update {
		if err := os.WriteFile(path, []byte(head+before+got+"```\n"+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(shown, got); diff != "" {
		t.Errorf("%s behind %q (-page +program), -update rewrites it:\n%s", path, before, diff)
	}
}

var approvalOf = regexp.MustCompile(`approval of ([A-Za-z_]+)"?`)

// The rule of an entry of spec.tools is named after the builtin, or after its only tool.
func TestPagesNameRulesAsTheRunnerDoes(t *testing.T) {
	names := map[string]bool{}
	for builtin, b := range task.Builtins {
		if names[builtin] = true; len(b.Tools) == 1 {
			delete(names, builtin)
			names[b.Tools[0]] = true
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range append(pages, "../../examples/coding-agent/README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range approvalOf.FindAllStringSubmatch(string(text), -1) {
			quotes := strings.HasSuffix(m[0], `"`) || strings.Contains(string(text), "Rule:      "+m[0])
			if seen++; quotes && !names[m[1]] {
				t.Errorf("%s: no rule is named %q", path, m[0])
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d rules were found", seen)
	}
}
