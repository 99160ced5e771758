package runmetrics

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// activeRuns keeps the gauge of active Runs: an entry for each of them, changed with each event of
// the informer. So a scrape reads no Run.
type activeRuns struct {
	mu     sync.Mutex
	runs   map[types.UID]*[3]string
	shared map[[3]string]*[3]string // the label values, which many Runs have in common
}

var tracked = newActiveRuns()

func newActiveRuns() *activeRuns {
	return &activeRuns{runs: map[types.UID]*[3]string{}, shared: map[[3]string]*[3]string{}}
}

// Handler returns the handler of the informer of Runs that keeps the gauge of active Runs and
// counts waits for models.
func Handler(now func() time.Time) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { tracked.set(o) },
		UpdateFunc: func(before, o any) {
			tracked.set(o)
			countModelWait(before, o, now())
		},
		DeleteFunc: func(o any) {
			if last, is := o.(toolscache.DeletedFinalStateUnknown); is {
				o = last.Obj
			}
			if run, is := o.(*v1alpha1.Run); is {
				tracked.replace(run.UID, nil)
			}
		},
	}
}

func (a *activeRuns) set(o any) {
	run, is := o.(*v1alpha1.Run)
	switch {
	case !is:
	case run.Status.CompletionTime != nil:
		a.replace(run.UID, nil)
	default:
		ns := namespaceLabel(run.Namespace)
		a.replace(run.UID, &[3]string{ns, agentLabel(ns, run), reasonLabel(reasonOf(run))})
	}
}

// replace gives a Run other label values; nil: the Run is not active.
func (a *activeRuns) replace(uid types.UID, values *[3]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	had := a.runs[uid]
	if values != nil {
		values = a.share(values)
	}
	if had == values {
		return
	}
	if had != nil {
		active.add(-1, had[:]...)
		delete(a.runs, uid)
	}
	if values != nil {
		active.add(1, values[:]...)
		a.runs[uid] = values
	}
}

func (a *activeRuns) share(values *[3]string) *[3]string {
	if known := a.shared[*values]; known != nil {
		return known
	}
	a.shared[*values] = values
	return values
}

func reasonOf(run *v1alpha1.Run) string {
	if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil && c.Reason != "" {
		return c.Reason
	}
	return v1alpha1.ReasonPending
}

// countModelWait counts the wait for a model that ended between two reports of a Run: with an
// answer, or with the Run.
func countModelWait(before, after any, now time.Time) {
	was, isRun := before.(*v1alpha1.Run)
	is, alsoRun := after.(*v1alpha1.Run)
	if !isRun || !alsoRun {
		return
	}
	wait := modelWaitOf(was)
	if wait == nil {
		return
	}
	var end time.Time
	switch still := modelWaitOf(is); {
	case is.Status.CompletionTime != nil:
		end = is.Status.CompletionTime.Time
	case still != nil && still.Since.Equal(&wait.Since), is.Status.Progress == nil:
		return
	default:
		end = time.UnixMilli(is.Status.Progress.Sequence)
	}
	if created := was.CreationTimestamp.Time; !untrusted.IsTime(wait.Since.Time, created, now) || !untrusted.IsTime(end, created, now) {
		return
	}
	ns := namespaceLabel(is.Namespace)
	agent, model := agentLabel(ns, is), other
	if len(validation.IsDNS1123Subdomain(wait.Model)) == 0 { // a runner may write anything
		model = modelLabel(ns, agent, wait.Model)
	}
	modelWaits.add(end.Sub(wait.Since.Time).Seconds(), ns, agent, model)
}

// modelWaitOf returns the wait of a Run that is active; nil: it waits for no model.
func modelWaitOf(run *v1alpha1.Run) *v1alpha1.ModelWait {
	if run.Status.CompletionTime != nil || run.Status.Progress == nil {
		return nil
	}
	return run.Status.Progress.ModelWait
}
