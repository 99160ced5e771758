package decisions_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

var aDigest = strings.Repeat("d", 64)

func TestARunThatHasNotReportedMissesNoDecision(t *testing.T) {
	if got := decisions.FirstMissing(gen.Run(), nil); got != "" {
		t.Errorf("unproven %q", got)
	}
}

// A denial proves no approval, where the runner says what it heard.
func TestADenialProvesNoApproval(t *testing.T) {
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Status.Progress = &v1alpha1.RunProgress{Decided: []v1alpha1.DecidedRequest{{Name: "d", Type: v1alpha1.DecisionApprove, Digest: aDigest}}}
	})
	d := v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: v1alpha1.DecisionSpec{Run: run.Name, Type: v1alpha1.DecisionDeny}}
	if got := decisions.FirstMissing(run, []v1alpha1.Decision{d}); got != "d" {
		t.Errorf("unproven %q", got)
	}
}

// Whoever speaks to a runner past the API needs more than the name of something
// that somebody did say.
func TestWhatProvesThatACallWasApproved(t *testing.T) {
	cases := map[string]struct {
		kind   v1alpha1.DecisionType
		digest string
		done   string
		want   string
	}{
		"the approval of that call":       {v1alpha1.DecisionApprove, aDigest, aDigest, ""},
		"the approval of another":         {v1alpha1.DecisionApprove, strings.Repeat("e", 64), aDigest, "d"},
		"a denial":                        {v1alpha1.DecisionDeny, "", aDigest, ""},
		"a message is no approval":        {v1alpha1.DecisionMessage, "", aDigest, "d"},
		"nor is an answer":                {v1alpha1.DecisionAnswer, "", aDigest, "d"},
		"an answer proves an answer":      {v1alpha1.DecisionAnswer, "", "", ""},
		"an approval proves no answer":    {v1alpha1.DecisionApprove, aDigest, "", "d"},
		"a grant proves that of a limit":  {v1alpha1.DecisionGrant, "", "", ""},
		"a message proves that it is one": {v1alpha1.DecisionMessage, "", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := gen.Run(func(r *v1alpha1.Run) {
				r.Status.Progress = &v1alpha1.RunProgress{Decided: []v1alpha1.DecidedRequest{{Name: "d", Digest: tc.done}}}
			})
			d := v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: v1alpha1.DecisionSpec{Run: run.Name, Type: tc.kind, Digest: tc.digest}}
			if got := decisions.FirstMissing(run, []v1alpha1.Decision{d}); got != tc.want {
				t.Errorf("unproven %q, want %q", got, tc.want)
			}
		})
	}
}

// The runner's full digest is compared with the digits in which the request of the
// Decision ends.
func TestAnApprovalByItsIDProvesThatCallOnly(t *testing.T) {
	other := strings.Repeat("d", 31) + "e" + strings.Repeat("d", 32)
	id := "s3c1-" + aDigest[:32]
	cases := map[string]struct {
		spec v1alpha1.DecisionSpec
		done v1alpha1.DecidedRequest
		want string
	}{
		"the call that was approved":       {v1alpha1.DecisionSpec{Request: id}, v1alpha1.DecidedRequest{Request: id, Digest: aDigest}, ""},
		"with its digest":                  {v1alpha1.DecisionSpec{Request: id, Digest: aDigest}, v1alpha1.DecidedRequest{Request: id, Digest: aDigest}, ""},
		"another call":                     {v1alpha1.DecisionSpec{Request: id}, v1alpha1.DecidedRequest{Request: id, Digest: other}, "d"},
		"another request":                  {v1alpha1.DecisionSpec{Request: id}, v1alpha1.DecidedRequest{Request: "s4c1-" + aDigest[:32], Digest: aDigest}, "d"},
		"no digest":                        {v1alpha1.DecisionSpec{Request: id}, v1alpha1.DecidedRequest{Request: id}, "d"},
		"a part of the digest":             {v1alpha1.DecisionSpec{Request: id}, v1alpha1.DecidedRequest{Request: id, Digest: aDigest[:31]}, "d"},
		"an id without digits":             {v1alpha1.DecisionSpec{Request: "s3c1"}, v1alpha1.DecidedRequest{Request: "s3c1", Digest: aDigest}, "d"},
		"another digest than the digits":   {v1alpha1.DecisionSpec{Request: id, Digest: aDigest}, v1alpha1.DecidedRequest{Request: id, Digest: other}, "d"},
		"an id without digits, and digest": {v1alpha1.DecisionSpec{Request: "s3c1", Digest: aDigest}, v1alpha1.DecidedRequest{Request: "s3c1", Digest: aDigest}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.done.Name = "d"
			run := gen.Run(func(r *v1alpha1.Run) {
				r.Status.Progress = &v1alpha1.RunProgress{Decided: []v1alpha1.DecidedRequest{tc.done}}
			})
			tc.spec.Run, tc.spec.Type = run.Name, v1alpha1.DecisionApprove
			d := v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: tc.spec}
			if got := decisions.FirstMissing(run, []v1alpha1.Decision{d}); got != tc.want {
				t.Errorf("unproven %q, want %q", got, tc.want)
			}
		})
	}
}

