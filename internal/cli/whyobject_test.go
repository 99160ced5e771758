package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestWhyExplainsObjectsThatAreNotReady(t *testing.T) {
	agent := gen.Agent(func(a *v1alpha1.Agent) {
		a.Name, a.UID, a.ResourceVersion, a.Generation = "reviewer", "uid-of-reviewer", "", 3
		a.Status.Conditions = []metav1.Condition{
			{Type: "Ready", Status: "False", Reason: "NotFound", Message: "Model gpt not found. Create it.\x1b[2J", ObservedGeneration: 3},
			{Type: "Durable", Status: "False", Reason: "X", Message: "Older", ObservedGeneration: 2},
			{Type: "Stalled", Status: "True", Reason: "NotFound"},
		}
	})
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "e"}, InvolvedObject: corev1.ObjectReference{UID: agent.UID},
		Type: "Warning", Reason: "NotReady", Message: "It happened", LastTimestamp: metav1.NewTime(gen.Noon),
	}
	for _, line := range []string{"why agent/reviewer", "why agents/reviewer", "why Agent reviewer", "why agents.deckhand.dev/reviewer", "get agent reviewer"} {
		s := newSession(t, agent.DeepCopy(), event.DeepCopy())
		if code := s.run(t, strings.Fields(line)...); code != exit.OK {
			t.Fatalf("%s: %s", line, s.text())
		}
		golden(t, "why-agent.txt", s.text())
	}
}

func TestWhyKnowsEachKind(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: gen.Namespace, Name: "x"}
	ready := []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Because", Message: "It is so"}}
	s := newSession(
		t, &v1alpha1.Model{ObjectMeta: meta, Status: v1alpha1.ModelStatus{Conditions: ready}}, &v1alpha1.Toolset{ObjectMeta: meta, Status: v1alpha1.ToolsetStatus{Conditions: ready}},
		&v1alpha1.Workflow{ObjectMeta: meta, Status: v1alpha1.WorkflowStatus{Conditions: ready}}, &v1alpha1.Schedule{ObjectMeta: meta, Status: v1alpha1.ScheduleStatus{Conditions: ready}},
		&v1alpha1.Decision{ObjectMeta: meta, Status: v1alpha1.DecisionStatus{Conditions: ready}}, gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.ResourceVersion, a.Status.Conditions = "x", "", ready }),
	)
	for _, kind := range []string{"agent", "model", "toolset", "workflow", "schedule", "decision"} {
		if code := s.run(t, "why", kind+"/x"); code != exit.OK || !strings.Contains(s.out.String(), "Ready:     False, Because") || !strings.Contains(s.out.String(), "| It is so") {
			t.Errorf("%s: exit code %d: %s", kind, code, s.text())
		}
	}
	for line, want := range map[string]string{
		"why model/y":      "model y not found in namespace team-a. Did you mean x?",
		"why pod/x":        `why does not explain pod, which kubectl describes: kubectl describe pod x`,
		"why crontab/x":    `why does not explain the kind "crontab"`,
		"why agent/x/y":    "why explains one object",
		"get runs":         "kubectl deckhand list",
		"get toolsets":     "kubectl get toolsets",
		"why workflow/new": "not found",
	} {
		if code := s.run(t, strings.Fields(line)...); code == exit.OK || !strings.Contains(s.err.String(), want) {
			t.Errorf("%s: exit code %d, want %q in: %s", line, code, want, s.text())
		}
	}
}

func TestWhySaysThatTheOperatorHasNotReadAnObject(t *testing.T) {
	s := newSession(t)
	if code := s.run(t, "why", "workflow/release"); code != exit.OK || !strings.Contains(s.out.String(), "the operator has not read it yet") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}
