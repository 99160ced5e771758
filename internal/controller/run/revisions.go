package run

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/children"
)

// revisions reads the revisions of Agents that Runs use.
type revisions struct {
	client client.Client
	live   client.Reader // the API server itself, not the cache
}

// of returns the revision with which the Run started or, before the first attempt, the current revision of its Agent.
// If there is none, the text has the cause.
func (r revisions) of(ctx context.Context, run *v1alpha1.Run) (*snapshot.Revision, string, error) {
	a := run.Status.Attempt
	if a == nil {
		return r.current(ctx, run)
	}
	v, found, err := r.stored(ctx, run.Namespace, a.AgentRevision)
	if found || err != nil {
		return v, "", err
	}
	// The revision was deleted, or the operator recorded the attempt and ended before it stored the revision. The
	// current revision is used if it has the same hash.
	v, _, err = r.current(ctx, run)
	untouched := a.Number == 1 && a.PodUID == ""
	if v != nil && (v.Hash == a.AgentRevision || untouched) {
		return v, "", err
	}
	return nil, fmt.Sprintf("The revision of Agent %s that this Run started with was deleted (ConfigMap %s). Create a new Run", run.Spec.Agent, snapshot.Name(a.AgentRevision)), err
}

// stored returns a revision from its ConfigMap; false: it does not exist or does not match its
// hash. If this operator cannot read it, the error is a *[stored.UnsupportedError].
func (r revisions) stored(ctx context.Context, namespace, hash string) (*snapshot.Revision, bool, error) {
	var cm corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: snapshot.Name(hash)}
	found, err := apierr.Found(r.client.Get(ctx, key, &cm))
	if !found && err == nil {
		found, err = apierr.Found(r.live.Get(ctx, key, &cm))
	}
	if err != nil {
		return nil, false, fmt.Errorf("getting ConfigMap %s: %w", key.Name, err)
	}
	if !found {
		return nil, false, nil
	}
	v, err := snapshot.Read(&cm, hash)
	if _, is := errors.AsType[*stored.UnsupportedError](err); is {
		return nil, false, err
	}
	return v, err == nil, nil
}

// current returns the current revision of the Agent, or the revision for which the Run was created.
func (r revisions) current(ctx context.Context, run *v1alpha1.Run) (*snapshot.Revision, string, error) {
	if children.FixedRevision(run) != "" {
		return r.fixed(ctx, run)
	}
	var agent v1alpha1.Agent
	found, err := apierr.Found(r.client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}, &agent))
	if err != nil {
		return nil, "", fmt.Errorf("getting Agent %s: %w", run.Spec.Agent, err)
	}
	if !found {
		return nil, fmt.Sprintf("Agent %q not found in namespace %s; create it, or delete this Run and name another", run.Spec.Agent, run.Namespace), nil
	}
	objects, err := refs.OfAgent(ctx, cached.Reader(r.client), &agent)
	if err != nil {
		return nil, "", err
	}
	v, err := snapshot.Of(&agent, objects)
	if problem, is := errors.AsType[*snapshot.NotReadyError](err); is {
		return nil, fmt.Sprintf("Agent %q is not ready: %s", agent.Name, problem.Message), nil
	}
	return v, "", err
}

// fixed returns the revision for which a Run was created. If it was deleted, the Run cannot start.
func (r revisions) fixed(ctx context.Context, run *v1alpha1.Run) (*snapshot.Revision, string, error) {
	hash := children.FixedRevision(run)
	v, found, err := r.stored(ctx, run.Namespace, hash)
	if found || err != nil {
		return v, "", err
	}
	return nil, fmt.Sprintf("The revision of Agent %s that this Run was created for was deleted (ConfigMap %s). Create a new Run of the workflow", run.Spec.Agent, snapshot.Name(hash)), nil
}

// hashOf returns the hash of the revision in the ConfigMap with a name. If that does not exist, it returns the hash of
// the current revision of the Agent; empty: there is none.
func (r revisions) hashOf(ctx context.Context, run *v1alpha1.Run, name string) (string, error) {
	cm := revision.Metadata()
	key := client.ObjectKey{Namespace: run.Namespace, Name: name}
	found, err := false, error(nil)
	if name != "" {
		found, err = apierr.Found(r.client.Get(ctx, key, cm))
	}
	if err != nil {
		return "", fmt.Errorf("getting ConfigMap %s: %w", name, err)
	}
	if hash := snapshot.HashOf(cm); found && snapshot.Name(hash) == name && len(hash) <= 64 {
		return hash, nil
	}
	v, _, err := r.current(ctx, run)
	if _, is := errors.AsType[*stored.UnsupportedError](err); is {
		return "", nil
	}
	if v == nil || err != nil {
		return "", err
	}
	return v.Hash, nil
}
