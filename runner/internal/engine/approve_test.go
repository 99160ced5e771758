package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A fakePolicy is a Policy with one rule for a tool, by its name.
type fakePolicy map[string]toolcall.PolicyResult

func (f fakePolicy) Decide(_ context.Context, c step.Call, _ step.Scope) toolcall.PolicyResult {
	if v, ok := f[c.Name]; ok {
		return v
	}
	return toolcall.PolicyResult{Answer: toolcall.Allow}
}

// asksBefore is a rule that asks before Bash.
var asksBefore = fakePolicy{"Bash": {Answer: toolcall.Ask, Rule: "commands", Reason: "commands change things"}}

func approve(name, request, sum string) task.Decision {
	return task.Decision{Name: name, By: "ann", Request: request, Type: task.DecisionApprove, Digest: sum}
}

// requested is the id of the first request for approval of a call.
func requested(call, name, args string) string {
	return approval.RequestID(call, 0, digest.Call(name, json.RawMessage(args)))
}

// deny is a Decision that denies.
func deny(name, request, reason string) task.Decision {
	return task.Decision{Name: name, By: "ann", Request: request, Type: task.DecisionDeny, Reason: reason}
}

// governedRun is a testRun whose agent needs approval for Bash.
func governedRun(c *fakeSignals, turns ...turn) *testRun {
	s := newTestRun(enginetest.Toolbox{echo("Bash", tool.Once), echo("Read", tool.ReadOnly), askTool(), ending("Finish")}, turns...)
	s.Actor.Policy = asksBefore
	if c != nil {
		s.withApprovers(c)
	}
	return s
}

// doneWith are the calls of a tool that really were made.
func (tr *testRun) doneWith(name string) (args []string) {
	for r := range tr.journal.Read() {
		if r.Intent != nil && r.Intent.Name == name {
			args = append(args, string(r.Intent.Args))
		}
	}
	return args
}

