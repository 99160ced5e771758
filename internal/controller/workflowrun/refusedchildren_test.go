package workflowrun

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// A revision that was deleted is stored again before the next child Run. While that is refused, no
// child Run is created, and the Run says why.
func TestNoChildIsCreatedWithoutItsRevision(t *testing.T) {
	s := newRefuser(t)
	s.reconcileAll(1)
	if err := s.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(gen.Namespace)); err != nil {
		t.Fatal(err)
	}
	f := apierrtest.Failures()["the operator lacks the right"]
	s.RefuseAll("create", "ConfigMap", f)
	s.reconcileAll(1)
	got := s.get()
	if o := runstatus.OutcomeOf(got.Status); o.Reason != v1alpha1.ReasonPending || !strings.Contains(o.Message, f.Want) {
		t.Errorf("the Run is %s: %s", o.Reason, o.Message)
	}
	var runs v1alpha1.RunList
	if err := s.List(t.Context(), &runs, client.InNamespace(gen.Namespace)); err != nil || len(runs.Items) != 1 {
		t.Errorf("there are %d Runs: %v", len(runs.Items), err)
	}
	s.Refuse = nil
	s.reconcileAll(1)
	if err := s.List(t.Context(), &runs, client.InNamespace(gen.Namespace)); err != nil || len(runs.Items) != 2 {
		t.Errorf("once it is stored there are %d Runs: %v", len(runs.Items), err)
	}
}

