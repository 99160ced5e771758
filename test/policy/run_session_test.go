package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// sessions is the right to continue Runs; without names: all Runs.
func sessions(names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"runs/session"}, ResourceNames: names, Verbs: []string{"get"}}
}

// runRights is every right about Runs but that to continue them.
func runRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group},
		Resources: []string{"runs", "runs/status", "runs/finalizers", "schedules"},
		Verbs:     []string{"create", "delete", "get", "list", "patch", "update", "watch"},
	}}
}

// continuing makes a Run continue another.
func continuing(source string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: source} }
}

// waysToCreate are the ways in which a client creates a Run that continues another.
func (s *fixture) waysToCreate(source string) map[string]func(context.Context, client.Client) error {
	restored := labeled(restoreLabel, "monday") // it starts as soon as a user removes the mark
	return map[string]func(context.Context, client.Client) error{
		"by name": func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, s.work("next", continuing(source)), client.DryRunAll)
		},
		"by generateName": func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, s.work("", continuing(source), func(r *v1alpha1.Run) { r.GenerateName = "next-" }))
		},
		"by server-side apply": func(ctx context.Context, c client.Client) error {
			return s.apply(ctx, c, s.work("next", continuing(source)), client.DryRunAll)
		},
		"restored from a backup": func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, s.work("next", continuing(source), restored), client.DryRunAll)
		},
	}
}

// apply sends a Run as server-side apply.
func (*fixture) apply(ctx context.Context, c client.Client, run *v1alpha1.Run, opts ...client.ApplyOption) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(run)
	if err != nil {
		return err
	}
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Run"))
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), append(opts, client.FieldOwner("ann"))...)
}

// A user reads the conversation of a Run through another one only with the right to do so.
func TestWhoContinuesARunMayGetItsSession(t *testing.T) {
	s := newFixture(t)
	other := s.Namespace(t)
	as := func(user string, rules ...rbacv1.PolicyRule) client.Client {
		return s.As(t, user, s.namespace, rules...)
	}
	const (
		operatorElsewhere = "system:serviceaccount:elsewhere:deckhand"
		byRBAC            = `resource "runs" in API group`
		byPolicy          = "may not get runs/session of Run mine, and continueFrom gives the Agent the conversation and the files of that Run: ask an administrator to run kubectl create rolebinding deckhand-user-"
	)
	s.As(t, "elsewhere", other, append(runRights(), sessions())...)
	for name, tc := range map[string]struct {
		client client.Client
		want   string // empty: allowed
	}{
		"no role":                        {as("nobody", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}), byRBAC},
		"viewer":                         {as("viewer", role(t, "viewer")...), byRBAC},
		"approver":                       {as("approver", role(t, "approver")...), byRBAC},
		"the right alone":                {as("reader", sessions()), byRBAC},
		"user":                           {as("user", role(t, "user")...), ""},
		"author":                         {as("author", role(t, "author")...), ""},
		"an administrator":               {s.Admin, ""},
		"runs of a role of its own":      {as("creator", runRights()...), byPolicy + "creator --clusterrole=deckhand-user --user=creator --namespace=" + s.namespace},
		"the same, and this Run":         {as("named", append(runRights(), sessions("other", "mine"))...), ""},
		"the same, and another Run":      {as("misnamed", append(runRights(), sessions("other", "min", "mine-1"))...), byPolicy},
		"the same, all of another space": {as("elsewhere", runRights()...), byPolicy},
		"the same, other verbs":          {as("verbs", append(runRights(), rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"runs/session"}, Verbs: []string{"list", "watch", "create", "update"}})...), byPolicy},
		"the same, of another group":     {as("group", append(runRights(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"runs/session"}, Verbs: []string{"get"}})...), byPolicy},
		"a name that a shell would read": {as("eve;$(reboot)", runRights()...), "User eve;$(reboot) " + byPolicy + "USER --clusterrole=deckhand-user --user=USER "},
		"a ServiceAccount":               {as("system:serviceaccount:"+s.namespace+":bot", runRights()...), byPolicy + "system:serviceaccount:" + s.namespace + ":bot --clusterrole"},
		"a ServiceAccount with the role": {as("system:serviceaccount:"+s.namespace+":portal", role(t, "user")...), ""},
		"the operator":                   {as(apitest.Operator, runRights()...), ""},
		"the operator's name elsewhere":  {as(operatorElsewhere, runRights()...), byPolicy},
		"the operator's name as a user":  {as("deckhand", runRights()...), byPolicy},
	} {
		for way, create := range s.waysToCreate("mine") {
			t.Run(name+", "+way, func(t *testing.T) {
				err := create(t.Context(), tc.client)
				switch {
				case tc.want == "" && err != nil, tc.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("the server says %v, want it to say %q", err, tc.want)
				case tc.want != byRBAC && err != nil && !apitest.IsPolicy(err):
					t.Errorf("no policy refused it: %v", err)
				}
			})
		}
	}
}

