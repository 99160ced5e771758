package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

// askWhile asks a user about the call of a Run. While the question is on the screen, each look at
// the Run calls look with its number.
func askWhile(t *testing.T, look func(n int, s *session, keyboard io.Writer) error) *session {
	t.Helper()
	run := runWithRequests()
	run.Status.Progress.Pending = run.Status.Progress.Pending[:1]
	s := newSession(t, run)
	keyboard := s.types(t, "")
	looks := 0
	c := interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if _, is := o.(*v1alpha1.Run); is {
			looks++
			if err := look(looks, s, keyboard); err != nil {
				return err
			}
		}
		return c.Get(ctx, key, o, options...)
	}})
	asker := s.newAsker(podReaderOf(s.Factory, c), &terminal.Console{})
	if err := asker.ask(t.Context(), run); err != nil || s.err.Len() > 0 {
		t.Fatalf("the conversation that leads to the request has no time to be printed: %v, %s", err, s.err.String())
	}
	if err := asker.ask(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	return s
}

func typeLine(keyboard io.Writer, line string) error {
	_, err := io.WriteString(keyboard, line+"\n")
	return err
}

func TestAQuestionStaysWhileTheAPIServerFails(t *testing.T) {
	s := askWhile(t, func(n int, _ *session, keyboard io.Writer) error {
		if n == 1 {
			return apierrors.NewServiceUnavailable("the API server is restarting")
		}
		return typeLine(keyboard, "y")
	})
	if got := decisionsOf(t, s); len(got) != 1 || got[0].Spec.Digest != callDigest {
		t.Errorf("Decisions are %v: %s", got, s.err.String())
	}
}

func TestAQuestionEndsWhenItsRunIsDeleted(t *testing.T) {
	s := askWhile(t, func(n int, s *session, keyboard io.Writer) error {
		if n > 1 {
			return typeLine(keyboard, "y")
		}
		return s.client.Delete(t.Context(), runWithRequests())
	})
	if got := decisionsOf(t, s); len(got) > 0 || !strings.Contains(s.err.String(), "Nothing was decided: run fix was deleted") {
		t.Errorf("Decisions are %v: %s", got, s.err.String())
	}
}

func TestAQuestionEndsWhenTheCallChanges(t *testing.T) {
	s := askWhile(t, func(n int, s *session, keyboard io.Writer) error {
		if n > 1 {
			return typeLine(keyboard, "y")
		}
		changed := &v1alpha1.Run{}
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(runWithRequests()), changed); err != nil {
			return err
		}
		changed.Status.Progress.Pending[0].Digest = strings.Repeat("0", len(callDigest))
		return s.client.Update(t.Context(), changed)
	})
	if got := decisionsOf(t, s); len(got) > 0 || !strings.Contains(s.err.String(), "not open any more") {
		t.Errorf("Decisions are %v: %s", got, s.err.String())
	}
}

func TestApproveEndsWhenTheRequestIsNotOpenAnyMore(t *testing.T) {
	s := newSession(t, runWithRequests())
	s.types(t, "")
	looks := 0
	s.client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		looks++
		err := c.Get(ctx, key, o, options...)
		if run, is := o.(*v1alpha1.Run); is && looks == 2 {
			run.Status.Progress.Pending = nil // another user decided
		}
		return err
	}})
	if code := s.run(t, "approve", "fix"); code != exit.Error || len(decisionsOf(t, s)) > 0 || !strings.Contains(s.err.String(), "nothing was decided: the request is not open any more") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestCommandsThatDecide(t *testing.T) {
	for want, r := range map[string]v1alpha1.PendingRequest{
		"approve fix s4c1-f75d -n team-a":                     {ID: "s4c1-f75d", Kind: requests.KindApproval},
		"approve fix approval-consent -n team-a --value JSON": {ID: "approval-consent", Kind: requests.KindApproval, Schema: `{"type":"object"}`},
		"approve fix approval-at NAME=VALUE... -n team-a":     {ID: "approval-at", Kind: requests.KindApproval, Schema: `{"properties":{"at":{"type":"string"}}}`},
		"answer fix s2c1 TEXT -n team-a":                      {ID: "s2c1", Kind: requests.KindQuestion},
		"answer fix s2c2 NAME=VALUE... -n team-a":             {ID: "s2c2", Kind: requests.KindQuestion, Schema: `{"properties":{"$(reboot)":{"type":"string"}}}`},
		"answer fix s2c3 JSON -n team-a":                      {ID: "s2c3", Kind: requests.KindQuestion, Schema: `{"type":"array"}`},
		"grant fix limit-steps-30 -n team-a --steps 20":       {ID: "limit-steps-30", Kind: requests.KindLimit},
		"grant fix limit-tokens-1000 -n team-a --tokens 50k":  {ID: "limit-tokens-1000", Kind: requests.KindLimit},
		"grant fix limit-cost-1000000 -n team-a --cost 1USD":  {ID: "limit-cost-1000000", Kind: requests.KindLimit},
	} {
		if got := commandFor(namedRun("fix", v1alpha1.ReasonAwaitingApproval), &r); got != "kubectl deckhand "+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A compromised runner chooses ids, and users copy them into a shell.
func TestRequestsThatTheOperatorIgnoresAreNotShown(t *testing.T) {
	run := runWithRequests()
	for _, id := range []string{"x; rm -rf ~", "--scope=Run", "x$(id)", "x'`id`'", "", "x\ny"} {
		run.Status.Progress.Pending = []v1alpha1.PendingRequest{{ID: id, Kind: requests.KindApproval, Tool: "Shell", Args: "{}", ArgsTruncated: true}}
		if open := openRequests(run); len(open) > 0 {
			t.Errorf("%q is shown", id)
		}
	}
}
