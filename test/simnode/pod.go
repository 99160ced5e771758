package simnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/transport"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A pod is a pod that runs on the node.
type pod struct {
	node      *Node
	seen      *corev1.Pod // as it was when it came; never changed
	started   metav1.Time
	address   string
	deleted   chan struct{} // closed when it is being deleted, or gone
	terminate func()        // closes deleted
	gone      atomic.Bool   // the API server has deleted it
}

func newPod(n *Node, seen *corev1.Pod) *pod {
	p := &pod{node: n, seen: seen, deleted: make(chan struct{})}
	p.terminate = sync.OnceFunc(func() { close(p.deleted) })
	return p
}

func hasEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// An exit is how the first container of a pod ended.
type exit struct {
	code    int32
	message string
}

// live takes a pod from its first status to its deletion.
func (p *pod) live(ctx context.Context) {
	if !hasEnded(p.seen) && !p.isDeleted() {
		p.work(ctx)
	}
	select {
	case <-ctx.Done():
		return
	case <-p.deleted:
	}
	if p.gone.Load() { // a pod that has ended goes at once
		return
	}
	atOnce := int64(0)
	err := p.node.kubelet.CoreV1().Pods(p.seen.Namespace).Delete(ctx, p.seen.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &atOnce, Preconditions: &metav1.Preconditions{UID: &p.seen.UID},
	})
	if err != nil && !isGone(err) {
		p.fail(ctx, fmt.Errorf("deleting: %w", err))
	}
}

// work takes a pod from Running to its end.
func (p *pod) work(ctx context.Context) {
	p.started, p.address = metav1.NewTime(clock.Now()), p.node.address()
	p.patch(ctx, p.running())
	p.patch(ctx, p.ended(p.run(ctx)))
}

// isGone reports whether a request failed because the pod is gone, or another has its
// name.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// fail reports what could not be done, unless the node is stopping.
func (p *pod) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		p.node.options.Failed(fmt.Errorf("pod %s/%s: %w", p.seen.Namespace, p.seen.Name, err))
	}
}

func (p *pod) isDeleted() bool {
	select {
	case <-p.deleted:
		return true
	default:
		return false
	}
}

// run works as the pod's runner or container. The deletion of the pod interrupts it.
func (p *pod) run(ctx context.Context) exit {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.deleted:
			cancel()
		case <-ctx.Done():
		}
	}()
	if p.seen.Spec.ServiceAccountName == v1alpha1.RunnerServiceAccount {
		return p.runner(ctx)
	}
	if !wait(ctx, p.node.options.Work(p.seen)) {
		return exit{code: task.ExitInterrupted}
	}
	return exit{}
}

// wait reports whether d passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// patch writes the status of the pod, if it is still there.
func (p *pod) patch(ctx context.Context, status corev1.PodStatus) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.seen.UID}, "status": status})
	if err == nil {
		_, err = p.node.kubelet.CoreV1().Pods(p.seen.Namespace).Patch(ctx, p.seen.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	}
	if err != nil && !isGone(err) {
		p.fail(ctx, fmt.Errorf("patching its status: %w", err))
	}
}

func (p *pod) running() corev1.PodStatus {
	status := p.status(corev1.PodRunning, corev1.ConditionTrue)
	status.ContainerStatuses = p.containers(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.started}})
	return status
}

func (p *pod) ended(e exit) corev1.PodStatus {
	phase := corev1.PodSucceeded
	if e.code != 0 {
		phase = corev1.PodFailed
	}
	status := p.status(phase, corev1.ConditionFalse)
	status.ContainerStatuses = p.containers(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: e.code, Message: e.message, StartedAt: p.started, FinishedAt: metav1.NewTime(clock.Now()),
	}})
	return status
}

// status returns the fields of the status that both running and ended pods have.
func (p *pod) status(phase corev1.PodPhase, ready corev1.ConditionStatus) corev1.PodStatus {
	status := corev1.PodStatus{Phase: phase, StartTime: &p.started, PodIP: p.address, PodIPs: []corev1.PodIP{{IP: p.address}}}
	for kind, is := range map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodInitialized: corev1.ConditionTrue, corev1.ContainersReady: ready, corev1.PodReady: ready,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: is, LastTransitionTime: p.started})
	}
	for _, c := range p.seen.Spec.InitContainers {
		done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: p.started, FinishedAt: p.started}}
		if c.RestartPolicy != nil && phase == corev1.PodRunning {
			done = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.started}}
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: done, Ready: phase == corev1.PodRunning,
		})
	}
	return status
}

