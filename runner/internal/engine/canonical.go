package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/internal/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// canonicalTimeout bounds how long a tool may take to make the arguments of a
// call canonical: a file system may hang.
const canonicalTimeout = 30 * time.Second

// What the model reads of a call whose arguments have no canonical form.
const (
	resultUncanonical = "The arguments of %s could not be checked: %v. The call was not made; try it again."
	resultMisfit      = "The arguments of %s could not be checked: their canonical form does not fit the tool: %s"
)

// canonicalize makes the arguments of a call canonical, once, before any layer
// sees them. The transcript keeps what the model wrote.
func (j *job) canonicalize(ctx context.Context) {
	if j.refusal != nil || j.args != nil {
		return
	}
	args, refused := j.canonical(ctx, j.call.Args)
	if refused != nil && ctx.Err() == nil {
		j.refusal = refused
		return
	}
	if refused != nil {
		args = j.call.Args // the call is not made any more
	}
	j.args = args
}

// canonical is the canonical form of arguments that fit the tool. Arguments that
// were judged in an earlier attempt keep the form that was judged then, though
// they would resolve to something else by now: the tool refuses that form if it
// is no longer canonical.
func (j *job) canonical(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	if _, ok := j.tool.(tool.Canonicalizer); !ok {
		return args, nil
	}
	s := j.session
	j.written = digest.Call(j.call.Name, args)
	if judged, ok := s.judged(j.call.ID, j.written); ok {
		return judged, nil
	}
	made, refused := j.resolve(ctx, args)
	if refused != nil || string(made) == string(args) {
		return made, refused
	}
	made = s.Redact.JSON(made)
	if wrong := s.Tools.Check(j.call.Name, made); wrong != nil {
		return nil, &tool.Error{Message: fmt.Sprintf(resultMisfit, j.call.Name, wrong.Message)}
	}
	return made, nil
}

// judged is the canonical form with which a call was judged or begun already.
func (s *session) judged(call, written string) (args json.RawMessage, known bool) {
	s.state.ViewSession(s.name, func(now *state.Session) { args, known = now.Canonical(call, written) })
	return args, known
}

// resolve asks the tool for the canonical form, for no longer than it may take.
// A panic in the tool refuses the call.
func (j *job) resolve(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, canonicalTimeout, errTimeout)
	defer cancel()
	type form struct {
		args    json.RawMessage
		refused *tool.Error
	}
	came := make(chan form, 1)
	go func() {
		var f form
		defer func() {
			if p := recover(); p != nil {
				f = form{refused: &tool.Error{Message: fmt.Sprintf(resultUncanonical, j.call.Name, fmt.Sprintf("the tool crashed: %v", p))}}
			}
			came <- f
		}()
		f.args, f.refused = tool.Canonical(ctx, j.tool, args)
	}()
	select {
	case f := <-came:
		return f.args, f.refused
	case <-ctx.Done():
		return nil, &tool.Error{Message: fmt.Sprintf(resultUncanonical, j.call.Name, context.Cause(ctx))}
	}
}

// Allows reports whether policies let a call be made without a person.
type Allows func(ctx context.Context, name string, args json.RawMessage) bool

// Allows implements [tool.Session].
func (j *job) Allows(ctx context.Context, name string, args json.RawMessage) bool {
	return j.session.allows(ctx, name, args)
}

// HasPolicy implements [tool.Session].
func (j *job) HasPolicy() bool { return j.session.governed() }

func (s *session) allows(ctx context.Context, name string, args json.RawMessage) bool {
	if !s.governed() {
		return true
	}
	v, _ := s.judge(ctx, step.Call{Name: name, Args: args}, "")
	return v.Answer == Allow
}
