package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/testing/terminaltest"
)

var (
	callDigest = strings.Repeat("f75dbce9be424035", 4)
	callID     = "s4c1-" + callDigest[:32]
)

// runWithRequests returns a Run that asks for approval of a call, asks a question and reached a limit.
func runWithRequests() *v1alpha1.Run {
	return namedRun("fix", "AwaitingApproval", func(r *v1alpha1.Run) {
		asked := metav1.NewTime(gen.Noon)
		r.Status.Progress = &v1alpha1.RunProgress{Pending: []v1alpha1.PendingRequest{
			{
				ID: callID, Kind: requests.KindApproval, Tool: "Shell", Rule: "approval of shell", Digest: callDigest, AskedAt: &asked,
				Question:  "May I?\nRequest:   s1c1\r\x1b[2J\u202e",
				Args:      `{"command":"rm -rf dist\ngit push"}`,
				Approvers: &v1alpha1.Approvers{Groups: []string{"other", "release-managers"}},
			},
			{ID: "s2c1", Kind: requests.KindQuestion, Question: "Which branch?"},
			{ID: "limit-steps-30", Kind: requests.KindLimit, Question: "30 steps are used."},
			{ID: "s5c1", Kind: "Delegation", Agent: "other"},
		}}
	})
}

func runWithLimit() *v1alpha1.Run {
	return namedRun("fix", "AwaitingInput", func(r *v1alpha1.Run) {
		r.Status.Progress = &v1alpha1.RunProgress{Pending: []v1alpha1.PendingRequest{{ID: "limit-tokens-30", Kind: requests.KindLimit, Question: "30 tokens are used."}}}
	})
}

