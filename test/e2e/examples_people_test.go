//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// peopleExamples are about what people, and hooks in their place, have to say.
var peopleExamples = map[string]example{
	"hooks.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			modeltest.Turn{Text: "I rite.", Calls: []modeltest.Call{call("Write", args{"path": "letter.txt", "content": "Dear pilots"})}},
			does(call("Read", args{"path": "letter.txt"}), call("Edit", args{"path": "letter.txt", "old_string": "a", "new_string": "b"})),
			says("Done."),
		)},
		pages: map[string]page{
			"POST hooks/policy":    {ContentType: "application/json", Body: `{"allow": false, "reason": "letters are not edited"}`},
			"POST hooks/sign":      {ContentType: "application/json", Body: `{"args": {"path": "letter.txt", "content": "Dear pilots. Signed: the harbor"}}`},
			"POST hooks/brief":     {ContentType: "application/json", Body: `{"prompt": "Write a short letter to the pilots into letter.txt."}`},
			"POST hooks/proofread": {ContentType: "application/json", Body: `{"text": "I write."}`},
			"POST hooks/report":    {Status: 204},
			"POST hooks/tide":      {ContentType: "application/json", Body: `{"say": "The tide turns at noon."}`},
		},
		check: func(s *exampleFixture) {
			s.says("hooks")
			s.has("the letter", s.results("hooks", "Read")[0].Text(), "Signed: the harbor")
			if veto := s.results("hooks", "Edit")[0]; !veto.IsError {
				s.t.Error("the veto counts for nothing")
			} else {
				s.has("the veto", veto.Text(), "policy", "letters are not edited")
			}
			s.has("the first request", s.requestsWith("POST models/hooks-claude/")[0].Body, "Write a short letter to the pilots", "The tide turns at noon.")
			s.has("the second request", s.requestsWith("POST models/hooks-claude/")[1].Body, "I write.")
			s.has("what is told of the end", s.requestsWith("POST hooks/report")[0].Body, `"point":"AfterSession"`, `"reason":"Finished"`)
			var did []string
			for _, h := range s.results("hooks", "Write")[0].Hooks {
				did = append(did, h.Name+" "+string(h.Did))
			}
			if !slices.Equal(did, []string{"sign Changed", "audit Failed"}) {
				s.t.Errorf("hooks of the call did %q", did)
			}
			requests := s.requestsWith("POST hooks/policy")
			if len(requests) != 1 || requests[0].Header["Authorization"][0] != "Bearer "+key {
				s.t.Fatalf("the hook was asked %+v", requests)
			}
			s.has("what the hook was asked", requests[0].Body, `"point":"BeforeTool"`, `"old_string":"a"`, "ann@acme.com")
		},
	},
	"ask.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Ask", args{"question": "Which color shall the Aurora have?", "options": []string{"red", "blue"}})),
			says("I paint it: {{.LastToolResult}}"),
		)},
		person: func(s *exampleFixture) {
			run := s.awaits("ask", "s2c1")
			if got := run.Status.Progress.Pending[0]; got.Kind != "Question" || !strings.Contains(got.Question, "Which color shall the Aurora have?") {
				s.t.Errorf("it asks %+v", got)
			}
			s.has("the message", succeeded(run), "AwaitingAnswer", "Which color", "s2c1")
			s.decides("decisions/answer.yaml")
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("ask"), "Blue, with a white stripe.")
			s.decided("ask", "ask.s2c1")
		},
	},
	"grant.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Ls", args{"path": "/workspace"})),
			does(call("Write", args{"path": "tidy.txt", "content": "tidy"})),
			says("Tidy."),
		)},
		person: func(s *exampleFixture) {
			run := s.awaits("grant", "limit-steps-2")
			s.has("the message", succeeded(run), "AwaitingAnswer", "2", "steps")
			s.decides("decisions/grant.yaml")
		},
		check: func(s *exampleFixture) {
			if got := s.says("grant"); got != "Tidy." {
				s.t.Errorf("the answer is %q", got)
			}
			if c := s.runs["grant"].Status.Progress.Counts; c.Steps != 3 {
				s.t.Errorf("counts are %+v", c)
			}
			s.decided("grant", "grant.limit-steps-2")
		},
	},
	"message.yaml": {
		models: map[string]modeltest.Dialogue{
			"claude-sonnet-5": {Turns: looks(500, 300)},
			"claude-sonnet-5?That is enough.": {
				Turns: []modeltest.Turn{says("Nothing happened. You said: {{.LastUserMessage}}")}, After: modeltest.Repeat,
			},
		},
		person: func(s *exampleFixture) {
			s.await(s.runs["message"], "works", func(r *v1alpha1.Run) bool {
				return r.Status.Progress != nil && r.Status.Progress.Counts.ToolCalls > 0
			})
			s.decides("decisions/message.yaml")
		},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("message"), "That is enough. Report now.")
			said := s.steps("message")
			if last := said[len(said)-2]; last.Note != step.NoteMessage {
				s.t.Errorf("the message is no step of its own: %+v", last)
			}
			var all v1alpha1.DecisionList
			if err := cluster.admin.List(s.t.Context(), &all, client.InNamespace(s.name)); err != nil || len(all.Items) != 1 {
				s.t.Fatalf("listing Decisions: %v (%d)", err, len(all.Items))
			}
			s.decided("message", all.Items[0].Name)
		},
	},
	"input.yaml": {
		models: map[string]modeltest.Dialogue{"gpt-5-mini": turns(says("You said: {{.LastUserMessage}}"))},
		check: func(s *exampleFixture) {
			if got := s.says("input"); strings.TrimSpace(got) != "You said: Greet the Aurora ${{ input.language }}." {
				s.t.Errorf("the answer is %q", got)
			}
			s.has("the request", s.requestsWith("POST models/input-gpt/")[0].Body, "You greet ships in Greek. A literal looks so, ${{ input.language }}.")
			s.has("the message", message(s.ended("input-misfit", "False Misconfigured")), "language", "Greek")
		},
	},
}

