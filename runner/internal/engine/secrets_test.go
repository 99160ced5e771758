package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// key is what a leak says: the secret.
const key = `{"k":"` + canary + `"}`

// A leak is a testRun in which something says a secret, and what people say to it.
type leak struct {
	run  func(t *testing.T, c *fakeSignals) *testRun
	said []task.Decision
}

// tools is a leak of a Run whose tools or model say a secret.
func tools(b enginetest.Toolbox, turns ...turn) leak {
	return leak{run: func(_ *testing.T, c *fakeSignals) *testRun {
		s := newTestRun(b, turns...)
		s.withApprovers(c)
		return s
	}}
}

// but changes the testRun of a leak.
func (l leak) but(change func(t *testing.T, s *testRun)) leak {
	made := l.run
	l.run = func(t *testing.T, c *fakeSignals) *testRun {
		s := made(t, c)
		change(t, s)
		return s
	}
	return l
}

// says has people say something, once the Run waits.
func (l leak) says(said ...task.Decision) leak {
	l.said = said
	return l
}

// returning is a tool with a result, whatever its arguments are.
func returning(name string, res tool.Result, err error) tool.Tool {
	return newTool(name, tool.Once, func(context.Context, tool.Call) (tool.Result, error) { return res, err })
}

// asking is a tool with a question of its own.
func asking(q tool.Question) tool.Tool {
	t := newTool("own", tool.Resumable, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		q.Call = c.ID
		a, err := c.Session.Ask(ctx, q)
		return tool.Result{Text: a.By + " says " + a.Text}, err
	})
	t.Timeout = tool.Unbounded
	return t
}

// responding is a model whose answers a layer replaces.
func responding(resp model.Response) leak {
	return tools(nil, says("ok")).but(func(t *testing.T, s *testRun) {
		layered(t, s, middleware.Layer{Model: func(middleware.ModelFunc) middleware.ModelFunc {
			return func(context.Context, *middleware.Turn) (model.Response, error) { return resp, nil }
		}})
	})
}

// leaksOfTools are what tools, models and layers say.
func leaksOfTools() map[string]leak {
	end := ending("Finish")
	end.Call = func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "the key is " + canary, Output: json.RawMessage(key)}, nil
	}
	cut := strings.Repeat("x", task.MaxSummary-len("sk-canary"))
	unreachable := newTool("Get", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		callreport.SetUnreachable(ctx, cut+canary)
		return tool.Fail("no"), nil
	})
	unreachable.Internal = facts.Facts{Endpoint: facts.Endpoint{Name: "toolset weather", Field: "spec.url"}}.Internal()
	bash := enginetest.Toolbox{echo("Bash", tool.Once)}
	part := step.Part{Kind: step.PartThinking, Text: "hm", Provider: json.RawMessage(key)}
	return map[string]leak{
		"the result of a tool":               tools(enginetest.Toolbox{returning("Leak", tool.Result{Text: key}, nil)}, calls("Leak {}"), says("ok")),
		"the summary of a tool":              tools(enginetest.Toolbox{returning("Leak", tool.Result{Summary: cut + canary}, nil)}, calls("Leak {}"), says("ok")),
		"the error of a tool":                tools(enginetest.Toolbox{returning("Leak", tool.Result{}, errors.New("no answer to ?key="+canary))}, calls("Leak {}"), says("ok")),
		"the text with which a tool ends":    tools(enginetest.Toolbox{end}, calls("Finish {}")),
		"an endpoint that cannot be reached": tools(enginetest.Toolbox{unreachable}, calls("Get {}"), says("ok")),
		"a text of the model":                tools(nil, says(key)),
		"the name of a tool":                 tools(bash, calls(canary+" {}"), says("ok")),
		"the arguments of a call":            tools(bash, calls("Bash "+key), says("ok")),
		"the arguments of a call that ends":  tools(enginetest.Toolbox{ending("Finish")}, calls("finish "+key)),
		"what a provider reads again":        responding(model.Response{Parts: []step.Part{part}, Finish: step.FinishStop}),
		"a finish reason that nobody knows":  tools(nil, turn{text: "ok", finish: step.FinishOther, reason: canary}),
		"a model that cannot be reached":     tools(nil, fails(&model.UnavailableError{Status: 503, Message: canary}), says("ok")),
		"an error of a model":                tools(nil, fails(errors.New("no answer to ?key="+canary))),
		"the cause of the end":               tools(nil, fails(task.End(task.ReasonStuck, "the key is %s", canary))),
		"arguments that a layer makes":       tools(bash, calls("Bash {}"), says("ok")).but(func(_ *testing.T, s *testRun) { s.Actor.Stack = changing(key) }),
		"arguments in their canonical form":  tools(bash, calls("Bash {}"), says("ok")).but(canonicalKey),
		"an error of the journal":            tools(nil, says("ok")).but(func(_ *testing.T, s *testRun) { s.Journal = refusingLog{s.journal} }),
		"the veto of a layer":                tools(nil, says("ok")).but(vetoWithKey),
		"an agent that cannot be called":     tools(enginetest.Toolbox{agentTool()}, calls("agent {}"), says("ok")).but(noActor),
		"an agent below":                     tools(enginetest.Toolbox{agentTool()}, calls(`agent {"agent":"b","prompt":"use `+canary+`"}`), says("ok")).but(actorBelow),
		"an endpoint that was not there": tools(nil, says("ok")).but(func(_ *testing.T, s *testRun) {
			s.Unavailable = []journal.Remote{{Name: "x", Field: "y", Unreachable: canary}}
		}),
		"the reason of a policy that denies":   tools(bash, calls("Bash {}"), says("ok")).but(func(_ *testing.T, s *testRun) { s.Actor.Policy = policyWithKey(toolcall.Deny) }),
		"the prompt":                           tools(nil, says("ok")).but(func(_ *testing.T, s *testRun) { s.Task.Prompt = key }),
		"the instructions":                     tools(nil, says("ok")).but(func(_ *testing.T, s *testRun) { s.Actor.Agent.Instructions = key }),
		"a call that an attempt left":          tools(nil, says("ok")).but(leftBehind),
		"the output of a call that is cut":     tools(bash, says("ok")).but(cutWithKey),
		"arguments that a tool has authorized": tools(enginetest.Toolbox{authorizing()}, calls("own {}"), says("ok")).but(func(_ *testing.T, s *testRun) { s.Actor.Policy = policyOfKey{} }),
	}
}

