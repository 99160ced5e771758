package cli

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestWhyShowsWhatARunReturnedAndWhoDecided(t *testing.T) {
	run := namedRun("fix", v1alpha1.ReasonFinished, endedWith(v1alpha1.ReasonFinished), returned(v1alpha1.Result{
		Text: "Fixed", Output: `{"tests":"pass\u001b[2J"}`, Warning: "Check it",
		Published: &v1alpha1.Published{Branch: "deckhand/fix", Commit: "c0ffee"},
		Files:     []v1alpha1.File{{Path: "/workspace/a.go", Size: 7}, {Path: "/workspace/b\x1b[2J", Size: 3 << 20}},
	}))
	run.CreationTimestamp = metav1.NewTime(gen.Noon)
	run.Status.CompletionTime = &metav1.Time{Time: gen.Noon.Add(time.Minute)}
	decided := func(name string, as v1alpha1.DecisionType) v1alpha1.DecidedRequest {
		return v1alpha1.DecidedRequest{Name: name, Request: name[len("fix."):], Type: as}
	}
	refused := decided("fix.s9c1", v1alpha1.DecisionApprove)
	refused.Refused = "another digest"
	run.Status.Progress.Decided = []v1alpha1.DecidedRequest{
		decided("fix.s1c1", v1alpha1.DecisionApprove), decided("fix.s2c1", v1alpha1.DecisionDeny), decided("fix.s3c1", v1alpha1.DecisionApprove), decided("fix.s4c1", v1alpha1.DecisionApprove), decided("fix.s5c1", v1alpha1.DecisionApprove), refused,
	}
	run.Status.Progress.Refused = &v1alpha1.Refused{ToolCalls: 4, Tools: []v1alpha1.DeniedTool{
		{Name: "Read", By: v1alpha1.DeniedByPolicy, Count: 2, FirstID: "s2c1"},
		{Name: "Write", By: v1alpha1.DeniedByHook, Count: 1, FirstID: "s4c1"},
		{Name: "shell", By: v1alpha1.DeniedByPolicy, Count: 1, FirstID: "s6c1"},
	}}
	decision := func(name, by string, as v1alpha1.DecisionType, after time.Duration) *v1alpha1.Decision {
		return &v1alpha1.Decision{
			ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name, CreationTimestamp: metav1.NewTime(gen.Noon.Add(after))},
			Spec:       v1alpha1.DecisionSpec{Run: "fix", Type: as, By: by, Reason: map[bool]string{true: "too\nwide"}[as == v1alpha1.DecisionDeny]},
		}
	}
	denied := func(n, tool, by, rule string) string {
		return `{"v":1,"n":` + n + `,"attempt":1,"type":"call.denied","data":{"name":"` + tool + `","by":"` + by + `","rule":"` + rule + `"}}` + "\n"
	}
	objects := []client.Object{
		run, runnerPod(run, "1", corev1.PodSucceeded),
		decision("fix.s1c1", "ann", v1alpha1.DecisionApprove, time.Second), decision("fix.s2c1", "bob", v1alpha1.DecisionDeny, time.Second),
		decision("fix.s3c1", "mallory", v1alpha1.DecisionApprove, time.Hour),  // fix.s4c1 does not exist
		decision("fix.s5c1", "mallory", v1alpha1.DecisionApprove, -time.Hour), // of an earlier Run
	}
	s := newSession(t, objects...)
	log := denied("1", "Read", "Policy", "no-reads") + denied("2", "Read", "Policy", "no-dots") + denied("3", "Read", "Policy", "no-reads") + denied("4", "Write", "Hook", "audit")
	s.openLog = (&fakeLogs{streams: map[string][]fakeStream{"fix-1": {{lines: log}, {lines: log}}}}).open
	if code := s.run(t, "why", "fix"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "why-result.txt", s.text())
}

// A retry shows who approved in the Run that it retries, if the Decision proves it.
func TestWhyShowsWhoApprovedInTheRunBefore(t *testing.T) {
	run := namedRun("again", v1alpha1.ReasonFinished, endedWith(v1alpha1.ReasonFinished), returned(v1alpha1.Result{}))
	run.Spec.Agent, run.Spec.Prompt, run.Spec.Workflow = "", "", "release"
	run.CreationTimestamp = metav1.NewTime(gen.Noon)
	run.Status.StartTime, run.Status.CompletionTime = &metav1.Time{Time: gen.Noon}, &metav1.Time{Time: gen.Noon.Add(time.Minute)}
	run.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"first"}, UID: "uid-first"}
	objects := []client.Object{run}
	for _, node := range []string{"gate", "forged"} {
		d := &v1alpha1.Decision{
			ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "first.approval-" + node, CreationTimestamp: metav1.NewTime(gen.Noon.Add(-time.Hour))},
			Spec:       v1alpha1.DecisionSpec{Run: "first", Request: "approval-" + node, Type: v1alpha1.DecisionApprove, By: "ann"},
		}
		if node == "gate" {
			d.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: run.Name, UID: run.UID}}
		}
		run.Status.Progress.Decided = append(run.Status.Progress.Decided, v1alpha1.DecidedRequest{Name: d.Name, Request: d.Spec.Request, Type: d.Spec.Type, Digest: strings.Repeat("d", 64)})
		objects = append(objects, d)
	}
	s := newSession(t, objects...)
	if code := s.run(t, "why", "again"); code != exit.OK {
		t.Fatal(s.text())
	}
	golden(t, "why-reused.txt", s.text())
}
