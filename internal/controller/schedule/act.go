package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// act does what the plan says and has no opinions. Where the cluster did not let
// it, it returns the plan that follows from that.
func (r *Reconciler) act(ctx context.Context, w world, p plan) (plan, error) {
	var failed []error
	for _, run := range p.stop {
		failed = append(failed, r.stop(ctx, run))
	}
	for _, run := range p.prune {
		failed = append(failed, r.prune(ctx, run))
	}
	if p.create != nil {
		next, err := r.create(ctx, w, p)
		if err != nil {
			next = open(w, p)
		}
		p, failed = next, append(failed, err)
	}
	err := errors.Join(failed...)
	if err != nil {
		p = p.waiting(apierr.Describe(err), patience)
	}
	return p, err
}

func (r *Reconciler) stop(ctx context.Context, run *v1alpha1.Run) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": run.UID}, // not a namesake
		"spec":     map[string]any{"desiredState": v1alpha1.DesiredStopped},
	})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := r.client.Patch(ctx, run.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return runstatus.IgnoreFinished(fmt.Errorf("stopping Run %s: %w", run.Name, err))
	}
	return nil
}

func (r *Reconciler) prune(ctx context.Context, run *v1alpha1.Run) error {
	uid := run.UID
	err := r.client.Delete(ctx, run, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Run %s: %w", run.Name, err)
	}
	return nil
}

// patience is how soon a Run that the cluster refused is tried again.
const patience = 30 * time.Second

// create makes a Run. One that is there already was made before a crash, unless
// it is somebody else's.
func (r *Reconciler) create(ctx context.Context, w world, p plan) (plan, error) {
	if err := r.current(ctx, w.schedule); err != nil {
		return p, err
	}
	err := r.client.Create(ctx, p.create)
	switch {
	case err == nil:
		return p.telling(telling{corev1.EventTypeNormal, eventCreated, "Create", fmt.Sprintf("Run %s is for %s", p.create.Name, clockTime(p.due))}), nil
	case apierrors.IsAlreadyExists(err):
		return r.meet(ctx, w, p)
	case apierr.IsRefusal(err):
		return refused(w, p, err), nil
	default:
		return p, fmt.Errorf("creating Run %s: %w", p.create.Name, err)
	}
}

// current makes sure that what was seen is the last word: by an older one a Run
// that has come and gone would be made again.
func (r *Reconciler) current(ctx context.Context, s *v1alpha1.Schedule) error {
	var now v1alpha1.Schedule
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(s), &now); err != nil {
		return fmt.Errorf("getting Schedule %s: %w", s.Name, err)
	}
	if now.UID != s.UID || now.ResourceVersion != s.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("schedules").GroupResource(), s.Name, errOld)
	}
	return nil
}

// meet looks at who has the name of the Run that was to be made.
func (r *Reconciler) meet(ctx context.Context, w world, p plan) (plan, error) {
	name := p.create.Name
	found, err := r.find(ctx, w.schedule, p.due)
	switch {
	case err != nil:
		return p, err
	case found == nil: // it went in between
		return p, apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("runs").GroupResource(), name, errOld)
	case !isOf(w.schedule, found):
		return p.missing(p.due, fmt.Sprintf("the name %s is used by a Run that this Schedule did not create. Delete that Run, or rename one of them", name)), nil
	}
	return p, nil
}

// refused leaves the time open, to be tried again while it may.
func refused(w world, p plan, err error) plan {
	text := apierr.Describe(fmt.Errorf("creating Run %s: %w", p.create.Name, err))
	return open(w, p).telling(telling{corev1.EventTypeWarning, eventRefused, "Create", text}).waiting(text, min(patience, w.left()+time.Second))
}

// open is a plan that leaves the time open for which no Run could be made.
func open(w world, p plan) plan { return plan{ready: p.ready, handled: w.base()} }
