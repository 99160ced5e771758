package run

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A cluster is what stories play on: it does in memory what act and report do
// on a real one, and what a kubelet does to pods is scripted.
type cluster struct {
	run      *v1alpha1.Run
	objects  snapshot.Objects // what Agents may reach
	revision *snapshot.Revision
	missing  string
	// unsupported is why the operator cannot read the revision; unread is that revision.
	unsupported *stored.UnsupportedError
	unread      *snapshot.Revision
	decided     []v1alpha1.Decision // by people
	pods        map[string]*corev1.Pod
	claim       *corev1.PersistentVolumeClaim
	// source is the Run that the Run continues; isNeeded: another continues this one.
	source   continuing.Source
	isNeeded bool
	use      continuing.Use // by other Runs, of the volume of a finished Run
	// unrecorded is the first attempt, as the operator remembers it; nil: it has none, or was
	// started again.
	unrecorded *v1alpha1.Attempt
	family
	trouble string // what events say of a pod that does not start
	lacks   string // a ConfigMap that such a pod mounts
	supply  runnerpod.Defaults
	fenced  bool
	refuse  error // what the API server says to the next pods
	gone    bool  // the Run was deleted
	now     time.Time
	created int
	uids    map[types.UID]int // how many pods had each name
	gates   bool              // new pods have scheduling gates
	away    bool              // there is no operator
}

func newCluster(t *testing.T, run *v1alpha1.Run, agent *v1alpha1.Agent) *cluster {
	t.Helper()
	return newClusterOf(t, run, agent, withReviewer(gen.Objects()))
}

// newClusterOf is one where an Agent may reach more than its Model.
func newClusterOf(t *testing.T, run *v1alpha1.Run, agent *v1alpha1.Agent, o snapshot.Objects) *cluster {
	t.Helper()
	c := &cluster{run: run, objects: o, pods: map[string]*corev1.Pod{}, uids: map[types.UID]int{}, now: gen.Noon}
	c.setAgent(t, agent)
	return c
}

func (c *cluster) setAgent(t *testing.T, agent *v1alpha1.Agent) {
	t.Helper()
	if agent == nil {
		c.revision, c.missing = nil, `Agent "fixer" not found in namespace team-a`
		return
	}
	v, err := snapshot.Of(agent, c.objects)
	if err != nil {
		t.Fatalf("making a revision: %v", err)
	}
	c.revision, c.missing = v, ""
}

func (c *cluster) observed() state {
	s := state{run: cachedRun(c.run), revision: c.revision, notReadyMessage: c.missing, unsupported: c.unsupported, runner: runnerpod.Image{Name: "runner:1", PullPolicy: corev1.PullIfNotPresent}, now: c.now}
	s.isNeeded = c.isNeeded && s.run.Status.CompletionTime != nil
	s = c.withFirstAttempt(s)
	s.source = c.source
	if s.attempt() > 0 {
		s.source = continuing.Source{VolumeClaim: c.source.VolumeClaim}
		if s.run.Status.Attempt.PodUID == "" {
			s.source.User, s.source.Copier = c.source.User, c.source.Copier
		}
	}
	if s.run.Status.CompletionTime != nil {
		s.use = c.use
	}
	s.missingConfigMap = c.lacks
	s.volume, s.startupWarning, s.podDefaults, s.networkPolicies = c.claim, c.trouble, c.supply, c.fenced
	s.decisions, s.granted = classifyDecisions(s.run, c.decided)
	s.finalDecisions = decisions.FinalNames(c.decided)
	s.missingDecision = decisions.FirstMissing(s.run, c.decided)
	c.show(&s, c.objects.Agents)
	for n := 1; n <= c.created; n++ {
		if pod := c.pods[fmt.Sprintf("%s-%d", c.run.Name, n)]; pod != nil && runnerpod.BelongsTo(pod, s.run) {
			s.pods = append(s.pods, *c.shown(pod))
		}
	}
	return s.withReportedPod()
}

// withFirstAttempt completes the status as the Reconciler does.
func (c *cluster) withFirstAttempt(s state) state {
	if s.run.Status.Attempt != nil || s.run.Status.CompletionTime != nil {
		c.unrecorded = nil
		return s
	}
	a, uid, hash := c.unrecorded, "", ""
	if c.revision != nil {
		hash = c.revision.Hash
	}
	pod := c.pods[c.run.Name+"-1"]
	if a != nil {
		uid = a.PodUID
	} else if pod != nil && isFirst(pod, c.run) {
		a, uid = attemptOfPod(pod, hash, c.now), string(pod.UID)
	}
	if reportedByOther(s.run, uid) {
		return s.withReporter(pod, hash)
	}
	return s.withAttempt(a)
}

// begin takes a Run to where its first pod exists and is recorded, in no time.
func (c *cluster) begin() {
	for c.run.Status.Attempt == nil || c.run.Status.Attempt.PodUID == "" {
		if c.unrecorded == nil {
			c.step()
			continue
		}
		s := c.observed()
		patch(&c.run.Status, s.storedRun().Status, statusOf(s, decide(s)))
	}
}

