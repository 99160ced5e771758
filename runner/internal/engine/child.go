package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/internal/digest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// commission has a child Run do a piece of work, and waits for how it ends. A
// call asks once: whoever takes it up again goes on with what was asked then, as
// whoever takes up a session goes on with its prompt.
func (j *job) commission(ctx context.Context, d tool.Delegation) (tool.Result, error) {
	s := j.session
	switch {
	case !s.CanStartRuns:
		return tool.Result{Error: &tool.Error{Message: fmt.Sprintf(resultNoCluster, d.Agent), Recommendations: []string{adviceAlone}}}, nil
	case !j.only():
		return tool.Fail(resultTwice), nil
	}
	asked, wrong, err := s.delegated(d)
	if wrong != nil || err != nil {
		return tool.Result{Error: wrong}, err
	}
	if _, over := s.childOf(asked.ID); !over {
		_, _, err = s.await(ctx, s.requestOfChild(asked))
	}
	if errors.Is(err, errStopped) {
		return tool.Fail(fmt.Sprintf(resultAbandoned, asked.Delegation.Agent)), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	c, _ := s.childOf(asked.ID)
	return resultOfChild(asked.Delegation.Agent, c), nil
}

// delegated is what a call asks for, recorded before anybody is shown it, or what
// is wrong with it.
func (s *session) delegated(d tool.Delegation) (state.Asked, *tool.Error, error) {
	if asked, known := s.commissioned(d.Call); known {
		return asked, nil, nil
	}
	args, err := digest.Canonical(d.Input)
	switch {
	case err != nil:
		return state.Asked{}, &tool.Error{Message: fmt.Sprintf(resultAmbiguous, err)}, nil
	case len(args) > task.MaxDelegated:
		return state.Asked{}, &tool.Error{
			Message: fmt.Sprintf(resultInputLarge, len(args), d.Agent, task.MaxDelegated), Recommendations: []string{adviceShorter},
		}, nil
	}
	if err := s.record(journal.Record{Kind: journal.KindAsk, Request: &journal.Request{
		ID: s.freeFor(d.Call), CallID: d.Call, Digest: digest.Call(d.Agent, args),
		Delegation: &journal.Delegation{Agent: d.Agent, Args: string(args)},
	}}); err != nil {
		return state.Asked{}, nil, fmt.Errorf("recording a request: %w", err)
	}
	asked, _ := s.commissioned(d.Call)
	return asked, nil, nil
}

// commissioned is the child Run that a call has asked for, if it has.
func (s *session) commissioned(call string) (asked state.Asked, known bool) {
	s.state.ViewSession(s.name, func(now *state.Session) { asked, known = now.Delegated(call) })
	return asked, known
}

// freeFor names what a call asks for as nothing is named that was asked about it.
func (s *session) freeFor(call string) (id string) {
	s.state.ViewSession(s.name, func(now *state.Session) { id = freeID(call, "", now.Requests[call], nil) })
	return id
}

// childOf is how the child Run of a request ended, if it is known.
func (s *session) childOf(request string) (c journal.Child, over bool) {
	s.state.ViewSession(s.name, func(now *state.Session) { c, over = now.Children[request] })
	return c, over
}

// requestOfChild is what the operator is asked, as it is shown.
func (s *session) requestOfChild(asked state.Asked) *request {
	return &request{
		session: s, errand: forChild, since: asked.Since,
		Pending: task.Pending{
			ID: asked.ID, Kind: task.PendingDelegation, Agent: asked.Delegation.Agent,
			Args: asked.Delegation.Args, Digest: asked.Digest,
		},
	}
}

// heed takes in how child Runs ended that calls wait for. It is called wherever
// somebody waits. What nothing waits for is nobody's: it was heard before, or
// never asked for.
func (r *run) heed(ended []task.Child) error {
	if len(ended) == 0 || !r.CanStartRuns {
		return nil
	}
	r.room.mu.Lock()
	defer r.room.mu.Unlock()
	if r.left.Load() != nil {
		return nil // the next attempt hears it
	}
	for _, c := range ended {
		q := r.room.find(c.Request)
		if q == nil || q.Kind != task.PendingDelegation {
			continue
		}
		if err := r.deliver(q, c); err != nil {
			return err
		}
	}
	return nil
}

// deliver records how a child Run ended, with what is charged for it, and hands
// it to the call that waits.
func (r *run) deliver(q *request, c task.Child) error {
	said := journal.Child{
		Request: q.ID, Run: task.Cut(c.Run, maxField), Reason: task.Cut(string(c.Reason), task.MaxReason),
		Message: task.Cut(r.Redact.String(c.Message), maxResult), Text: task.Cut(r.Redact.String(c.Text), maxResult),
		Output: r.output(c.Output), Usage: c.Usage.Charged(),
	}
	if err := q.session.recordUse(journal.Record{Kind: journal.KindChild, Child: &said}, said.Usage); err != nil {
		return fmt.Errorf("recording how the child Run of %s ended: %w", q.ID, err)
	}
	r.crew.hears()
	r.room.close(q)
	close(q.done)
	q.session.emit(endOfChild(q.Agent, said), events.ChildFinished{
		Session: q.ID, Run: said.Run, Agent: q.Agent, Reason: task.Reason(said.Reason), Usage: c.Usage,
	})
	r.tellNow()
	return nil
}

// output is the output of a child Run without secrets, and still JSON if it was.
func (r *run) output(output string) string {
	if !json.Valid([]byte(output)) {
		return r.Redact.String(output)
	}
	return string(r.Redact.JSON(json.RawMessage(output)))
}

// endOfChild says, for people, how a child Run ended.
func endOfChild(agent string, c journal.Child) string {
	if c.Run == "" {
		return fmt.Sprintf("There is no child Run of Agent %s: %s", agent, c.Message)
	}
	return fmt.Sprintf("Child Run %s of Agent %s ended: %s", c.Run, agent, c.Reason)
}

// resultOfChild is how a child Run ended, as the call reads it that asked for it.
func resultOfChild(agent string, c journal.Child) tool.Result {
	if c.Run == "" {
		return tool.Fail(fmt.Sprintf(resultRefusedRun, agent, c.Message), adviceAlone)
	}
	out := Outcome{Reason: task.Reason(c.Reason), Message: c.Message, Text: c.Text}
	if c.Output != "" {
		out.Output = json.RawMessage(c.Output)
	}
	return resultOf(agent, out)
}
