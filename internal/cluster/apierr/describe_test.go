package apierr_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
)

func TestDescribe(t *testing.T) {
	for name, f := range apierrtest.Failures() {
		t.Run(name, func(t *testing.T) {
			said := func(n int) string {
				return apierr.Describe(fmt.Errorf("creating Pod x-1: %w", f.Err("create", "Pod", "x-1", n)))
			}
			got := said(1)
			if !strings.HasPrefix(got, "Creating Pod x-1: ") || !strings.Contains(got, f.Want) || apierr.IsRefusal(f.Err("create", "Pod", "x-1", 1)) == f.Transient {
				t.Errorf("Describe() = %q, want it to name %q", got, f.Want)
			}
			if again := said(2); again != got {
				t.Errorf("the same failure is told in two ways:\n%s\n%s", got, again)
			}
		})
	}
}

func TestDescribeSaysWhatToDo(t *testing.T) {
	for name, want := range map[string]string{
		"the operator lacks the right": "Grant the operator this right (the chart",
		"a webhook denies it":          "Change the policy or webhook that refuses it",
		"a policy denies it":           "Change the policy or webhook that refuses it",
		"the quota is full":            "Raise the ResourceQuota",
		"it is invalid":                "Correct the field",
		"the server is down":           "The operator tries again",
	} {
		f := apierrtest.Failures()[name]
		if got := apierr.Describe(f.Err("create", "Pod", "x-1", 1)); !strings.Contains(got, ". "+want) {
			t.Errorf("%s: Describe() = %q, want %q", name, got, want)
		}
	}
}

func TestDescribeOfSeveralIsOneLine(t *testing.T) {
	f := apierrtest.Failures()["a policy denies it"]
	err := errors.Join(fmt.Errorf("deleting Run a: %w", f.Err("delete", "Run", "a", 1)), fmt.Errorf("deleting Run b: %w", f.Err("delete", "Run", "b", 1)))
	if got := apierr.Describe(err); strings.Contains(got, "\n") || !strings.Contains(got, "; deleting Run b: ") {
		t.Errorf("Describe() = %q", got)
	}
}

// Text behind the cause, which an error should not have, is left out rather than
// joined to something else.
func TestDescribeOfTextBehindTheCause(t *testing.T) {
	for name, f := range apierrtest.Failures() {
		if !f.Transient {
			continue
		}
		cause := f.Err("create", "ConfigMap", "x", 1)
		got := apierr.Describe(fmt.Errorf("creating ConfigMap x: %w. Do something", cause))
		if !strings.HasPrefix(got, "Creating ConfigMap x: ") || !strings.HasSuffix(got, f.Want+". The operator tries again") {
			t.Errorf("%s: Describe() = %q", name, got)
		}
	}
}

func TestDescribeOfAnObjectThatIsOtherThanExpected(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for want, err := range map[string]error{
		"the object was changed or deleted by another client at the same time": apierrors.NewConflict(pods, "x-1", errors.New("the UID is 123")), //nolint:err113 // the server's words
		"an object of this name exists already":                                apierrors.NewAlreadyExists(pods, "x-1"),
	} {
		want = "Creating Pod x-1: " + want + ". The operator tries again"
		if got := apierr.Describe(fmt.Errorf("creating Pod x-1: %w", err)); got != want {
			t.Errorf("Describe() = %q, want %q", got, want)
		}
	}
}
