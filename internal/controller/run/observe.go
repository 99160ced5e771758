package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/decisions"
	"github.com/deckhand-dev/deckhand/internal/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
)

// observe reads everything that a decision may depend on. What does not exist is nil; what
// cannot be read is an error.
func (r *Reconciler) observe(ctx context.Context, run *v1alpha1.Run) (state, error) {
	run.Status.Progress = untrusted.Progress(run.Status.Progress)
	s := state{run: run, now: r.now(), runner: r.runner, podDefaults: r.podDefaults, networkPolicies: r.networkPolicies != nil, missingPolicies: r.policies.Missing()}
	var err error
	if s.pods, err = r.pods(ctx, run); err != nil {
		return s, err
	}
	if err := r.observeVolume(ctx, &s); err != nil {
		return s, err
	}
	if s.ancestors, err = children.Ancestors(ctx, r.client, run); err != nil {
		return s, err
	}
	if run.Status.CompletionTime != nil {
		return s, r.observeChildren(ctx, &s) // a finished Run needs no version: what tidying needs is on its pods and its claim
	}
	s.revision, s.notReadyMessage, err = r.observeRevision(ctx, run)
	if !errors.As(err, &s.unsupported) && err != nil {
		return s, err
	}
	if run.Status.Attempt == nil { // there is neither a request nor a runner
		s.position, err = r.queue.Position(ctx, run)
		return s, err
	}
	if err := r.observeChildren(ctx, &s); err != nil {
		return s, err
	}
	if s.startupWarning, err = r.observeStartupWarning(ctx, s); err != nil {
		return s, err
	}
	all, err := decisions.List(ctx, r.client, run)
	if err != nil {
		return s, err
	}
	s.decisions, s.granted = classifyDecisions(run, all)
	s.finalDecisions = decisions.FinalNames(all)
	s.missingDecision, err = decisions.FindMissing(ctx, r.live, run, all)
	return s, err
}

// pods returns the pods of a Run, the oldest attempt first. It finds them by name, whatever
// became of their labels and owners.
func (r *Reconciler) pods(ctx context.Context, run *v1alpha1.Run) ([]corev1.Pod, error) {
	a := run.Status.Attempt
	if a == nil {
		return nil, nil
	}
	var own []corev1.Pod
	for n := range a.Number {
		pod, err := r.cachedPod(ctx, run, client.ObjectKey{Namespace: run.Namespace, Name: runnerpod.Name(run.Name, n+1)})
		if err != nil {
			return nil, err
		}
		if pod != nil && runnerpod.BelongsTo(pod, run) {
			own = append(own, *pod)
		}
	}
	own, err := r.currentPod(ctx, run, own)
	slices.SortFunc(own, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return own, err
}

// currentPod reads the pod of the current attempt from the API server itself, where
// the cache is not enough: it may be late, it has only pods with the label of a Run,
// and it keeps too little of a pod to compare it with what was asked for, which is
// done before it is recorded. Of a Run that finished some time ago the cache is
// enough: nothing depends on it but when the pod is deleted.
func (r *Reconciler) currentPod(ctx context.Context, run *v1alpha1.Run, own []corev1.Pod) ([]corev1.Pod, error) {
	a := run.Status.Attempt
	at := slices.IndexFunc(own, func(p corev1.Pod) bool { return p.Name == a.Pod })
	recorded, late := a.PodUID != "", run.Status.CompletionTime != nil && r.now().Sub(run.Status.CompletionTime.Time) > leaveGrace
	if recorded && at >= 0 && string(own[at].UID) == a.PodUID || recorded && late || !recorded && at < 0 {
		return own, nil
	}
	var pod corev1.Pod
	err := r.live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: a.Pod}, &pod)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting Pod %s: %w", a.Pod, err)
	}
	if at >= 0 {
		own = slices.Delete(own, at, at+1)
	}
	if err == nil && runnerpod.BelongsTo(&pod, run) {
		own = append(own, pod)
	}
	return own, nil
}

// observeRevision returns the revision of the Agent that the Run started with or, before the
// first attempt, the current one. If there is none, the text says why.
func (r *Reconciler) observeRevision(ctx context.Context, run *v1alpha1.Run) (*snapshot.Version, string, error) {
	a := run.Status.Attempt
	if a == nil {
		return r.currentRevision(ctx, run)
	}
	v, err := r.storedRevision(ctx, run.Namespace, a.AgentRevision)
	if v != nil || err != nil {
		return v, "", err
	}
	// Not stored any more, or never: the attempt was claimed and the operator
	// died. The current version will do when it is the same.
	v, _, err = r.currentRevision(ctx, run)
	untouched := a.Number == 1 && a.PodUID == ""
	if v != nil && (v.Hash == a.AgentRevision || untouched) {
		return v, "", err
	}
	return nil, fmt.Sprintf("The revision of Agent %s that this Run started with was deleted (ConfigMap %s). Create a new Run", run.Spec.Agent, snapshot.Name(a.AgentRevision)), err
}

// storedRevision returns a revision from its ConfigMap; nil: it does not exist or does not
// match its hash. If this operator cannot read it, the error is a *[stored.UnsupportedError].
func (r *Reconciler) storedRevision(ctx context.Context, namespace, hash string) (*snapshot.Version, error) {
	var cm corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: snapshot.Name(hash)}
	err := r.client.Get(ctx, key, &cm)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, &cm)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absent is a fact, not a fault
	}
	if err != nil {
		return nil, fmt.Errorf("getting ConfigMap %s: %w", key.Name, err)
	}
	v, err := snapshot.Read(&cm, hash)
	if _, is := errors.AsType[*stored.UnsupportedError](err); is {
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // other content counts as none
	}
	return v, nil
}

// currentRevision returns the present revision of the Agent, or the one that the Run was
// created for.
func (r *Reconciler) currentRevision(ctx context.Context, run *v1alpha1.Run) (*snapshot.Version, string, error) {
	if fixedRevision(run) != "" {
		return r.fixedRevision(ctx, run)
	}
	var agent v1alpha1.Agent
	err := r.client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}, &agent)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("Agent %q not found in namespace %s; create it, or delete this Run and name another", run.Spec.Agent, run.Namespace), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("getting Agent %s: %w", run.Spec.Agent, err)
	}
	objects, err := refs.OfAgent(ctx, r.client, &agent)
	if err != nil {
		return nil, "", err
	}
	v, err := snapshot.Of(&agent, objects)
	if problem, is := errors.AsType[*snapshot.NotReadyError](err); is {
		return nil, fmt.Sprintf("Agent %q is not ready: %s", agent.Name, problem.Message), nil
	}
	return v, "", err
}
