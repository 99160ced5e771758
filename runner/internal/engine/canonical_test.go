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
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A caselessBox is a enginetest.Toolbox in which one tool has a canonical form: its arguments in
// lower case, if nothing else is said.
type caselessBox struct {
	enginetest.Toolbox
	name string
	made func(args json.RawMessage) (json.RawMessage, *tool.Error)
}

func (b caselessBox) Find(name string) (tool.Tool, bool) {
	t, ok := b.Toolbox.Find(name)
	if !ok || name != b.name {
		return t, ok
	}
	t.Canonicalize = func(_ context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
		if b.made != nil {
			return b.made(args)
		}
		return json.RawMessage(strings.ToLower(string(args))), nil
	}
	return t, true
}

// caseless is a governed testRun whose Bash has a canonical form.
func caseless(c *fakeSignals, made func(json.RawMessage) (json.RawMessage, *tool.Error), turns ...turn) *testRun {
	s := governedRun(c, turns...)
	s.Actor.Tools = caselessBox{s.Actor.Tools.(enginetest.Toolbox), "Bash", made}
	return s
}

// approved runs a testRun on which a person makes a decision once they are asked.
func approved(t *testing.T, d task.Decision, made func(c *fakeSignals) *testRun) (s *testRun) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s = made(c)
		end := s.running(t.Context())
		synctest.Wait()
		c.say(d)
		if out := end(); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
	return s
}

// Users see one form of the arguments, from the start of a call to its end.
func TestTheEndOfACallShowsItsCanonicalArguments(t *testing.T) {
	look := newTool("Look", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "seen"}, nil })
	s := newTestRun(enginetest.Toolbox{look}, calls(`Look {"n":"ABC"}`), says("ok"))
	s.Actor.Tools = caselessBox{enginetest.Toolbox{look}, "Look", nil}
	s.run(t)
	if log := mustJSON(t, s.sink.all); !strings.Contains(log, `"summary":"{\"n\":\"abc\"}"`) {
		t.Errorf("the end of the call shows other arguments: %s", log)
	}
}

func TestACallIsApprovedRecordedAndMadeInItsCanonicalForm(t *testing.T) {
	const canonical = `{"n":"abc"}`
	for _, written := range []string{`{"n":"abc"}`, `{"n":"ABC"}`, `{"N":"Abc"}`} {
		s := approved(t, approve("d", requested("s2c1", "Bash", canonical), ""), func(c *fakeSignals) *testRun {
			return caseless(c, nil, calls("Bash "+written), says("ok"))
		})
		if diff := cmp.Diff([]string{canonical}, s.doneWith("Bash")); diff != "" {
			t.Errorf("%s: made -want +got:\n%s", written, diff)
		}
		want := "user: go\nassistant:  Bash" + written + "\ntool: Bash" + canonical + "\nassistant: ok"
		if got := s.transcript(t); got != want {
			t.Errorf("the transcript is\n%s\nwant what the model wrote:\n%s", got, want)
		}
		for r := range s.journal.Read() {
			if r.Request != nil && (string(r.Request.Args) != canonical || r.Request.Written != digest.Call("Bash", json.RawMessage(written))) {
				t.Errorf("%s: the request has %s, made of %s", written, r.Request.Args, r.Request.Written)
			}
		}
	}
}

func TestArgumentsWithoutACanonicalFormAreRefused(t *testing.T) {
	cases := map[string]struct {
		made func(json.RawMessage) (json.RawMessage, *tool.Error)
		want string
	}{
		"the tool refuses them": {
			func(json.RawMessage) (json.RawMessage, *tool.Error) {
				return nil, &tool.Error{Message: "leads outside"}
			},
			"Error: leads outside",
		},
		"the tool crashes": {
			func(json.RawMessage) (json.RawMessage, *tool.Error) { panic("ouch") },
			"Error: " + fmt.Sprintf(toolcall.ResultUncanonical, "Bash", "the tool crashed: ouch"),
		},
		"the form does not fit the schema": {
			func(json.RawMessage) (json.RawMessage, *tool.Error) { return json.RawMessage(`"x"`), nil },
			"Error: " + fmt.Sprintf(toolcall.ResultInvalidCanonical, "Bash", "the arguments are not valid JSON"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := caseless(newSignals(), tc.made, calls(`Bash {"n":1}`), says("ok"))
			s.run(t)
			if got := s.steps(t)[2].Text(); got != tc.want || len(s.doneWith("Bash")) != 0 {
				t.Errorf("the model reads %q, want %q; made were %v", got, tc.want, s.doneWith("Bash"))
			}
		})
	}
}

