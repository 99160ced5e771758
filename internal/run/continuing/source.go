package continuing

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/children"
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
	// User is a Run that continues another one on the files themselves, and has not ended; nil: there is none.
	User *v1alpha1.Run
	// Pod is a pod that may still change the files; nil: there is none.
	Pod *corev1.Pod
	// Copier is a pod that copies the files, for a Run that will change them; nil: there is none.
	Copier *corev1.Pod
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
	found, err := r.named(ctx, run, &source)
	if !found || err != nil {
		return Source{}, err
	}
	s := Source{Run: &source}
	if !runstatus.IsFinished(s.Run) {
		s.Circle, err = r.circle(ctx, run, &source)
		return s, err
	}
	if s.VolumeClaim, err = r.ownClaim(ctx, &source); err != nil || s.VolumeClaim == nil {
		return s, err
	}
	if s.Workflow, err = r.activeWorkflow(ctx, &source); err != nil {
		return s, err
	}
	if s.Pod, err = r.activePod(ctx, &source); s.Pod != nil || err != nil || run.Spec.ContinueFrom.Workspace == v1alpha1.ContinueFresh {
		return s, err
	}
	return s, r.readUse(ctx, run, &s)
}

// named reads the Run that a Run names. If the cache shows another Run of the name, that may have been deleted.
func (r Reader) named(ctx context.Context, run, into *v1alpha1.Run) (found bool, err error) {
	name := run.Spec.ContinueFrom.Run
	if found, err = r.get(ctx, run.Namespace, name, into); found && !IsNamed(run, into) {
		return Reader{Cache: r.Live, Live: r.Live}.get(ctx, run.Namespace, name, into)
	}
	return found, err
}

// ownClaim returns the volume of a Run; nil: it does not exist, or belongs to another Run.
func (r Reader) ownClaim(ctx context.Context, run *v1alpha1.Run) (*corev1.PersistentVolumeClaim, error) {
	a := run.Status.Attempt
	if a == nil || a.VolumeClaim == "" {
		return nil, nil //nolint:nilnil // it has no files
	}
	claim, err := r.VolumeClaim(ctx, run.Namespace, a.VolumeClaim)
	if claim == nil || err != nil || !runnerpod.OwnsVolume(run, claim) {
		return nil, err
	}
	return claim, nil
}

// readUse reads who else uses the files of the source of a Run.
func (r Reader) readUse(ctx context.Context, run *v1alpha1.Run, s *Source) error {
	last, err := r.userOf(ctx, run, s.VolumeClaim)
	if last != nil && !runstatus.IsFinished(last) {
		s.User = last
	}
	if s.User != nil || err != nil {
		return err
	}
	if shared, _ := runnerpod.SharedVolumeClaim(s.Run); shared != "" || s.VolumeClaim.Annotations[v1alpha1.AnnotationUsedBy] != "" {
		if s.Pod, err = r.podWith(ctx, v1alpha1.LabelVolumeClaim, s.VolumeClaim, mayWrite); s.Pod != nil || err != nil {
			return err
		}
	}
	if run.Spec.ContinueFrom.Workspace == v1alpha1.ContinueShare {
		s.Copier, err = r.podWith(ctx, v1alpha1.LabelSourceVolumeClaim, s.VolumeClaim, mayCopy)
	}
	return err
}

// userOf returns the other Run that used the files on a volume last; nil: none did, or it was deleted. An end that the
// cache shows is final. A Run that it does not show may be new.
func (r Reader) userOf(ctx context.Context, run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim) (*v1alpha1.Run, error) {
	name, uid := runnerpod.UserOf(claim)
	if name == "" || uid == run.UID {
		return nil, nil //nolint:nilnil // no other Run has used it
	}
	var user v1alpha1.Run
	found, err := r.get(ctx, run.Namespace, name, &user)
	if !found || err != nil || user.UID != uid {
		return nil, err
	}
	return &user, nil
}

