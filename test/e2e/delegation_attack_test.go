//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// Whatever a model gives to an agent, nobody waits for ever, no secret goes into
// a Run, and nothing of it is read as anything but text.
func TestHostileDelegations(t *testing.T) {
	t.Parallel()
	quotes, places := strings.Repeat(`"\`, 1000), strings.Repeat("${{", 1300)
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead": turns(
			does(delegatesTo("echo", "tell "+key), delegatesTo("echo", "nul \x00 and \u2028"), delegatesTo("echo", "\u00a0"), delegatesTo("echo", " \t")),
			does(delegatesTo("echo", quotes), delegatesTo("echo", places), delegatesTo("echo", strings.Repeat("€", 1400))),
			does(
				modeltest.Call{Name: "echo", Args: json.RawMessage(`{"prompt":"half \ud800 of a rune"}`)},
				modeltest.Call{Name: "echo", Args: json.RawMessage(`{"prompt":"one","prompt":"two"}`)},
				modeltest.Call{Name: "echo", Args: json.RawMessage(`{"prompt":"more","agent":"hand","limits":{"depth":5},"user":"root"}`)},
				modeltest.Call{Name: "echo", Args: json.RawMessage(`"{\"prompt\": \"cut"`)},
			),
			says("All told."),
		),
		"echo": turns(says("I heard: {{.LastUserMessage}}")),
	})
	s.delegatingAgent("captain", "lead", []string{"echo"})
	s.settles(s.run("captain"), "True Finished")
	results := s.resultsByCall("lead")
	s.has("what it reads of what nobody reads as places", results[places], "I heard: ${{${{")
	s.has("what it reads of quotes", results[quotes], "I heard: ")
	for prompt, want := range map[string]string{
		strings.Repeat("€", 1400): "can be given 4096",
		"\u00a0":                  "The prompt is empty", " \t": "The prompt is empty",
		"two":                   "twice in one object",
		"more":                  "`agent` is not known",
		"":                      "not valid JSON",
		"half \ufffd of a rune": "half of a surrogate pair",
		"nul \x00 and \u2028":   "I heard: nul",
	} {
		s.has("what it reads of "+prompt[:min(len(prompt), 10)], results[prompt], want)
	}
	if children := s.childrenByPrompt("captain"); len(children) != 4 {
		t.Errorf("there are %d child Runs", len(children))
	}
	for prompt, kid := range s.childrenByPrompt("captain") {
		s.ends(kid, "True Finished")
		if kid.Spec.User != "" || *kid.Spec.Limits.Depth > 3 || kid.Spec.Agent != "echo" {
			t.Errorf("the Run for %q is %+v", prompt, kid.Spec)
		}
	}
	s.keepsTheKey()
}

// keepsTheKey checks that no Run of a namespace holds the key of the models.
func (s *exampleFixture) keepsTheKey() {
	s.t.Helper()
	var all v1alpha1.RunList
	s.list(&all, client.HasLabels{})
	for i := range all.Items {
		data, err := json.Marshal(all.Items[i])
		if err != nil {
			s.t.Fatal(err)
		}
		s.lacks("Run "+all.Items[i].Name, string(data), key)
	}
}

// A person who must approve is asked before there is a child Run, of which the
// arguments are those that were shown; what the policy forbids makes none.
func TestADelegationIsApprovedFirst(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"lead": turns(does(delegatesTo("hand", "sink-1"), delegatesTo("hand", "count-1")), says("Done.")), "hand": hand,
	})
	s.delegatingAgent("captain", "lead", []string{"hand"}, func(a *v1alpha1.Agent) {
		a.Spec.Policy = []v1alpha1.PolicyRule{
			{Name: "sink-nothing", When: `tool == "hand" && args.prompt.startsWith("sink")`, Answer: v1alpha1.PolicyDeny},
			{Name: "look-first", When: `tool == "hand"`, Answer: v1alpha1.PolicyAsk},
		}
	})
	run := s.run("captain")
	asks := s.awaitsIn(run, "Unknown AwaitingApproval")
	request := asks.Status.Progress.Pending[0]
	if len(s.childrenByPrompt("captain")) != 0 || request.Kind != "Approval" || request.Tool != "hand" || request.Args != `{"prompt":"count-1"}` {
		t.Errorf("it asks %+v, and has %d child Runs", request, len(s.childrenByPrompt("captain")))
	}
	s.create(&v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: "captain." + request.ID},
		Spec:       v1alpha1.DecisionSpec{Run: "captain", Request: request.ID, Type: v1alpha1.DecisionApprove, By: s.whoami()},
	})
	s.settles(run, "True Finished")
	results := s.resultsByCall("lead")
	s.has("what it reads of what is forbidden", results["sink-1"], "sink-nothing")
	s.has("what it reads of what was approved", results["count-1"], "count-1")
	if children := s.childrenByPrompt("captain"); len(children) != 1 || children["count-1"] == nil {
		t.Errorf("child Runs are %v", children)
	}
	s.checkEffectsOnce("count-1")
}

// awaitsIn waits until a Run with one open request is in a state.
func (s *exampleFixture) awaitsIn(run *v1alpha1.Run, state string) *v1alpha1.Run {
	s.t.Helper()
	return s.await(run, "is "+state, func(r *v1alpha1.Run) bool {
		return strings.HasPrefix(succeeded(r), state) && r.Status.Progress != nil && len(r.Status.Progress.Pending) == 1
	})
}
