package api_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

const runsQuota = corev1.ResourceName("count/runs.deckhand.dev")

// newTeam applies docs/tenancy/team.yaml in a namespace of its own, with the ClusterRoles
// that it binds, and returns the namespace.
func newTeam(t *testing.T, server *apitest.Server) string {
	t.Helper()
	namespace := server.Namespace(t)
	files := []string{filepath.Join(apitest.Root(), "docs/tenancy/team.yaml")}
	for _, role := range []string{"author", "user", "approver"} {
		files = append(files, apitest.Manifest("rbac", role+".yaml"))
	}
	for _, file := range files {
		objects, err := apitest.ReadObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetObjectKind().GroupVersionKind().Kind != "ClusterRole" {
				o.SetNamespace(namespace)
			}
			if err := server.Admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatalf("creating %s of %s: %v", o.GetName(), file, err)
			}
		}
	}
	return namespace
}

// member returns a client of a user in a group.
func member(t *testing.T, server *apitest.Server, group string) client.Client {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "ann", Groups: []string{group, "system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: server.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// createSoon creates an object, without storing it. If it is allowed, it is tried until the
// API server has seen the binding.
func createSoon(t *testing.T, c client.Client, object client.Object, allowed bool) error {
	t.Helper()
	var err error
	_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		copied, _ := object.DeepCopyObject().(client.Object)
		err = c.Create(ctx, copied, client.DryRunAll)
		return err == nil || !allowed, nil
	})
	return err
}

// The example of docs/tenancy.md gives each group its rights and no others, and its
// quota refuses the Run that is one too many.
func TestATeamHasItsRolesAndItsQuota(t *testing.T) {
	server := apitest.Get(t)
	namespace := newTeam(t, server)
	meta := metav1.ObjectMeta{Namespace: namespace, GenerateName: "x-"}
	objects := map[string]client.Object{
		"Agent":    &v1alpha1.Agent{ObjectMeta: meta, Spec: v1alpha1.AgentSpec{Model: "m", Instructions: "You help."}},
		"Run":      &v1alpha1.Run{ObjectMeta: meta, Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Do it."}},
		"Decision": &v1alpha1.Decision{ObjectMeta: meta, Spec: v1alpha1.DecisionSpec{Run: "r", Type: v1alpha1.DecisionMessage, Value: "Hello.", By: "ann"}},
	}
	for group, may := range map[string]string{"team-a-platform": "Agent Run", "team-a-developers": "Run", "team-a-leads": "Decision"} {
		c := member(t, server, group)
		for kind, object := range objects {
			err := createSoon(t, c, object, strings.Contains(may, kind))
			if strings.Contains(may, kind) != (err == nil) || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%s may create %s, and creates a %s: %v", group, may, kind, err)
			}
		}
	}
	fillUpToOne(t, server, namespace)
	developer := member(t, server, "team-a-developers")
	if err := developer.Create(t.Context(), objects["Run"]); err != nil {
		t.Errorf("the last Run of the quota: %v", err)
	}
	second := &v1alpha1.Run{ObjectMeta: meta, Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Do it."}}
	if err := developer.Create(t.Context(), second); err == nil || !strings.Contains(err.Error(), "exceeded quota: agents") {
		t.Errorf("a Run more than the quota: %v", err)
	}
}

// The groups of the example can use the commands of kubectl deckhand that are for them, with the
// rights that docs/command-line.md lists.
func TestATeamCanUseTheCommandLine(t *testing.T) {
	server := apitest.Get(t)
	namespace := newTeam(t, server)
	run := []string{"create deckhand.dev/runs", "patch deckhand.dev/runs", "get deckhand.dev/runs/session", "get deckhand.dev/agents", "get deckhand.dev/workflows"}
	watch := []string{"get deckhand.dev/runs", "list deckhand.dev/runs", "list /pods", "get /pods/log"}
	why := []string{"list /events", "get /persistentvolumeclaims"}
	for group, rights := range map[string][]string{
		"team-a-platform":   slices.Concat(run, watch, why),
		"team-a-developers": slices.Concat(run, watch, why),
		"team-a-leads":      append(watch, "create deckhand.dev/decisions"),
	} {
		c := member(t, server, group)
		for _, right := range rights {
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
				return hasRight(t, c, namespace, right), nil // once the API server has seen the binding
			})
			if err != nil {
				t.Errorf("%s may not %s", group, right)
			}
		}
		lacks := []string{"create /pods/exec", "create /pods", "get /secrets", "delete /pods"}
		if group == "team-a-leads" {
			lacks = append(lacks, "get deckhand.dev/runs/session")
		}
		for _, right := range lacks {
			if hasRight(t, c, namespace, right) {
				t.Errorf("%s may %s", group, right)
			}
		}
	}
}

// hasRight reports whether a user has a right, such as "get /pods/log".
func hasRight(t *testing.T, c client.Client, namespace, right string) bool {
	t.Helper()
	verb, of, _ := strings.Cut(right, " ")
	group, of, _ := strings.Cut(of, "/")
	name, subresource, _ := strings.Cut(of, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: name, Subresource: subresource},
	}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// fillUpToOne writes into the quota that all Runs but one exist, as its controller would.
func fillUpToOne(t *testing.T, server *apitest.Server, namespace string) {
	t.Helper()
	var quota corev1.ResourceQuota
	if err := server.Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "agents"}, &quota); err != nil {
		t.Fatal(err)
	}
	used := quota.Spec.Hard[runsQuota].DeepCopy()
	used.Sub(resource.MustParse("1"))
	quota.Status.Hard = corev1.ResourceList{runsQuota: quota.Spec.Hard[runsQuota]}
	quota.Status.Used = corev1.ResourceList{runsQuota: used}
	if err := server.Admin.Status().Update(t.Context(), &quota); err != nil {
		t.Fatal(err)
	}
}
