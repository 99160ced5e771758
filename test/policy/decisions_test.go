package policy_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// role is what a ClusterRole of the chart allows.
func role(t *testing.T, name string) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := apitest.ReadObjects(apitest.Manifest("rbac", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := apitest.Get(t)
	if err := s.Admin.Create(t.Context(), objects[0]); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	var out rbacv1.ClusterRole
	if err := s.Admin.Get(t.Context(), client.ObjectKey{Name: objects[0].GetName()}, &out); err != nil {
		t.Fatal(err)
	}
	return out.Rules
}

func deciding(namespace, name, by string) *v1alpha1.Decision {
	return &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.DecisionSpec{Run: "mine", Type: v1alpha1.DecisionMessage, Value: "Go on.", By: by},
	}
}

func TestADecisionIsInItsAuthorsName(t *testing.T) {
	s := newFixture(t)
	ann := s.As(t, "oidc:ann@acme.com", s.namespace, role(t, "approver")...)
	for name, tc := range map[string]struct{ by, want string }{
		"in her own":     {"oidc:ann@acme.com", ""},
		"in another's":   {"oidc:bob@acme.com", "set spec.by: oidc:ann@acme.com"},
		"in part of her": {"ann@acme.com", "set spec.by: oidc:ann@acme.com"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ann.Create(t.Context(), deciding(s.namespace, "d-"+strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", ""), tc.by))
			if tc.want == "" && err != nil || tc.want != "" && (!apitest.IsPolicy(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("the server says %v, want it to say %q", err, tc.want)
			}
		})
	}
	velero := s.As(t, "system:serviceaccount:velero:velero", s.namespace, role(t, "approver")...)
	if err := velero.Create(t.Context(), deciding(s.namespace, "restored", "oidc:ann@acme.com")); !apitest.IsPolicy(err) {
		t.Errorf("a backup tool restores her Decision: %v", err)
	}
	if err := s.Admin.Create(t.Context(), deciding(s.namespace, "admin", "oidc:ann@acme.com")); !apitest.IsPolicy(err) {
		t.Errorf("an administrator decides in her name: %v", err)
	}
}

// To decide is to have the role deckhand-approver, and to have it is to decide
// and nothing else.
func TestWhoMayDecide(t *testing.T) {
	s := newFixture(t)
	for user, may := range map[string]bool{"approver": true, "viewer": false, "user": false, "author": false} {
		t.Run(user, func(t *testing.T) {
			c := s.As(t, user, s.namespace, role(t, user)...)
			err := c.Create(t.Context(), deciding(s.namespace, "by-"+user, user))
			if (err == nil) != may || err != nil && apitest.IsPolicy(err) {
				t.Errorf("creating a Decision: %v", err)
			}
			if err := c.List(t.Context(), &v1alpha1.DecisionList{}, client.InNamespace(s.namespace)); err != nil {
				t.Errorf("reading Decisions: %v", err)
			}
		})
	}
	c := s.As(t, "approver", s.namespace, role(t, "approver")...)
	made := deciding(s.namespace, "by-approver", "approver")
	for what, err := range map[string]error{
		"change a Decision":     c.Patch(t.Context(), made, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))),
		"say what became of it": c.Status().Patch(t.Context(), made, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":1}}`))),
		"take it back":          c.Delete(t.Context(), made),
		"change a Run":          c.Patch(t.Context(), s.run.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"desiredState":"Stopped"}}`))),
		"read Models":           c.List(t.Context(), &v1alpha1.ModelList{}, client.InNamespace(s.namespace)),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("an approver may %s: %v", what, err)
		}
	}
}

// The second on one request is refused by its name.
func TestARequestIsDecidedOnce(t *testing.T) {
	s := newFixture(t)
	for _, user := range []string{"ann", "bob"} {
		d := deciding(s.namespace, "mine.s3c1", user)
		d.Spec.Type, d.Spec.Request = v1alpha1.DecisionAnswer, "s3c1"
		err := s.As(t, user, s.namespace, role(t, "approver")...).Create(t.Context(), d)
		if (user == "ann") != (err == nil) || err != nil && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s decides: %v", user, err)
		}
	}
}

// A Decision is made in the name of groups that its author is in.
func TestADecisionIsInGroupsOfItsAuthor(t *testing.T) {
	s := newFixture(t)
	token := s.Token(t, s.account, nil)
	role(t, "approver")
	s.Bind(t, s.namespace, "deckhand-approver", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: s.account.Name})
	by := "system:serviceaccount:" + s.namespace + ":" + s.account.Name
	c := s.WithToken(t, token)
	for name, tc := range map[string]struct {
		groups []string
		want   string
	}{
		"none":         {nil, ""},
		"one-of-his":   {[]string{"system:serviceaccounts"}, ""},
		"all-of-his":   {[]string{"system:serviceaccounts", "system:serviceaccounts:" + s.namespace, "system:authenticated"}, ""},
		"anothers":     {[]string{"system:masters"}, "remove groups that you are not a member of: system:masters"},
		"his-and-more": {[]string{"system:authenticated", "leads", "owners"}, "remove groups that you are not a member of: leads, owners"},
	} {
		t.Run(name, func(t *testing.T) {
			request := "approval-" + name
			d := deciding(s.namespace, "mine."+request, by)
			d.Spec.Type, d.Spec.Request, d.Spec.Value, d.Spec.Groups = v1alpha1.DecisionApprove, request, "", tc.groups
			err := c.Create(t.Context(), d)
			if tc.want == "" && err != nil || tc.want != "" && (!apitest.IsPolicy(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("the server says %v, want it to say %q", err, tc.want)
			}
		})
	}
}

// Who writes Toolsets has a role for it, since that is to read Secrets.
func TestWhoMayWriteToolsets(t *testing.T) {
	s := newFixture(t)
	for user, may := range map[string]bool{"author": true, "viewer": false, "user": false, "approver": false} {
		t.Run(user, func(t *testing.T) {
			c := s.As(t, user, s.namespace, role(t, user)...)
			set := &v1alpha1.Toolset{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "by-" + user}, Spec: v1alpha1.ToolsetSpec{HTTP: &v1alpha1.HTTPServer{URL: "https://mcp.example"}}}
			if err := c.Create(t.Context(), set); (err == nil) != may || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("creating a Toolset: %v", err)
			}
			if err := c.List(t.Context(), &v1alpha1.ToolsetList{}, client.InNamespace(s.namespace)); (err == nil) != (user != "approver") {
				t.Errorf("reading Toolsets: %v", err)
			}
		})
	}
}
