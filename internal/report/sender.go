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
	opts     Options
	sequence int64
	began    time.Time
	since    time.Time // of the first that was accepted
	next     time.Time // before this, only what somebody waits for is written
	unknown  time.Time // since when nothing is said but that the token is refused
	sealing  bool      // a committed result is sent, and its answer is not known
	less     int       // how much is left out, because the schema refused it
}

// try sends p once. The pause is 0 when it was accepted, else how long to wait
// at least before the next try; an error means that there is none.
func (s *sender) try(ctx context.Context, p task.Progress) (time.Duration, error) {
	s.sequence = max(s.sequence+1, s.opts.Now().UnixMilli())
	p.Sequence = s.sequence
	ans, err := s.opts.Target.patch(ctx, shrink(p, s.less))
	pause, end := firstPause, error(nil)
	if err == nil {
		pause, end = s.learn(ans)
	} else {
		s.opts.Log.Warn("Reporting progress failed; trying again", "error", err)
		s.unknown = time.Time{}
	}
	s.sealing = end == nil && pause > 0 && p.Result != nil && p.Result.Committed
	if pause > 0 && s.since.IsZero() && s.opts.Now().Sub(s.began) >= maxFirst {
		return 0, neverAccepted(ans, err)
	}
	return pause, end
}

// learn is what an answer means for the next try.
func (s *sender) learn(ans answer) (time.Duration, error) {
	verdict := judge(ans.status, ans.body)
	if verdict != unknown {
		s.unknown = time.Time{}
	}
	switch {
	case verdict == accepted, s.sealing && sealed(ans.body):
		s.accepted()
		return 0, nil
	case verdict == fenced, verdict == unknown && s.staysUnknown():
		return s.fenced(ans)
	case verdict == invalid:
		return s.shrunk(ans)
	}
	return max(ans.retryAfter, firstPause), nil
}

// staysUnknown says whether the token was refused for too long.
func (s *sender) staysUnknown() bool {
	now := s.opts.Now()
	if s.unknown.IsZero() {
		s.unknown = now
	}
	return now.Sub(s.unknown) >= maxUnknown
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
	s.less = 0 // another report may fit
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < eagerFor {
		s.next = now.Add(eager)
		return
	}
	s.next = now.Add(s.opts.Jitter(usual))
}

// fenced ends the attempt, if it ever counted. If it did not, it may yet.
func (s *sender) fenced(ans answer) (time.Duration, error) {
	if s.since.IsZero() {
		return firstPause, nil
	}
	return 0, task.End(task.ReasonFenced, "%s", whyFenced(ans))
}

// shrunk leaves more out the next time. There is an end to that.
func (s *sender) shrunk(ans answer) (time.Duration, error) {
	s.opts.Log.Error("The API server refuses our report; leaving more out", "status", ans.status, "answer", task.Cut(ans.body, task.MaxMessage))
	if s.less == leastProgress {
		return 0, task.End(task.ReasonRunnerFailed, "The API server refuses what the runner reports: %s", task.Cut(ans.message(), task.MaxMessage/2))
	}
	s.less++
	return firstPause, nil
}

// leastProgress is when there is nothing more to leave out.
const leastProgress = 3

// shrink leaves out of p what can be done without, the more the higher level.
func shrink(p task.Progress, level int) task.Progress {
	if level >= 1 {
		p.Recent, p.Step = nil, nil
	}
	if level >= 2 && p.Result != nil {
		less := *p.Result
		less.Files = nil
		if level >= leastProgress {
			less.Text, less.Message = "", task.Cut(less.Message, task.MaxSummary)
		}
		p.Result = &less
	}
	if level >= leastProgress {
		p.Model = ""
	}
	return p
}

func asEnd(err error) (*task.EndError, bool) {
	return errors.AsType[*task.EndError](err)
}