func (p *pod) containers(state corev1.ContainerState) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range p.seen.Spec.Containers {
		started := state.Running != nil
		out = append(out, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "simulated", ContainerID: "simulated://" + string(p.seen.UID),
			State: state, Ready: started, Started: &started,
		})
	}
	return out
}

// runner sends the reports of a runner whose agent reads one file and answers.
func (p *pod) runner(ctx context.Context) exit {
	var t task.Task
	if err := json.Unmarshal([]byte(p.seen.Annotations[v1alpha1.AnnotationTask]), &t); err != nil {
		p.fail(ctx, fmt.Errorf("reading its task: %w", err))
		return exit{code: task.ExitBadTask}
	}
	w := report.New(report.Options{
		First: t.Attempt == 1 && !t.Durable,
		Target: report.Target{
			URL: p.node.host, Run: t.Run, PodUID: string(p.seen.UID),
			Token:  func() (string, error) { return "impersonated", nil },
			Client: &http.Client{Transport: p.identity()},
		},
		Now:    clock.Now,
		Jitter: func(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }, //nolint:gosec // spreads load, keeps no secret
		Log:    slog.New(slog.DiscardHandler),
	})
	defer w.Close()
	begun := clock.Now()
	progress := task.Progress{Version: task.Version, Attempt: t.Attempt, Model: "simulated"}
	commit := func() error { return w.Commit(ctx, func() task.Progress { return progress }) }
	err := w.Begin(ctx, func() task.Progress { return progress })
	if effect := p.node.options.Effects(p.seen); err == nil && effect != nil {
		progress.Effects = task.EffectsBegun
		if err = commit(); err == nil {
			effect()
		}
	}
	if err == nil && wait(ctx, p.node.options.Work(p.seen)) {
		progress = finished(progress, clock.Now().Sub(begun))
		err = commit()
	}
	return p.exit(ctx, progress, err)
}

// finished returns the last report of a runner.
func finished(p task.Progress, took time.Duration) task.Progress {
	cost := int64(1200)
	p.Counts = task.Counts{Steps: 2, ModelCalls: 2, ToolCalls: 1}
	p.Usage = task.Usage{InputTokens: 2400, CacheReadTokens: 1100, OutputTokens: 180, TotalTokens: 1480, Cost: task.Money(cost), CostMicroUSD: &cost, Duration: task.Duration(int64(took.Seconds())), DurationSeconds: int64(took.Seconds())}
	p.Recent = []task.Recent{
		{ID: "s2", Kind: task.KindModel, Name: "simulated", Summary: "I read the file first.", DurationMs: 900},
		{ID: "s2c1", Kind: task.KindTool, Name: "Read", Summary: "/workspace/notes.txt", DurationMs: 3},
		{ID: "s4", Kind: task.KindModel, Name: "simulated", Summary: "The notes list three open questions.", DurationMs: 1100},
	}
	p.Result = &task.Result{Committed: true, Reason: task.ReasonFinished, Text: "The notes list three open questions: the date, the place and the number of guests."}
	return p
}

// exit returns the exit code of the runner's process and its termination message. A fenced runner has not failed: a
// runner that was replaced ends so.
func (p *pod) exit(ctx context.Context, last task.Progress, err error) exit {
	end, fenced := errors.AsType[*task.EndError](err)
	fenced = fenced && end.Reason == task.ReasonFenced
	result := task.Result{Reason: task.ReasonFinished}
	switch {
	case err == nil && last.Result != nil:
		result = *last.Result
	case fenced:
		result.Reason = task.ReasonFenced
	case ctx.Err() != nil:
		result.Reason = task.ReasonInterrupted
	default:
		result = task.Result{Reason: task.ReasonRunnerFailed, Message: err.Error()}
		p.fail(ctx, fmt.Errorf("reporting: %w", err))
	}
	message := task.Termination{Version: task.Version, Attempt: last.Attempt, Result: result, Counts: last.Counts, Usage: last.Usage}.Encode()
	return exit{code: int32(task.ExitCode(result.Reason)), message: string(message)} //nolint:gosec // exit codes are below 256
}

// identity returns a transport that impersonates the pod's ServiceAccount, with the name and UID of the pod as in a
// bound token.
func (p *pod) identity() http.RoundTripper {
	namespace := p.seen.Namespace
	return withoutToken{transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + p.seen.Spec.ServiceAccountName,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		Extra: map[string][]string{
			"authentication.kubernetes.io/pod-name": {p.seen.Name},
			"authentication.kubernetes.io/pod-uid":  {string(p.seen.UID)},
		},
	}, p.node.api)}
}

// withoutToken drops the token of a request, for which the transport below has
// credentials of its own.
type withoutToken struct{ http.RoundTripper }

func (t withoutToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	return t.RoundTripper.RoundTrip(r)
}