// The Run of an Agent has a controller of its own.
func TestARunOfAnAgentIsLeftAlone(t *testing.T) {
	s := newRefuser(t)
	run := s.get()
	run.Spec.Workflow = ""
	if _, err := s.reconciler.Reconcile(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if got := s.get(); got.ResourceVersion != run.ResourceVersion {
		t.Errorf("it was written: %+v", got.Status)
	}
}

// Since when a Run waits for its start: a pause does not count.
func TestPendingSince(t *testing.T) {
	now := gen.Noon.Add(time.Hour)
	resumed := func(at time.Time) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) { r.Status.Internal.ResumedAt = &metav1.Time{Time: at} }
	}
	for name, tc := range map[string]struct {
		run  func(*v1alpha1.Run)
		want time.Time
	}{
		"since it was created":                    {func(*v1alpha1.Run) {}, gen.Noon},
		"since it was resumed":                    {resumed(gen.Noon.Add(time.Minute)), gen.Noon.Add(time.Minute)},
		"a resume that is older than the Run":     {resumed(gen.Noon.Add(-time.Minute)), gen.Noon},
		"while it is paused, it waits since now":  {func(r *v1alpha1.Run) { paused(r) }, now},
		"also if it was resumed once before that": {func(r *v1alpha1.Run) { paused(r); resumed(gen.Noon.Add(time.Minute))(r) }, now},
	} {
		if got := pendingSince(state{run: gen.Run(tc.run), now: now}); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func paused(r *v1alpha1.Run) {
	runstatus.Outcome{Reason: v1alpha1.ReasonPaused, Message: "Paused"}.WriteStatus(&r.Status, r, gen.Noon)
}

// How long a Run may wait: its limits.pending lowers that of the Workflow, or the default.
func TestPendingLimit(t *testing.T) {
	short, long, hour := v1alpha1.Duration("90s"), v1alpha1.Duration("1000h"), v1alpha1.Duration("1h")
	const standard = 10 * time.Minute
	for name, tc := range map[string]struct {
		workflow *v1alpha1.WorkflowLimits
		run      *v1alpha1.Limits
		want     time.Duration
	}{
		"no limits":                         {nil, nil, standard},
		"limits without pending":            {&v1alpha1.WorkflowLimits{}, &v1alpha1.Limits{}, standard},
		"a Run lowers the default":          {nil, &v1alpha1.Limits{Pending: &short}, 90 * time.Second},
		"a Run does not raise the default":  {nil, &v1alpha1.Limits{Pending: &long}, standard},
		"a Workflow raises the default":     {&v1alpha1.WorkflowLimits{Pending: &hour}, nil, time.Hour},
		"a Run lowers that of the Workflow": {&v1alpha1.WorkflowLimits{Pending: &long}, &v1alpha1.Limits{Pending: &hour}, time.Hour},
	} {
		s := state{run: gen.Run(func(r *v1alpha1.Run) { r.Spec.Limits = tc.run })}
		if tc.workflow != nil {
			s.revision = &workflow.Revision{Spec: v1alpha1.WorkflowSpec{Limits: tc.workflow}}
		}
		if got := pendingLimit(s); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// The status is written unless what was observed is old or the Run goes.
func TestWhenTheStatusIsWritten(t *testing.T) {
	waits := waiting(v1alpha1.ReasonPending, "It waits", 7*time.Second)
	transient, refused := apierrtest.Failures()["the server is unavailable"].Err("get", "Run", "x", 1), apierrtest.Failures()["a policy denies it"].Err("create", "Run", "x", 1)
	for name, tc := range map[string]struct {
		err     error
		change  func(*v1alpha1.Run, *plan)
		written bool
		wake    time.Duration
		fails   bool
	}{
		"nothing failed":         {nil, func(*v1alpha1.Run, *plan) {}, true, 7 * time.Second, false},
		"a request was refused":  {refused, func(*v1alpha1.Run, *plan) {}, true, 7 * time.Second, false},
		"a request may succeed":  {transient, func(*v1alpha1.Run, *plan) {}, true, 0, true},
		"the Run has changed":    {apierr.Changed("Run", "x"), func(*v1alpha1.Run, *plan) {}, false, 0, true},
		"the Run is deleted now": {nil, func(_ *v1alpha1.Run, p *plan) { p.deleteRun = true }, false, 7 * time.Second, false},
		"a user deletes the Run": {nil, func(r *v1alpha1.Run, _ *plan) { r.DeletionTimestamp = &metav1.Time{Time: gen.Noon} }, false, 7 * time.Second, false},
		"another wrote the Run":  {nil, func(r *v1alpha1.Run, _ *plan) { r.ResourceVersion = "1" }, false, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRefuser(t)
			run, p := s.get(), waits
			tc.change(run, &p)
			seen := state{run: run, now: gen.Noon}
			if tc.err != nil {
				seen.failure = &requestFailure{plan: p, err: tc.err}
			}
			result, err := s.reconciler.updateStatus(t.Context(), seen, p)
			if (err != nil) != tc.fails || tc.err != nil && tc.fails && !errors.Is(err, tc.err) || result.RequeueAfter != tc.wake {
				t.Errorf("it is looked at again after %s, %v", result.RequeueAfter, err)
			}
			if got := runstatus.OutcomeOf(s.get().Status).Message == "It waits"; got != tc.written {
				t.Errorf("the status is written: %t", got)
			}
		})
	}
}

// When it is asked again for what the cluster had no room for: after as long as nothing has moved.
func TestRetryIn(t *testing.T) {
	since := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: gen.Noon.Add(time.Hour - d)} }
	const minute = time.Minute
	for name, tc := range map[string]struct {
		nodes []v1alpha1.NodeStatus
		no    refusal
		want  time.Duration
	}{
		"nothing was refused":               {nil, refusal{reason: v1alpha1.NodeReasonRefused, text: "no"}, 0},
		"nothing has moved since the start": {nil, refusal{waits: v1alpha1.ReasonPending}, minute},
		"a node began some seconds ago":     {[]v1alpha1.NodeStatus{{StartedAt: since(20 * time.Second)}, {StartedAt: since(30 * time.Minute)}}, refusal{waits: v1alpha1.ReasonPending}, 20 * time.Second},
		"a node ended some seconds ago":     {[]v1alpha1.NodeStatus{{StartedAt: since(30 * time.Minute), FinishedAt: since(5 * time.Second)}}, refusal{waits: v1alpha1.ReasonPending}, 5 * time.Second},
		"a node ended now":                  {[]v1alpha1.NodeStatus{{FinishedAt: since(0)}}, refusal{waits: v1alpha1.ReasonPending}, time.Second},
	} {
		run := gen.Run(func(r *v1alpha1.Run) { r.Status.Nodes = tc.nodes })
		e := &evaluation{state: state{run: run, now: gen.Noon.Add(time.Hour), facts: facts{refused: map[childKey]refusal{{"a", 0}: tc.no}}}}
		if got := e.retryIn(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// What a Run waits for of which nothing works.
func TestShortage(t *testing.T) {
	begun := begun(t, "nodes:\n- {name: a, agent: worker, prompt: go}\n- {name: b, agent: worker, prompt: go}\n")
	queued := map[string]graph.Status{"a": {State: graph.Running}, "b": {State: graph.Running, Reason: graph.ReasonQueued}}
	over := map[string]graph.Status{"b": {State: graph.Failed, Reason: graph.ReasonQueued}}
	for name, tc := range map[string]struct {
		e            evaluation
		nodes        map[string]graph.Status
		want, reason string
	}{
		"a node waits for its turn":       {evaluation{}, queued, "Waiting for its turn: node b", v1alpha1.ReasonQueued},
		"the next children are created":   {evaluation{more: true}, queued, "", ""},
		"a node that has ended waits not": {evaluation{}, over, "", ""},
		"nothing waits":                   {evaluation{}, nil, "", ""},
		"what is refused comes first":     {evaluation{state: state{facts: facts{refused: map[childKey]refusal{{"a", 0}: {text: "No room", waits: "Quota"}}}}}, queued, "No room", "Quota"},
	} {
		tc.e.revision, tc.e.run = begun.version, begun.run
		if reason, message := tc.e.shortageMessage(graph.Next{Nodes: tc.nodes}); reason != tc.reason || message != tc.want {
			t.Errorf("%s: %s %q, want %s %q", name, reason, message, tc.reason, tc.want)
		}
	}
}
