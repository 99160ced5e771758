//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// operatorKills is how often the operator dies under one workflow.
const operatorKills = 4

// The operator may be killed at any point: each child Run is created once, and does its work
// once. Not parallel: other tests need an operator.
func TestEachChildRunOnceWhileOperatorsAreKilled(t *testing.T) {
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand})
	s.workflow("convoy", `
nodes:
- name: ship
  agent: hand
  prompt: "ship-${{ item }}"
  forEach: {items: "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]", maxParallel: 4}
- name: round
  agent: hand
  prompt: "round-${{ iteration }}"
  loop: {until: self.text == 'round-3', maxIterations: 5}
finally:
- {name: log, agent: hand, prompt: log-1, when: run.reason == 'Finished'}
output: {ships: {cel: size(nodes.ship.text)}, last: {cel: nodes.round.text}}
`)
	run := s.start("convoy")
	for n := range operatorKills {
		s.killOperators()
		select {
		case <-time.After(time.Duration(n) * 700 * time.Millisecond): // another point each time
		case <-t.Context().Done():
		}
	}
	ended := s.settles(run, "True Finished")
	if got := ended.Status.Progress.Result.Output; got != `{"last":"round-3","ships":12}` {
		t.Errorf("the output is %s", got)
	}
	s.graph("convoy", "ship Succeeded", "round Succeeded", "log Succeeded")
	s.checkNodeCounts("convoy", "ship", v1alpha1.NodeCounts{Total: 12, Started: 12, Succeeded: 12})
	s.checkNodeCounts("convoy", "round", v1alpha1.NodeCounts{Total: 3, Started: 3, Succeeded: 3})
	s.checkEffectsOnce(append(append(numberedNames("ship", 1, 12), numberedNames("round", 1, 3)...), "log-1")...)
	children := s.childrenOnDistinctItems("convoy")
	if len(children) != 16 {
		t.Errorf("there are %d children", len(children))
	}
	for name, kid := range children {
		if kid.Status.Attempt == nil || kid.Status.Attempt.Number != 1 || kid.Status.Disruptions+kid.Status.Failures != 0 {
			t.Errorf("Run %s: attempt %+v, %d disruptions, %d failures", name, kid.Status.Attempt, kid.Status.Disruptions, kid.Status.Failures)
		}
	}
}

// killOperators kills every operator at once, as a lost node does, and waits for
// one that leads.
func (p *testNamespace) killOperators() {
	p.t.Helper()
	labels := client.MatchingLabels{"app.kubernetes.io/name": "deckhand"}
	killed := map[string]bool{}
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := cluster.admin.List(ctx, &pods, labels); err != nil {
			return false, err
		}
		if len(killed) > 0 {
			return serving(pods.Items, killed), nil
		}
		for i := range pods.Items {
			killed[pods.Items[i].Name] = true
			if err := cluster.admin.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return false, err
			}
		}
		return false, nil
	})
	if err != nil {
		p.t.Fatalf("killing the operator: %v", err)
	}
}

// serving says whether a pod works that is not one of those killed.
func serving(pods []corev1.Pod, killed map[string]bool) bool {
	for i := range pods {
		for _, c := range pods[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && !killed[pods[i].Name] {
				return true
			}
		}
	}
	return false
}

// longWorkflow is a Workflow that works for long, on two levels, and tidies up.
func (s *exampleFixture) longWorkflow() {
	s.workflow("squadron", `nodes: [{name: sail, agent: long, prompt: Sail on.}]`)
	s.workflow("fleet", `
nodes:
- {name: flag, agent: long, prompt: Sail on.}
- {name: escort, workflow: squadron}
- {name: home, agent: hand, prompt: home, dependsOn: [flag]}
finally:
- {name: log, agent: hand, prompt: "${{ run.reason }}-${{ nodes.flag.state }}-${{ nodes.home.state }}"}
`)
}

