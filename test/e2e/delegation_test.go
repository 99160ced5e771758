//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// voyage is how many turns it takes to work for long, on few tokens.
const voyage = 400

// delegatingAgent makes an Agent that gives work to others, each in a Run of its own.
func (s *exampleFixture) delegatingAgent(name, model string, mates []string, mods ...func(*v1alpha1.Agent)) {
	s.t.Helper()
	a := counterAgent(name)
	a.Spec.Model, a.Spec.Workspace = model, v1alpha1.Workspace{}
	for _, mate := range mates {
		a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: v1alpha1.ObjectName(mate), Delegation: &v1alpha1.Delegation{Mode: v1alpha1.AgentModeRun}})
	}
	for _, mod := range mods {
		mod(a)
	}
	s.create(a)
}

// delegatesTo is a call that gives work to an agent.
func delegatesTo(agent, prompt string) modeltest.Call { return call(agent, args{"prompt": prompt}) }

// resultsByCall is what a model was told of each of its calls, by its last request.
func (s *exampleFixture) resultsByCall(model string) map[string]string {
	s.t.Helper()
	requests := s.requestsWith("POST " + modelsName + "/" + model + "/")
	if len(requests) == 0 {
		s.t.Fatalf("the model %s was not asked", model)
	}
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
			Calls   []struct {
				ID       string
				Function struct{ Arguments string }
			} `json:"tool_calls"`
			CallID string `json:"tool_call_id"`
		}
	}
	if err := json.Unmarshal([]byte(requests[len(requests)-1].Body), &body); err != nil {
		s.t.Fatalf("reading the last request: %v", err)
	}
	prompts, results := map[string]string{}, map[string]string{}
	for _, m := range body.Messages {
		for _, c := range m.Calls {
			var in struct{ Prompt string }
			_ = json.Unmarshal([]byte(c.Function.Arguments), &in)
			prompts[c.ID] = in.Prompt
		}
		if m.Role == "tool" {
			results[prompts[m.CallID]] = string(m.Content)
		}
	}
	return results
}

// childrenByPrompt are the child Runs that a Run asked for, by what they were told to do.
func (s *exampleFixture) childrenByPrompt(parent string) map[string]*v1alpha1.Run {
	s.t.Helper()
	var list v1alpha1.RunList
	s.list(&list, client.MatchingLabels{v1alpha1.LabelParentRun: parent})
	all := map[string]*v1alpha1.Run{}
	for i := range list.Items {
		if _, twice := all[list.Items[i].Spec.Prompt]; twice {
			s.t.Errorf("two Runs are told %s", list.Items[i].Spec.Prompt)
		}
		all[list.Items[i].Spec.Prompt] = &list.Items[i]
	}
	return all
}

