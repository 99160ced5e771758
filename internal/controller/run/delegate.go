package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// quotaInterval is how soon the creation of a child Run is tried again after a quota refused it.
const quotaInterval = 15 * time.Second

// create creates a child Run. Reservations of other children are computed from the cache, so nothing is created if the
// cache is old. The cache is not old if it has the parent's record of the last child: it then has that child, too.
func (c childRuns) create(ctx context.Context, s state, p plan) (facts, error) {
	var is v1alpha1.Run
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(s.run), &is); client.IgnoreNotFound(err) != nil {
		return facts{}, fmt.Errorf("getting Run %s: %w", s.run.Name, err)
	}
	if is.UID != s.run.UID || !slices.Equal(is.Status.Internal.Delegated, s.run.Status.Internal.Delegated) {
		return facts{outdated: true}, nil
	}
	_, err := children.Create(ctx, c.client, c.live, children.Child{Run: p.child, Names: childNames(s.run, p.request.ID), Is: isChildFor(s.run, p.child)})
	switch {
	case err == nil:
		return facts{}, nil
	case isAnswerToChild(err):
		return facts{childRefused: err, childRequest: p.request.ID}, nil
	}
	return facts{}, fmt.Errorf("creating Run %s: %w", p.child.Name, err)
}

// isAnswerToChild reports whether an error is about this child Run: it is invalid, its names are taken, or the operator
// lacks a permission.
func isAnswerToChild(err error) bool {
	_, taken := errors.AsType[*children.NamesTakenError](err)
	return taken || isAnswer(err) || apierr.Classify(err) == apierr.Forbidden
}

// requestedAt returns since when a runner has waited for a child Run. Without a time in its report, that is now.
func requestedAt(s state, request string) time.Time {
	if p := s.progress(); p != nil {
		for i := range p.Pending {
			if p.Pending[i].ID == request && p.Pending[i].AskedAt != nil {
				return p.Pending[i].AskedAt.Time
			}
		}
	}
	return s.now
}

// isChildFor returns a function that reports whether a Run is the child for the same parent and request.
func isChildFor(parent, child *v1alpha1.Run) func(*v1alpha1.Run) bool {
	return func(existing *v1alpha1.Run) bool {
		return isChild(existing, parent) && existing.Labels[v1alpha1.LabelRequest] == child.Labels[v1alpha1.LabelRequest]
	}
}

// mayPass returns for an error of creating a child Run: the message and the reason while it waits, and how soon the
// request is sent again; 0: never, because the error is about this child.
func mayPass(err error) (message, reason string, retry time.Duration) {
	if taken, is := errors.AsType[*children.NamesTakenError](err); is {
		return fmt.Sprintf("The names %s are used by Runs that are not part of this one. Delete those Runs", strings.Join(taken.Names, " and ")), v1alpha1.ReasonAwaitingChild, maxRefusedWait
	}
	switch apierr.Classify(err) {
	case apierr.Terminating:
		return "The namespace is being deleted", v1alpha1.ReasonAwaitingChild, maxRefusedWait
	case apierr.Forbidden:
		return apierr.Describe(err), v1alpha1.ReasonAwaitingChild, maxRefusedWait
	case apierr.Quota:
		return "The namespace's ResourceQuota has no room for a child Run. Raise it, or delete finished Runs: " + apierr.Text(err), v1alpha1.ReasonQuotaExceeded, quotaInterval
	default:
		return "The API server refused the child Run: " + apierr.Text(err), "", 0
	}
}

// childRefusal returns the plan after the API server refused a child Run. It waits, limits.pending at most, if the
// cause may pass, and reports any other cause to the agent. If the runner has ended, another attempt starts to report
// it, after a delay because the agent may request the child again.
func childRefusal(s state) plan {
	message, reason, retry := mayPass(s.facts.childRefused)
	if retry > 0 {
		limit := s.limits().pending
		if left := limit - s.now.Sub(requestedAt(s, s.facts.childRequest)); left > 0 {
			return waiting(reason, task.Cut(message, task.MaxMessage), min(retry, left))
		}
		message = fmt.Sprintf("Timed out after %s (limits.pending). %s", limit, message)
	}
	message = task.Cut(message, task.MaxMessage)
	pod := s.pod()
	if !runnerpod.IsAlive(pod) {
		if age := s.now.Sub(reportedAt(s)); age >= 0 && age < maxRefusedWait { // the runner's clock may be ahead
			return waiting(v1alpha1.ReasonAwaitingChild, message, maxRefusedWait-age)
		}
		return resume(s)
	}
	told := runnerpod.SignalsIn(pod)
	told.Children = append(told.Children, task.Child{Request: s.facts.childRequest, Message: message})
	told.SentAt = s.now.Unix()
	return plan{signal: pod, signals: told, wake: signalCheckInterval}
}