// A stop reaches children of children; finally runs all the same, and reads why.
func TestAStopReachesAllChildrenAndFinallyRuns(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "long": long})
	s.longWorkflow()
	run := s.start("fleet")
	s.awaitRunner("fleet-flag")
	s.awaitRunner("fleet-escort-sail")
	s.setDesiredState(run, v1alpha1.DesiredStopped)
	ended := s.settles(run, "False Stopped")
	s.has("the message", message(ended), "Stopped by spec.desiredState", "2 cancelled, 1 not reached", "finally: 1 node: 1 succeeded")
	s.graph("fleet", "flag Failed Cancelled", "escort Failed Cancelled", "home NotReached Stopped", "log Succeeded")
	for _, name := range []string{"fleet-flag", "fleet-escort", "fleet-escort-sail"} {
		s.ends(s.named(name), "False Stopped")
	}
	s.checkEffectsOnce("Stopped-Failed-NotReached")
}

// A deleted Run takes its children with it, however deep, and their pods; nothing
// of it runs any more.
func TestADeletedWorkflowRunLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "long": long})
	s.longWorkflow()
	run := s.start("fleet")
	s.awaitRunner("fleet-flag")
	s.awaitRunner("fleet-escort-sail")
	if err := cluster.admin.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	s.awaitNoRuns()
	s.checkEffectsOnce()
}

// A pause reaches the child Runs, and no node starts meanwhile. Then the workflow resumes.
func TestAPausedWorkflowResumes(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "watch": looksAround(60), "long": long})
	s.workflow("patrol", `
nodes:
- {name: watch, agent: watch, prompt: Look around.}
- {name: boat, agent: long, prompt: Sail on., onFailure: Continue}
- {name: report, agent: hand, prompt: report, dependsOn: [boat]}
`)
	run := s.start("patrol")
	s.awaitRunner("patrol-watch")
	boat := s.awaitRunner("patrol-boat")
	s.setDesiredState(run, v1alpha1.DesiredPaused)
	paused := func(r *v1alpha1.Run) bool { return strings.HasPrefix(succeeded(r), "Unknown Paused") }
	s.await(run, "is paused", paused)
	held := s.await(s.named("patrol-watch"), "is paused", paused)
	if err := cluster.admin.Delete(t.Context(), boat); err != nil {
		t.Fatal(err)
	}
	s.runs["patrol"] = s.await(run, "knows of the boat", func(r *v1alpha1.Run) bool { return r.Status.Nodes[1].State == v1alpha1.NodeFailed })
	s.graph("patrol", "watch Running", "boat Failed RunDeleted", "report Waiting")
	s.checkEffectsOnce()
	s.setDesiredState(run, v1alpha1.DesiredRunning)
	s.settles(run, "True Finished")
	s.graph("patrol", "watch Succeeded", "boat Failed RunDeleted", "report Succeeded")
	s.checkEffectsOnce("report")
	after := s.ends(s.named("patrol-watch"), "True Finished")
	if after.Status.Attempt.Number != 1 || after.Status.Progress.Counts.Steps != 61 || held.Status.Progress.Counts.Steps == 61 {
		t.Errorf("it was held after %d steps, and ended after %d in attempt %d", held.Status.Progress.Counts.Steps, after.Status.Progress.Counts.Steps, after.Status.Attempt.Number)
	}
}

// A child that a person deletes is not made again: its node fails, and what
// follows is what the Workflow says.
func TestADeletedChildFailsItsNode(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "long": long})
	s.workflow("lost", `
nodes:
- {name: boat, agent: long, prompt: Sail on.}
- {name: harbor, agent: hand, prompt: harbor, dependsOn: [boat]}
finally:
- {name: search, agent: hand, prompt: "search-${{ run.reason }}"}
`)
	s.workflow("spared", `
nodes:
- {name: boat, agent: long, prompt: Sail on., onFailure: Continue}
- {name: harbor, agent: hand, prompt: "without-${{ nodes.boat.?text.orValue('it') }}"}
`)
	for name, want := range map[string]string{"lost": "False NodeFailed", "spared": "True Finished"} {
		run := s.start(name)
		boat := s.awaitRunner(name + "-boat")
		if err := cluster.admin.Delete(t.Context(), boat); err != nil {
			t.Fatal(err)
		}
		s.settles(run, want)
	}
	s.has("the message", message(s.runs["lost"]), "Node boat failed, reason RunDeleted", "deleted before it finished")
	s.graph("lost", "boat Failed RunDeleted", "harbor NotReached NodeFailed", "search Succeeded")
	s.graph("spared", "boat Failed RunDeleted", "harbor Succeeded")
	s.checkEffectsOnce("search-NodeFailed", "without-it")
	for _, name := range []string{"lost-boat", "spared-boat"} {
		s.gone(name + "-1")
	}
}

