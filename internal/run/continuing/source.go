package continuing

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// A Source is the Run that another one continues.
type Source struct {
	// Run is nil if it does not exist.
	Run *v1alpha1.Run
	// VolumeClaim has its conversation and its files; nil: it does not exist.
	VolumeClaim *corev1.PersistentVolumeClaim
	// Workflow is an active Run whose other child Runs may still change the files; nil: there is none.
	Workflow *v1alpha1.Run
	// Circle are the names of Runs that wait for each other, this one first; nil: they do not.
	Circle []string
}

// A Reader reads from a cache, and from the API server what the cache does not have.
type Reader struct {
	Cache client.Reader
	Live  client.Reader
}

// Source returns the Run that a Run continues.
func (r Reader) Source(ctx context.Context, run *v1alpha1.Run) (Source, error) {
	var source v1alpha1.Run
	found, err := r.get(ctx, run.Namespace, run.Spec.ContinueFrom.Run, &source)
	if !found || err != nil {
		return Source{}, err
	}
	s := Source{Run: &source}
	if !runstatus.IsFinished(s.Run) {
		s.Circle, err = r.circle(ctx, run, &source)
		return s, err
	}
	if a := source.Status.Attempt; a != nil && a.VolumeClaim != "" {
		s.VolumeClaim, err = r.VolumeClaim(ctx, run.Namespace, a.VolumeClaim)
	}
	if s.VolumeClaim != nil && !runnerpod.OwnsVolume(&source, s.VolumeClaim) {
		s.VolumeClaim = nil // what is on it is of another Run
	}
	if err != nil || s.VolumeClaim == nil {
		return s, err
	}
	s.Workflow, err = r.activeWorkflow(ctx, &source)
	return s, err
}

// VolumeClaim returns the PersistentVolumeClaim with a name; nil: it does not exist.
func (r Reader) VolumeClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	var claim corev1.PersistentVolumeClaim
	found, err := r.get(ctx, namespace, name, &claim)
	if !found || err != nil {
		return nil, err
	}
	return &claim, nil
}

func (r Reader) get(ctx context.Context, namespace, name string, into client.Object) (found bool, err error) {
	for _, from := range []client.Reader{r.Cache, r.Live} {
		found, err := apierr.Found(from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into))
		if err != nil {
			return false, fmt.Errorf("getting %T %s: %w", into, name, err)
		}
		if found {
			return true, nil
		}
	}
	return false, nil
}

// activeWorkflow returns the Run of a Workflow that shares the files of a Run with other child Runs and has not ended;
// nil: there is none.
func (r Reader) activeWorkflow(ctx context.Context, run *v1alpha1.Run) (*v1alpha1.Run, error) {
	claim, parent := runnerpod.SharedVolumeClaim(run)
	if claim == "" {
		return nil, nil //nolint:nilnil // most Runs share no files
	}
	var workflow v1alpha1.Run
	found, err := apierr.Found(r.Cache.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: parent.Name}, &workflow))
	if err != nil {
		return nil, fmt.Errorf("getting Run %s: %w", parent.Name, err)
	}
	if !found || workflow.UID != parent.UID || runstatus.IsFinished(&workflow) {
		return nil, nil //nolint:nilnil // no other Run changes the files any more
	}
	return &workflow, nil
}

// circle returns the names of Runs that wait for each other, if the source of a Run waits for this Run.
func (r Reader) circle(ctx context.Context, run, source *v1alpha1.Run) ([]string, error) {
	names := []string{run.Name}
	for range v1alpha1.MaxContinued {
		names = append(names, source.Name)
		from := source.Spec.ContinueFrom
		if from == nil || runstatus.IsFinished(source) {
			return nil, nil
		}
		if from.Run == run.Name {
			return names, nil
		}
		var next v1alpha1.Run
		found, err := apierr.Found(r.Cache.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: from.Run}, &next))
		if err != nil {
			return nil, fmt.Errorf("getting Run %s: %w", from.Run, err)
		}
		if !found {
			return nil, nil
		}
		source = &next
	}
	return nil, nil
}

// IsReady reports whether a Run continues no other, or that one has ended.
func IsReady(ctx context.Context, cached client.Reader, run *v1alpha1.Run) (bool, error) {
	from := run.Spec.ContinueFrom
	if from == nil {
		return true, nil
	}
	var source v1alpha1.Run
	found, err := apierr.Found(cached.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: from.Run}, &source))
	if err != nil {
		return false, fmt.Errorf("getting Run %s: %w", from.Run, err)
	}
	return found && runstatus.IsFinished(&source), nil
}

// Needs reports whether a Run still needs the files of its source: until it has a copy of its own.
func Needs(run *v1alpha1.Run) bool {
	if run.Spec.ContinueFrom == nil || runstatus.IsFinished(run) {
		return false
	}
	a := run.Status.Attempt
	return a == nil || a.VolumeClaim == "" || run.Status.Progress == nil
}

// UnfinishedBySource is the field that indexes Runs which have not ended by the Run that they continue.
const UnfinishedBySource = "unfinished-by-source"

// IndexUnfinishedBySource returns the values of a Run in the index UnfinishedBySource.
func IndexUnfinishedBySource(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.ContinueFrom == nil || run.Status.CompletionTime != nil {
		return nil
	}
	return []string{run.Spec.ContinueFrom.Run}
}

// Unfinished returns the Runs that have not ended and continue the Run with a name. They are shared with the cache.
func Unfinished(ctx context.Context, cached client.Reader, source client.ObjectKey) ([]v1alpha1.Run, error) {
	var list v1alpha1.RunList
	if err := cached.List(ctx, &list, client.InNamespace(source.Namespace), client.MatchingFields{UnfinishedBySource: source.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Runs: %w", err)
	}
	return list.Items, nil
}
