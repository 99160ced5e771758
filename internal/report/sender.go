package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A sender makes one try after the other and remembers what they taught.
type sender struct {
	opts              Options
	sequence          int64
	began             time.Time
	since             time.Time // of the first that was accepted
	next              time.Time // before this, only what somebody waits for is written
	unauthorizedSince time.Time // since when nothing is said but that the token is refused
	committing        bool      // a committed result is sent, and its answer is not known
	reduction         int       // how much is left out, because the schema refused it
}

// try sends p once. The pause is 0 when it was accepted, else how long to wait
// at least before the next try; an error means that there is none.
func (s *sender) try(ctx context.Context, p task.Progress) (time.Duration, error) {
	s.sequence = max(s.sequence+1, s.opts.Now().UnixMilli())
	p.Sequence = s.sequence
	ans, err := s.opts.Target.patch(ctx, shrink(p, s.reduction))
	pause, end := firstPause, error(nil)
	if err == nil {
		pause, end = s.handleAnswer(ans)
	} else {
		s.opts.Log.Warn("Reporting progress failed; trying again", "error", err)
		s.unauthorizedSince = time.Time{}
	}
	s.committing = end == nil && pause > 0 && p.Result != nil && p.Result.Committed
	if pause > 0 && s.since.IsZero() && s.opts.Now().Sub(s.began) >= maxFirst {
		return 0, neverAccepted(ans, err)
	}
	return pause, end
}

// handleAnswer is what an answer means for the next try.
func (s *sender) handleAnswer(ans answer) (time.Duration, error) {
	outcome := classify(ans.status, ans.body)
	if outcome != unauthorized {
		s.unauthorizedSince = time.Time{}
	}
	switch {
	case outcome == accepted, s.committing && isAlreadyCommitted(ans.body):
		s.accepted()
		return 0, nil
	case outcome == fenced, outcome == unauthorized && s.unauthorizedTooLong():
		return s.fenced(ans)
	case outcome == invalid:
		return s.sendLess(ans)
	}
	return max(ans.retryAfter, firstPause), nil
}

// unauthorizedTooLong says whether the token was refused for too long.
func (s *sender) unauthorizedTooLong() bool {
	now := s.opts.Now()
	if s.unauthorizedSince.IsZero() {
		s.unauthorizedSince = now
	}
	return now.Sub(s.unauthorizedSince) >= maxUnauthorized
}

// neverAccepted ends an attempt that nobody has come to know.
func neverAccepted(ans answer, err error) error {
	last := fmt.Sprintf("HTTP %d: %s", ans.status, ans.message())
	if err != nil {
		last = err.Error()
	}
	return task.End(task.ReasonRunnerFailed, "The API server took no report of this runner for %s; its last answer: %s",
		maxFirst, task.Cut(last, task.MaxMessage/2))
}

// accepted plans the next write that nobody waits for.
func (s *sender) accepted() {
	now := s.opts.Now()
	s.reduction = 0 // another report may fit
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < youngFor {
		s.next = now.Add(youngInterval)
		return
	}
	s.next = now.Add(s.opts.Jitter(normalInterval))
}

// fenced ends the attempt, if it ever counted. If it did not, it may yet.
func (s *sender) fenced(ans answer) (time.Duration, error) {
	if s.since.IsZero() {
		return firstPause, nil
	}
	return 0, task.End(task.ReasonFenced, "%s", fencedReason(ans))
}

// sendLess leaves more out the next time. There is an end to that.
func (s *sender) sendLess(ans answer) (time.Duration, error) {
	s.opts.Log.Error("The API server refuses our report; leaving more out", "status", ans.status, "answer", task.Cut(ans.body, task.MaxMessage))
	if s.reduction == maxReduction {
		return 0, task.End(task.ReasonRunnerFailed, "The API server refuses what the runner reports: %s", task.Cut(ans.message(), task.MaxMessage/2))
	}
	s.reduction++
	return firstPause, nil
}

// maxReduction is when there is nothing more to leave out.
const maxReduction = 3

// shrink leaves out of p what can be done without, the more the higher level.
func shrink(p task.Progress, level int) task.Progress {
	if level >= 1 {
		p.Recent, p.Step = nil, nil
	}
	if level >= 2 && p.Result != nil {
		result := *p.Result
		result.Files = nil
		if level >= maxReduction {
			result.Text, result.Message = "", task.Cut(result.Message, task.MaxSummary)
		}
		p.Result = &result
	}
	if level >= maxReduction {
		p.Model = ""
	}
	return p
}

func asEnd(err error) (*task.EndError, bool) {
	return errors.AsType[*task.EndError](err)
}