// Blocked reads what keeps a Run that has started from beginning with the files of its source, as the API server has it
// now: another Run changes them, or pods copy them, which began at the same time.
func (r Reader) Blocked(ctx context.Context, run *v1alpha1.Run, s *Source) error {
	if s.VolumeClaim == nil || run.Spec.ContinueFrom.Workspace == v1alpha1.ContinueFresh {
		return nil
	}
	live := Reader{Cache: r.Live, Live: r.Live}
	if run.Spec.ContinueFrom.Workspace == v1alpha1.ContinueShare {
		var err error
		s.Copier, err = r.podWith(ctx, v1alpha1.LabelSourceVolumeClaim, s.VolumeClaim, mayCopy)
		return err
	}
	claim, err := live.VolumeClaim(ctx, run.Namespace, s.VolumeClaim.Name)
	if claim == nil || err != nil {
		return err
	}
	other, err := live.userOf(ctx, run, claim)
	if err != nil {
		return err
	}
	if other != nil && other.Status.Attempt != nil && !runstatus.IsFinished(other) { // else it waits for this one
		s.User = other
		return nil
	}
	s.Pod, err = r.podWith(ctx, v1alpha1.LabelVolumeClaim, claim, mayWrite)
	return err
}

// podWith returns a pod that has the name of a volume in a label and does something with it; nil: there is none.
func (r Reader) podWith(ctx context.Context, label string, claim *corev1.PersistentVolumeClaim, does func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(claim.Namespace), client.MatchingLabels{label: claim.Name}); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	for i := range pods.Items {
		if does(&pods.Items[i]) {
			return &pods.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // most volumes have one Run
}

// mayWrite reports whether containers of a pod may still change files: the sandbox ends after the runner.
func mayWrite(pod *corev1.Pod) bool { return runnerpod.IsAlive(pod) || runnerpod.IsStopping(pod) }

// mayCopy reports whether a pod may still copy files.
func mayCopy(pod *corev1.Pod) bool { return runnerpod.IsAlive(pod) && !runnerpod.HasFetched(pod) }

// activePod returns the last pod of a Run that has ended, if it still works: it may be ending, or not be reachable.
func (r Reader) activePod(ctx context.Context, run *v1alpha1.Run) (*corev1.Pod, error) {
	a := run.Status.Attempt
	var pod corev1.Pod
	found, err := apierr.Found(r.Live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: a.Pod}, &pod))
	if err != nil {
		return nil, fmt.Errorf("getting Pod %s: %w", a.Pod, err)
	}
	if !found || string(pod.UID) != a.PodUID || !mayWrite(&pod) {
		return nil, nil //nolint:nilnil // nothing changes the files any more
	}
	return &pod, nil
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

// IsReady reports whether a Run continues no other, or that one has ended and no other Run may change its files.
func (r Reader) IsReady(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	from := run.Spec.ContinueFrom
	if from == nil {
		return true, nil
	}
	var source v1alpha1.Run
	found, err := apierr.Found(r.Cache.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: from.Run}, &source))
	if err != nil {
		return false, fmt.Errorf("getting Run %s: %w", from.Run, err)
	}
	if !found || !runstatus.IsFinished(&source) {
		return false, nil
	}
	if workflow, err := r.activeWorkflow(ctx, &source); workflow != nil || err != nil || from.Workspace == v1alpha1.ContinueFresh {
		return workflow == nil, err
	}
	user, err := r.cachedUser(ctx, run, &source)
	return user == nil, err
}

// cachedUser returns the Run that uses the files of a source and has not ended, as the cache knows it; nil: there is none.
func (r Reader) cachedUser(ctx context.Context, run, source *v1alpha1.Run) (*v1alpha1.Run, error) {
	a := source.Status.Attempt
	if a == nil || a.VolumeClaim == "" {
		return nil, nil //nolint:nilnil // it has no files
	}
	cached := Reader{Cache: r.Cache, Live: r.Cache}
	claim, err := cached.VolumeClaim(ctx, run.Namespace, a.VolumeClaim)
	if claim == nil || err != nil {
		return nil, err
	}
	user, err := cached.userOf(ctx, run, claim)
	if user == nil || err != nil || runstatus.IsFinished(user) {
		return nil, err
	}
	return user, nil
}

// A Use is how the Runs that share a volume use it.
type Use struct {
	// Active is one of them that has not ended; nil: all have.
	Active *v1alpha1.Run
	// Last is the one of them that ended last.
	Last *v1alpha1.Run
}

