package soak_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/test/simnode"
	"github.com/deckhand-dev/deckhand/test/soak"
)

const (
	// operatorKills is how much is killed without SOAK_KILLS.
	operatorKills = 20
	// batchRuns is how many Runs there are in the namespace that a number of the soak stands for.
	batchRuns = 8
	// restartPause is before an operator starts again that could not start.
	restartPause = time.Second
	// batchDeadline is limits.duration of each Run.
	batchDeadline = 5 * time.Minute
)

// Two operators are killed at their writes, the pods of Runs and the API server as well: each
// Run ends as it would have ended without that, and never has two pods. In every other batch both
// operators lead, without a lease.
func TestSoakOperator(t *testing.T) {
	s := soak.Start(t, "operator", operatorKills)
	ctrl.SetLogger(logr.Discard())
	server := apitest.NewKillable(t)
	allowKubelets(t, server.Server)
	for {
		n, dice, more := s.Next()
		if !more {
			return
		}
		b := &batch{
			Killable: server, t: t, soak: s, number: n, dice: dice, bothLead: n%2 == 1, effects: map[string]int{}, killed: map[string]bool{}, pods: map[string]podKill{},
		}
		if err := b.play(); err != nil {
			t.Fatalf("Run %d: %v", n, err)
		}
	}
}

// allowKubelets allows runners and the kubelets of simulated nodes what a cluster allows them.
func allowKubelets(t *testing.T, s *apitest.Server) {
	t.Helper()
	role, err := apitest.ReadObjects(apitest.Manifest("rbac", "runner.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.Create(t, role...)
	s.AllowKubelets(t)
}

// A podKill is when the first pod of a Run is deleted by force.
type podKill string

const (
	atNoTime  podKill = ""
	atStart   podKill = "before it starts"
	atWork    podKill = "while it works"
	atEffects podKill = "after its effects"
)

// A batch is some Runs in a namespace, with two operators.
type batch struct {
	*apitest.Killable
	t         *testing.T
	soak      *soak.Soak
	number    int
	dice      *rand.Rand
	namespace string
	bothLead  bool
	pods      map[string]podKill // by Run
	apiKill   bool               // the API server is killed at the first kill of an operator

	mu      sync.Mutex
	effects map[string]int // by Run
	killed  map[string]bool
}

// play creates the Runs, has them end while operators are killed, and checks the invariants.
func (b *batch) play() error {
	ctx, cancel := context.WithTimeout(b.t.Context(), batchDeadline)
	defer cancel()
	b.namespace = b.Namespace(b.t)
	check, err := b.Invariants(ctx, b.namespace, b.violated)
	if err != nil {
		return err
	}
	stopNode, err := b.startNode(ctx)
	if err != nil {
		return err
	}
	defer stopNode()
	var operators sync.WaitGroup
	working, stop := context.WithCancel(ctx)
	defer operators.Wait()
	defer stop()
	b.apiKill = b.dice.IntN(4) == 0
	for replica := range 2 {
		dice := rand.New(rand.NewPCG(b.dice.Uint64(), 0))
		operators.Go(func() { b.operate(working, replica, dice) })
	}
	if err := b.createRuns(ctx); err != nil {
		return err
	}
	runs := b.awaitEnd(ctx)
	stop()
	operators.Wait()
	for i := range runs {
		b.checkRun(&runs[i])
	}
	ctx, cancelCheck := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancelCheck()
	return check(ctx)
}

// violated names the invariant that the history of the namespace violates.
func (b *batch) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if isAlone := strings.HasSuffix(text, "named []") || recordedOne.MatchString(text); isAlone && b.bothLead {
		return // what no status names can report nothing, and has no effects
	}
	invariant := soak.NothingLeft
	for part, is := range map[string]soak.Invariant{
		"live pods": soak.OneLivePod, "has the pods": soak.AttemptsOnce, "had attempt": soak.AttemptsOnce,
		"had ended": soak.TerminalOnce, "failures and": soak.TerminalOnce, "was replaced by": soak.NothingRepeated, "bytes (": soak.Size,
	} {
		if strings.Contains(text, part) {
			invariant = is
		}
	}
	b.soak.Violated(b.number, invariant, "%s", text)
}

// recordedOne matches a report of several live pods of which the status of the Run names one. Two
// operators that lead at once may create the first pod of a Run again, after one of them has read
// the Run and before it creates the pod. The Run may have ended in between: no status names such a
// pod, so that its reports are refused and it has no effects.
var recordedOne = regexp.MustCompile(`named \[\S+\]$`)

func runName(i int) string { return fmt.Sprintf("x%d", i) }

// createRuns creates the Runs, half of which have effects.
func (b *batch) createRuns(ctx context.Context) error {
	objects := []client.Object{
		&v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAICompatible, ModelID: "m", Endpoint: "http://model.invalid/v1"}},
		&v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.AgentSpec{
			Instructions: "Answer.", Model: "m",
			PodTemplate: &v1alpha1.PodTemplate{NodeSelector: simnode.Selector(b.node()), Tolerations: simnode.Tolerations()},
		}},
	}
	kills := []podKill{atNoTime, atNoTime, atStart, atWork, atEffects}
	for i := range batchRuns {
		b.pods[runName(i)] = kills[b.dice.IntN(len(kills))]
		objects = append(objects, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: runName(i)}, Spec: v1alpha1.RunSpec{
			Agent: "a", Prompt: "Read it.", Limits: &v1alpha1.Limits{Duration: new(v1alpha1.Duration(batchDeadline.String()))},
		}})
	}
	for _, o := range objects {
		o.SetNamespace(b.namespace)
		if err := patiently(ctx, func() error { return b.Admin.Create(ctx, o) }); err != nil {
			return err
		}
	}
	return nil
}