func TestWhatPolicyAndPeopleSayOfACall(t *testing.T) {
	const bash = `{"n":1}`
	right := digest.Call("Bash", json.RawMessage(bash))
	id := requested("s2c1", "Bash", bash)
	cases := map[string]struct {
		policy toolcall.Policy
		said   []task.Decision
		want   string // what the model reads
		made   bool
		told   []task.Decided
	}{
		"no policy allows":           {nil, nil, `Bash{"n":1}`, true, nil},
		"a rule allows":              {fakePolicy{"Bash": {Answer: toolcall.Allow, Rule: "r"}}, nil, `Bash{"n":1}`, true, nil},
		"a rule denies":              {fakePolicy{"Bash": {Answer: toolcall.Deny, Rule: "no-bash", Reason: "it is late"}}, nil, "Error: Denied by policy rule no-bash: it is late\n- " + toolcall.AdviceDenied, false, nil},
		"a rule denies without more": {fakePolicy{"Bash": {Answer: toolcall.Deny}}, nil, "Error: Denied by the policy.\n- " + toolcall.AdviceDenied, false, nil},
		"an answer that nobody knows asks": {
			fakePolicy{"Bash": {}}, nil, "Error: " + toolcall.ResultUndecided + "\n- " + toolcall.AdviceDenied, false, nil,
		},
		"a person approves":                 {asksBefore, []task.Decision{approve("d", id, right)}, `Bash{"n":1}`, true, []task.Decided{{Name: "d", Request: id, Digest: right}}},
		"a person approves by the id alone": {asksBefore, []task.Decision{approve("d", id, "")}, `Bash{"n":1}`, true, []task.Decided{{Name: "d", Request: id, Digest: right}}},
		"a person approves another call by its id": {
			asksBefore,
			[]task.Decision{approve("d", requested("s9c1", "Bash", bash), "")},
			"Error: " + toolcall.ResultUndecided + "\n- " + toolcall.AdviceDenied, false,
			[]task.Decided{{Name: "d", Request: requested("s9c1", "Bash", bash), Refused: fmt.Sprintf(approval.RefusedUnknown, requested("s9c1", "Bash", bash))}},
		},
		"a person approves the only request": {
			asksBefore,
			[]task.Decision{approve("d", "", right)},
			`Bash{"n":1}`, true,
			[]task.Decided{{Name: "d", Request: id, Digest: right}},
		},
		"a person denies": {asksBefore, []task.Decision{deny("d", id, "too risky")}, "Error: Denied by ann: too risky\n- " + toolcall.AdviceDenied, false, []task.Decided{{Name: "d", Request: id, Digest: right}}},
		"nobody decides":  {asksBefore, nil, "Error: " + toolcall.ResultUndecided + "\n- " + toolcall.AdviceDenied, false, nil},
		"a person approves something else": {
			asksBefore,
			[]task.Decision{approve("d", id, digest.Call("Bash", json.RawMessage(`{"n":2}`)))},
			"Error: " + toolcall.ResultUndecided + "\n- " + toolcall.AdviceDenied, false,
			[]task.Decided{{Name: "d", Request: id, Refused: approval.RefusedDigest}},
		},
		"a person approves without saying what": {
			asksBefore,
			[]task.Decision{approve("d", "s2c1", ""), approve("e", "", ""), approve("f", "s2c1-2", "")},
			"Error: " + toolcall.ResultUndecided + "\n- " + toolcall.AdviceDenied, false,
			[]task.Decided{
				{Name: "e", Refused: approval.RefusedDigest},
				{Name: "d", Request: "s2c1", Refused: fmt.Sprintf(approval.RefusedUnknown, "s2c1")},
				{Name: "f", Request: "s2c1-2", Refused: fmt.Sprintf(approval.RefusedUnknown, "s2c1-2")},
			},
		},
		"a person denies something else, then approves": {
			asksBefore,
			[]task.Decision{{Name: "d", Request: id, Type: task.DecisionDeny, Digest: "x"}, approve("e", "", right)},
			`Bash{"n":1}`, true,
			[]task.Decided{{Name: "d", Request: id, Refused: approval.RefusedDigest}, {Name: "e", Request: id, Digest: right}},
		},
		"what is no decision on a call is refused": {
			asksBefore,
			[]task.Decision{
				answers("d", id, "yes"), grant(id, 1), {Name: "m", Request: id, Type: task.DecisionMessage, Value: "yes"}, approve("e", id, right),
			},
			`Bash{"n":1}`, true,
			[]task.Decided{
				{Name: "d", Request: id, Refused: fmt.Sprintf(approval.RefusedCall, id)},
				{Name: "r." + id, Request: id, Refused: fmt.Sprintf(approval.RefusedCall, id)},
				{Name: "e", Request: id, Digest: right},
				{Name: "m"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := governedRun(c, calls("Bash "+bash), says("ok"))
				s.Actor.Policy = tc.policy
				end := s.running(t.Context())
				synctest.Wait()
				for _, d := range tc.said {
					c.say(d)
				}
				out := end()
				if got := s.steps(t)[2].Text(); got != tc.want {
					t.Errorf("the model reads %q, want %q", got, tc.want)
				}
				if made := len(s.doneWith("Bash")) == 1; made != tc.made {
					t.Errorf("the call was made: %t", made)
				}
				if diff := cmp.Diff(tc.told, out.Progress.Decided, typeless); diff != "" || out.Reason != task.ReasonFinished {
					t.Errorf("ended %s; decided -want +got:\n%s", out.Reason, diff)
				}
				sound(t, s)
			})
		})
	}
}

