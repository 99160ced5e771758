package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// modelWaitMessage returns the message of a Run that waits for a model. It changes with the cause, but not with each
// try: progress.modelWait has the time of the next try.
func modelWaitMessage(s state) string {
	w := s.progress().ModelWait
	if w == nil { // an older runner
		return "The provider of the model asks to wait; the Run continues automatically"
	}
	message := unavailable(w)
	if w.Promised && w.NextTryAt != nil {
		return fmt.Sprintf("%s. The provider asks to wait until %s; the Run continues then", message, utc(w.NextTryAt.Time))
	}
	message += ". The Run asks it again, and continues when it answers"
	if until, bounded := outageEnds(s, w); bounded && until.After(s.now) {
		return runstatus.WithDeadline(message, until, 24*time.Hour, "limits.modelOutage")
	}
	return message
}

// outageEndsIn returns how long the time in the message of a wait for a model is still in the future; 0: the message
// has none, or it has passed during the last try.
func outageEndsIn(s state) time.Duration {
	if w := s.progress().ModelWait; w != nil && !w.Promised {
		if until, bounded := outageEnds(s, w); bounded {
			return max(until.Sub(s.now), 0)
		}
	}
	return 0
}

// unavailable describes which Model is unavailable, since when, and why.
func unavailable(w *v1alpha1.ModelWait) string {
	return sentence(fmt.Sprintf("Model %s is unavailable since %s", w.Model, utc(w.Since.Time)), strings.TrimRight(w.Message, "."))
}

// utc formats a time for messages about models. It has the date, because a wait may continue past midnight.
func utc(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// outageEnds returns when limits.modelOutage ends a wait; false: that is not known, or the next try is later because a
// provider named a time.
func outageEnds(s state, w *v1alpha1.ModelWait) (time.Time, bool) {
	if s.revision == nil {
		return time.Time{}, false
	}
	until := w.Since.Add(snapshot.ModelOutage(s.limits().task))
	return until, w.NextTryAt == nil || !w.NextTryAt.After(until)
}

// nextTry returns when the model that the runner waits for is asked again; nil: it waits for none.
func nextTry(s state) *time.Time {
	w := s.progress().ModelWait
	if w == nil || w.NextTryAt == nil {
		return nil
	}
	return &w.NextTryAt.Time
}

// gaveUp reports whether the runner ended because it had waited for a model as long as limits allow. Another attempt
// would only wait again. The termination message of an older runner does not say it: then the last report and the time
// of the end must do, which are wrong after an outage whose end was not reported.
func gaveUp(s state, r *v1alpha1.Result) bool {
	if r.Reason != v1alpha1.ReasonModelUnavailable {
		return false
	}
	p, t := s.progress(), runnerpod.Termination(s.pod())
	switch {
	case t != nil && t.GaveUp != nil && t.Attempt == int(s.attempt()):
		return *t.GaveUp
	case p == nil || p.ModelWait == nil:
		return false
	case p.ModelWait.NextTryAt == nil || p.Result != nil:
		return p.ModelWait.NextTryAt == nil
	}
	until, bounded := outageEnds(s, p.ModelWait) // the runner ended without an API server to report to
	return bounded && !endedAt(s).Before(until)
}

// waitAtEnd returns the wait for a model of a Run whose runner has ended, as the runner would have reported it.
func waitAtEnd(w *v1alpha1.ModelWait, t task.Termination) *v1alpha1.ModelWait {
	switch {
	case w == nil || t.Result.Reason != task.ReasonModelUnavailable || t.GaveUp != nil && !*t.GaveUp:
		return nil
	case t.GaveUp != nil:
		w.NextTryAt = nil
	}
	return w
}

// afterOutage adds to the message of a Run that gave up waiting for a model what is kept of its work.
func afterOutage(s state, message string) string {
	end := ". "
	if s.hasSideEffects() {
		end += "The agent had already changed something: check what was changed. "
	}
	end += "A new Run begins from the start"
	if children.ParentOf(s.run) == nil {
		end += fmt.Sprintf(" (kubectl deckhand run --from run/%s -n %s)", s.run.Name, s.run.Namespace)
	}
	if s.durable() {
		end += "; the files of this one stay on its volume for as long as spec.retention of the Agent says"
	} else {
		end += "; the files of this one ended with its pod"
	}
	return task.Cut(strings.TrimRight(message, "."), task.MaxMessage-len(end)) + end
}