// What becomes of a child whose pod dies is its Agent's to say, and the workflow
// follows: one on a volume goes on, one that has changed nothing begins anew, and
// one that has ends.
func TestAPodKilledUnderAWorkflow(t *testing.T) {
	t.Parallel()
	fickle := modeltest.Dialogue{Turns: append(turns(does(call("Write", args{"path": "a.txt", "content": "a"}))).Turns, endlessTurns(400)...)}
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "watch": looksAround(90), "fickle": fickle})
	kept := counterAgent("kept")
	kept.Spec.Model = "watch"
	s.create(kept)
	s.workflow("storm", `
nodes:
- {name: kept, agent: kept, prompt: Look around.}
- {name: anew, agent: watch, prompt: Look around.}
- {name: sunk, agent: fickle, prompt: Change things., onFailure: Continue}
- {name: report, agent: hand, prompt: "${{ nodes.sunk.state }}-${{ size(nodes.kept.text + nodes.anew.text) }}"}
`)
	run := s.start("storm")
	for _, name := range []string{"storm-kept", "storm-anew", "storm-sunk"} { // each works for longer than this loop takes
		child := s.awaitRunner(name)
		s.await(child, "has gone some way", func(r *v1alpha1.Run) bool {
			return r.Status.Progress.Counts.Steps > 2 || r.Status.Progress.Effects == v1alpha1.EffectsBegun
		})
		s.killPod(s.pod(child, 1))
	}
	s.settles(run, "True Finished")
	s.graph("storm", "kept Succeeded", "anew Succeeded", "sunk Failed PodLost", "report Succeeded")
	s.checkEffectsOnce("Failed-20")
	for _, name := range []string{"storm-kept", "storm-anew"} {
		child := s.ends(s.named(name), "True Finished")
		if child.Status.Attempt.Number != 2 || child.Status.Disruptions != 1 || child.Status.Progress.Counts.Steps < 91 {
			t.Errorf("Run %s: attempt %d, %d disruptions, %d steps", name, child.Status.Attempt.Number, child.Status.Disruptions, child.Status.Progress.Counts.Steps)
		}
	}
}

// A namespace that may not hold more Runs keeps children waiting, and nothing is
// lost by it.
func TestARunQuotaIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand})
	quota := s.quota("count/runs.deckhand.dev", "3")
	s.workflow("lock", `
nodes:
- name: boat
  agent: hand
  prompt: "boat-${{ item }}"
  forEach: {items: "[1, 2, 3, 4]"}
finally:
- {name: log, agent: hand, prompt: log-1}
`)
	run := s.start("lock")
	seen := s.await(run, "meets the quota", func(r *v1alpha1.Run) bool { return strings.HasPrefix(succeeded(r), "Unknown QuotaExceeded") })
	s.has("the message", message(seen), "ResourceQuota has no room for another Run. Raise it", "exceeded quota: harbor")
	// Two items fit. The second of them counts once those before it have started.
	if boat := seen.Status.Nodes[0]; boat.State != v1alpha1.NodeWaiting && boat.State != v1alpha1.NodeRunning || boat.Counts.Started > 2 || boat.Counts.Failed > 0 {
		t.Errorf("node boat is %s, reason %s, with %+v", boat.State, boat.Reason, boat.Counts)
	}
	more := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hard":{"count/runs.deckhand.dev":"10"}}}`))
	if err := cluster.admin.Patch(t.Context(), quota, more); err != nil {
		t.Fatal(err)
	}
	s.settles(run, "True Finished")
	s.checkNodeCounts("lock", "boat", v1alpha1.NodeCounts{Total: 4, Started: 4, Succeeded: 4})
	s.childrenOnDistinctItems("lock")
	s.checkEffectsOnce(append(numberedNames("boat", 1, 4), "log-1")...)
}