// leaksOfPeople are what people are asked, and what they say.
func leaksOfPeople() map[string]leak {
	cut := strings.Repeat("x", task.MaxMessage-len("sk-canary"))
	bash := func(turns ...turn) leak { return tools(enginetest.Toolbox{echo("Bash", tool.Once)}, turns...) }
	governed := bash(calls("Bash {}"), says("ok")).but(func(_ *testing.T, s *testRun) { s.Actor.Policy = asksBefore })
	id := requested("s2c1", "Bash", "{}")
	by := func(d task.Decision) task.Decision { d.By = canary; return d }
	scoped := approve("d", id, "")
	scoped.Scope = canary
	question := tools(enginetest.Toolbox{askTool()}, calls(`Ask {"q":"Which?"}`), says("ok"))
	form := tools(enginetest.Toolbox{formTool(key)}, calls("form {}"), says("ok"))
	strict := tools(enginetest.Toolbox{asking(tool.Question{Text: "Which?", Fits: func(answer string) error {
		if answer != "main" {
			return fmt.Errorf("%s is no branch", answer)
		}
		return nil
	}})}, calls("own {}"), says("ok"))
	return map[string]leak{
		"the question of a policy":            bash(calls("Bash {}"), says("ok")).but(func(_ *testing.T, s *testRun) { s.Actor.Policy = policyWithKey(toolcall.Ask) }).says(approve("d", id, "")),
		"the reason of a denial":              governed.says(deny("d", id, canary)),
		"the reason of a denial that is cut":  governed.says(deny("d", id, cut+canary)),
		"who denies":                          governed.says(by(deny("d", id, "no"))),
		"the scope of an approval":            governed.says(scoped),
		"a decision of no known type":         governed.says(task.Decision{Name: "x", By: canary, Request: canary, Type: canary}, approve("d", id, "")),
		"a decision on another request":       governed.says(task.Decision{Name: "x", By: "ann", Request: canary, Type: task.DecisionDeny}, approve("d", id, "")),
		"the question of a tool":              tools(enginetest.Toolbox{asking(tool.Question{Text: "Is it " + canary + "?"})}, calls("own {}"), says("ok")).says(answers("d", "s2c1", "yes")),
		"the form of an answer":               form.says(answers("d", "s2c1", `{"a":1}`)),
		"an answer":                           question.says(answers("d", "s2c1", "it is "+canary)),
		"an answer that is cut":               question.says(answers("d", "s2c1", strings.Repeat("x", toolcall.MaxResult-len("sk-canary"))+canary)),
		"who answers":                         question.says(by(answers("d", "s2c1", "yes"))),
		"an answer of a form":                 form.says(answers("d", "s2c1", key)),
		"an answer that does not fit":         strict.says(answers("x", "s2c1", canary), answers("d", "s2c1", "main")),
		"a message":                           governed.says(message("m", key), approve("d", id, "")),
		"a message that is cut":               governed.says(message("m", strings.Repeat("x", toolcall.MaxResult-len("sk-canary"))+canary), approve("d", id, "")),
		"who says a message":                  governed.says(by(message("m", "hello")), approve("d", id, "")),
		"arguments that a layer has approved": governed.but(func(_ *testing.T, s *testRun) { s.Actor.Stack = changing(key) }).says(approve("d", "", "")),
	}
}