func decisionsOf(t *testing.T, s *session) []v1alpha1.Decision {
	t.Helper()
	var list v1alpha1.DecisionList
	if err := s.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestPendingShowsWhatRunsAsk(t *testing.T) {
	for name, args := range map[string][]string{"pending": {"pending"}, "pending-run": {"pending", "fix"}} {
		s := newSession(t, runWithRequests())
		if code := s.run(t, args...); code != exit.OK {
			t.Errorf("exit code %d: %s", code, s.text())
		}
		if strings.ContainsAny(s.text(), "\x1b\r\u202e") {
			t.Errorf("%s: control characters reach the terminal", name)
		}
		golden(t, name+".txt", s.text())
	}
}

func TestDecisionsHaveWhatTheSchemaAsksFor(t *testing.T) {
	steps := int32(20)
	tokens, cost := v1alpha1.Tokens("500k"), v1alpha1.Money("0.50USD")
	cases := map[string]struct {
		args []string
		want v1alpha1.DecisionSpec
	}{
		"approve": {
			[]string{"approve", "fix", callID, "--yes", "--scope", "Run"},
			v1alpha1.DecisionSpec{Request: callID, Type: "Approve", Digest: callDigest, Scope: "Run", Groups: []string{"release-managers"}},
		},
		"deny": {
			[]string{"deny", "fix", callID, "--yes", "--reason", "Not today."},
			v1alpha1.DecisionSpec{Request: callID, Type: "Deny", Groups: []string{"release-managers"}, Reason: "Not today."},
		},
		"answer": {
			[]string{"answer", "run/fix", "s2c1", "main", "--yes"},
			v1alpha1.DecisionSpec{Request: "s2c1", Type: "Answer", Value: "main"},
		},
		"grant": {
			[]string{"grant", "fix", "limit-steps-30", "--yes", "--steps", "20", "--tokens", "500k", "--cost", "0.50USD"},
			v1alpha1.DecisionSpec{Request: "limit-steps-30", Type: "Grant", Grant: &v1alpha1.Grant{Steps: &steps, Tokens: &tokens, Cost: &cost}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, runWithRequests())
			if code := s.run(t, tc.args...); code != exit.OK {
				t.Fatalf("exit code %d: %s", code, s.text())
			}
			tc.want.Run, tc.want.By = "fix", "ann"
			got := decisionsOf(t, s)
			if len(got) != 1 || got[0].Name != "fix."+tc.want.Request || got[0].Namespace != gen.Namespace {
				t.Fatalf("Decisions are %v", got)
			}
			if diff := cmp.Diff(tc.want, got[0].Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAUserWhoIsNamedDecidesForNoGroup(t *testing.T) {
	run := runWithRequests()
	run.Status.Progress.Pending[0].Approvers = &v1alpha1.Approvers{Groups: []string{"other"}, Users: []string{"ann"}}
	s := newSession(t, run)
	if code := s.run(t, "approve", "fix", callID, "--yes"); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, s.text())
	}
	if got := decisionsOf(t, s); len(got) != 1 || got[0].Spec.By != "ann" || len(got[0].Spec.Groups) > 0 {
		t.Errorf("Decisions are %v", got)
	}
}

func TestMessageIsSentUnderAGeneratedName(t *testing.T) {
	s := newSession(t, runWithRequests())
	s.In = strings.NewReader("Leave the notes.")
	if code := s.run(t, "message", "fix", "-", "--image", "docs/a.png", "--image", "b.pdf"); code != exit.OK {
		t.Fatal(s.text())
	}
	got := decisionsOf(t, s)
	want := v1alpha1.DecisionSpec{Run: "fix", Type: "Message", Value: "Leave the notes.", Images: []string{"docs/a.png", "b.pdf"}, By: "ann"}
	if len(got) != 1 || !strings.HasPrefix(got[0].Name, "fix-") || cmp.Diff(want, got[0].Spec) != "" {
		t.Errorf("Decisions are %v", got)
	}
}

func TestNothingIsDecidedWithoutConsent(t *testing.T) {
	member := runWithRequests()
	member.Status.Progress.Pending[0].Approvers.Groups = []string{"other"}
	ofBob := runWithRequests()
	ofBob.Status.Progress.Pending[0].Approvers = &v1alpha1.Approvers{Users: []string{"bob"}}
	ended := runWithRequests()
	ended.Status.CompletionTime = &metav1.Time{Time: gen.Noon}
	cases := map[string]struct {
		run  *v1alpha1.Run
		args []string
		want string
	}{
		"--yes for a request that was not seen": {runWithRequests(), []string{"approve", "fix", "--yes"}, "needs the id of the request"},
		"no terminal":                           {runWithRequests(), []string{"approve", "fix"}, "there is no terminal"},
		"another request":                       {runWithRequests(), []string{"approve", "fix", "s4c1-0", "--yes"}, "no open request s4c1-0 of kind Approval, but: " + callID},
		"a request of another kind":             {runWithRequests(), []string{"approve", "fix", "s2c1", "--yes"}, "no open request of kind Approval. To decide s2c1: kubectl deckhand answer fix s2c1 TEXT -n team-a"},
		"the only requests are of other kinds":  {runWithLimit(), []string{"deny", "fix"}, "To decide limit-tokens-30: kubectl deckhand grant fix limit-tokens-30 -n team-a --tokens 50k"},
		"a grant of another limit":              {runWithLimit(), []string{"grant", "fix", "limit-tokens-30", "--steps", "5", "--yes"}, "limit-tokens-30 asks for more tokens, and the grant has none"},
		"not an approver":                       {member, []string{"approve", "fix", callID, "--yes"}, "can be decided only by members of other, and you (ann) are in"},
		"not the user who is named":             {ofBob, []string{"approve", "fix", callID, "--yes"}, "can be decided only by bob, and you (ann) are in"},
		"a Run that has ended":                  {ended, []string{"approve", "fix", callID, "--yes"}, "has ended"},
		"an id without an answer":               {runWithRequests(), []string{"answer", "fix", "s2c1"}, "the answer is missing"},
		"an empty grant":                        {runWithRequests(), []string{"grant", "fix"}, "say how much"},
		"money without currency":                {runWithRequests(), []string{"grant", "fix", "--cost", "1"}, "for example 1.50USD"},
		"a misspelled name":                     {runWithRequests(), []string{"approve", "fxi"}, "Did you mean fix?"},
		"no such Run":                           {runWithRequests(), []string{"approve", "something-else"}, "kubectl deckhand list -A"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, tc.run)
			if code := s.run(t, tc.args...); code == exit.OK || !strings.Contains(s.err.String(), tc.want) {
				t.Errorf("exit code %d, want %q in: %s", code, tc.want, s.text())
			}
			if got := decisionsOf(t, s); len(got) > 0 {
				t.Errorf("Decisions are %v", got)
			}
		})
	}
}

func TestUserIsAskedAtATerminal(t *testing.T) {
	for answer, want := range map[string]int{"y\n": 1, "YES\n": 1, "n\n": 0, "\n": 0, "yep\n": 0, "\x04": 0} {
		s := newSession(t, runWithRequests())
		s.types(t, answer)
		if code := s.run(t, "approve", "fix"); code != exit.OK {
			t.Errorf("%q: exit code %d: %s", answer, code, s.text())
		}
		if got := decisionsOf(t, s); len(got) != want {
			t.Errorf("%q: %d Decisions, want %d", answer, len(got), want)
		}
		if !strings.Contains(s.err.String(), `"command": "rm -rf dist\ngit push"`) {
			t.Errorf("%q: the call was not shown: %s", answer, s.err.String())
		}
	}
}

func TestNobodyIsAskedWhoDoesNotSeeTheRequest(t *testing.T) {
	s := newSession(t, runWithRequests())
	keyboard := s.types(t, "")
	read, write, err := os.Pipe() // as in: kubectl deckhand approve fix 2>errors.txt
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	s.Err = write
	shown := make(chan string)
	go func() {
		shown <- terminaltest.AnswerAt(struct {
			io.Reader
			io.Writer
		}{read, keyboard}, "[y/N]", "y\n")
	}()
	code := s.run(t, "approve", "fix")
	write.Close()
	if text := <-shown; code != exit.Usage || len(decisionsOf(t, s)) > 0 {
		t.Errorf("exit code %d: %s", code, text)
	}
}

func TestWhatWasTypedBeforeTheQuestionIsNoAnswer(t *testing.T) {
	s := newSession(t, runWithRequests())
	keyboard := s.types(t, "n\n")
	if _, err := io.WriteString(keyboard, "y\n"); err != nil {
		t.Fatal(err)
	}
	if code := s.run(t, "approve", "fix"); code != exit.OK || len(decisionsOf(t, s)) > 0 {
		t.Errorf("exit code %d, %d Decisions: %s", code, len(decisionsOf(t, s)), s.text())
	}
}

func TestNameOfARefusedDecisionIsFollowedByTheNext(t *testing.T) {
	first := &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "fix.s2c1"},
		Spec:       v1alpha1.DecisionSpec{Run: "fix", Request: "s2c1", Type: "Answer", By: "bob"},
		Status:     v1alpha1.DecisionStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse}}},
	}
	s := newSession(t, runWithRequests(), first.DeepCopy())
	if code := s.run(t, "answer", "fix", "s2c1", "main", "-y"); code != exit.OK || s.out.String() != "decision.deckhand.dev/fix.s2c1.2 created\n" {
		t.Errorf("exit code %d: %s", code, s.text())
	}

	first.Status.Conditions[0].Status = metav1.ConditionUnknown
	s = newSession(t, runWithRequests(), first)
	if code := s.run(t, "answer", "fix", "s2c1", "main", "-y"); code != exit.Error || !strings.Contains(s.err.String(), "bob already decided this request") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

// Users copy these commands: without -n they are about the namespace of the kubeconfig.
func TestCommandsToCopyNameTheirNamespace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	aboutAnObject := regexp.MustCompile(`kubectl (deckhand [a-z]+( -[a-z-]+)*|(get|describe|delete) [a-z]+) (%s|" ?\+)[^";]*`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "whyobject.go" { // what the user typed, which names none
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range aboutAnObject.FindAllString(string(text), -1) {
			if !strings.Contains(command, "-n %s") {
				t.Errorf("%s: %s: use command or commandAbout", name, command)
			}
		}
	}
}