// quota bounds the namespace, and is in force when it returns: the API server refuses a
// Lease because of it. Its status does not say so, because the API server reads quotas
// from a cache of its own.
func (s *exampleFixture) quota(what corev1.ResourceName, most string) *corev1.ResourceQuota {
	s.t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "harbor"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			what: resource.MustParse(most), "count/leases.coordination.k8s.io": resource.MustParse("0"),
		}},
	}
	s.create(quota)
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: s.name}}
		err := cluster.admin.Create(ctx, lease, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "exceeded quota"), nil
	})
	if err != nil {
		s.t.Fatalf("the quota is not in force: %v", err)
	}
	return quota
}

// Many child Runs in a namespace with a quota for few pods: each does its work once, failures
// are counted, and finally runs once.
func TestManyChildRunsUnderAPodQuota(t *testing.T) {
	t.Parallel()
	refuse := turns(does(call("counter__add", args{"id": "{{.LastUserMessage}}"})), does(call("Reject", args{"reason": "It leaks."})))
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "hand?-leaks": refuse})
	s.quota(corev1.ResourcePods, "6") // the server of models is one
	s.workflow("armada", `
input: {fields: [{name: ships, type: List}]}
nodes:
- name: ship
  agent: hand
  prompt: "${{ item }}"
  forEach: {items: input.ships, maxParallel: 8}
  onFailure: Continue
finally:
- {name: log, agent: hand, prompt: "log-${{ nodes.ship.counts.succeeded }}-${{ nodes.ship.counts.failed }}"}
output: {sailed: {cel: "nodes.ship.?text.orValue([]).filter(t, t.hasValue()).size()"}}
`)
	ships := numberedNames("ship", 1, 40)
	for i := 3; i < len(ships); i += 4 {
		ships[i] += "-leaks"
	}
	run := s.start("armada", withInput(args{"ships": ships}))
	ended := s.settles(run, "True Finished")
	s.has("the message", message(ended), "ship: 10 of 40 failed")
	s.checkNodeCounts("armada", "ship", v1alpha1.NodeCounts{Total: 40, Started: 40, Succeeded: 30, Failed: 10})
	if got := ended.Status.Progress.Result.Output; got != `{"sailed":30}` {
		t.Errorf("the output is %s", got)
	}
	if n := len(s.childrenOnDistinctItems("armada")); n != 41 {
		t.Errorf("there are %d children", n)
	}
	s.checkEffectsOnce(append(ships, "log-30-10")...)
}

// A Run keeps the revision of its Workflow and of all Agents and Workflows in it, also of those
// whose nodes have not started.
func TestARunKeepsItsWorkflowRevision(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"hand": hand, "watch": looksAround(30)})
	s.workflow("inner", `nodes: [{name: tell, agent: hand, prompt: told}]`)
	w := s.workflow("route", `
nodes:
- {name: watch, agent: watch, prompt: Look around.}
- {name: report, agent: hand, prompt: "reported-${{ size(nodes.watch.text) }}"}
- {name: inner, workflow: inner, dependsOn: [report]}
`)
	run := s.start("route")
	s.awaitRunner("route-watch")
	for _, o := range []client.Object{
		w,
		&v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "inner"}},
		&v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "hand"}},
	} {
		if err := cluster.admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.workflow("inner", `nodes: [{name: other, agent: hand, prompt: other}]`)
	s.settles(run, "True Finished")
	s.graph("route", "watch Succeeded", "report Succeeded", "inner Succeeded")
	s.checkEffectsOnce("reported-10", "told")
}
