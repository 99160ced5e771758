package decisions_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