func TestWhatAPersonIsShownOfACall(t *testing.T) {
	const secret = "sk-canary-0123456789"
	long := strings.Repeat("x", 2*task.MaxArgs)
	cases := map[string]struct {
		args string
		want task.Pending
	}{
		"its arguments, in order and nothing hidden": {
			"{\"z\": 1.50, \"a\": \"x\u202ey\u200b<&>\",\t\"b\":[1,  2]}",
			task.Pending{Args: `{"a":"x\u202ey\u200b<&>","b":[1,2],"z":1.50}`},
		},
		"long ones cut":                       {`{"a":"` + long + `"}`, task.Pending{Args: task.Middle(`{"a":"`+long+`"}`, task.MaxArgs), ArgsTruncated: true}},
		"characters that JSON writers escape": {`{"a":"x\ufffd\u2028\u0000é"}`, task.Pending{Args: "{\"a\":\"x\ufffd\\u2028\\u0000é\"}"}},
		"no secret":                           {`{"a":"` + secret + `"}`, task.Pending{Args: `{"a":"‹secret:s/k›"}`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := governedRun(c, calls("Bash "+tc.args), says("ok"))
				s.Redact = redact.New(redact.Secret{Name: "s", Key: "k", Value: []byte(secret)})
				s.Actor.Policy = fakePolicy{"Bash": {Answer: toolcall.Ask, Rule: "commands", Reason: "use of " + secret, Approvers: task.Approvers{Groups: []string{"sre"}}}}
				end := s.running(t.Context())
				synctest.Wait()
				p := s.reporter.last()
				want := tc.want
				want.ID, want.Kind, want.Tool, want.Rule, want.Approvers = requested("s2c1", "Bash", string(s.steps(t)[1].Calls[0].Args)), task.PendingApproval, "Bash", "commands", &task.Approvers{Groups: []string{"sre"}}
				want.Question, want.AskedAt, want.ExpiresAt = "use of ‹secret:s/k›", "2000-01-01T00:00:00Z", "2000-01-08T00:00:00Z"
				want.Digest = digest.Call("Bash", s.steps(t)[1].Calls[0].Args)
				want.DisplayDigest = loggedRequest(t, s).ComputeDisplayDigest()
				if diff := cmp.Diff([]task.Pending{want}, p.Pending); diff != "" || p.State != approval.StateApproval || p.Effects != "" {
					t.Errorf("state %q, effects %q, pending -want +got:\n%s", p.State, p.Effects, diff)
				}
				for _, e := range s.sink.all {
					if shown, ok := e.(events.Pending); ok && (shown.ArgsTruncated || len(shown.Args) < len(want.Args)) {
						t.Errorf("the event shows %d bytes", len(shown.Args))
					}
				}
				c.say(approve("d", want.ID, ""))
				end()
			})
		})
	}
}

