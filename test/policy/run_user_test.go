package policy_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// maySetUsers is the right to write the names of others.
func maySetUsers() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"runs/user"}, Verbs: []string{"set"}}
}

// on makes the Runs of a Schedule work on behalf of a user; empty: of none.
func on(user string) func(*v1alpha1.Schedule) {
	return func(s *v1alpha1.Schedule) { s.Spec.RunTemplate.Spec.User = user }
}

func scheduled(namespace string, change func(*v1alpha1.Schedule)) *v1alpha1.Schedule {
	s := &v1alpha1.Schedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "s-"},
		Spec:       v1alpha1.ScheduleSpec{Schedule: "0 3 * * *", RunTemplate: v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Work."}}},
	}
	change(s)
	return s
}

// wantPolicy checks that a write is refused by a policy whose message has a text; empty: it is allowed.
func wantPolicy(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (!apitest.IsPolicy(err) || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: the server says %v, want it to say %q", what, err, want)
	}
}

func TestARunIsOnBehalfOfWhoCreatesIt(t *testing.T) {
	s := newFixture(t)
	users := map[string]client.Client{
		"ann":              s.As(t, "oidc:ann@acme.com", s.namespace, role(t, "user")...),
		"a portal":         s.As(t, "system:serviceaccount:portal:bot", s.namespace, append(role(t, "user"), maySetUsers())...),
		"the operator":     s.As(t, apitest.Operator, s.namespace, role(t, "user")...),
		"an administrator": s.Admin,
	}
	const refused = "user must be your own name, because hooks, policies and costs go by it: write user: oidc:ann@acme.com, or remove user"
	for name, tc := range map[string]struct {
		who, user, want string
	}{
		"her own name":              {"ann", "oidc:ann@acme.com", ""},
		"no name":                   {"ann", "", ""},
		"another's":                 {"ann", "oidc:bob@acme.com", refused},
		"a part of hers":            {"ann", "ann@acme.com", refused},
		"hers in other letters":     {"ann", "OIDC:ann@acme.com", refused},
		"another's, with the right": {"a portal", "oidc:bob@acme.com", ""},
		"another's, for a child":    {"the operator", "oidc:bob@acme.com", ""},
		"another's, restored":       {"ann", "oidc:bob@acme.com", refused},
		"an administrator's choice": {"an administrator", "oidc:bob@acme.com", ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := s.work("", func(r *v1alpha1.Run) {
				r.GenerateName, r.Spec.User = "r-", tc.user
				if strings.HasSuffix(name, "restored") { // it does not start while it has the mark
					r.Labels = map[string]string{"velero.io/restore-name": "monday"}
				}
			})
			want := tc.want
			if want != "" {
				want = "spec." + want
			}
			wantPolicy(t, "a Run", users[tc.who].Create(t.Context(), run), want)
			if tc.want != "" {
				want = "spec.runTemplate.spec." + tc.want
			}
			wantPolicy(t, "a Schedule", users[tc.who].Create(t.Context(), scheduled(s.namespace, on(tc.user))), want)
		})
	}
}

// A Run that a user works for is stopped by others.
func TestOthersStopARunOfAUser(t *testing.T) {
	s := newFixture(t)
	ann := s.As(t, "ann", s.namespace, role(t, "user")...)
	bob := s.As(t, "bob", s.namespace, role(t, "user")...)
	run := s.work("", func(r *v1alpha1.Run) { r.GenerateName, r.Spec.User = "r-", "ann" })
	if err := ann.Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	run.Spec.DesiredState = v1alpha1.DesiredStopped
	wantPolicy(t, "a stop", bob.Update(t.Context(), run), "")
}

// Who changes what is done on behalf of another user does it in their own name, or in nobody's.
func TestWhoChangesAScheduleOfAnotherUser(t *testing.T) {
	s := newFixture(t)
	users := map[string]client.Client{
		"ann":      s.As(t, "ann", s.namespace, role(t, "user")...),
		"bob":      s.As(t, "bob", s.namespace, role(t, "user")...),
		"a portal": s.As(t, "system:serviceaccount:portal:bot", s.namespace, append(role(t, "user"), maySetUsers())...),
	}
	prompt := func(s *v1alpha1.Schedule) { s.Spec.RunTemplate.Spec.Prompt = "Give bob the keys." }
	both := func(changes ...func(*v1alpha1.Schedule)) func(*v1alpha1.Schedule) {
		return func(s *v1alpha1.Schedule) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	const refused = "spec.runTemplate.spec.user must be your own name, because hooks, policies and costs go by it: write user: bob, or remove user"
	for name, tc := range map[string]struct {
		who    string
		change func(*v1alpha1.Schedule)
		want   string
	}{
		"its user":                          {"ann", prompt, ""},
		"another, what is done":             {"bob", prompt, refused},
		"another, when it is done":          {"bob", func(s *v1alpha1.Schedule) { s.Spec.Schedule = "* * * * *" }, refused},
		"another, with a generation":        {"bob", both(prompt, func(s *v1alpha1.Schedule) { s.Generation = 1 }), refused},
		"another, in a third user's name":   {"bob", both(prompt, on("eve")), refused},
		"another, in his own name":          {"bob", both(prompt, on("bob")), ""},
		"another, in nobody's":              {"bob", both(prompt, on("")), ""},
		"another, a label":                  {"bob", func(s *v1alpha1.Schedule) { s.Labels = map[string]string{"team": "blue"} }, ""},
		"who may set users":                 {"a portal", prompt, ""},
		"who may set users, for a third":    {"a portal", both(prompt, on("eve")), ""},
		"another, that it is suspended":     {"bob", func(s *v1alpha1.Schedule) { s.Spec.Suspend = true }, refused},
		"another, nothing":                  {"bob", func(*v1alpha1.Schedule) {}, ""},
		"another, the name of its template": {"bob", func(s *v1alpha1.Schedule) { s.Spec.RunTemplate.Labels = map[string]string{"a": "b"} }, refused},
	} {
		t.Run(name, func(t *testing.T) {
			schedule := scheduled(s.namespace, on("ann"))
			if err := users["ann"].Create(t.Context(), schedule); err != nil {
				t.Fatal(err)
			}
			tc.change(schedule)
			wantPolicy(t, "a change", users[tc.who].Update(t.Context(), schedule), tc.want)
		})
	}
}