// awaits is a Run once it waits for a person to decide on a request.
func (s *exampleFixture) awaits(run, request string) *v1alpha1.Run {
	s.t.Helper()
	return s.await(s.runs[run], "asks", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && len(r.Status.Progress.Pending) == 1 && r.Status.Progress.Pending[0].ID == request &&
			strings.Contains(succeeded(r), " Awaiting")
	})
}

// requestFor is the id of the request to approve a call of the shell.
func requestFor(call, command string) string {
	arguments, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return "" // strings always encode
	}
	return call + "-" + digest.Short(digest.Call("Shell", arguments))
}

// decides creates a Decision of the examples folder as a person does, in their
// own name.
func (s *exampleFixture) decides(file string) {
	s.t.Helper()
	who := &authenticationv1.SelfSubjectReview{}
	if err := cluster.admin.Create(s.t.Context(), who); err != nil {
		s.t.Fatalf("asking who I am: %v", err)
	}
	for _, o := range read(s.t, file) {
		s.set(o, who.Status.UserInfo.Username, "spec", "by")
		manifest, err := yaml.Marshal(o.Object)
		if err != nil {
			s.t.Fatal(err)
		}
		command := exec.CommandContext(s.t.Context(), kubectl(), "create", "--namespace", s.name, "-f", "-")
		command.Stdin = bytes.NewReader(manifest)
		if out, err := command.CombinedOutput(); err != nil {
			s.t.Fatalf("kubectl create: %v: %s", err, out)
		}
	}
}

// kubectl is the one of the test cluster, or else the one that there is.
func kubectl() string {
	own := filepath.Join(os.Getenv("CLUSTER_DIR"), "bin", "kubectl")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	return "kubectl"
}

// decided wants a Decision to be acted on, and the Run and the Decision to say
// so.
func (s *exampleFixture) decided(run, name string) {
	s.t.Helper()
	listed := s.runs[run].Status.Progress.Decided
	if len(listed) != 1 || listed[0].Name != name || listed[0].Refused != "" {
		s.t.Errorf("Run %s acted on %+v", run, listed)
	}
	var said string
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		d := &v1alpha1.Decision{}
		if err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: s.name, Name: name}, d); err != nil {
			return false, err
		}
		if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionApplied); c != nil {
			said = string(c.Status) + " " + c.Reason + ": " + c.Message
		}
		return strings.HasPrefix(said, "True Applied"), nil
	})
	if err != nil {
		s.t.Errorf("Decision %s says %s: %v", name, said, err)
	}
}
