package simnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/client-go/transport"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/task"
)

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
