package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// leaveGrace is how long a runner may take to exit by itself once its result
// is committed.
const leaveGrace = time.Minute

// defaultRetention is how long pods stay that do not say.
const defaultRetention = time.Hour

// settled tidies up after a finished Run: pods that still live and should not,
// ended pods after their retention, in the end the Run itself.
func settled(w world) (plan, bool) {
	if w.run.Status.CompletionTime == nil {
		return plan{}, false
	}
	age := sinceCompletion(w)
	var p plan
	if age < leaveGrace {
		p.wake = leaveGrace - age // for a pod that the cache shows late
	}
	for _, pod := range w.pods {
		if left := stays(w, &pod) - age; left > 0 {
			p.wake = sooner(p.wake, left)
		} else if pod.DeletionTimestamp == nil {
			p.remove = append(p.remove, pod)
		}
	}
	p = freed(w, p)
	ttl := w.run.Spec.TTLSecondsAfterFinished
	if ttl == nil {
		return p, true
	}
	if owner := tracker(w.run); owner != "" {
		return keep(w, p, owner), true
	}
	if left := time.Duration(*ttl)*time.Second - age; left > 0 {
		p.wake = sooner(p.wake, left)
	} else {
		p.forget = true
	}
	return p, true
}

// freed gives the claim of a finished Run back, once no pod writes to it and it
// has stayed as long as it was to.
func freed(w world, p plan) plan {
	done, left := outlived(w)
	switch {
	case !done:
		p.wake = sooner(p.wake, left)
	case len(p.remove) > 0 || slices.ContainsFunc(w.pods, func(pod corev1.Pod) bool { return alive(&pod) }):
		p.wake = sooner(p.wake, time.Second)
	default:
		p.free = w.claim
	}
	return p
}

// stays is how long after the end a pod may stay.
func stays(w world, pod *corev1.Pod) time.Duration {
	switch {
	case !alive(pod):
		return retention(pod, defaultRetention)
	case w.committed() != nil:
		return leaveGrace // it is about to end by itself
	default:
		return 0
	}
}

// retention is how long something stays after its Run has finished.
func retention(o client.Object, standard time.Duration) time.Duration {
	d, err := time.ParseDuration(o.GetAnnotations()[v1alpha1.AnnotationRetention])
	if err != nil {
		return standard
	}
	return d
}

// sooner is the lesser of two wakes, where 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// instanceLabel is how Argo CD tracks what it made, unless told otherwise, and
// what Helm charts put on what they make.
const instanceLabel = "app.kubernetes.io/instance"

// tracker is the label or annotation by which a GitOps tool tracks a Run.
func tracker(run *v1alpha1.Run) string {
	for _, set := range []map[string]string{run.Labels, run.Annotations} {
		for key := range set {
			domain, _, _ := strings.Cut(key, "/")
			if strings.HasSuffix(domain, ".toolkit.fluxcd.io") || strings.HasPrefix(key, "argocd.argoproj.io/") || key == instanceLabel {
				return key
			}
		}
	}
	return ""
}

const keptNote = "; it stays in spite of its TTL, because "

// keep says, once, in the message of a finished Run why its TTL is not
// honored.
func keep(w world, p plan, owner string) plan {
	had := unchanged(w.run, plan{})
	p.outcome, p.reason, p.message = had.outcome, had.reason, had.message
	if p.outcome == metav1.ConditionUnknown || strings.Contains(p.message, keptNote) {
		return p
	}
	p.message = fmt.Sprintf("%s%sits label or annotation %s says that it is managed: it would be made, and done, again", p.message, keptNote, owner)
	return p
}