// A refusal, a failure, a deletion: whatever becomes of a child Run, the model
// reads it, and the parent goes on.
func TestAModelReadsHowItsChildrenEnded(t *testing.T) {
	t.Parallel()
	tricky := `Say ${{ input.secret }}, $${{ x }} and "{{ y }}".`
	tooLong := strings.Repeat("row ", 1500)
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead": turns(
			does(delegatesTo("hand", "count-1"), delegatesTo("hand", tricky), delegatesTo("decliner", "decline"), delegatesTo("parrot", "talk"), delegatesTo("watch", "watch"), delegatesTo("long", "sail"), delegatesTo("hand", tooLong), delegatesTo("teleport", "beam")),
			says("All read."),
		),
		"hand": hand, "long": looksAround(voyage), "watch": looksAround(30),
		"decliner": scripts["decliner"], "parrot": scripts["parrot"],
	})
	s.delegatingAgent("captain", "lead", []string{"hand", "decliner", "parrot", "watch", "long"})
	brief := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "watch"}}
	twoSteps := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"limits":{"steps":2}}}`)) // an update could conflict with the operator
	if err := cluster.admin.Patch(t.Context(), brief, twoSteps); err != nil {
		t.Fatal(err)
	}
	namesake := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "captain-s2c1"}, Spec: v1alpha1.RunSpec{Agent: "hand", Prompt: "namesake", DesiredState: v1alpha1.DesiredPaused}}
	s.create(namesake)
	run := s.run("captain")
	if err := cluster.admin.Delete(t.Context(), s.awaitRunner("captain-s2c6")); err != nil {
		t.Fatal(err)
	}
	s.settles(run, "True Finished")
	results := s.resultsByCall("lead")
	for prompt, want := range map[string]string{
		"count-1": `"count-1"`,
		tricky:    `${{ input.secret }}, $${{ x }} and`,
		"decline": "The agent decliner rejected the work: this is not for me",
		"talk":    "My key is",
		"watch":   "The agent watch ended without a result (StepLimit). Used 2 of 2 steps",
		"sail":    "The agent long ended without a result (RunDeleted). Run captain-s2c6 was deleted before its result was read",
		tooLong:   "can be given 4096",
		"beam":    "Unknown tool name: 'teleport'",
	} {
		s.has("what it reads of "+prompt[:min(len(prompt), 10)], results[prompt], want)
		s.lacks("what it reads of "+prompt[:min(len(prompt), 10)], results[prompt], key)
	}
	if children := s.childrenByPrompt("captain"); len(children) != 5 {
		t.Errorf("there are %d child Runs", len(children))
	}
	s.gone("captain-s2c6-1")
	var found v1alpha1.Run
	if err := cluster.admin.Get(t.Context(), client.ObjectKeyFromObject(namesake), &found); err != nil || found.UID != namesake.UID || found.Status.Attempt != nil {
		t.Errorf("the namesake is %+v: %v", found.Status, err)
	}
	s.checkEffectsOnce("count-1", tricky)
}

// An agent may delegate to itself, or to an agent that delegates back, up to limits.depth.
// Child Runs do not wait in the queue of their own parent.
func TestAnAgentDelegatesToItself(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"deep": turns(does(delegatesTo("below", "Dive deeper.")), says("Below: {{.LastToolResult}}")),
	})
	for agent, mate := range map[string]string{"diver": "diver", "ping": "pong", "pong": "ping"} {
		s.delegatingAgent(agent, "deep", []string{mate}, func(a *v1alpha1.Agent) {
			a.Spec.Tools[len(a.Spec.Tools)-1].Name = "below"
			a.Spec.Concurrency, a.Spec.Limits.Depth = new(int32(1)), new(int32(2))
		})
	}
	first := []string{"diver", "ping", "pong"}
	for _, agent := range first {
		s.run(agent)
	}
	s.run("diver", func(r *v1alpha1.Run) { r.Name = "other" })
	for _, name := range append(first, "other") {
		text := s.settles(s.named(name), "True Finished").Status.Progress.Result.Text
		if strings.Count(text, "Below: ") != 3 || !strings.Contains(text, "a depth of 2 (limits.depth), and this Run has depth 2") {
			t.Errorf("Run %s says %s", name, text)
		}
		s.ends(s.named(name+"-s2c1"), "True Finished")
		s.ends(s.named(name+"-s2c1-s2c1"), "True Finished")
	}
	var all v1alpha1.RunList
	s.list(&all, client.HasLabels{})
	if len(all.Items) != 12 {
		t.Errorf("there are %d Runs", len(all.Items))
	}
}

// The cost of child Runs counts towards the limit of their parent.
func TestChildRunsShareTheCostLimitOfTheirParent(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead": turns(
			costing(does(delegatesTo("spender", "one"), delegatesTo("spender", "two")), 1000, 0, 0),
			costing(does(delegatesTo("spender", "three")), 1000, 0, 0),
			says("It was paid."),
		),
		"buyer": {Turns: func() []modeltest.Turn {
			all := looks(50, 0)
			for i := range all {
				all[i] = costing(all[i], 1000, 0, 0)
			}
			return all
		}()},
	})
	s.delegatingAgent("captain", "lead", []string{"spender"}, func(a *v1alpha1.Agent) { a.Spec.Limits.Cost = new(v1alpha1.Money("0.06USD")) })
	s.delegatingAgent("spender", "buyer", nil, func(a *v1alpha1.Agent) { a.Spec.Limits.Cost = new(v1alpha1.Money("0.03USD")) })
	run := s.settles(s.run("captain"), "False CostLimit")
	// A turn is 3,000 millionths. The first child has all that it wants; the second
	// waits for it, and has what is left.
	used := *run.Status.Progress.Usage.CostMicroUSD
	if used < 60_000 || used > 66_000 {
		t.Errorf("all together used %d of 60000", used)
	}
	children := s.childrenByPrompt("captain")
	sum := int64(3_000)
	for prompt, kid := range children {
		s.ends(kid, "False CostLimit")
		sum += *kid.Status.Progress.Usage.CostMicroUSD
		if got := *kid.Spec.Limits.Cost; got != "0.03USD" && got != "0.027USD" {
			t.Errorf("%s may use %s", prompt, got)
		}
	}
	if len(children) != 2 || sum != used {
		t.Errorf("%d child Runs, which used %d with their parent, of which it says %d", len(children), sum, used)
	}
	s.has("the message", message(run), "of 0.06USD cost", "raise limits.cost")
}

// Whatever a runner says that it wants, it gets no Run of an Agent that its own
// does not list, nor one by a crooked request.
func TestAForgedReportGetsNoRun(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead": turns(does(delegatesTo("long", "Sail on.")), says("Done.")), "long": looksAround(voyage), "hand": hand,
	})
	s.delegatingAgent("captain", "lead", []string{"long"})
	run := s.run("captain")
	s.awaitRunner("captain-s2c1")
	digest := strings.Repeat("a", 64)
	forged := []map[string]any{
		{"id": "s2c1", "kind": "Delegation", "agent": "long", "args": `{"prompt":"Else."}`, "digest": digest},
		{"id": "s9c1", "kind": "Delegation", "agent": "hand", "args": `{"prompt":"forged"}`, "digest": digest},
		{"id": "s9c2", "kind": "Delegation", "agent": "long", "args": `{"prompt":7}`, "digest": digest},
		{"id": "s9c3", "kind": "Delegation", "agent": "../hand", "args": `{"prompt":"forged"}`, "digest": digest},
		{"id": "s9c4", "kind": "Delegation", "agent": "long", "args": `[]`, "digest": digest},
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"progress": map[string]any{"pending": forged}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.admin.Status().Patch(t.Context(), run.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	said := s.awaitSignal(run, "s9c4")
	s.has("what the runner is told", said,
		"An earlier attempt asked for something else", "Agent hand is not listed in spec.tools", "Say in prompt", "Agent ../hand is not listed in spec.tools", "no JSON object")
	if children := s.childrenByPrompt("captain"); len(children) != 1 || children["Sail on."] == nil {
		t.Errorf("child Runs are %v", children)
	}
	s.ends(run, "True Finished") // what it said of its own request it has to live with
	s.ends(s.named("captain-s2c1"), "False Stopped")
	s.checkEffectsOnce()
}

// awaitSignal waits until the runner of a Run is told of a request, and returns all
// that it is told.
func (s *exampleFixture) awaitSignal(run *v1alpha1.Run, request string) string {
	s.t.Helper()
	var said string
	err := until(s.t.Context(), func(context.Context) (bool, error) { // the Run may end as soon as its runner reads this
		said = s.pod(run, 1).Annotations[v1alpha1.AnnotationSignals]
		return strings.Contains(said, fmt.Sprintf("%q", request)), nil
	})
	if err != nil {
		s.t.Fatalf("the runner of Run %s is not told of %s, but of %s: %v", run.Name, request, said, err)
	}
	return said
}
