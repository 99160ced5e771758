package engine

import (
	"context"
	"time"
)

// A vigil is one branch of the work that waits for what comes of a request: what
// people decide, or how a child Run ends.
type vigil struct {
	*session
	q *request
	// late rings when no Decision was made in time, settled when all have waited for a
	// moment, away when the runner might leave.
	late, settled, away *time.Timer
}

// watch begins to wait.
func (s *session) watch(q *request, expires time.Time) *vigil {
	v := &vigil{
		session: s, q: q,
		late: time.NewTimer(expires.Sub(s.Now())), settled: time.NewTimer(steady), away: time.NewTimer(s.Hold),
	}
	if expires.IsZero() {
		v.late.Stop() // it waits for as long as it takes
	}
	if !s.Durable {
		v.away.Stop()
	}
	return v
}

// bells are what tells that there is something to hear: of people, and of child
// Runs. A nil channel never does.
type bells struct{ said, ended <-chan struct{} }

// bells returns what tells of anything from now on.
func (r *run) bells() (b bells) {
	if r.People != nil {
		b.said = r.People.Said()
	}
	if r.Children != nil {
		b.ended = r.Children.Said()
	}
	return b
}

// listen acts on what people said and takes in how child Runs ended.
func (v *vigil) listen() error {
	if _, err := v.hear(v.session); err != nil {
		return err
	}
	return v.heed()
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
	b, change, turned := v.bells(), v.crew.change(), v.turned()
	if err := v.listen(); err != nil {
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
		v.away.Reset(v.withdraw(b))
	case <-b.said:
	case <-b.ended:
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
