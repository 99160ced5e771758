package cli

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// runnerSays lets the Run act on each Decision at the second look.
func (s *session) runnerSays(status metav1.ConditionStatus, message string) {
	looks := 0
	s.client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		err := c.Get(ctx, key, o, options...)
		if d, is := o.(*v1alpha1.Decision); is && err == nil {
			if looks++; looks > 1 {
				d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: status, Message: message}}
			}
		}
		return err
	}})
}

// A Decision that is made is not one that counts: the Run may refuse it a second later.
func TestADecisionThatTheRunRefusesIsAFailure(t *testing.T) {
	commands := map[string][]string{
		"approve": {"approve", "fix", callID, "-y"},
		"deny":    {"deny", "fix", callID, "-y"},
		"answer":  {"answer", "fix", "s2c1", "main", "-y"},
		"grant":   {"grant", "fix", "limit-steps-30", "--steps=5", "-y"},
	}
	for name, args := range commands {
		s := newSession(t, runWithRequests())
		s.runnerSays(metav1.ConditionFalse, "Only members of owners may decide")
		if code := s.run(t, args...); code != exit.Error || !strings.Contains(s.err.String(), "refused Decision fix.") || !strings.Contains(s.err.String(), "Only members of owners may decide") {
			t.Errorf("%s: exit code %d: %s", name, code, s.text())
		}
		s = newSession(t, runWithRequests())
		s.runnerSays(metav1.ConditionTrue, "")
		if code := s.run(t, args...); code != exit.OK || strings.Contains(s.err.String(), "has not read it yet") {
			t.Errorf("%s: exit code %d: %s", name, code, s.text())
		}
		s = newSession(t, runWithRequests())
		if code := s.run(t, args...); code != exit.OK || !strings.Contains(s.err.String(), "has not read it yet") {
			t.Errorf("%s that nobody reads: exit code %d: %s", name, code, s.text())
		}
	}
}

// The schema of the value is there, so a value that does not fit is no Decision.
func TestAValueThatDoesNotFitIsNotSent(t *testing.T) {
	asks := func(r *v1alpha1.Run) {
		r.Status.Progress.Pending[1].Schema = `{"type":"object","properties":{"env":{"enum":["staging","live"]}},"required":["env"],"additionalProperties":false}`
	}
	for value, want := range map[string]string{"staging please": "`env` must be one of", `{"env":"nowhere"}`: "`env`", `{}`: "`env` is missing"} {
		run := runWithRequests()
		asks(run)
		s := newSession(t, run)
		if code := s.run(t, "answer", "fix", "s2c1", value, "-y"); code != exit.Usage || len(decisionsOf(t, s)) > 0 || !strings.Contains(s.err.String(), want) {
			t.Errorf("%s: exit code %d, %d Decisions: %s", value, code, len(decisionsOf(t, s)), s.text())
		}
	}
	run := runWithRequests()
	asks(run)
	s := newSession(t, run)
	if code := s.run(t, "answer", "fix", "s2c1", `{"env":"live"}`, "-y"); code != exit.OK || len(decisionsOf(t, s)) != 1 {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}