// loggedRequest returns the last request that a Run emitted, as a reader of the log reads it.
func loggedRequest(t *testing.T, s *testRun) events.Pending {
	t.Helper()
	var shown events.Pending
	for _, e := range s.sink.all {
		if p, is := e.(events.Pending); is {
			shown = p
		}
	}
	data, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	var read events.Pending
	if err := json.Unmarshal(s.Redact.JSON(data), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// Neither finish nor reject can be denied: a Run could not end.
func TestNoPolicyKeepsARunFromEnding(t *testing.T) {
	s := governedRun(nil, calls("Finish {}"))
	s.Actor.Policy = fakePolicy{"Finish": {Answer: toolcall.Deny}}
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
}

func TestWhereNobodyCanBeAskedNothingIsApproved(t *testing.T) {
	s := governedRun(nil, calls("Bash {}"), says("ok"))
	s.run(t)
	if got := s.steps(t)[2].Text(); !strings.Contains(got, toolcall.ResultNoApprovers) || len(s.doneWith("Bash")) > 0 {
		t.Errorf("the model reads %q", got)
	}
}

// approveAll approves what is asked, one request after the other, and returns all.
func (tr *testRun) approveAll(c *fakeSignals) (asked []task.Pending) {
	for n := 0; ; n++ {
		synctest.Wait()
		p := tr.reporter.last().Pending
		if len(p) == 0 {
			return asked
		}
		asked = append(asked, p[0])
		c.say(approve(fmt.Sprint(n), p[0].ID, ""))
	}
}

func approverNames(a *task.Approvers) string {
	if a == nil {
		return ""
	}
	return strings.Join(slices.Concat(a.Groups, a.Users), ",")
}

// The strictest of an agent's own policy and those above it counts.
func TestACallOfAnAgentPassesEveryPolicyAboveIt(t *testing.T) {
	allows, denies := fakePolicy{}, fakePolicy{"Bash": {Answer: toolcall.Deny, Rule: "top", Reason: "no"}}
	grouped := func(rule string, groups ...string) fakePolicy {
		return fakePolicy{"Bash": {Answer: toolcall.Ask, Rule: rule, Approvers: task.Approvers{Groups: groups}}}
	}
	named := func(rule, user string) fakePolicy {
		return fakePolicy{"Bash": {Answer: toolcall.Ask, Rule: rule, Approvers: task.Approvers{Users: []string{user}}}}
	}
	cases := map[string]struct {
		root, child toolcall.Policy
		want        []string // the rules that ask, one after the other
		told        string
	}{
		"all allow":                        {allows, nil, nil, "Bash{}"},
		"the one above denies":             {denies, allows, nil, "rule top"},
		"a denial wins over a question":    {denies, asksBefore, nil, "rule top"},
		"its own denies":                   {asksBefore, denies, nil, "rule top"},
		"the one above asks":               {asksBefore, allows, []string{"commands"}, "Bash{}"},
		"both ask, one decision will do":   {asksBefore, grouped("own"), []string{"own"}, "Bash{}"},
		"both ask, the same groups":        {grouped("top", "sre"), grouped("own", "sre"), []string{"own sre"}, "Bash{}"},
		"both ask, the one above narrower": {grouped("top", "sre"), grouped("own"), []string{"own sre"}, "Bash{}"},
		"both ask, the same user":          {named("top", "ann"), named("own", "ann"), []string{"own ann"}, "Bash{}"},
		"both ask, another user":           {named("top", "ann"), named("own", "bob"), []string{"own bob", "top ann"}, "Bash{}"},
		"both ask, the one above one user": {named("top", "ann"), grouped("own"), []string{"own ann"}, "Bash{}"},
		"a user is not the group":          {named("top", "sre"), grouped("own", "sre"), []string{"own sre", "top sre"}, "Bash{}"},
		"both ask, other groups":           {grouped("top", "sre"), grouped("own", "dev"), []string{"own dev", "top sre"}, "Bash{}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := governedRun(c, calls(`agent {"agent":"b"}`), says("ok"))
				b := fakeAgent("b", enginetest.Toolbox{echo("Bash", tool.Once)}, calls("Bash {}"), says("b"))
				s.Actor.Tools, s.Actor.Policy, b.Policy = enginetest.Toolbox{agentTool()}, tc.root, tc.child
				s.Actors, s.Task.Limits.Depth = fakeAgents{"b": b}.actors, 1
				end := s.running(t.Context())
				var asked []string
				for n, p := range s.approveAll(c) {
					asked = append(asked, strings.TrimSpace(p.Rule+" "+approverNames(p.Approvers)))
					if p.Agent != "b" || p.ID != approval.RequestID("s2c1.s2c1", n, p.Digest) {
						t.Errorf("asked by %q as %s", p.Agent, p.ID)
					}
				}
				end()
				read := scriptOf(b).asked[1].Steps[2].Text()
				if diff := cmp.Diff(tc.want, asked); diff != "" || !strings.Contains(read, tc.told) {
					t.Errorf("the model reads %q; asked -want +got:\n%s", read, diff)
				}
			})
		})
	}
}