// UseOf returns how other Runs share the volume of a finished Run, or of its children; zero: none does.
func (r Reader) UseOf(ctx context.Context, run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim) (Use, error) {
	var use Use
	for _, owner := range runnerpod.Owners(claim) {
		if owner.UID == run.UID {
			continue
		}
		var other v1alpha1.Run
		found, err := r.get(ctx, run.Namespace, owner.Name, &other)
		if found && other.UID != owner.UID { // the cache may show a Run that was deleted
			found, err = Reader{Cache: r.Live, Live: r.Live}.get(ctx, run.Namespace, owner.Name, &other)
		}
		switch {
		case err != nil:
			return Use{}, err
		case !found || other.UID != owner.UID: // it was deleted
		case other.Status.CompletionTime == nil:
			return Use{Active: &other}, nil
		case use.Last == nil || use.Last.Status.CompletionTime.Before(other.Status.CompletionTime):
			use.Last = &other
		}
	}
	if use.Last != nil && run.Status.CompletionTime != nil && !use.Last.Status.CompletionTime.After(run.Status.CompletionTime.Time) {
		use.Last = nil
	}
	return use, nil
}

// UnfinishedBySource is the field that indexes Runs which have not ended by the Run that they continue, and by anySource.
const UnfinishedBySource = "unfinished-by-source"

// anySource is a value of the index that no Run has as its name.
const anySource = "*"

// IndexUnfinishedBySource returns the values of a Run in the index UnfinishedBySource.
func IndexUnfinishedBySource(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Spec.ContinueFrom == nil || run.Status.CompletionTime != nil {
		return nil
	}
	return []string{run.Spec.ContinueFrom.Run, anySource}
}

// Unfinished returns the Runs that have not ended and continue the Run with a name. They are shared with the cache.
func Unfinished(ctx context.Context, cached client.Reader, source client.ObjectKey) ([]v1alpha1.Run, error) {
	var list v1alpha1.RunList
	if err := cached.List(ctx, &list, client.InNamespace(source.Namespace), client.MatchingFields{UnfinishedBySource: source.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Runs: %w", err)
	}
	return list.Items, nil
}

// IsNeeded reports whether a Run that has ended must be kept with its volumes, because another Run continues it or one of
// its child Runs, or continues another Run on one of the volumes, and has no copy yet.
func IsNeeded(ctx context.Context, cached client.Reader, run *v1alpha1.Run, volumes ...string) (bool, error) {
	others, err := Unfinished(ctx, cached, client.ObjectKey{Namespace: run.Namespace, Name: anySource})
	if err != nil {
		return false, err
	}
	for i := range others {
		if !needs(&others[i]) {
			continue
		}
		if found := others[i].Status.ContinuedFrom; found != nil && slices.Contains(volumes, found.VolumeClaim) {
			return true, nil
		}
		if isSource, err := isSourceOf(ctx, cached, run, volumes, &others[i]); isSource || err != nil {
			return isSource, err
		}
	}
	return false, nil
}

// isSourceOf reports whether another Run continues a Run, one of its child Runs, or a Run on one of its volumes.
func isSourceOf(ctx context.Context, cached client.Reader, run *v1alpha1.Run, volumes []string, other *v1alpha1.Run) (bool, error) {
	var source v1alpha1.Run
	found, err := apierr.Found(cached.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: other.Spec.ContinueFrom.Run}, &source))
	if !found || err != nil {
		return false, err
	}
	if a := source.Status.Attempt; source.UID == run.UID || a != nil && a.VolumeClaim != "" && slices.Contains(volumes, a.VolumeClaim) {
		return true, nil
	}
	above, err := children.Ancestors(ctx, cached, &source)
	return slices.ContainsFunc(above, func(a children.Ancestor) bool { return a.UID == run.UID }), err
}

// needs reports whether a Run still needs the files of its source: until it has a copy of its own, or has joined its
// volume, which is kept for both then.
func needs(run *v1alpha1.Run) bool {
	a := run.Status.Attempt
	if a != nil && run.Spec.ContinueFrom.Workspace == v1alpha1.ContinueShare {
		return false
	}
	return a == nil || a.VolumeClaim == "" || run.Status.Progress == nil
}
