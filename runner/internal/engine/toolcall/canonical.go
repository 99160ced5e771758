package toolcall

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// canonicalTimeout bounds how long a tool may take to make the arguments of a
// call canonical: a file system may hang.
const canonicalTimeout = 30 * time.Second

// What the model reads of a call whose arguments have no canonical form.
const (
	ResultUncanonical      = "The arguments of %s could not be checked: %v. The call was not made; try it again."
	ResultInvalidCanonical = "The arguments of %s could not be checked: their canonical form does not fit the tool: %s"
)

// canonicalize makes the arguments of a call canonical, once, before any layer
// sees them. The transcript keeps what the model wrote.
func (t *toolCall) canonicalize(ctx context.Context) {
	if t.refusal != nil || t.args != nil {
		return
	}
	args, refused := t.canonical(ctx, t.call.Args)
	if refused != nil && ctx.Err() == nil {
		t.refusal = refused
		return
	}
	if refused != nil {
		args = t.call.Args // the call is not made any more
	}
	t.args = args
}

// canonical is the canonical form of arguments that fit the tool. Arguments that
// were judged in an earlier attempt keep the form that was judged then, though
// they would resolve to something else by now: the tool refuses that form if it
// is no longer canonical.
func (t *toolCall) canonical(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	if t.tool.Canonicalize == nil {
		return args, nil
	}
	r := t.runner
	t.written = digest.Call(t.call.Name, args)
	if judged, ok := r.recordedArgs(t.call.ID, t.written); ok {
		return judged, nil
	}
	made, refused := t.resolve(ctx, args)
	if refused != nil || string(made) == string(args) {
		return made, refused
	}
	made = r.config.Redact.JSON(made)
	if wrong := r.check(t.call.Name, made); wrong != nil {
		return nil, &tool.Error{Message: fmt.Sprintf(ResultInvalidCanonical, t.call.Name, wrong.Message)}
	}
	return made, nil
}

// recordedArgs is the canonical form with which a call was judged or begun already.
func (r *Runner) recordedArgs(call, written string) (args json.RawMessage, known bool) {
	r.config.State.ViewSession(r.options.Name, func(now *state.Session) { args, known = now.Canonical(call, written) })
	return args, known
}

// resolve asks the tool for the canonical form, for no longer than it may take.
// A panic in the tool refuses the call.
func (t *toolCall) resolve(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, canonicalTimeout, errTimeout)
	defer cancel()
	type form struct {
		args    json.RawMessage
		refused *tool.Error
	}
	done := make(chan form, 1)
	go func() {
		var f form
		defer func() {
			if p := recover(); p != nil {
				f = form{refused: &tool.Error{Message: fmt.Sprintf(ResultUncanonical, t.call.Name, fmt.Sprintf("the tool crashed: %v", p))}}
			}
			done <- f
		}()
		f.args, f.refused = t.tool.CanonicalArgs(ctx, args)
	}()
	select {
	case f := <-done:
		return f.args, f.refused
	case <-ctx.Done():
		return nil, &tool.Error{Message: fmt.Sprintf(ResultUncanonical, t.call.Name, context.Cause(ctx))}
	}
}
