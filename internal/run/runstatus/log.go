package runstatus

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// The operator logs one line for each attempt, each reason to wait or retry, and the end of a Run. The
// logger of a reconcile adds the namespace and the name. Messages are not logged: models and
// users write parts of them, and the Run has them.

// logWait logs that a Run began to wait.
func logWait(ctx context.Context, reason string, run *v1alpha1.Run) {
	runLog(ctx, run).Info("Run waits", "reason", reason)
}

// logEnd logs that a Run ended.
func logEnd(ctx context.Context, reason string, run *v1alpha1.Run) {
	l := runLog(ctx, run).WithValues("reason", reason, "failures", run.Status.Failures, "disruptions", run.Status.Disruptions)
	if end := run.Status.CompletionTime; end != nil {
		l = l.WithValues("duration", end.Sub(run.CreationTimestamp.Time).Round(time.Second).String())
	}
	if p := run.Status.Progress; p != nil {
		l = l.WithValues("steps", p.Counts.Steps, "tokens", p.Usage.TotalTokens)
		if p.Usage.CostMicroUSD != nil {
			l = l.WithValues("costUSD", float64(*p.Usage.CostMicroUSD)/1e6)
		}
	}
	l.Info("Run ended")
}

// logAttempt logs an attempt that was started, and what became of the one before.
func logAttempt(ctx context.Context, before v1alpha1.RunStatus, run *v1alpha1.Run) {
	after := run.Status.Attempt
	if after == nil || before.Attempt != nil && before.Attempt.Number == after.Number {
		return
	}
	l := runLog(ctx, run).WithValues("attempt", after.Number, "pod", after.Pod)
	if before.Attempt != nil {
		l = l.WithValues("failures", run.Status.Failures, "disruptions", run.Status.Disruptions)
	}
	l.Info("Attempt started")
}

func runLog(ctx context.Context, run *v1alpha1.Run) logr.Logger {
	l := log.FromContext(ctx)
	if run.Spec.Workflow != "" {
		return l.WithValues("workflow", run.Spec.Workflow)
	}
	return l.WithValues("agent", run.Spec.Agent)
}
