package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// An undecided policy asks about every call, and could not decide about one.
type undecided string

func (u undecided) Decide(_ context.Context, c step.Call, _ step.Scope) toolcall.PolicyResult {
	return toolcall.PolicyResult{Answer: toolcall.Ask, Rule: "commands", Once: string(c.Args) == string(u)}
}

// Arguments that a rule, a person and a tool may each read in another way are refused, also where no
// policy and no approval applies: a hook, a log and a server read them, too.
func TestWhatCanBeReadInTwoWaysIsNotMade(t *testing.T) {
	policies := map[string]toolcall.Policy{"a policy that asks": asksBefore, "a policy that allows": fakePolicy{}, "no policy": nil}
	for args, want := range map[string]string{
		`{"cmd":"rm -r .","cmd":"ls"}`:        `Error: Not executed: the arguments have "cmd" twice in one object; send it once.`,
		`{"cmd":{"a":1,"b":[{"a":2,"a":2}]}}`: `Error: Not executed: the arguments have "a" twice in one object; send it once.`,
		`{"cmd":"echo \ud800"}`:               `Error: Not executed: the arguments have half of a surrogate pair in "echo ` + "\ufffd" + `"; send whole characters.`,
	} {
		for name, policy := range policies {
			t.Run(name+", "+args, func(t *testing.T) {
				s := governedRun(newSignals(), calls("Bash "+args), says("ok"))
				s.Actor.Policy = policy
				s.run(t)
				if got := s.steps(t)[2].Text(); got != want || len(s.doneWith("Bash")) > 0 {
					t.Errorf("the model reads %q, want %q", got, want)
				}
			})
		}
	}
}

// The same counts for what a layer makes of a call.
func TestALayerMakesNoArgumentsThatCanBeReadInTwoWays(t *testing.T) {
	s := governedRun(newSignals(), calls(`Bash {"n":1}`), says("ok"))
	s.Actor.Policy, s.Actor.Stack = nil, changing(`{"n":2,"n":3}`)
	s.run(t)
	want := `Error: Not executed: the arguments have "n" twice in one object; send it once.`
	if got := s.steps(t)[2].Text(); got != want || len(s.doneWith("Bash")) > 0 {
		t.Errorf("the model reads %q, want %q", got, want)
	}
}

// A Run ends with one output: a finish that has two is refused, and the next one ends it.
func TestAnOutputThatCanBeReadInTwoWaysIsRefused(t *testing.T) {
	s := governedRun(newSignals(), calls(`Finish {"a":1,"a":2}`), calls(`Finish {"a":2}`))
	s.Actor.Policy = nil
	s.run(t)
	if steps := s.steps(t); len(steps) < 3 || !strings.Contains(steps[2].Text(), "twice in one object") {
		t.Errorf("the steps are %+v", steps)
	}
}

// changing is a layer that has a call made with other arguments.
func changing(args ...string) *middleware.Stack {
	n := 0
	stack, _ := middleware.Build(middleware.Layer{Name: "changes", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			c.Args = json.RawMessage(args[min(n, len(args)-1)])
			n++
			return next(ctx, c)
		}
	}})
	return stack
}

func TestWhatALayerMadeOfACallIsWhatIsApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {"n":1}`), says("ok"))
		s.Actor.Stack = changing(`{"n":2}`)
		end := s.running(t.Context())
		synctest.Wait()
		p := s.reporter.last().Pending[0]
		if p.Args != `{"n":2}` || p.Digest != digest.Call("Bash", json.RawMessage(p.Args)) {
			t.Errorf("shown %+v", p)
		}
		c.say(approve("d", p.ID, ""))
		end()
		if diff := cmp.Diff([]string{`{"n":2}`}, s.doneWith("Bash")); diff != "" {
			t.Errorf("made -want +got:\n%s", diff)
		}
	})
}

// A layer that keeps the arguments and changes them later changes nothing.
func TestNothingChangesACallBehindItsApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {"n":1}`), says("ok"))
		var kept json.RawMessage
		s.Actor.Stack, _ = middleware.Build(middleware.Layer{Name: "keeps", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, call *tool.Call) (tool.Result, error) {
				kept = call.Args
				return next(ctx, call)
			}
		}})
		end := s.running(t.Context())
		synctest.Wait()
		c.say(approve("d", s.reporter.last().Pending[0].ID, ""))
		copy(kept, `{"n":9}`)
		end()
		if diff := cmp.Diff([]string{`{"n":1}`}, s.doneWith("Bash")); diff != "" {
			t.Errorf("made -want +got:\n%s", diff)
		}
	})
}

// A call whose digest is another when it is about to be made is asked about anew,
// under an id of its own.
func TestACallThatIsNotWhatWasApprovedIsAskedAboutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {"n":1}`), says("ok"))
		digests := 0
		s.Digest = func(string, json.RawMessage) string {
			digests++
			return strings.Repeat(fmt.Sprint(min(digests, 2)), 64)
		}
		end := s.running(t.Context())
		synctest.Wait()
		first, second := "s2c1-"+strings.Repeat("1", 32), "s2c1-2-"+strings.Repeat("2", 32)
		c.say(approve("d", first, ""))
		synctest.Wait()
		if p := s.reporter.last().Pending; len(p) != 1 || p[0].ID != second || p[0].Digest != strings.Repeat("2", 64) || len(s.doneWith("Bash")) > 0 {
			t.Fatalf("pending %+v", p)
		}
		c.say(approve("again", first, ""))
		c.say(approve("e", second, ""))
		end()
		if got := s.doneWith("Bash"); len(got) != 1 {
			t.Errorf("made %v", got)
		}
	})
}

// Nor is one that other groups may approve by now what was approved.
func TestWhatOthersMayApproveIsAskedAboutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {}`), says("ok"))
		s.Actor.Policy = &rota{{"dev"}, {"sre"}}
		end := s.running(t.Context())
		asked := s.approveAll(c)
		end()
		if len(asked) != 2 || asked[1].ID != approval.RequestID("s2c1", 1, asked[0].Digest) || asked[1].Approvers.Groups[0] != "sre" || len(s.doneWith("Bash")) != 1 {
			t.Errorf("asked %+v", asked)
		}
	})
}

// A rota is a policy whose groups change each time, up to the last.
type rota [][]string

func (r *rota) Decide(context.Context, step.Call, step.Scope) toolcall.PolicyResult {
	groups := (*r)[0]
	if len(*r) > 1 {
		*r = (*r)[1:]
	}
	return toolcall.PolicyResult{Answer: toolcall.Ask, Rule: "commands", Approvers: task.Approvers{Groups: groups}}
}

// One approval is good for one call, however often a layer makes it.
func TestAnApprovalIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {}`), says("ok"))
		s.Actor.Stack, _ = middleware.Build(middleware.Layer{Name: "twice", Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, call *tool.Call) (tool.Result, error) {
				if _, err := next(ctx, call); err != nil {
					return tool.Result{}, err
				}
				return next(ctx, call)
			}
		}})
		end := s.running(t.Context())
		synctest.Wait()
		c.say(approve("d", requested("s2c1", "Bash", "{}"), ""))
		synctest.Wait()
		if p := s.reporter.last().Pending; len(p) != 1 || p[0].ID != approval.RequestID("s2c1", 1, p[0].Digest) {
			t.Fatalf("pending %+v", p)
		}
		c.say(deny("e", s.reporter.last().Pending[0].ID, ""))
		end()
		if got := s.doneWith("Bash"); len(got) != 1 {
			t.Errorf("made %v", got)
		}
	})
}
