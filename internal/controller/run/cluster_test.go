package run

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/decisions"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/objectcache"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
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
	family
	trouble string // what events say of a pod that does not start
	supply  runnerpod.Defaults
	fenced  bool
	refuse  error // what the API server says to the next pods
	gone    bool  // the Run was deleted
	now     time.Time
	created int
	gates   bool // new pods have scheduling gates
	away    bool // there is no operator
}

func newCluster(t *testing.T, run *v1alpha1.Run, agent *v1alpha1.Agent) *cluster {
	t.Helper()
	return newClusterOf(t, run, agent, withReviewer(gen.Objects()))
}

// newClusterOf is one where an Agent may reach more than its Model.
func newClusterOf(t *testing.T, run *v1alpha1.Run, agent *v1alpha1.Agent, o snapshot.Objects) *cluster {
	t.Helper()
	c := &cluster{run: run, objects: o, pods: map[string]*corev1.Pod{}, now: gen.Noon}
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
	s.volume, s.startupWarning, s.podDefaults, s.networkPolicies = c.claim, c.trouble, c.supply, c.fenced
	s.decisions, s.granted = classifyDecisions(c.run, c.decided)
	s.finalDecisions = decisions.FinalNames(c.decided)
	s.missingDecision = decisions.FirstMissing(c.run, c.decided)
	c.show(&s, c.objects.Agents)
	for n := 1; n <= c.created; n++ {
		if pod := c.pods[fmt.Sprintf("%s-%d", c.run.Name, n)]; pod != nil && runnerpod.BelongsTo(pod, c.run) {
			s.pods = append(s.pods, *c.shown(pod))
		}
	}
	return s
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
	if s.facts = c.apply(s, p); s.facts.failure != nil {
		return plan{wake: time.Second}
	}
	if s.facts.needDecision() {
		p = decide(s)
		s.facts = c.apply(s, p)
	}
	if p.deleteRun {
		c.gone = true
		return p
	}
	patch(&c.run.Status, s.run.Status, statusOf(s, p))
	return p
}

// apply does what the Reconciler does for the step of a plan.
func (c *cluster) apply(s state, p plan) facts {
	f := facts{}
	switch {
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
	if s.run.Status.Attempt.VolumeClaim != "" && c.claim == nil {
		c.claim = runnerpod.NewVolumeClaim(s.run, s.revision)
	}
	pod := p.create.DeepCopy()
	pod.UID = types.UID("uid-" + pod.Name)
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

// The kubelet's and the runner's part, as verbs of a script.

func starts(n int) func(*cluster) {
	return func(c *cluster) {
		c.setRunner(n, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.now)}}, corev1.PodRunning)
	}
}

func reports(n int, mods ...func(*v1alpha1.RunProgress)) func(*cluster) {
	return func(c *cluster) {
		p := c.run.Status.Progress.DeepCopy()
		if p == nil {
			p = &v1alpha1.RunProgress{Version: task.Version}
		}
		p.Attempt, p.Sequence = int32(n), c.now.UnixMilli()
		if c.run.Status.Attempt.Number != p.Attempt || c.run.Status.CompletionTime != nil {
			return // fenced
		}
		p.Result = nil
		for _, mod := range mods {
			mod(p)
		}
		c.run.Status.Progress = p
	}
}

func begun(p *v1alpha1.RunProgress) { p.Effects = v1alpha1.EffectsBegun }

func commits(reason, message string) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) {
		p.Result = &v1alpha1.Result{Committed: true, Reason: reason, Message: message}
	}
}

func warns(warning string) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.Result.Warning = warning }
}

func exits(n int, code int32, mods ...func(*corev1.ContainerStateTerminated)) func(*cluster) {
	return func(c *cluster) {
		end := &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(c.now)}
		for _, mod := range mods {
			mod(end)
		}
		phase := corev1.PodFailed
		if code == 0 {
			phase = corev1.PodSucceeded
		}
		c.setRunner(n, corev1.ContainerState{Terminated: end}, phase)
	}
}

func oomKilled(end *corev1.ContainerStateTerminated) { end.Reason = "OOMKilled" }

func says(n int, r task.Result) func(*corev1.ContainerStateTerminated) {
	return func(end *corev1.ContainerStateTerminated) {
		end.Message = string(task.Termination{Version: task.Version, Attempt: n, Result: r}.Encode())
	}
}

func waits(n int, reason, message string) func(*cluster) {
	return func(c *cluster) {
		c.setRunner(n, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}, corev1.PodPending)
	}
}

