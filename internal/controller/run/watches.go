package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// runChanged passes on events of a Run when a field changed that decisions depend on. Progress alone does not count:
// runners report often.
var runChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && reconcileKeyOf(was) != reconcileKeyOf(is)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// ofAgents passes on Runs of Agents. Runs of Workflows have their own controller.
var ofAgents = predicate.NewPredicateFuncs(func(o client.Object) bool {
	run, is := o.(*v1alpha1.Run)
	return is && run.Spec.Workflow == ""
})

// isAgentChild passes on Runs that an agent requested.
var isAgentChild = predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelParentRun] != "" })

// childChanged passes on events of a child Run when its parent must report or do something about it.
var childChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && (reasonOf(was) != reasonOf(is) || runstatus.IsFinished(was) != runstatus.IsFinished(is) || was.Spec.DesiredState != is.Spec.DesiredState)
	},
}

// runFinished passes on events of Runs that have become final, because the TTL of their child Runs begins.
var runFinished = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && !runstatus.IsFinished(was) && runstatus.IsFinished(is)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// reconcileKey is the part of a Run that decisions depend on.
type reconcileKey struct {
	generation                int64
	deleted, completed        bool
	attempt                   int32
	podUID                    string
	reported                  int32
	result                    string // how, as it says itself
	effects                   v1alpha1.Effects
	state                     string
	modelWait                 string // what the message says of it
	pendingIDs, decisionNames string // names, one a line
	delegated                 int
}

func reconcileKeyOf(r *v1alpha1.Run) reconcileKey {
	m := reconcileKey{
		generation: r.Generation,
		deleted:    r.DeletionTimestamp != nil,
		completed:  r.Status.CompletionTime != nil,
		delegated:  len(r.Status.Internal.Delegated),
	}
	if a := r.Status.Attempt; a != nil {
		m.attempt, m.podUID = a.Number, a.PodUID
	}
	if p := r.Status.Progress; p != nil {
		m.reported, m.effects = p.Attempt, p.Effects
		if p.Result != nil {
			m.result = p.Result.Reason
		}
		m.state, m.modelWait = p.State, modelWaitKey(p.ModelWait)
		for _, a := range p.Pending {
			m.pendingIDs += a.ID + "\n"
		}
		for _, d := range p.Decided {
			m.decisionNames += d.Name + "\n"
		}
	}
	return m
}

// modelWaitKey returns the facts of a wait for a model that decisions depend on. The time of the next try is left out:
// a runner that makes one try also makes the next.
func modelWaitKey(w *v1alpha1.ModelWait) string {
	if w == nil {
		return ""
	}
	key := fmt.Sprintln(w.Model, w.Since.Unix(), w.Promised, w.NextTryAt == nil, w.Message)
	if w.Promised && w.NextTryAt != nil {
		key += w.NextTryAt.String()
	}
	return key
}

// podChanged passes on events of a pod when its runner ended, it cannot start, it is being deleted, or its owner or
// labels changed. The runner itself reports that it started.
var podChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return podKey(e.Object) != "" },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return podKey(e.ObjectOld) != podKey(e.ObjectNew) || ownerAndLabels(e.ObjectOld) != ownerAndLabels(e.ObjectNew)
	},
}

// endedPodChanged passes on events of an ended pod's metadata when the pod has ended or was deleted, or its owner or
// labels changed. Pods that exist at the start are skipped, because all Runs are reconciled then.
var endedPodChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool { return ownerAndLabels(e.ObjectOld) != ownerAndLabels(e.ObjectNew) },
}

// ownerAndLabels returns the fields of a pod that the operator restores.
func ownerAndLabels(o client.Object) string {
	owner := ""
	if c := metav1.GetControllerOf(o); c != nil {
		owner = string(c.UID)
	}
	labels := o.GetLabels()
	return owner + " " + labels[v1alpha1.LabelRun] + " " + labels[v1alpha1.LabelAttempt] + " " + labels[v1alpha1.LabelEgress]
}

// podKey summarizes the state of a pod that decisions depend on; empty: nothing needs a decision.
func podKey(o client.Object) string {
	pod, is := o.(*corev1.Pod)
	if !is {
		return ""
	}
	text := unschedulable(pod)
	if pod.DeletionTimestamp != nil {
		text += " deleted"
	}
	if !runnerpod.IsAlive(pod) {
		text += " ended"
	}
	if runnerpod.IsStopping(pod) {
		text += " but for its sidecars"
	}
	if container := stuckContainer(pod); container != nil {
		text += fmt.Sprintf(" %s: %s: %s", container.Name, container.State.Waiting.Reason, container.State.Waiting.Message)
	}
	return text
}

// runFinder finds the Runs to reconcile when another object changes.
type runFinder struct{ client client.Reader }

// unstartedByAgent indexes the Runs that wait for their Agent.
func unstartedByAgent(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Status.Attempt != nil || run.Status.CompletionTime != nil {
		return nil
	}
	return []string{run.Spec.Agent}
}

// waitingForAgent returns the Runs that wait for an Agent, or for another Agent that refers to it.
func (r runFinder) waitingForAgent(ctx context.Context, agent client.Object) []reconcile.Request {
	names, err := cached.AgentsUsingAgent(ctx, r.client, agent.GetNamespace(), agent.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return r.waitingForAny(ctx, agent.GetNamespace(), names)
}

// waitingForModel returns the Runs that wait for an Agent that refers to a Model.
func (r runFinder) waitingForModel(ctx context.Context, model client.Object) []reconcile.Request {
	_, names, err := cached.UsersOfModel(ctx, r.client, model.GetNamespace(), model.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return r.waitingForAny(ctx, model.GetNamespace(), names)
}

// waitingForToolset returns the Runs that wait for an Agent that refers to a Toolset.
func (r runFinder) waitingForToolset(ctx context.Context, toolset client.Object) []reconcile.Request {
	names, err := cached.AgentsUsingToolset(ctx, r.client, toolset.GetNamespace(), toolset.GetName())
	if err != nil {
		return nil // the cache is closing
	}
	return r.waitingForAny(ctx, toolset.GetNamespace(), names)
}

func (r runFinder) waitingForAny(ctx context.Context, namespace string, agents []string) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range agents {
		var runs v1alpha1.RunList
		if r.client.List(ctx, &runs, client.InNamespace(namespace), client.MatchingFields{byAgent: name}, client.UnsafeDisableDeepCopy) != nil {
			return nil // the cache is closing
		}
		for i := range runs.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runs.Items[i])})
		}
	}
	return out
}

// childrenOf returns the finished child Runs of a Run that have a TTL.
func (r runFinder) childrenOf(ctx context.Context, parent client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, label := range []string{v1alpha1.LabelParentRun, v1alpha1.LabelWorkflowRun} {
		var list v1alpha1.RunList
		if r.client.List(ctx, &list, client.InNamespace(parent.GetNamespace()), client.MatchingLabels{label: parent.GetName()}, client.UnsafeDisableDeepCopy) != nil {
			return nil // the cache is closing
		}
		for i := range list.Items {
			if child := &list.Items[i]; runstatus.IsFinished(child) && child.Spec.TTLSecondsAfterFinished != nil {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(child)})
			}
		}
	}
	return out
}

// runOfDecision returns the Run that a Decision is about.
func runOfDecision(_ context.Context, o client.Object) []reconcile.Request {
	d, is := o.(*v1alpha1.Decision)
	if !is {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: d.Namespace, Name: d.Spec.Run}}}
}