// A server is the API server: the Decisions that it has.
type server map[string]v1alpha1.Decision

func (s server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	d, there := s[key.Name]
	to, is := into.(*v1alpha1.Decision)
	if !there || !is {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "decisions"}, key.Name)
	}
	*to = d
	return nil
}

func (server) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// A cache may be late: what it does not show is asked for.
func TestWhatIsMissingIsAskedForOnce(t *testing.T) {
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Status.Progress = &v1alpha1.RunProgress{Decided: []v1alpha1.DecidedRequest{{Name: "d", Type: v1alpha1.DecisionApprove, Digest: aDigest}}}
	})
	made := func(digest string) server {
		return server{"d": {ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: v1alpha1.DecisionSpec{Run: run.Name, Type: v1alpha1.DecisionApprove, Digest: digest}}}
	}
	for name, tc := range map[string]struct {
		live server
		want string
	}{
		"it is there":                {made(aDigest), ""},
		"it is there, of another":    {made(strings.Repeat("e", 64)), "d"},
		"it is not there either way": {server{}, "d"},
	} {
		if got, err := decisions.FindMissing(t.Context(), tc.live, run, nil); got != tc.want || err != nil {
			t.Errorf("%s: missing %q (%v), want %q", name, got, err, tc.want)
		}
	}
}

// retrier is a Run that reports the approval of the Run w, which it retries, and reused its Decision.
func retrier() (*v1alpha1.Run, *v1alpha1.Decision) {
	started := metav1.NewTime(gen.Noon)
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Spec.Agent, r.Spec.Workflow, r.Spec.ContinueFrom = "", "release", &v1alpha1.ContinueFrom{Run: "w"}
		r.Status.StartTime = &started
		r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"w", "v"}, UID: "uid-w"}
		r.Status.Progress = &v1alpha1.RunProgress{Decided: []v1alpha1.DecidedRequest{{Name: "w.approval-gate", Request: "approval-gate", Type: v1alpha1.DecisionApprove, Digest: aDigest}}}
	})
	owner := func(name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: name, UID: uid}
	}
	return run, &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: "w.approval-gate", CreationTimestamp: started, OwnerReferences: []metav1.OwnerReference{owner("w", "uid-w"), owner(run.Name, run.UID)}},
		Spec:       v1alpha1.DecisionSpec{Run: "w", Request: "approval-gate", Type: v1alpha1.DecisionApprove, By: "ann"},
	}
}

