package engine

import (
	"context"
	"time"
)

// A vigil is one branch of the work that waits for what people decide on a
// request.
type vigil struct {
	*session
	q *request
	// late rings when nobody decided in time, settled when all have waited for a
	// moment, away when the runner might leave.
	late, settled, away *time.Timer
}

// watch begins to wait.
func (s *session) watch(q *request, expires time.Time) *vigil {
	v := &vigil{
		session: s, q: q,
		late: time.NewTimer(expires.Sub(s.Now())), settled: time.NewTimer(steady), away: time.NewTimer(s.Hold),
	}
	if !s.Durable {
		v.away.Stop()
	}
	return v
}

func (v *vigil) end() {
	v.late.Stop()
	v.settled.Stop()
	v.away.Stop()
}

// look waits for news and says whether the request is settled, one way or the
// other.
func (v *vigil) look(ctx context.Context) (bool, error) {
	// What tells of news is asked for before the news themselves.
	said, change, turned := v.People.Said(), v.crew.change(), v.turned()
	if _, err := v.hear(v.session); err != nil {
		return false, err
	}
	if v.stop() {
		return false, errStopped
	}
	if left := v.leaving(); left != nil {
		return false, left
	}
	select {
	case <-v.q.done:
		return true, nil
	case <-v.late.C:
		v.expire(v.q)
		return true, nil
	case <-change:
		v.settled.Reset(steady)
		v.depose()
	case <-v.settled.C:
		v.showState()
	case <-v.away.C:
		v.away.Reset(v.withdraw(said))
	case <-said:
	case <-turned:
		v.showState()
	case <-v.gone:
	case <-v.Interrupted:
	case <-v.Stopping:
		return false, errStopped
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return false, nil
}

// depose puts off when the runner might leave: something has changed.
func (v *vigil) depose() {
	if v.Durable {
		v.away.Reset(v.Hold)
	}
}
