package runstatus

import (
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// SinceCompletion is how long a Run is final.
func SinceCompletion(run *v1alpha1.Run, now time.Time) time.Duration {
	return now.Sub(run.Status.CompletionTime.Time)
}

// TTLRemaining says how long a finished Run still stays by its TTL; negative: its time
// is over; false: it stays until somebody deletes it.
func TTLRemaining(run *v1alpha1.Run, now time.Time) (time.Duration, bool) {
	ttl := run.Spec.TTLSecondsAfterFinished
	if ttl == nil || TrackingKey(run) != "" {
		return 0, false
	}
	return time.Duration(*ttl)*time.Second - SinceCompletion(run, now), true
}

// instanceLabel is how Argo CD tracks what it made, unless told otherwise, and
// what Helm charts put on what they make.
const instanceLabel = "app.kubernetes.io/instance"

// IsTrackingKey says whether a label or annotation is how a GitOps tool tracks what it
// made. Such keys are never copied to what a Run makes: the tool would take that
// for its own, and delete it.
func IsTrackingKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(domain, ".toolkit.fluxcd.io") || strings.HasPrefix(key, "argocd.argoproj.io/") || key == instanceLabel
}

// TrackingKey is the label or annotation by which a GitOps tool tracks a Run; empty:
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

// OutcomeWithTTLNote is the outcome of a finished Run with a note, once, on why its TTL is not
// honored.
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

// InheritedLabels are the labels of a Run that a Run which it makes takes over: all that
// people and queues put on it, but not what others track their own by, nor ours,
// nor what says that a backup brought it back: such a child would not be done.
func InheritedLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if !IsTrackingKey(key) && !strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") && !IsRestoreMark(key) {
			out[key] = value
		}
	}
	return out
}
