package engine

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// What a call asks, and whether it may be made, are never asked under one id,
// however often a layer makes the call.
func TestAQuestionAndAnApprovalOfOneCallHaveIDsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Ask {"q":"Which?"}`), says("ok"))
		s.Actor.Policy = fakePolicy{"Ask": {Answer: toolcall.Ask, Rule: "questions"}}
		s.Actor.Stack, _ = middleware.Build(middleware.Layer{Name: "twice", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, call *tool.Call) (tool.Result, error) {
				if _, err := next(ctx, call); err != nil {
					return tool.Result{}, err
				}
				return next(ctx, call)
			}
		}})
		end := s.running(t.Context())
		var asked []string
		for n := range 4 {
			synctest.Wait()
			p := s.reporter.last().Pending
			if len(p) != 1 {
				break
			}
			asked = append(asked, p[0].Kind+" "+p[0].ID)
			if n%2 == 0 {
				c.say(approve("a"+p[0].ID, p[0].ID, ""))
			} else {
				c.say(answers("q"+p[0].ID, p[0].ID, "main"))
			}
		}
		end()
		seen := map[string]bool{}
		for _, a := range asked {
			if seen[a] {
				t.Errorf("%s is asked twice", a)
			}
			seen[a] = true
		}
		if diff := cmp.Diff([]string{"Approval " + requested("s2c1", "Ask", `{"q":"Which?"}`), "Question s2c1-2"}, asked[:min(2, len(asked))]); diff != "" {
			t.Errorf("asked %v -want +got:\n%s", asked, diff)
		}
	})
}