// step decides once and does it; it returns what was done.
func (c *cluster) step() plan {
	if c.claim != nil && c.claim.DeletionTimestamp != nil && len(c.pods) == 0 {
		c.claim = nil // no pod uses it any more
	}
	s := c.observed()
	p := decide(s)
	c.setStates(p.setStates)
	for _, to := range p.restore {
		pod := c.pods[to.pod.Name]
		pod.OwnerReferences = to.owners
		maps.Copy(pod.Labels, to.labels)
	}
	for _, pod := range p.remove {
		delete(c.pods, pod.Name)
	}
	for range 3 {
		if s.facts = c.apply(s, p); s.facts.failure != nil {
			return plan{wake: time.Second}
		}
		if !s.facts.needDecision() {
			break
		}
		s = s.withFacts()
		p = decide(s)
	}
	if p.deleteRun {
		c.gone = true
		return p
	}
	if s.isUnrecorded() && s.facts.created != nil {
		a := s.attemptWithPod()
		c.unrecorded = &a
	}
	if left := notYetRecorded(s, p); left > 0 {
		p.wake = earlier(p.wake, left)
		return p
	}
	patch(&c.run.Status, s.storedRun().Status, statusOf(s, p))
	return p
}

// apply does what the Reconciler does for the step of a plan.
func (c *cluster) apply(s state, p plan) facts {
	f := facts{}
	switch {
	case p.nextAttempt != nil && p.nextAttempt.unrecorded:
		f.prepared = p.nextAttempt.Attempt
	case p.nextAttempt != nil && sharesSource(c.run) && s.attempt() == 0:
		c.claim = c.source.VolumeClaim.DeepCopy()
	case p.child != nil:
		f = c.make(s, p)
	case p.create != nil:
		f = c.create(s, p)
	case p.signal != nil:
		c.pods[p.signal.Name].Annotations[v1alpha1.AnnotationSignals] = string(runnerpod.ToJSON(p.signals))
	case p.deleteVolume != nil:
		c.claim = nil
	}
	f.applied = true
	return f
}

// shown is a pod as the cache shows it, or the API server where that is asked.
func (c *cluster) shown(pod *corev1.Pod) *corev1.Pod {
	if a := c.run.Status.Attempt; a != nil && a.PodUID == "" && a.Pod == pod.Name {
		return pod.DeepCopy()
	}
	if runstatus.IsFinished(c.run) && hasEnded(pod) {
		m := &metav1.PartialObjectMetadata{ObjectMeta: *pod.ObjectMeta.DeepCopy()}
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		kept, _ := objectcache.EndedPod(m)
		return objectcache.PodFromMetadata(kept.(*metav1.PartialObjectMetadata), c.run)
	}
	if hasEnded(pod) {
		return pod.DeepCopy()
	}
	kept, _ := objectcache.Pod(pod.DeepCopy())
	return kept.(*corev1.Pod)
}

// cachedRun is a Run as the cache shows it.
func cachedRun(run *v1alpha1.Run) *v1alpha1.Run {
	kept, _ := objectcache.Run(run.DeepCopy())
	return kept.(*v1alpha1.Run)
}

// patch writes what is to be changed of a status, as the API server does: field by
// field.
func patch(status *v1alpha1.RunStatus, had, want v1alpha1.RunStatus) {
	is, from, to := reflect.ValueOf(status).Elem(), reflect.ValueOf(had), reflect.ValueOf(want)
	for i := range is.NumField() {
		if !reflect.DeepEqual(from.Field(i).Interface(), to.Field(i).Interface()) {
			is.Field(i).Set(to.Field(i))
		}
	}
}

func (c *cluster) create(s state, p plan) facts {
	c.created = max(c.created, int(s.attempt()))
	switch {
	case c.refuse != nil && !isAnswer(c.refuse):
		return failed(p, c.refuse)
	case c.refuse != nil:
		return facts{podRefused: c.refuse}
	}
	if other := c.pods[p.create.Name]; other != nil {
		if runnerpod.BelongsTo(other, c.run) {
			return facts{created: other}
		}
		return facts{podNameTaken: true}
	}
	if s.run.Status.Attempt.VolumeClaim != "" && c.claim == nil && !sharesSource(c.run) {
		c.claim = runnerpod.NewVolumeClaim(podInputOf(s, s.run.Status.Attempt.Number))
	}
	pod := p.create.DeepCopy()
	pod.UID = types.UID("uid-" + pod.Name)
	if c.uids[pod.UID]++; c.uids[pod.UID] > 1 {
		pod.UID += "-again"
	}
	pod.CreationTimestamp = metav1.NewTime(c.now)
	pod.Status.Phase = corev1.PodPending
	if c.gates {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
	}
	c.pods[pod.Name] = pod
	return facts{created: pod}
}

// pod is the pod of attempt n; a script that names one that is not there is
// wrong.
func (c *cluster) pod(n int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", c.run.Name, n)
	if c.pods[name] == nil {
		panic("the script speaks of pod " + name + ", which is not there")
	}
	return c.pods[name]
}

func (c *cluster) setRunner(n int, state corev1.ContainerState, phase corev1.PodPhase) {
	pod := c.pod(n)
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, Image: pod.Spec.Containers[0].Image, State: state}}
}
