// Package enginetest has the fakes that the tests of the engine, of its tool calls and of its approvals share.
package enginetest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Ends makes a tool end the session.
func Ends(s *tool.Spec) { s.Internal = facts.Facts{Ends: true}.Internal() }

// A Toolbox has a few tools. Arguments fit if they are a JSON object; invalid JSON is kept as a string.
type Toolbox []tool.Tool

// Specs returns what a model learns about the tools.
func (t Toolbox) Specs() []step.Tool {
	all := make([]step.Tool, len(t))
	for i, one := range t {
		all[i] = step.Tool{Name: one.Name, Description: one.Description, Input: one.Input}
	}
	return all
}

// Find returns a tool by its name.
func (t Toolbox) Find(name string) (tool.Tool, bool) {
	i := slices.IndexFunc(t, func(one tool.Tool) bool { return one.Name == name })
	if i < 0 {
		return tool.Tool{}, false
	}
	return t[i], true
}

// Read returns the arguments that a model wrote, as JSON.
func (Toolbox) Read(_, raw string) json.RawMessage {
	switch {
	case raw == "":
		return json.RawMessage("{}")
	case json.Valid([]byte(raw)):
		return json.RawMessage(raw)
	}
	quoted, _ := json.Marshal(raw)
	return quoted
}

// Check returns what is wrong with arguments.
func (Toolbox) Check(_ string, args json.RawMessage) *tool.Error {
	if args[0] != '{' {
		return &tool.Error{Message: "the arguments are not valid JSON"}
	}
	return nil
}

// A Session is a session in a journal in memory, with what approvers and the operator tell its runner.
type Session struct {
	Store   *state.Store
	Journal *journal.Memory
	Signals *signals.Latest
	// Refuse is the error of appending a record of a kind; Recording, if it is set, is called before all others.
	Refuse    map[journal.Kind]error
	Recording func(journal.Kind)
}

// NewSession returns an empty session.
func NewSession() *Session {
	log := &journal.Memory{}
	return &Session{Store: state.NewStore(log, "scout"), Journal: log, Signals: &signals.Latest{}}
}

// Record appends to the journal.
func (s *Session) Record(r journal.Record) error {
	if err := s.Refuse[r.Kind]; err != nil {
		return err
	}
	if s.Recording != nil {
		s.Recording(r.Kind)
	}
	r.At = time.Now()
	return s.Store.Record(func() journal.Record { return r }, func() {})
}

// RecordChild appends how a child Run ended.
func (s *Session) RecordChild(c journal.Child) error {
	return s.Record(journal.Record{Kind: journal.KindChild, Child: &c})
}

// AddTurn appends what a user said, and the turn of a model with calls, each written as "Tool args".
func (s *Session) AddTurn(finish step.Finish, calls ...string) error {
	last := s.Store.Session("").Last
	turn := step.Step{Seq: last + 2, Role: step.RoleAssistant, Finish: finish}
	for i, written := range calls {
		name, args, _ := strings.Cut(written, " ")
		turn.Calls = append(turn.Calls, step.Call{ID: step.CallID("", turn.Seq, i+1), Name: name, Args: json.RawMessage(args)})
	}
	for _, st := range []step.Step{{Seq: last + 1, Role: step.RoleUser}, turn} {
		if err := s.Record(journal.Record{Kind: journal.KindStep, Step: &st}); err != nil {
			return err
		}
	}
	return nil
}

// Decide makes Decisions.
func (s *Session) Decide(all ...task.Decision) {
	s.Signals.Update(func(now *signals.Signals) { now.Decisions = append(slices.Clip(now.Decisions), all...) })
}
