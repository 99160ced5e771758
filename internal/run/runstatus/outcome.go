package runstatus

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Outcome is the state of a Run, and why.
type Outcome struct {
	// Status is the status of Succeeded; empty means Unknown: the Run is active.
	Status metav1.ConditionStatus
	// Reason is a reason of api/v1alpha1; Message has the cause and what to do.
	Reason, Message string
	// Problem is a request of the operator that failed. It is the message of Reconciling. If the Run is final, its
	// outcome does not change.
	Problem string
}

// HasProblem reports whether a request failed when the Run was reconciled the last time. A Run that was not reconciled
// has the message with which the API server created it.
func HasProblem(s v1alpha1.RunStatus) bool {
	if s.ObservedGeneration == 0 {
		return false
	}
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReconciling)
	return c != nil && c.Message != ""
}

// OutcomeOf returns the outcome in a status; of a Run that was not reconciled, Pending.
func OutcomeOf(s v1alpha1.RunStatus) Outcome {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		return Outcome{Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	return Outcome{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending}
}

// Settles reports whether a Run with this outcome is final.
func (o Outcome) Settles() bool { return o.Status != "" && o.Status != metav1.ConditionUnknown }

// WriteStatus writes the outcome of a Run into a status: conditions, target, and times.
func (o Outcome) WriteStatus(s *v1alpha1.RunStatus, run *v1alpha1.Run, at time.Time) {
	now := metav1.NewTime(at)
	s.ObservedGeneration = run.Generation
	s.Target = target(run.Spec)
	if isHeld(OutcomeOf(run.Status)) && !isHeld(o) && !o.Settles() {
		s.Internal.ResumedAt = &now
	}
	if o.Settles() && s.CompletionTime == nil {
		s.CompletionTime = &now
	}
	s.Conditions = statuspatch.MergeConditions(s.Conditions, now, run.Generation, o.conditions()...)
}

// isHeld reports whether a Run is held without anything missing: the time does not count
// against limits.pending.
func isHeld(o Outcome) bool {
	return o.Reason == v1alpha1.ReasonPaused || o.Reason == v1alpha1.ReasonQueued || o.Reason == v1alpha1.ReasonRevisionUnsupported
}

// maxProblem is the maximum length of the message of Reconciling in bytes. The schema of Run refuses longer ones.
const maxProblem = 256

// conditions returns the four conditions of a Run, from one reason.
func (o Outcome) conditions() []metav1.Condition {
	outcome := o.Status
	if outcome == "" {
		outcome = metav1.ConditionUnknown
	}
	active := outcome == metav1.ConditionUnknown
	message := task.Cut(o.Message, task.MaxMessage)
	say := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: o.Reason, Message: message}
	}
	// Only Succeeded has the message: in four conditions it would be most of the status.
	short := func(kind string, status bool) metav1.Condition {
		return metav1.Condition{Type: kind, Status: statuspatch.ConditionStatus(status), Reason: o.Reason}
	}
	reconciling := short(v1alpha1.ConditionReconciling, active)
	reconciling.Message = task.Cut(o.Problem, maxProblem)
	return []metav1.Condition{
		say(v1alpha1.ConditionSucceeded, outcome),
		short(v1alpha1.ConditionFinished, !active),
		reconciling,
		short(v1alpha1.ConditionStalled, outcome == metav1.ConditionFalse),
	}
}

// target returns the reference to the object that does the work.
func target(spec v1alpha1.RunSpec) *v1alpha1.RunTarget {
	if spec.Workflow != "" {
		return &v1alpha1.RunTarget{Kind: v1alpha1.TargetWorkflow, Name: spec.Workflow}
	}
	return &v1alpha1.RunTarget{Kind: v1alpha1.TargetAgent, Name: spec.Agent}
}

// The labels and annotations with which backup tools mark the objects that they create. The source of each tool proves
// them. Objects of a tool without a mark cannot be distinguished from those of users. The admission policy
// child-runs.yaml repeats the list.
const (
	// veleroLabel is set on every object that Velero restores, and thus by OADP and
	// the products that build on Velero (pkg/restore/restore.go, addRestoreLabels).
	veleroLabel = "velero.io/restore-name"
	// storkAnnotation is set on every object that Stork (Portworx) migrates to
	// another cluster (pkg/migration/controllers/migration.go, applyResources).
	storkAnnotation = "stork.libopenstorage.org/migrated"
)

// RestoreMark returns the label or annotation that shows that a backup tool created an object, or an empty text.
func RestoreMark(object metav1.Object) string {
	switch {
	case object.GetLabels()[veleroLabel] != "":
		return "label " + veleroLabel
	case object.GetAnnotations()[storkAnnotation] != "":
		return "annotation " + storkAnnotation
	}
	return ""
}

// IsRestoreMark reports whether a label or annotation is a mark of a backup tool. Such keys are not copied to the Runs
// and pods of a Run, which would look restored.
func IsRestoreMark(key string) bool {
	return strings.HasPrefix(key, "velero.io/") || strings.HasPrefix(key, "stork.libopenstorage.org/")
}

// IsRestoreLabel reports whether a label marks an object as created by a backup tool if it has
// a value.
func IsRestoreLabel(key string) bool { return key == veleroLabel }

// IsRestoreAnnotation reports whether an annotation marks an object as created by a backup tool
// if it has a value.
func IsRestoreAnnotation(key string) bool { return key == storkAnnotation }

// Restored returns the outcome of a Run that a backup tool created without its status; false: it is not restored. Its
// work may have been done before the backup.
func Restored(run *v1alpha1.Run) (Outcome, bool) {
	mark := RestoreMark(run)
	if mark == "" {
		return Outcome{}, false
	}
	return Outcome{
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonRestored,
		Message: fmt.Sprintf("Restored from a backup without its status (%s): the work may already be done. To do it again, create a new Run", mark),
	}, true
}

// UnreadableRevision returns the message of a Run whose stored revision, of an Agent or a Workflow,
// this operator does not understand.
func UnreadableRevision(kind, name string, e *stored.UnsupportedError) string {
	do := "Upgrade the operator: the Run then continues"
	if !e.IsNewer() {
		do = "Create a new Run"
	}
	return fmt.Sprintf("Cannot read the revision of %s %s that this Run started with: %v. %s", kind, name, e, do)
}
