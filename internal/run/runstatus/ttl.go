package runstatus

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// SinceCompletion returns how long ago a Run finished.
func SinceCompletion(run *v1alpha1.Run, now time.Time) time.Duration {
	return now.Sub(run.Status.CompletionTime.Time)
}

// TTL returns after how long a finished Run is deleted; false if it is kept until a user or its
// owner deletes it. byDefault is the TTL of Runs that say nothing; 0: they are kept. It does not
// hold for a Run that another object controls.
func TTL(run *v1alpha1.Run, byDefault time.Duration) (time.Duration, bool) {
	switch own := run.Spec.TTLSecondsAfterFinished; {
	case TrackingKey(run) != "":
		return 0, false
	case own != nil:
		return time.Duration(*own) * time.Second, true
	case metav1.GetControllerOfNoCopy(run) != nil:
		return 0, false
	}
	return byDefault, byDefault > 0
}

// instanceLabel is how Argo CD tracks objects by default. Helm charts set it too.
const instanceLabel = "app.kubernetes.io/instance"

// IsTrackingKey reports whether a GitOps tool tracks its objects by a label or annotation. Such
// keys are not copied to the objects that a Run creates: the tool would delete these.
func IsTrackingKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(domain, ".toolkit.fluxcd.io") || strings.HasPrefix(key, "argocd.argoproj.io/") || key == instanceLabel
}

// TrackingKey returns the label or annotation by which a GitOps tool tracks a Run; empty if
// none does.
func TrackingKey(run *v1alpha1.Run) string {
	for _, set := range []map[string]string{run.Labels, run.Annotations} {
		for key := range set {
			if IsTrackingKey(key) {
				return key
			}
		}
	}
	return ""
}

const keptNote = ". It is not deleted after spec.ttlSecondsAfterFinished: "

// OutcomeWithTTLNote returns the outcome of a finished Run with a note, once, why its TTL is
// ignored.
func OutcomeWithTTLNote(run *v1alpha1.Run) Outcome {
	had := OutcomeOf(run.Status)
	owner := TrackingKey(run)
	if !had.Settles() || owner == "" || run.Spec.TTLSecondsAfterFinished == nil || strings.Contains(had.Message, keptNote) {
		return had
	}
	note := fmt.Sprintf("%sits label or annotation %s shows that a GitOps tool manages it, which would create and run it again", keptNote, owner)
	had.Message = task.Cut(had.Message, task.MaxMessage-len(note)) + note
	return had
}

// InheritedLabels returns the labels that a child Run takes over from its parent: all except
// those by which GitOps tools track objects, those of Deckhand, and those that mark a restored
// object, because a restored Run is not executed.
func InheritedLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if !IsTrackingKey(key) && !strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") && !IsRestoreMark(key) {
			out[key] = value
		}
	}
	return out
}
