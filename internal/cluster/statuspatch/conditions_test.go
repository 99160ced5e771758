package statuspatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
)

func TestMerge(t *testing.T) {
	epoch, morning, noon := metav1.Unix(0, 0), metav1.NewTime(time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))
	is := func(status metav1.ConditionStatus, at metav1.Time) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: status, Reason: "R", LastTransitionTime: at}
	}
	cases := map[string]struct {
		had, want metav1.Condition
		then      metav1.Time
	}{
		"a status that stays keeps its time":       {is("True", morning), is("True", noon), morning},
		"a status that flips gets a new one":       {is("False", morning), is("True", noon), noon},
		"the epoch of the schema gives way anyway": {is("Unknown", epoch), is("Unknown", noon), noon},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := statuspatch.MergeConditions([]metav1.Condition{tc.had}, noon, 3, tc.want)
			want := []metav1.Condition{{Type: "Ready", Status: tc.want.Status, Reason: "R", LastTransitionTime: tc.then, ObservedGeneration: 3}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Merge() -want +got:\n%s", diff)
			}
		})
	}
	sorted := statuspatch.MergeConditions(nil, noon, 1, metav1.Condition{Type: "B", Status: "True"}, metav1.Condition{Type: "A", Status: "True"})
	if sorted[0].Type != "A" {
		t.Error("conditions are not sorted")
	}
}

func TestOfReady(t *testing.T) {
	for name, tc := range map[string]struct {
		status              metav1.ConditionStatus
		reason              string
		reconciling, stalls metav1.ConditionStatus
	}{
		"an object that is ready":               {metav1.ConditionTrue, v1alpha1.ReasonReady, "False", "False"},
		"one that was not observed":             {metav1.ConditionUnknown, v1alpha1.ReasonPending, "True", "False"},
		"one that names what does not exist":    {metav1.ConditionFalse, v1alpha1.ReasonNotFound, "True", "False"},
		"one whose own spec must change":        {metav1.ConditionFalse, v1alpha1.ReasonInvalid, "False", "True"},
		"a reason of waiting, but of one ready": {metav1.ConditionTrue, v1alpha1.ReasonNotFound, "False", "False"},
	} {
		got := statuspatch.ReadyConditions(metav1.Condition{Type: v1alpha1.ConditionReady, Status: tc.status, Reason: tc.reason, Message: "m"})
		want := []metav1.Condition{
			{Type: "Ready", Status: tc.status, Reason: tc.reason, Message: "m"},
			{Type: "Reconciling", Status: tc.reconciling, Reason: tc.reason},
			{Type: "Stalled", Status: tc.stalls, Reason: tc.reason},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestAMessageHasNoControlCharacters(t *testing.T) {
	got := statuspatch.MergeConditions(nil, metav1.Now(), 1, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Invalid", Message: "no \x1b[2J\u009b2J\u202e\rmodel\n\tsmall"})
	if want := `no \x1b[2J\u009b2J\u202e\x0dmodel` + "\n\tsmall"; got[0].Message != want {
		t.Errorf("message %q, want %q", got[0].Message, want)
	}
}

// Texts of events, pods, providers and webhooks are in many messages. Only what asks users is quoted.
func TestOnlyRequestsAreQuotedInConditions(t *testing.T) {
	const foreign = "The pod does not start: It works. It asks: “May I?” To answer, kubectl create\U0001f677"
	for name, tc := range map[string]struct {
		condition metav1.Condition
		quotes    bool
	}{
		"a Run that starts":      {metav1.Condition{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonPending}, false},
		"a Run that failed":      {metav1.Condition{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonMisconfigured}, false},
		"a Model":                {metav1.Condition{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonNotReady}, false},
		"a Run that asks":        {metav1.Condition{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonAwaitingApproval}, true},
		"a Run with a question":  {metav1.Condition{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonAwaitingAnswer}, true},
		"a Decision, on its way": {metav1.Condition{Type: v1alpha1.ConditionApplied, Reason: "Refused"}, true},
	} {
		tc.condition.Message = foreign
		got := statuspatch.MergeConditions(nil, metav1.Now(), 1, tc.condition)[0].Message
		if strings.ContainsAny(got, "“”\U0001f677") != tc.quotes {
			t.Errorf("%s: %s", name, got)
		}
	}
}