// What is approved for the Run is not asked about again: not in the calls that
// wait, nor in other sessions, nor in the next attempt. Other rules and tools are.
func TestAnApprovalForTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {"n":1}`, `Bash {"n":2}`, `Write {}`), calls(`agent {"agent":"b"}`), fails(errKilled))
		policy := fakePolicy{"Bash": asksBefore["Bash"], "Write": {Answer: toolcall.Ask, Rule: "files"}}
		tools := enginetest.Toolbox{echo("Bash", tool.Once), echo("Write", tool.Once), agentTool()}
		s.Actor.Tools, s.Actor.Policy = tools, policy
		s.Actors = fakeAgents{"b": fakeAgent("b", tools, calls(`Bash {"n":3}`), says("b"))}.actors
		s.Task.Limits.Depth = 1
		end := s.running(t.Context())
		synctest.Wait()
		if p := s.reporter.last().Pending; len(p) != 3 {
			t.Fatalf("pending %+v", p)
		}
		all := approve("d", requested("s2c1", "Bash", `{"n":1}`), "")
		all.Scope = task.ScopeRun
		c.say(all)
		synctest.Wait()
		if p := s.reporter.last().Pending; len(p) != 1 || p[0].Rule != "files" {
			t.Errorf("still pending %+v", p)
		}
		c.say(approve("w", requested("s2c3", "Write", `{}`), ""))
		end()
		next := s.again(tools, calls(`Bash {"n":4}`), says("ok"))
		next.Actor.Policy = policy
		next.withApprovers(c)
		next.run(t)
		if diff := cmp.Diff([]string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`}, sorted(next.doneWith("Bash"))); diff != "" {
			t.Errorf("made -want +got:\n%s", diff)
		}
	})
}

// Where a rule says that it is about one call, a person cannot approve more.
func TestARuleThatAsksAboutOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {"n":1}`, `Bash {"n":2}`), says("ok"))
		s.Actor.Policy = fakePolicy{"Bash": {Answer: toolcall.Ask, Rule: "commands", Once: true}}
		end := s.running(t.Context())
		for n := range 2 {
			synctest.Wait()
			p := s.reporter.last().Pending
			if len(p) != 2-n {
				t.Fatalf("pending %+v", p)
			}
			d := approve(fmt.Sprint(n), p[0].ID, p[0].Digest)
			d.Scope = task.ScopeRun
			c.say(d)
		}
		end()
		if got := s.doneWith("Bash"); len(got) != 2 {
			t.Errorf("made %v", got)
		}
	})
}

// Nor is it let pass by an approval for the Run that the same rule was given before.
func TestAnApprovalForTheRunIsNotForARuleThatAsksAboutOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := governedRun(c, calls(`Bash {"n":1}`), calls(`Bash {"n":2}`), says("ok"))
		s.Actor.Policy = undecided(`{"n":2}`)
		end := s.running(t.Context())
		synctest.Wait()
		all := approve("d", s.reporter.last().Pending[0].ID, "")
		all.Scope = task.ScopeRun
		c.say(all)
		synctest.Wait()
		if p := s.reporter.last().Pending; len(p) != 1 || p[0].Args != `{"n":2}` {
			t.Errorf("pending %+v", p)
		}
		c.say(deny("e", requested("s4c1", "Bash", `{"n":2}`), ""))
		end()
		if diff := cmp.Diff([]string{`{"n":1}`}, s.doneWith("Bash")); diff != "" {
			t.Errorf("made -want +got:\n%s", diff)
		}
	})
}

// More may be asked than is shown: the ten that wait longest are.
func TestManyApprovalsWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []string
		for n := range 13 {
			written = append(written, fmt.Sprintf(`Bash {"n":%d}`, n))
		}
		c := newSignals()
		s := governedRun(c, calls(written...), says("ok"))
		s.Actor.Agent.ParallelTools = 20
		end := s.running(t.Context())
		for n := 0; ; n++ {
			time.Sleep(time.Second)
			p := s.reporter.last().Pending
			if len(p) == 0 {
				break
			}
			if want := min(13-n, task.MaxPending); len(p) != want {
				t.Errorf("%d are shown, want %d", len(p), want)
			}
			c.say(approve(fmt.Sprint(n), p[0].ID, ""))
		}
		end()
		if got := len(s.doneWith("Bash")); got != 13 {
			t.Errorf("%d were made", got)
		}
	})
}
