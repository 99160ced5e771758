//go:build bench

package bench

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// stalled is how long nothing may happen while something is waited for.
const stalled = 3 * time.Minute

// A tally notes when a watcher first saw each stage of each Run of a namespace. Of
// two stages the first is never a watcher's: on a busy machine it sees both at once.
type tally struct {
	t       *testing.T
	changed chan struct{}

	mu     sync.Mutex
	runs   map[string]*stages
	counts counts
	failed []string
}

// stages are those of one Run.
type stages struct {
	moments
	added     time.Time
	started   time.Time
	scheduled time.Time // when a Schedule was to make it
	done      bool
}

// counts are how many pods and Runs were seen at a stage.
type counts struct {
	runBarePod int // pods of no Run that ended
	pods       int // of Runs
	started    int // Runs of which a runner has reported
	terminal   int
}

func newTally(r *fixture) *tally {
	r.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(r.t.Context()))
	r.t.Cleanup(stop)
	c, err := cache.New(r.config, cache.Options{
		Scheme: r.client.Scheme(), DefaultTransform: cache.TransformStripManagedFields(),
		DefaultNamespaces: map[string]cache.Config{r.namespace: {}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	l := &tally{t: r.t, changed: make(chan struct{}, 1), runs: map[string]*stages{}}
	for _, kind := range []client.Object{&v1alpha1.Run{}, &corev1.Pod{}} {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			r.t.Fatal(err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: l.see, UpdateFunc: func(_, o any) { l.see(o) }}); err != nil {
			r.t.Fatal(err)
		}
	}
	go func() { _ = c.Start(ctx) }() // it ends with the test
	if !c.WaitForCacheSync(ctx) {
		r.t.Fatal("the watches of the tally do not start")
	}
	return l
}

func (l *tally) see(o any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch seen := o.(type) {
	case *corev1.Pod:
		l.seePod(seen)
	case *v1alpha1.Run:
		l.seeRun(seen)
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// run is the stages of a Run; l is locked.
func (l *tally) run(name string) *stages {
	if l.runs[name] == nil {
		l.runs[name] = &stages{}
	}
	return l.runs[name]
}

func (l *tally) seePod(p *corev1.Pod) {
	if run := p.Labels[v1alpha1.LabelRun]; run != "" {
		l.counts.pods += once(&l.run(run).pod)
		return
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		l.counts.runBarePod += once(&l.run("/" + p.Name).terminal)
	}
}

func (l *tally) seeRun(r *v1alpha1.Run) {
	s := l.run(r.Name)
	once(&s.added)
	if at, err := time.Parse(time.RFC3339, r.Annotations[v1alpha1.AnnotationScheduledAt]); err == nil {
		s.scheduled = at
	}
	if r.Status.Progress != nil {
		l.counts.started += once(&s.started)
	}
	if p := r.Status.Progress; p != nil && p.Result != nil {
		if once(&s.committed) == 1 {
			s.committed = time.UnixMilli(p.Sequence) // when it was sent: a watcher that is late would make it look fast
		}
	}
	if r.Status.CompletionTime == nil {
		return
	}
	l.counts.terminal += once(&s.terminal)
	for _, c := range r.Status.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded && c.Status != metav1.ConditionTrue && !s.done {
			l.failed = append(l.failed, r.Name+" "+c.Reason+": "+c.Message)
		}
	}
	s.done = true
}

// once notes the first time, and counts it.
func once(at *time.Time) int {
	if !at.IsZero() {
		return 0
	}
	*at = time.Now()
	return 1
}

func (l *tally) due(name string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run(name).created = at
}

// now is what was counted so far.
func (l *tally) now() counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// await waits until enough is counted, and says when that was.
func (l *tally) await(what string, enough func(counts) bool) time.Time {
	l.t.Helper()
	for !enough(l.now()) {
		select {
		case <-l.changed:
		case <-time.After(stalled):
			l.t.Fatalf("%s: nothing happened for %s; %+v", what, stalled, l.now())
		}
	}
	return time.Now()
}

// of is the stages of Runs whose names begin so.
func (l *tally) of(prefix string) []stages {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []stages
	for name, s := range l.runs {
		if strings.HasPrefix(name, prefix) {
			out = append(out, *s)
		}
	}
	return out
}

// durations is how long each of n Runs, whose names begin so, took from one stage to another. A
// stage that was not seen fails the test: it would make a median look good.
func (l *tally) durations(prefix string, n int, of func(stages) (from, to time.Time)) []time.Duration {
	l.t.Helper()
	var out []time.Duration
	for _, s := range l.of(prefix) {
		from, to := of(s)
		if from.IsZero() || to.IsZero() {
			l.t.Errorf("a stage of a Run %s… was not seen: %v, %v", prefix, from, to)
		}
		out = append(out, to.Sub(from))
	}
	if len(out) != n {
		l.t.Errorf("%d Runs are named %s…, not %d", len(out), prefix, n)
	}
	return out
}

func untilPod(s stages) (from, to time.Time) { return s.created, s.pod }

func untilEnd(s stages) (from, to time.Time) { return s.committed, s.terminal }

// terminal is the names of the Runs that ended.
func (l *tally) terminal() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for name, s := range l.runs {
		if s.done {
			out = append(out, name)
		}
	}
	return out
}

// mustSucceed fails the test if a Run did not do its work.
func (l *tally) mustSucceed() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) > 0 {
		l.t.Errorf("%d Runs failed, the first: %s", len(l.failed), l.failed[0])
	}
}