// A call that an older runner was asked about has no recorded form. It is asked
// about again if it was written in another form, and made.
func TestACallThatAnOlderRunnerBeganIsJudgedAnew(t *testing.T) {
	for name, written := range map[string]string{"in its canonical form": `{"n":"abc"}`, "in another form": `{"n":"ABC"}`} {
		t.Run(name, func(t *testing.T) {
			old := governedRun(nil, calls("Bash "+written))
			for _, r := range []journal.Record{
				{Kind: journal.KindStep, Step: &step.Step{Seq: 1, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "go"}}}},
				{Kind: journal.KindStep, Step: &step.Step{Seq: 2, Role: step.RoleAssistant, Finish: step.FinishCalls, Calls: []step.Call{{ID: "s2c1", Name: "Bash", Args: json.RawMessage(written)}}}},
				{Kind: journal.KindAsk, Request: &journal.Request{
					ID: "s2c1", CallID: "s2c1", Digest: digest.Call("Bash", json.RawMessage(written)), Source: journal.Source{Agent: "a", Rule: "commands", Tool: "Bash"},
				}},
			} {
				if err := old.journal.Append(r); err != nil {
					t.Fatal(err)
				}
			}
			right := digest.Call("Bash", json.RawMessage(`{"n":"abc"}`))
			next := approved(t, approve("d", "", right), func(c *fakeSignals) *testRun {
				next := caseless(c, nil, says("ok"))
				next.journal, next.Journal = old.journal, old.journal
				return next
			})
			if diff := cmp.Diff([]string{`{"n":"abc"}`}, next.doneWith("Bash")); diff != "" {
				t.Errorf("made -want +got:\n%s", diff)
			}
		})
	}
}

// What a resumed call does is what was judged, though its arguments would lead
// elsewhere by now.
func TestAResumedCallUsesTheRecordedForm(t *testing.T) {
	first := caseless(newSignals(), nil, calls(`Bash {"n":"ABC"}`))
	first.Actor.Policy = fakePolicy{}
	s := first.again(enginetest.Toolbox{echo("Bash", tool.Idempotent)}, says("ok"))
	for _, r := range []journal.Record{
		{Kind: journal.KindStep, Step: &step.Step{Seq: 1, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "go"}}}},
		{Kind: journal.KindStep, Step: &step.Step{Seq: 2, Role: step.RoleAssistant, Finish: step.FinishCalls, Calls: []step.Call{{ID: "s2c1", Name: "Bash", Args: json.RawMessage(`{"n":"ABC"}`)}}}},
		{Kind: journal.KindIntent, Intent: &journal.Intent{
			CallID: "s2c1", Name: "Bash", Args: json.RawMessage(`{"n":"abc"}`), Written: digest.Call("Bash", json.RawMessage(`{"n":"ABC"}`)), Effect: string(tool.Idempotent),
		}},
	} {
		if err := s.journal.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	s.Actor.Tools = caselessBox{s.Actor.Tools.(enginetest.Toolbox), "Bash", func(json.RawMessage) (json.RawMessage, *tool.Error) {
		return json.RawMessage(`{"n":"elsewhere"}`), nil
	}}
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if diff := cmp.Diff([]string{`{"n":"abc"}`, `{"n":"abc"}`}, s.doneWith("Bash")); diff != "" {
		t.Errorf("made -want +got:\n%s", diff)
	}
}

// What a person approved for the rest of the Run is allowed to tools that ask for
// what another tool may do.
func TestWhatIsReleasedIsAllowedToAToolThatAsks(t *testing.T) {
	asks := newTool("Look", tool.ReadOnly, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		var all []string
		for _, name := range []string{"Bash", "Read", "Other"} {
			all = append(all, fmt.Sprint(c.Session.Allows(ctx, name, json.RawMessage(`{"n":1}`))))
		}
		return tool.Result{Text: strings.Join(all, " ")}, nil
	})
	release := approve("d", requested("s4c1", "Bash", `{"n":2}`), "")
	release.Scope = task.ScopeRun
	s := approved(t, release, func(c *fakeSignals) *testRun {
		s := newTestRun(enginetest.Toolbox{asks, echo("Bash", tool.Once)}, calls(`Look {"at":1}`), calls(`Bash {"n":2}`), calls(`Look {"at":2}`), says("ok"))
		s.Actor.Policy = fakePolicy{"Bash": {Answer: toolcall.Ask, Rule: "commands"}, "Read": {Answer: toolcall.Deny, Rule: "never"}}
		s.withApprovers(c)
		return s
	})
	var got []string
	for _, st := range s.steps(t) {
		if st.Name == "Look" {
			got = append(got, st.Text())
		}
	}
	if diff := cmp.Diff([]string{"false false true", "true false true"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