// A runner has no right to create Runs. With it, it could not read other Runs through a Run of its own.
func TestARunnerContinuesNoRun(t *testing.T) {
	s := newFixture(t)
	token := s.WithToken(t, s.Token(t, s.account, s.pod))
	for way, create := range s.waysToCreate("other") {
		if err := create(t.Context(), token); !apierrors.IsForbidden(err) || apitest.IsPolicy(err) {
			t.Errorf("%s: the server says %v", way, err)
		}
	}
	s.As(t, "system:serviceaccount:"+s.namespace+":"+v1alpha1.RunnerServiceAccount, s.namespace, runRights()...)
	for way, create := range s.waysToCreate("other") {
		if err := create(t.Context(), token); !apitest.IsPolicy(err) || !strings.Contains(err.Error(), "may not get runs/session of Run other") {
			t.Errorf("%s, with the right to create Runs: the server says %v", way, err)
		}
	}
}

// Nothing makes an existing Run continue another: no user, no request.
func TestAnExistingRunDoesNotContinueAnother(t *testing.T) {
	s := newFixture(t)
	plain, next := s.work("plain"), s.work("next", continuing("mine"))
	s.Create(t, plain, next)
	for user, c := range map[string]client.Client{
		"a user":           s.As(t, "ann", s.namespace, append(role(t, "user"), runRights()...)...),
		"the operator":     s.As(t, apitest.Operator, s.namespace, append(role(t, "user"), runRights()...)...),
		"an administrator": s.Admin,
	} {
		for source, run := range map[string]*v1alpha1.Run{"mine": plain, "other": next} {
			changed := run.DeepCopy()
			continuing(source)(changed)
			applied := s.work(run.Name, continuing(source))
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"continueFrom":{"run":"`+source+`"}}}`))
			for how, err := range map[string]error{
				"an update": c.Update(t.Context(), changed, client.DryRunAll),
				"a patch":   c.Patch(t.Context(), run.DeepCopy(), patch, client.DryRunAll),
				"an apply":  s.apply(t.Context(), c, applied, client.ForceOwnership, client.DryRunAll),
				"a removal": c.Patch(t.Context(), next.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"continueFrom":null}}`)), client.DryRunAll),
			} {
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.continueFrom cannot be changed: create another Run") {
					t.Errorf("%s by %s of Run %s: the server says %v", how, user, run.Name, err)
				}
			}
			status := run.DeepCopy()
			if err := c.Status().Patch(t.Context(), status, patch, client.DryRunAll); err == nil && status.Spec.ContinueFrom != nil && status.Spec.ContinueFrom.Run == source {
				t.Errorf("a patch of the status by %s made Run %s continue %s", user, run.Name, source)
			}
		}
	}
}

// The operator creates Runs for Schedules, so no Schedule names a Run to continue, whoever writes it.
func TestAScheduleContinuesNoRun(t *testing.T) {
	s := newFixture(t)
	existing := scheduled(s.namespace, on(""))
	s.Create(t, existing)
	for user, c := range map[string]client.Client{
		"a user":           s.As(t, "ann", s.namespace, role(t, "user")...),
		"the operator":     s.As(t, apitest.Operator, s.namespace, role(t, "user")...),
		"an administrator": s.Admin,
	} {
		changed := scheduled(s.namespace, on(""))
		if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(existing), changed); err != nil { // the status may have been written
			t.Fatal(err)
		}
		changed.Spec.RunTemplate.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "mine"}
		created := scheduled(s.namespace, func(c *v1alpha1.Schedule) { c.Spec = changed.Spec })
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"runTemplate":{"spec":{"continueFrom":{"run":"mine"}}}}}`))
		for how, err := range map[string]error{
			"a new one":  c.Create(t.Context(), created),
			"an update":  c.Update(t.Context(), changed),
			"a patch":    c.Patch(t.Context(), existing.DeepCopy(), patch),
			"its status": c.Status().Patch(t.Context(), existing.DeepCopy(), patch),
		} {
			if how != "its status" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "continueFrom is not allowed in a Schedule: remove continueFrom")) {
				t.Errorf("%s by %s: the server says %v", how, user, err)
			}
		}
	}
	var got v1alpha1.Schedule
	if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(existing), &got); err != nil || got.Spec.RunTemplate.Spec.ContinueFrom != nil {
		t.Errorf("the Schedule has %+v, %v", got.Spec.RunTemplate.Spec.ContinueFrom, err)
	}
}

// No other object that users or runners write has the field, so the operator takes it from none into
// a Run that it creates.
func TestOnlyRunsNameTheRunToContinue(t *testing.T) {
	files, err := filepath.Glob(apitest.Manifest("crd", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the CRDs: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if name := filepath.Base(file); name == "deckhand.dev_runs.yaml" || name == "deckhand.dev_schedules.yaml" {
			want = 1
		}
		if got := regexp.MustCompile(`(?m)^ +continueFrom:$`).FindAll(text, -1); len(got) != want {
			t.Errorf("%s has %d fields continueFrom, want %d", filepath.Base(file), len(got), want)
		}
	}
}
