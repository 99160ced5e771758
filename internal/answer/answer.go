package answer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Verdict is what becomes of a Decision: Unknown while it is on its way.
type Verdict struct {
	Applied metav1.ConditionStatus
	Message string
	// Deliver is set where the runner waits for it; Request is then what it
	// answers, said or not.
	Deliver bool
	Request string
}

func waiting(format string, args ...any) Verdict {
	return Verdict{Applied: metav1.ConditionUnknown, Message: fmt.Sprintf(format, args...)}
}

func refused(format string, args ...any) Verdict {
	return Verdict{Applied: metav1.ConditionFalse, Message: fmt.Sprintf(format, args...)}
}

// Final says whether it is known for good what became of a Decision.
func Final(d *v1alpha1.Decision) bool {
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionApplied)
	return c != nil && c.Status != metav1.ConditionUnknown
}

// Owner is the Run that a Decision was found to be for; empty: none yet. Another
// Run may have its name by now.
func Owner(d *v1alpha1.Decision) types.UID {
	for _, o := range d.OwnerReferences {
		if o.Kind == "Run" && o.Name == d.Spec.Run {
			return o.UID
		}
	}
	return ""
}

// Judge says what becomes of a Decision on a Run; nil: there is none of that
// name.
func Judge(run *v1alpha1.Run, d *v1alpha1.Decision) Verdict {
	if run == nil || !run.DeletionTimestamp.IsZero() {
		return refused("Run %q not found in namespace %s", d.Spec.Run, d.Namespace)
	}
	if uid := Owner(d); uid != "" && uid != run.UID {
		return refused("It is for an earlier Run %s, which is gone", run.Name)
	}
	if v, acted := actedOn(run, d); acted {
		return v
	}
	if run.Status.CompletionTime != nil {
		return refused("Run %s has finished and takes no more decisions", run.Name)
	}
	if d.Spec.Type == v1alpha1.DecisionMessage {
		if !reported(run) {
			return waiting("Waiting for the runner of Run %s to report", run.Name)
		}
		return onItsWay("")
	}
	return toRequests(run, d)
}

// toRequests judges a Decision that answers what the current attempt asks. The
// next attempt may ask something else under the same id, so what was said to one
// that is gone is not for it.
func toRequests(run *v1alpha1.Run, d *v1alpha1.Decision) Verdict {
	switch {
	case !reported(run):
		return refused("Run %s asks nothing now: its runner has not reported yet; to tell it something use the type Message", run.Name)
	case d.CreationTimestamp.Before(&run.Status.Attempt.StartedAt):
		return refused("It was made before attempt %d of Run %s began, which asks anew; %s", run.Status.Attempt.Number, run.Name, asks(run))
	case d.Spec.Request == "":
		return toTheOnly(run, d.Spec.Type)
	}
	for _, p := range run.Status.Progress.Pending {
		if p.ID == d.Spec.Request {
			return toRequest(p, d.Spec.Type)
		}
	}
	return refused("Run %s does not wait for %s; %s", run.Name, d.Spec.Request, asks(run))
}

func onItsWay(request string) Verdict {
	return Verdict{Applied: metav1.ConditionUnknown, Message: "On its way to the runner", Deliver: true, Request: request}
}

// actedOn is what the runner says that it did with a Decision.
func actedOn(run *v1alpha1.Run, d *v1alpha1.Decision) (Verdict, bool) {
	if run.Status.Progress == nil {
		return Verdict{}, false
	}
	for _, done := range run.Status.Progress.Decided {
		switch {
		case done.Name != d.Name:
		case done.Refused != "":
			return refused("The runner refused it: %s", Line(done.Refused, task.MaxRefused)), true
		default:
			return Verdict{Applied: metav1.ConditionTrue, Message: "The runner acted on it"}, true
		}
	}
	return Verdict{}, false
}

// reported says whether what the Run asks is known: an attempt that has not
// reported may ask anything.
func reported(run *v1alpha1.Run) bool {
	a, p := run.Status.Attempt, run.Status.Progress
	return a != nil && p != nil && p.Attempt == a.Number
}

// toTheOnly judges a Decision that names no request.
func toTheOnly(run *v1alpha1.Run, given v1alpha1.DecisionType) Verdict {
	var ids []string
	for _, p := range run.Status.Progress.Pending {
		if fitting[p.Kind] == given {
			ids = append(ids, p.ID)
		}
	}
	switch len(ids) {
	case 0:
		return refused("Run %s waits for no %s now; to tell it something use the type Message", run.Name, given)
	case 1:
		return onItsWay(ids[0])
	default:
		return refused("Run %s waits for more than one %s: name one in spec.request (%s)", run.Name, given, strings.Join(ids, ", "))
	}
}

// fitting are the types that answer a kind of request.
var fitting = map[string]v1alpha1.DecisionType{
	task.PendingQuestion: v1alpha1.DecisionAnswer,
	task.PendingLimit:    v1alpha1.DecisionGrant,
}

func toRequest(p v1alpha1.PendingRequest, given v1alpha1.DecisionType) Verdict {
	want, known := fitting[p.Kind]
	if known && want != given {
		return refused("%s is a %s: it wants the type %s, not %s", p.ID, strings.ToLower(p.Kind), want, given)
	}
	return onItsWay(p.ID)
}

// asks are the requests that a Run has, for people.
func asks(run *v1alpha1.Run) string {
	var ids []string
	for _, p := range run.Status.Progress.Pending {
		ids = append(ids, p.ID)
	}
	if len(ids) == 0 {
		return "it asks nothing now"
	}
	return "it waits for " + strings.Join(ids, ", ")
}

// Line is text that a model or a runner wrote, fit for a terminal: one line
// without control characters, at most limit bytes.
func Line(text string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
	return task.Cut(strings.Join(strings.Fields(clean), " "), limit)
}
