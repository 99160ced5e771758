package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// A refusedRequest is a request of a command, and the ClusterRole with the right for it.
type refusedRequest struct{ verb, group, resource, role string }

// Each request that a command makes. Roles of the chart must have the right.
var refusedRequests = []refusedRequest{
	{"get", "deckhand.dev", "runs", "deckhand-viewer"},
	{"list", "deckhand.dev", "runs", "deckhand-viewer"},
	{"get", "deckhand.dev", "agents", "deckhand-viewer"},
	{"get", "deckhand.dev", "workflows", "deckhand-viewer"},
	{"get", "deckhand.dev", "schedules", "deckhand-viewer"},
	{"get", "deckhand.dev", "decisions", "deckhand-viewer"},
	{"create", "deckhand.dev", "runs", "deckhand-user"},
	{"patch", "deckhand.dev", "runs", "deckhand-user"},
	{"create", "deckhand.dev", "decisions", "deckhand-approver"},
	{"list", "", "pods", "view"},
	{"get", "", "pods", "view"},
	{"get", "", "pods/log", "view"},
	{"list", "", "events", "view"},
	{"get", "", "persistentvolumeclaims", "view"},
	{"create", "", "pods", "edit"},
	{"delete", "", "pods", "edit"},
	{"create", "", "pods/exec", "edit"},
}

func TestEachRefusedRequestNamesTheRightAndARoleThatHasIt(t *testing.T) {
	for _, r := range refusedRequests {
		group := schema.GroupResource{Group: r.group, Resource: r.resource}
		refused := apierrors.NewForbidden(group, "fix", fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q", "ann", r.verb, r.resource, r.group, "team-a"))
		got := explain(refused)
		for _, want := range []string{"cannot " + r.verb + " resource \"" + r.resource + "\"", "bind the ClusterRole " + r.role + " to you in this namespace"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s %s: want %q in %q", r.verb, r.resource, want, got)
			}
		}
		if name, ofChart := strings.CutPrefix(r.role, "deckhand-"); ofChart && !hasRight(t, name, r) {
			t.Errorf("ClusterRole %s has no right to %s %s", r.role, r.verb, r.resource)
		}
	}
}

func hasRight(t *testing.T, role string, r refusedRequest) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "charts", "deckhand", "files", "rbac", role+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var of rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(data, &of); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(of.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, r.group) && slices.Contains(rule.Resources, r.resource) && slices.Contains(rule.Verbs, r.verb)
	})
}

func TestARequestForAllNamespacesProposesOne(t *testing.T) {
	err := apierrors.NewForbidden(schema.GroupResource{Group: "deckhand.dev", Resource: "runs"}, "", errors.New(`User "ann" cannot list resource "runs" in API group "deckhand.dev" at the cluster scope`))
	if got := explain(err); !strings.Contains(got, "in all namespaces, or leave out -A") {
		t.Errorf("explained as %q", got)
	}
}

func TestInterruptedCommandsSayNothingElse(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	s := newSession(t, runWithRequests())
	keyboard := s.types(t, "")
	s.client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		interrupt()
		return c.Create(ctx, o, options...)
	}})
	code := s.runUntil(ctx, t, "approve", "fix")
	if _, err := io.WriteString(keyboard, "y\n"); err != nil { // for a reader that does not end
		t.Fatal(err)
	}
	if code != exit.Interrupted || !strings.HasSuffix(s.err.String(), "\nInterrupted\n") || strings.Contains(s.err.String(), "Error") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
}

func TestErrorsOfServersAreHarmlessAtATerminal(t *testing.T) {
	s := newSession(t)
	s.client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("refused:\x1b[2J\u202e\nsecond line")
	}})
	if code := s.run(t, "why", "fix"); code != exit.Error || s.err.String() != `Error: refused:\x1b[2J\u202e`+"\nsecond line\n" {
		t.Errorf("exit code %d: %q", code, s.err.String())
	}
}

func TestErrorOfAnUnknownContextSaysWhatToDo(t *testing.T) {
	s := newSession(t)
	s.newClient = nil
	if code := s.run(t, "why", "fix", "--context", "nope"); code != exit.Error || !strings.Contains(s.err.String(), `context "nope" does not exist. See what it has with: kubectl config get-contexts`) {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
}

func TestWhatWasNotCheckedIsNotShown(t *testing.T) {
	const rest = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
	for text, want := range map[string]string{
		`[spec.limits.steps: Invalid value: 0: must be above 0, <nil>: Invalid value: "null": ` + rest + "]": "[spec.limits.steps: Invalid value: 0: must be above 0]",
		"[a: b, <nil>: Invalid value: null: " + rest + ", c: d]":                                             "[a: b, c: d]",
		"nothing of it": "nothing of it",
	} {
		if got := explain(errors.New(text)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