func vanishes(n int) func(*cluster) {
	return func(c *cluster) { delete(c.pods, c.pod(n).Name) }
}

func isDeleted(n int) func(*cluster) {
	return func(c *cluster) {
		now := metav1.NewTime(c.now)
		c.pod(n).DeletionTimestamp = &now
	}
}

// isDisowned takes the owner and the labels of a pod away.
func isDisowned(n int) func(*cluster) {
	return func(c *cluster) {
		pod := c.pod(n)
		pod.OwnerReferences, pod.Labels = nil, map[string]string{}
	}
}

// isTakenOver gives a pod another Run as its owner.
func isTakenOver(n int) func(*cluster) {
	return func(c *cluster) {
		other := metav1.ObjectMeta{Name: "y", UID: "another-run"}
		c.pod(n).OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&other, v1alpha1.GroupVersion.WithKind("Run"))}
	}
}

func isEvicted(n int) func(*cluster) {
	return func(c *cluster) {
		pod := c.pod(n)
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "The node was low on memory."
	}
}

func isUnschedulable(n int) func(*cluster) {
	return func(c *cluster) {
		c.pod(n).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient memory."}}
	}
}

func isPlaced(n int) func(*cluster) {
	return func(c *cluster) {
		c.pod(n).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.now)}}
	}
}

// isForged makes a pod as somebody may who may create pods: with any name, any
// labels and any owner, but not with the runner's ServiceAccount.
func isForged(n int) func(*cluster) {
	return func(c *cluster) {
		name := c.run.Name + "-" + strconv.Itoa(n)
		owner := *metav1.NewControllerRef(c.run, v1alpha1.GroupVersion.WithKind("Run"))
		c.pods[name] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "forged", OwnerReferences: []metav1.OwnerReference{owner}, Labels: map[string]string{v1alpha1.LabelRun: c.run.Name, v1alpha1.LabelAttempt: strconv.Itoa(n)}},
			Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: runnerpod.RunnerContainer, Image: "evil"}}},
		}
		exits(n, 0, says(n, task.Result{Committed: true, Reason: task.ReasonFinished, Text: "forged"}))(c)
	}
}

func isSquatted(n int) func(*cluster) {
	return func(c *cluster) {
		name := c.run.Name + "-" + strconv.Itoa(n)
		c.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "foreign"}}
	}
}

// awaits is a runner that waits for people.
func awaits(state string, pending ...v1alpha1.PendingRequest) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.State, p.Pending = state, pending }
}

func question(id, text string) v1alpha1.PendingRequest {
	return v1alpha1.PendingRequest{ID: id, Kind: task.PendingQuestion, Question: text}
}

// acts is a runner that acted on Decisions and goes on.
func acts(names ...string) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) {
		p.State, p.Pending = "", nil
		for _, n := range names {
			p.Decided = append(p.Decided, v1alpha1.DecidedRequest{Name: n})
		}
	}
}

func used(d time.Duration) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.Usage.DurationSeconds = int64(d.Seconds()) }
}

// answers is a person's answer to a request; without one, a message.
func answers(request, value string) func(*cluster) {
	return func(c *cluster) {
		d := v1alpha1.Decision{Spec: v1alpha1.DecisionSpec{Run: c.run.Name, Request: request, Type: v1alpha1.DecisionAnswer, Value: value, By: "ann"}}
		d.Name, d.CreationTimestamp = c.run.Name+"."+request, metav1.NewTime(c.now)
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: c.run.Name, UID: c.run.UID}}
		if request == "" {
			d.Name, d.Spec.Type = "said", v1alpha1.DecisionMessage
		}
		c.decided = append(c.decided, d)
	}
}

func grants(request string, steps int32) func(*cluster) {
	return func(c *cluster) {
		answers(request, "")(c)
		spec := &c.decided[len(c.decided)-1].Spec
		spec.Type, spec.Grant = v1alpha1.DecisionGrant, &v1alpha1.Grant{Steps: &steps}
	}
}

func stops(c *cluster) { c.run.Spec.DesiredState = v1alpha1.DesiredStopped }

// operatorLeaves takes the operator away.
func operatorLeaves(c *cluster) { c.away = true }

// operatorReturns starts an operator, which remembers nothing.
func operatorReturns(c *cluster) { c.away = false }

func refuses(err error) func(*cluster) {
	return func(c *cluster) { c.refuse = err }
}

var errDown = errors.New("connection refused")