// Each leak is the only one of its Run, so that each place that redacts is needed.
func TestSecretsAreNowhere(t *testing.T) {
	for _, leaks := range []map[string]leak{leaksOfTools(), leaksOfPeople()} {
		for name, l := range leaks {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { l.play(t) })
			})
		}
	}
}

// play runs what leaks, and finds the name of the secret in place of it, or of its beginning.
func (l leak) play(t *testing.T) {
	c := newSignals()
	s := l.run(t, c)
	s.Redact = redacting()
	end := s.running(t.Context())
	synctest.Wait()
	for _, d := range l.said {
		c.say(d)
		synctest.Wait()
	}
	out := end()
	var records []journal.Record
	for r := range s.journal.Read() {
		records = append(records, r)
	}
	all := ""
	for name, v := range map[string]any{"journal": records, "outcome": out, "reports": slices.Concat(s.reporter.reported, s.reporter.committed), "requests": s.model.asked, "events": s.sink.all, "messages": s.sink.messages} {
		text := mustJSON(t, v)
		if at := max(strings.Index(text, canary[:6]), strings.Index(text, canary[10:])); at >= 0 {
			t.Errorf("in the %s: …%s", name, text[max(at-200, 0):min(at+40, len(text))])
		}
		all += text
	}
	if !strings.Contains(all, "‹s") && !strings.Contains(all, "k›") { // of ‹secret:s/k›, which may be cut
		t.Errorf("nothing leaks: %s", all)
	}
}

// A refusingLog is a journal that takes nothing, and says why.
type refusingLog struct{ *journal.Memory }

func (refusingLog) Append(journal.Record) error { return errors.New("no journal at " + canary) }

// canonicalKey has the canonical form of arguments of Bash be the secret.
func canonicalKey(_ *testing.T, s *testRun) {
	s.Actor.Tools = caselessBox{s.Actor.Tools.(enginetest.Toolbox), "Bash", func(json.RawMessage) (json.RawMessage, *tool.Error) { return json.RawMessage(key), nil }}
}

func vetoWithKey(t *testing.T, s *testRun) {
	layered(t, s, middleware.Layer{Start: func(context.Context, *middleware.SessionStart) error {
		return &middleware.VetoError{By: "Hook guard", Reason: canary}
	}})
}

func noActor(_ *testing.T, s *testRun) {
	s.Task.Limits.Depth = 1
	s.Actors = func(Delegation) (*Actor, error) { return nil, errors.New("no agent at " + canary) }
}

func actorBelow(_ *testing.T, s *testRun) {
	s.Task.Limits.Depth = 1
	s.Actors = fakeAgents{"b": fakeAgent("b", nil, says("it is "+canary))}.actors
}

// policyWithKey is a rule about Bash whose reason is the secret.
func policyWithKey(a toolcall.Answer) fakePolicy {
	return fakePolicy{"Bash": {Answer: a, Rule: "r", Reason: "the key is " + canary}}
}

// policyOfKey tells the beginning of what it is asked about, in which no secret is known.
type policyOfKey struct{}

func (policyOfKey) Decide(_ context.Context, c step.Call, _ step.Scope) toolcall.PolicyResult {
	if string(c.Args) == "{}" {
		return toolcall.PolicyResult{Answer: toolcall.Allow}
	}
	return toolcall.PolicyResult{Answer: toolcall.Deny, Rule: string(c.Args)[:len(`{"k":"`)+8]}
}

// authorizing is a tool that asks about other arguments than its own.
func authorizing() tool.Tool {
	return newTool("own", tool.Once, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Error: c.Session.Authorize(ctx, json.RawMessage(key))}, nil
	})
}

// leftBehind has the Run be resumed without what ran before.
func leftBehind(t *testing.T, s *testRun) {
	first := newTestRun(nil, fails(context.Canceled))
	first.run(t)
	s.journal, s.Journal = first.journal, first.journal
	s.Task.Attempt = 2
	s.Lost = []string{"curl ?key=" + canary}
}

// cutWithKey has the Run be resumed behind a call of which the model reads the end of what
// it put out.
func cutWithKey(t *testing.T, s *testRun) {
	first := newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, calls("Bash {}"))
	left := 4 // the intent, not the result
	first.Journal = crashingLog{Memory: first.journal, left: &left}
	first.run(t)
	s.journal, s.Journal = first.journal, first.journal
	s.Captured = func(string) string {
		return canary + strings.Repeat("x", toolcall.MaxCaptured-len("0123456789"))
	}
}
