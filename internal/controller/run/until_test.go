package run

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// reread replaces the status by what the API server returns, with times in whole seconds.
func reread(t *testing.T, c *cluster) string {
	t.Helper()
	text, err := json.Marshal(c.run.Status)
	if err != nil {
		t.Fatal(err)
	}
	c.run.Status = v1alpha1.RunStatus{}
	if err := json.Unmarshal(text, &c.run.Status); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The message of a Run that waits says until when, and waiting writes no status.
func TestAWaitingRunSaysUntilWhen(t *testing.T) {
	const soon = 1500 * time.Millisecond
	for name, tc := range map[string]struct {
		agent  *v1alpha1.Agent
		before func(*cluster)
		want   string
	}{
		"the Agent does not exist": {nil, func(*cluster) {}, `Agent "fixer" not found in namespace team-a. Waits until 12:10:00 UTC (limits.pending)`},
		"the Run was paused until now": {nil, func(c *cluster) {
			wants(v1alpha1.DesiredPaused)(c)
			c.step()
			c.now = c.now.Add(time.Hour + 700*time.Millisecond)
			wants(v1alpha1.DesiredRunning)(c)
		}, `Agent "fixer" not found in namespace team-a. Waits until 13:10:00 UTC (limits.pending)`},
		"no cluster node has room": {gen.Agent(), func(c *cluster) {
			c.begin()
			isUnschedulable(1)(c)
		}, "Waits until 12:10:00 UTC (limits.pending)"},
		"an image cannot be pulled": {gen.Agent(), func(c *cluster) {
			c.begin()
			waits(1, "ErrImagePull", "not found")(c)
		}, "Waits until 12:05:00 UTC (5m0s for pulling an image)"},
		"a Secret is missing": {gen.Agent(), func(c *cluster) {
			c.begin()
			c.now = c.now.Add(time.Minute)
			exits(1, 78, lackedSecret(1, 60))(c)
		}, "Secret sonnet has no key api-key in namespace team-a" + within + ". Waits until 12:10:00 UTC (limits.pending)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), tc.agent)
			tc.before(c)
			c.step()
			first := reread(t, c)
			if got := messageOf(c.run); !strings.HasSuffix(got, tc.want) {
				t.Errorf("the message is %q, want %q", got, tc.want)
			}
			for range 5 {
				c.now = c.now.Add(soon)
				c.step()
				if again := reread(t, c); again != first {
					t.Fatalf("waiting changed the status from\n%s\nto\n%s", first, again)
				}
			}
		})
	}
}

// A Run that started in time says nothing about a time.
func TestAStartingRunDoesNotSayUntilWhen(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	c.pod(1).Status.Phase = corev1.PodPending
	c.step()
	if got := messageOf(c.run); got != "Starting attempt 1" {
		t.Errorf("the message is %q", got)
	}
}

// A Run that waited for something else is not ended by the first failed request after limits.pending, even if its
// message has the same words: only the condition Reconciling shows that the request failed before.
func TestTheFirstFailureEndsNoRun(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent(onVolume))
	c.step()
	s := c.observed()
	s.facts = failed(plan{reason: v1alpha1.ReasonStarting}, errDown)
	same := decide(s)
	same.problem = ""
	s.run.Status = statusOf(s, same)
	s.now = s.now.Add(time.Hour)
	first := decide(s)
	if first.settles() {
		t.Fatalf("the first failure ends the Run: %s: %s", first.reason, first.message)
	}
	s.run.Status = statusOf(s, first)
	if second := decide(s); second.reason != v1alpha1.ReasonPendingTimeout || second.problem != "" {
		t.Errorf("after the second: %s: %s (problem %q)", second.reason, second.message, second.problem)
	}
}

// A request that fails once does not end a Run, and its message does not change when it
// fails again.
func TestARepeatedFailureKeepsItsMessage(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent(onVolume))
	c.step()
	s := c.observed()
	s.facts = failed(plan{reason: v1alpha1.ReasonStarting}, errDown)
	first := decide(s)
	if !strings.HasSuffix(first.message, "Waits until 12:10:00 UTC (limits.pending)") {
		t.Errorf("the message is %q", first.message)
	}
	s.run.Status = statusOf(s, first)
	if second := decide(s); second.message != first.message {
		t.Errorf("the message changed from %q to %q", first.message, second.message)
	}
	s.now = s.now.Add(time.Hour)
	end := decide(s)
	if end.reason != v1alpha1.ReasonPendingTimeout || strings.Contains(end.message, "tries again") || strings.Contains(end.message, "Waits until") {
		t.Errorf("in the end: %s: %s", end.reason, end.message)
	}
}
