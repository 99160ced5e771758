package run

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// isWaiting reports whether the runner waits for a user, a child Run or a model, or is paused.
func isWaiting(s state) bool {
	p := s.progress()
	if p == nil {
		return false
	}
	switch p.State {
	case v1alpha1.ReasonAwaitingAnswer, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonAwaitingChild, v1alpha1.ReasonPaused,
		v1alpha1.ReasonWaitingForModel, v1alpha1.StateRateLimited:
		return true
	}
	return false
}

// waitsFor returns what the runner reports that it waits for, as reason and message of Succeeded; empty: it works.
func waitsFor(s state) (reason, message string) {
	switch p := s.progress(); p.State {
	case v1alpha1.ReasonWaitingForModel, v1alpha1.StateRateLimited:
		return v1alpha1.ReasonWaitingForModel, modelWaitMessage(s)
	case v1alpha1.ReasonPaused:
		return p.State, children.PausedMessage(s.run)
	case v1alpha1.ReasonAwaitingChild:
		return p.State, childrenMessage(s)
	case v1alpha1.ReasonAwaitingAnswer, v1alpha1.ReasonAwaitingApproval:
		return p.State, decisions.PendingMessage(s.run.Name, p.Pending, s.finalDecisions)
	}
	return "", ""
}

// maxSignals is the maximum size of the signals of a pod in bytes.
const maxSignals = 8 << 10

// signalCheckInterval is how soon the effect of a signal is checked.
const signalCheckInterval = time.Second

// signalsPending sends the runner Decisions and results of child Runs.
func signalsPending(s state) (plan, bool) {
	pod := s.pod()
	if s.progress() == nil || !runnerpod.IsAlive(pod) {
		return plan{}, false
	}
	told := runnerpod.SignalsIn(pod)
	decided, ended := pendingDecisions(s, told), pendingChildResults(s, s.progress(), told.Children)
	if slices.EqualFunc(told.Decisions, decided, task.Decision.Equal) && equalChildren(told.Children, ended) && signalRetryIn(s, told) != signalRetryInterval {
		return plan{}, false
	}
	told.Decisions, told.Children, told.SentAt = decided, ended, 0
	if len(decided)+len(ended) > 0 {
		told.SentAt = s.now.Unix()
	}
	return plan{signal: pod, signals: told, wake: signalCheckInterval}, true
}

// signalRetryInterval is how long the runner may take to act on signals before they are sent again. A kubelet usually
// delivers a changed annotation within a second. If it missed a change, the next change delivers it.
const signalRetryInterval = 20 * time.Second

// signalRetryIn returns in how long unanswered signals are sent again: 0 if there are none, signalRetryInterval if they
// are due now.
func signalRetryIn(s state, told task.Signals) time.Duration {
	if len(told.Decisions)+len(told.Children) == 0 {
		return 0
	}
	if left := signalRetryInterval - s.now.Sub(time.Unix(told.SentAt, 0)); left > 0 {
		return min(left, signalRetryInterval-1)
	}
	return signalRetryInterval
}

// maxDelivered is how many Decisions are sent at once. The runner reports only the last ones that it acted on, so this
// must be smaller.
const maxDelivered = task.MaxDecided / 2

// pendingDecisions returns the Decisions that the runner can use and has not acted on: as many as fit, at least one,
// oldest first, messages last.
func pendingDecisions(s state, told task.Signals) []task.Decision {
	before := told.Decisions
	told.Decisions, told.Children = nil, nil
	for _, d := range deliveryOrder(s.decisions) {
		v := decisions.Evaluate(s.run, d)
		was := slices.IndexFunc(before, func(sent task.Decision) bool { return sent.Name == d.Name })
		switch {
		case v.Deliver:
		case was >= 0 && v.Applied == metav1.ConditionUnknown:
			v.Request = before[was].Request // the signal was sent, and the runner has not acted on it yet
		default:
			continue
		}
		had := told.Decisions
		told.Decisions = append(had, decisionForRunner(d, v.Request))
		if len(had) == maxDelivered || len(had) > 0 && len(runnerpod.ToJSON(told)) > maxSignals {
			return had
		}
	}
	return told.Decisions
}

// deliveryOrder returns Decisions in the order in which they are sent.
func deliveryOrder(all []v1alpha1.Decision) []*v1alpha1.Decision {
	var pressing, messages []*v1alpha1.Decision
	for i := range all {
		if all[i].Spec.Type == v1alpha1.DecisionMessage {
			messages = append(messages, &all[i])
			continue
		}
		pressing = append(pressing, &all[i])
	}
	return append(pressing, messages...)
}

// classifyDecisions returns the Decisions that can be acted on, and the sum of the grants that a runner of this Run
// applied. It ignores Decisions of an earlier Run of the same name, and Decisions that the Run does not own yet,
// because these could be deleted after they were applied.
func classifyDecisions(run *v1alpha1.Run, all []v1alpha1.Decision) (open []v1alpha1.Decision, granted task.Limits) {
	for i := range all {
		d := &all[i]
		if !decisions.IsProtected(run, d) {
			continue
		}
		if !decisions.IsFinal(d) {
			open = append(open, *d)
			continue
		}
		if meta.IsStatusConditionTrue(d.Status.Conditions, v1alpha1.ConditionApplied) {
			g := decisionForRunner(d, "")
			granted.Steps += g.Steps
			granted.Tokens += g.Tokens
			granted.CostMicroUSD += g.CostMicroUSD
		}
	}
	return open, granted
}

func decisionMissing(s state) (plan, bool) {
	if s.missingDecision == "" {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonDecisionMismatch, fmt.Sprintf("The runner acted on Decision %s, which does not exist, or was refused, or decides something else: it was deleted although an admission policy protects it, or the runner was not told by the operator. Do not trust what the Run did: read the log of its pod and the audit log of the cluster", s.missingDecision)), true
}

// withGrants adds the grants to earlier attempts to limits, because a journal without a volume is lost with its pod. A
// limit that is not set stays unset.
func withGrants(l, granted task.Limits) task.Limits {
	l.Steps += granted.Steps
	if l.Tokens > 0 {
		l.Tokens += granted.Tokens
	}
	if l.CostMicroUSD > 0 {
		l.CostMicroUSD += granted.CostMicroUSD
	}
	return l
}

// decisionForRunner returns a Decision in the form for the runner. Values that the schema should have refused are
// ignored.
func decisionForRunner(d *v1alpha1.Decision, request string) task.Decision {
	out := task.Decision{
		Name:    d.Name,
		By:      d.Spec.By,
		Request: request,
		Type:    string(d.Spec.Type),
		Value:   d.Spec.Value,
		Images:  d.Spec.Images,
		Digest:  d.Spec.Digest,
		Scope:   string(d.Spec.Scope),
		Reason:  d.Spec.Reason,
	}
	g := d.Spec.Grant
	if g == nil {
		return out
	}
	if g.Steps != nil {
		out.Steps = int64(*g.Steps)
	}
	if g.Tokens != nil {
		out.Tokens, _ = g.Tokens.Count()
	}
	if g.Cost != nil {
		out.CostMicroUSD, _ = g.Cost.MicroUSD()
	}
	return out
}
