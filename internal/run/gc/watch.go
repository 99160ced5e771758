package gc

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// UnfinishedRunsByRevision is the name of the index of unfinished Runs by the revision, of
// an Agent or a Workflow, that they started with or, as children, will start with.
const UnfinishedRunsByRevision = "unfinished-by-version"

// IndexUnfinishedRun returns the value of a Run in the index UnfinishedRunsByRevision.
func IndexUnfinishedRun(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Status.CompletionTime != nil {
		return nil
	}
	revision := cmp.Or(run.Status.WorkflowRevision, run.Annotations[v1alpha1.AnnotationRevisionHash])
	if run.Status.Attempt != nil {
		revision = run.Status.Attempt.AgentRevision
	}
	if revision == "" {
		return nil
	}
	return []string{revision}
}

// LivePodsByRevision is the name of the index of the pods that have not ended by the name of
// the ConfigMap of the revision that they mount.
const LivePodsByRevision = "live-by-revision"

// IndexLivePod returns the value of a pod in the index LivePodsByRevision.
func IndexLivePod(o client.Object) []string {
	pod, is := o.(*corev1.Pod)
	if !is || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	if name := runnerpod.RevisionName(pod); name != "" {
		return []string{name}
	}
	return nil
}

// RunReleasedRevision lets Runs through that need their revision no more.
var RunReleasedRevision = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return len(IndexUnfinishedRun(e.ObjectOld)) > 0 && len(IndexUnfinishedRun(e.ObjectNew)) == 0
	},
	DeleteFunc: func(e event.DeleteEvent) bool { return len(IndexUnfinishedRun(e.Object)) > 0 },
}

// WorkflowRevisionDeleted lets revisions of Workflows through that were deleted.
var WorkflowRevisionDeleted = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(e event.DeleteEvent) bool { return e.Object.GetLabels()[v1alpha1.LabelWorkflow] != "" },
}