// patiently repeats a request of the test while the API server is killed.
func patiently(ctx context.Context, request func() error) error {
	for {
		err := request()
		if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) || ctx.Err() != nil {
			return client.IgnoreAlreadyExists(err)
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (b *batch) node() string { return "sim-" + b.namespace }

// startNode starts a simulated node, and a scheduler that binds every pod to it.
func (b *batch) startNode(ctx context.Context) (stop func(), err error) {
	node, err := simnode.New(b.Config, simnode.Options{Name: b.node(), Work: b.work, Effects: b.effectsOf})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	if err := node.Start(ctx); err != nil {
		cancel()
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.schedule(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

// schedule binds pods, or deletes those that are killed before they start.
func (b *batch) schedule(ctx context.Context) {
	for ctx.Err() == nil {
		var pods corev1.PodList
		_ = b.Admin.List(ctx, &pods, client.InNamespace(b.namespace)) // it is tried again
		for i := range pods.Items {
			pod := &pods.Items[i]
			switch {
			case pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil:
			case b.isKilled(pod, atStart):
				b.killPod(pod)
			default:
				binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: b.node()}}
				_ = b.Admin.SubResource("binding").Create(ctx, pod, binding)
			}
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// isKilled reports whether a pod is killed now: the first of its Run, at one moment.
func (b *batch) isKilled(pod *corev1.Pod, when podKill) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	run := pod.Labels[v1alpha1.LabelRun]
	isDue := !b.killed[run] && b.pods[run] == when
	b.killed[run] = b.killed[run] || isDue
	return isDue
}

// killPod deletes a pod by force.
func (b *batch) killPod(pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	err := patiently(ctx, func() error {
		return client.IgnoreNotFound(b.Admin.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
	})
	if err == nil {
		b.soak.Killed("pod, by force")
	}
}

// work is how long a pod works: until it is killed, or not at all.
func (b *batch) work(pod *corev1.Pod) time.Duration {
	if b.isKilled(pod, atWork) || b.isKilled(pod, atEffects) {
		b.killPod(pod)
		return time.Hour
	}
	return 0
}

// effectsOf are the effects of a Run, which are counted outside of it.
func (b *batch) effectsOf(pod *corev1.Pod) func() {
	run := pod.Labels[v1alpha1.LabelRun]
	if b.pods[run] != atEffects && b.pods[run] != atNoTime {
		return nil
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.effects[run]++
	}
}

// operate runs one operator after the other until ctx ends: each but the last is killed.
func (b *batch) operate(ctx context.Context, replica int, dice *rand.Rand) {
	for kills := 2 + dice.IntN(4); ctx.Err() == nil; kills-- {
		m := &mortal{died: make(chan struct{})}
		if kills > 0 { // a standby writes nothing, so it is not killed
			m.at, m.isAfter = 1+dice.IntN(6), dice.IntN(2) == 0
		}
		err := b.operateOnce(ctx, m)
		if ctx.Err() != nil {
			return
		}
		select {
		case <-m.died:
			b.soak.Killed(b.operatorName())
			if kills == 2 && replica == 0 && b.apiKill {
				b.killServer()
			}
		default:
			if err != nil {
				pause(ctx, restartPause) // the API server is away
				kills++
			}
		}
	}
}

func (b *batch) operatorName() string {
	if b.bothLead {
		return "operator, of two that lead"
	}
	return "operator, leader of two"
}

// killServer kills the API server and starts it again.
func (b *batch) killServer() {
	b.Kill(b.t)
	b.soak.Killed("API server")
	b.Start(b.t)
}

// operateOnce runs an operator until ctx ends or it is killed.
func (b *batch) operateOnce(ctx context.Context, m *mortal) error {
	cfg := rest.CopyConfig(b.Config)
	cfg.Wrap(m.wrap)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	mgr, err := operator.New(life, cfg, operator.Options{
		RunnerImage: "runner:1", RunnerPullPolicy: "IfNotPresent", PolicyPrefix: "deckhand",
		LeaderElection: !b.bothLead, Namespace: b.namespace, Lease: shortLease,
		MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(life) }()
	select {
	case err := <-done:
		return err
	case <-m.died:
	case <-ctx.Done():
		m.die() // it is not awaited until it has ended its steps
	}
	if !b.leads(mgr) {
		end()
	}
	return <-done
}

// leads reports whether an operator has the lease. When it is dead it loses the lease, and ends
// by that: controller-runtime has a data race if its context ends before.
func (b *batch) leads(mgr ctrl.Manager) bool {
	select {
	case <-mgr.Elected():
		return !b.bothLead
	default:
		return false
	}
}

// awaitEnd waits until all Runs have ended, and returns them.
func (b *batch) awaitEnd(ctx context.Context) []v1alpha1.Run {
	for {
		var runs v1alpha1.RunList
		err := b.Admin.List(context.WithoutCancel(ctx), &runs, client.InNamespace(b.namespace))
		var running []string
		for i := range runs.Items {
			if run := &runs.Items[i]; run.Status.CompletionTime == nil {
				running = append(running, fmt.Sprintf("%s (pod killed %q): %s", run.Name, b.pods[run.Name], succeeded(run)))
			}
		}
		if err == nil && len(running) == 0 {
			return runs.Items
		}
		if ctx.Err() != nil {
			b.soak.Violated(b.number, soak.Deadline, "Runs have not ended (%v): %s", err, strings.Join(running, "; "))
			return nil
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// checkRun checks how a Run ended. One whose pod was lost after its effects began is not
// tried again; every other finishes.
func (b *batch) checkRun(run *v1alpha1.Run) {
	want, most := v1alpha1.ReasonFinished, 1
	switch b.pods[run.Name] {
	case atEffects:
		want = v1alpha1.ReasonPodLost
	case atStart, atWork:
		most = 0
	case atNoTime:
	}
	reason, _, _ := strings.Cut(succeeded(run), ":")
	if reason != want {
		b.soak.Violated(b.number, soak.TerminalOnce, "Run %s, whose pod was killed %q, ended %s, want %s", run.Name, b.pods[run.Name], reason, want)
	}
	b.mu.Lock()
	n := b.effects[run.Name]
	b.mu.Unlock()
	became := map[string]int{}
	switch {
	case n != most:
		b.soak.Violated(b.number, soak.NothingRepeated, "the effect of Run %s happened %d times, want %d", run.Name, n, most)
	case n == 1 && reason == v1alpha1.ReasonFinished:
		became["done and reported as done"]++
	case n == 1:
		became["done and reported as interrupted"]++
	}
	b.soak.Ended(became)
}

// succeeded is the reason of a Run's condition Succeeded, and its message.
func succeeded(run *v1alpha1.Run) string {
	for _, c := range run.Status.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// shortLease is the shortest lease that client-go takes.
var shortLease = operator.Lease{Duration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond}

var errKilled = errors.New("the operator was killed")