func TestWhatProvesAReusedApproval(t *testing.T) {
	for name, tc := range map[string]struct {
		do func(*v1alpha1.Run, *v1alpha1.Decision)
		is bool
	}{
		"the Decision of the Run before": {func(*v1alpha1.Run, *v1alpha1.Decision) {}, true},
		"with its digest":                {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.Spec.Digest = aDigest }, true},
		"the Run before was deleted":     {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.OwnerReferences = d.OwnerReferences[1:] }, true},
		"that of a Run earlier in the chain": {func(r *v1alpha1.Run, d *v1alpha1.Decision) {
			d.Name, d.Spec.Run, r.Status.Progress.Decided[0].Name = "v.approval-gate", "v", "v.approval-gate"
		}, true},
		"that of a Run that is not in the chain": {func(r *v1alpha1.Run, d *v1alpha1.Decision) {
			d.Name, d.Spec.Run, r.Status.Progress.Decided[0].Name = "u.approval-gate", "u", "u.approval-gate"
		}, false},
		"another name":      {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.Name += ".2" }, false},
		"another Run in it": {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.Spec.Run = "u" }, false},
		"another request":   {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.Spec.Request = "approval-other" }, false},
		"another digest":    {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.Spec.Digest = strings.Repeat("e", 64) }, false},
		"a denial":          {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.Spec.Type = v1alpha1.DecisionDeny }, false},
		"a report of a denial": {func(r *v1alpha1.Run, d *v1alpha1.Decision) {
			d.Spec.Type, r.Status.Progress.Decided[0].Type = v1alpha1.DecisionDeny, v1alpha1.DecisionDeny
		}, false},
		"a report without a type":         {func(r *v1alpha1.Run, _ *v1alpha1.Decision) { r.Status.Progress.Decided[0].Type = "" }, false},
		"a report without a digest":       {func(r *v1alpha1.Run, _ *v1alpha1.Decision) { r.Status.Progress.Decided[0].Digest = "" }, false},
		"this Run does not own it":        {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.OwnerReferences = d.OwnerReferences[:1] }, false},
		"an earlier Run of the name does": {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.OwnerReferences[1].UID = "earlier" }, false},
		"another kind does":               {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.OwnerReferences[1].Kind = "Agent" }, false},
		"another group does":              {func(_ *v1alpha1.Run, d *v1alpha1.Decision) { d.OwnerReferences[1].APIVersion = "example.com/v1" }, false},
		"it was made after the start":     {func(r *v1alpha1.Run, d *v1alpha1.Decision) { d.CreationTimestamp.Time = gen.Noon.Add(time.Second) }, false},
		"it was refused": {func(_ *v1alpha1.Run, d *v1alpha1.Decision) {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse}}
		}, false},
		"the Run retries none":    {func(r *v1alpha1.Run, _ *v1alpha1.Decision) { r.Status.ContinuedFrom = nil }, false},
		"the Run has not started": {func(r *v1alpha1.Run, _ *v1alpha1.Decision) { r.Status.StartTime = nil }, false},
		"the Run is of an Agent":  {func(r *v1alpha1.Run, _ *v1alpha1.Decision) { r.Spec.Workflow = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			run, d := retrier()
			tc.do(run, d)
			done := run.Status.Progress.Decided[0]
			if got := decisions.ProvesReuse(run, d, done); got != tc.is {
				t.Errorf("it proves the approval: %t", got)
			}
			want := ""
			if !tc.is {
				want = done.Name
			}
			if got, err := decisions.FindMissing(t.Context(), server{d.Name: *d}, run, nil); got != want || err != nil {
				t.Errorf("missing %q (%v), want %q", got, err, want)
			}
			if !decisions.IsReused(run, done) {
				t.Error("it is not of another Run")
			}
		})
	}
}

// An earlier Run of a chain may have had the name of this one. Its Decision is no answer to this Run.
func TestADecisionOfANamesakeIsNotReused(t *testing.T) {
	run, d := retrier()
	run.Status.ContinuedFrom.Runs = []string{"w", run.Name}
	d.Name, d.Spec.Run = run.Name+".approval-gate", run.Name
	run.Status.Progress.Decided[0].Name = d.Name
	if decisions.CanReuse(run, d, run.Status.Progress.Decided[0]) {
		t.Error("it can be reused")
	}
}

// A cache may not show yet that the Run owns several Decisions.
func TestSeveralAreMissingInTheCache(t *testing.T) {
	run, first := retrier()
	second := first.DeepCopy()
	second.Name, second.Spec.Request = "w.approval-two", "approval-two"
	run.Status.Progress.Decided = append(run.Status.Progress.Decided, v1alpha1.DecidedRequest{Name: second.Name, Request: "approval-two", Type: v1alpha1.DecisionApprove, Digest: aDigest})
	late := first.DeepCopy()
	late.OwnerReferences = late.OwnerReferences[:1]
	live := server{first.Name: *first, second.Name: *second}
	if got, err := decisions.FindMissing(t.Context(), live, run, []v1alpha1.Decision{*late}); got != "" || err != nil {
		t.Errorf("missing %q (%v)", got, err)
	}
	delete(live, second.Name)
	if got, err := decisions.FindMissing(t.Context(), live, run, []v1alpha1.Decision{*late}); got != second.Name || err != nil {
		t.Errorf("missing %q (%v), want %s", got, err, second.Name)
	}
}

// A Decision that outlived its Run, because a retry reused it, says nothing to another Run of that name.
func TestADecisionOfADeletedRunIsForNoOtherOfItsName(t *testing.T) {
	retry, d := retrier()
	d.OwnerReferences = d.OwnerReferences[1:]
	again := gen.Run(func(r *v1alpha1.Run) {
		r.Name, r.UID, r.Spec.Agent, r.Spec.Workflow = "w", "uid-again", "", "release"
		r.Status.Progress = &v1alpha1.RunProgress{Pending: []v1alpha1.PendingRequest{{ID: "approval-gate", Kind: "Approval", Digest: aDigest}}}
	})
	if got := decisions.Evaluate(again, d); got.Applied != metav1.ConditionFalse || got.Message != "The Decision is for an earlier Run w, which was deleted" {
		t.Errorf("it is %+v", got)
	}
	if decisions.IsProtected(again, d) || decisions.IsProtected(retry, d) {
		t.Error("it counts as one on a request of its Run")
	}
}
