//go:build e2e

package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// masters are the group that may decide.
const masters = "harbor-masters"

// A pending approval survives restarts of the operator and the loss of the pod. Only an
// approver decides, once, and only on the call that was shown. Not parallel: other tests need
// an operator.
func TestOnlyAnApproverApprovesTheShownCall(t *testing.T) {
	p := newNamespace(t)
	p.agent("asker", withShell, onVolume, func(a *v1alpha1.Agent) {
		a.Spec.Tools[1].Approval = &v1alpha1.Approval{When: `args.command.startsWith("echo sunk")`, Approvers: &v1alpha1.Approvers{Groups: []string{masters}}}
	})
	run := p.run("asker")
	request := p.pendingOf(run, 1)
	if request.Tool != "Shell" || !strings.Contains(request.Args, "echo sunk") || request.Digest == "" || len(request.Approvers.Names()) != 1 || request.Approvers.Names()[0] != masters {
		t.Fatalf("it asks %+v", request)
	}
	p.restartOperators()
	p.killPod(p.pod(run, 1))
	if again := p.pendingOf(run, 2); again.Digest != request.Digest || again.ID != request.ID {
		t.Fatalf("after the loss of everything it asks %+v, before that %+v", again, request)
	}
	p.refusedDeciders(request)
	ann, bob := p.as("ann", p.approverRole(), masters), p.as("bob", p.approverRole(), masters)
	wrong := approving(request, "ann")
	wrong.Spec.Digest = strings.Repeat("0", 64)
	if err := ann.Create(t.Context(), p.in(wrong)); err != nil {
		t.Fatal(err)
	}
	p.applied(wrong.Name, metav1.ConditionFalse)
	p.race(request, map[string]client.Client{"ann": ann, "bob": bob})
	ended := p.ends(run, "True Finished")
	results := p.toolResults(ended.Status.Attempt.Pod)
	if len(results) != 2 || !strings.HasPrefix(results[1], "1\n") {
		t.Errorf("the results of the tool calls are %q", results)
	}
	p.applied("asker."+request.ID+".2", metav1.ConditionTrue)
}

// pendingOf waits for the one request of an attempt.
func (p *testNamespace) pendingOf(run *v1alpha1.Run, attempt int32) v1alpha1.PendingRequest {
	p.t.Helper()
	seen := p.await(run, "asks", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && r.Status.Progress.Attempt == attempt && len(r.Status.Progress.Pending) == 1 &&
			strings.Contains(succeeded(r), v1alpha1.ReasonAwaitingApproval)
	})
	return seen.Status.Progress.Pending[0]
}

// restartOperators deletes the pods of the operator.
func (p *testNamespace) restartOperators() {
	p.t.Helper()
	var operators corev1.PodList
	if err := cluster.admin.List(p.t.Context(), &operators, client.MatchingLabels{"app.kubernetes.io/name": "deckhand"}); err != nil || len(operators.Items) == 0 {
		p.t.Fatalf("finding the operator: %v", err)
	}
	for i := range operators.Items {
		if err := cluster.admin.Delete(p.t.Context(), &operators.Items[i]); client.IgnoreNotFound(err) != nil { // an earlier test may have deleted it
			p.t.Fatalf("restarting the operator: %v", err)
		}
	}
}

func approving(request v1alpha1.PendingRequest, by string) *v1alpha1.Decision {
	return &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Name: "asker." + request.ID},
		Spec: v1alpha1.DecisionSpec{
			Run: "asker", Request: request.ID, Type: v1alpha1.DecisionApprove, By: by, Groups: []string{masters},
		},
	}
}

func (p *testNamespace) in(d *v1alpha1.Decision) *v1alpha1.Decision {
	d.Namespace = p.name
	return d
}

// refusedDeciders try to approve without the right, the group or the name.
func (p *testNamespace) refusedDeciders(request v1alpha1.PendingRequest) {
	p.t.Helper()
	for what, tc := range map[string]struct {
		who  client.Client
		by   string
		says string
	}{
		"an editor of the namespace":    {p.as("eve", "edit", masters), "eve", "cannot create resource"},
		"an approver, in a false group": {p.as("carl", p.approverRole()), "carl", "remove groups that you are not a member of: " + masters},
		"an approver, in Ann's name":    {p.as("dora", p.approverRole(), masters), "ann", "set spec.by: dora"},
	} {
		if err := tc.who.Create(p.t.Context(), p.in(approving(request, tc.by))); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.says) {
			p.t.Errorf("%s: %v, want it refused with %q", what, err, tc.says)
		}
	}
}

// approverRole is the role of who may decide, as the chart calls it.
func (p *testNamespace) approverRole() string {
	p.t.Helper()
	var roles rbacv1.ClusterRoleList
	if err := cluster.admin.List(p.t.Context(), &roles); err != nil {
		p.t.Fatal(err)
	}
	for i := range roles.Items {
		if name := roles.Items[i].Name; strings.HasPrefix(name, "deckhand") && strings.HasSuffix(name, "-approver") {
			return name
		}
	}
	p.t.Fatal("there is no ClusterRole of approvers")
	return ""
}

// race has people decide on the request at once: one of them does.
func (p *testNamespace) race(request v1alpha1.PendingRequest, people map[string]client.Client) {
	p.t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for name, who := range people {
		d := p.in(approving(request, name))
		d.Name += ".2"
		all.Go(func() {
			err := who.Create(p.t.Context(), d)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else if !apierrors.IsAlreadyExists(err) {
				p.t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	if made != 1 {
		p.t.Errorf("%d decided", made)
	}
}

// applied waits until a Decision says that it was acted on, or was not.
func (p *testNamespace) applied(name string, want metav1.ConditionStatus) {
	p.t.Helper()
	var said *metav1.Condition
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		d := &v1alpha1.Decision{}
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: name}, d)
		said = meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionApplied)
		return said != nil && said.Status == want, err
	})
	if err != nil {
		p.t.Fatalf("Decision %s says %+v: %v", name, said, err)
	}
}

// approvalScripts make calls that need an approval.
var approvalScripts = map[string]modeltest.Dialogue{"asker": turns(
	does(call("Shell", sh("echo sunk >>effects; wc -l <effects"))),
	does(call("Shell", sh("wc -l <effects"))),
	says("Done."),
)}
