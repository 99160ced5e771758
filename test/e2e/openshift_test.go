//go:build e2e && upgrade

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// projectUser is the first user and group of the range of the namespace.
const projectUser = 1000620000

// leaveUsersToTheCluster installs the release with podUser: Cluster until the end of the test. Only
// one release can watch a namespace, so it is the release of all stories.
func leaveUsersToTheCluster(t *testing.T) {
	t.Helper()
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte(runHelm(t, "get", "values", release, "--output=yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	change := []string{"upgrade", release, chart, "--values=" + values, "--wait", "--timeout=5m"}
	t.Cleanup(func() { runHelm(t, change...) })
	runHelm(t, append(change, "--set=podUser=Cluster")...)
}

// becomesProject makes a namespace one of OpenShift, whose admission assigns users as restricted-v2
// does. Pods that exist keep theirs.
func (p *testNamespace) becomesProject() {
	p.t.Helper()
	objects, err := apitest.ReadObjects(filepath.Join(apitest.Root(), "test", "openshift", "restricted-v2.yaml"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, o := range objects {
		if err := client.IgnoreAlreadyExists(cluster.admin.Create(p.t.Context(), o)); err != nil {
			p.t.Fatalf("creating %s: %v", o.GetName(), err)
		}
		p.t.Cleanup(func() { _ = cluster.admin.Delete(context.WithoutCancel(p.t.Context()), o) })
	}
	ids := strconv.Itoa(projectUser) + "/10000"
	var ns corev1.Namespace
	if err := cluster.admin.Get(p.t.Context(), client.ObjectKey{Name: p.name}, &ns); err != nil {
		p.t.Fatal(err)
	}
	ns.Labels["test.deckhand.dev/scc"] = "restricted-v2"
	ns.Annotations = map[string]string{
		"openshift.io/sa.scc.uid-range": ids, "openshift.io/sa.scc.supplemental-groups": ids, "openshift.io/sa.scc.mcs": "s0:c25,c10",
	}
	if err := cluster.admin.Update(p.t.Context(), &ns); err != nil {
		p.t.Fatal(err)
	}
	probe := func(f runnerpod.FilesPod) (*corev1.Pod, error) {
		f.Image = imageOf("runner")
		run := &v1alpha1.Run{}
		run.Name, run.Namespace, run.UID = "probe", p.name, "probe"
		pod := f.Pod(run, "claim", runnerpod.WorkspaceFolder, "")
		return pod, cluster.admin.Create(p.t.Context(), pod, client.DryRunAll)
	}
	err = until(p.t.Context(), func(context.Context) (bool, error) {
		assigned, err := probe(runnerpod.FilesPod{User: runnerpod.PodUserCluster})
		_, refused := probe(runnerpod.FilesPod{RunAsUser: 65532})
		return err == nil && refused != nil && assigned.Spec.Containers[0].SecurityContext.RunAsUser != nil, nil
	})
	if err != nil {
		p.t.Fatalf("the policies of the test take no effect: %v", err)
	}
}

// In a namespace whose admission assigns users, a Run writes files, loses its pod, continues as the
// same user, and its files are read.
func TestARunWithTheUserOfTheCluster(t *testing.T) {
	leaveUsersToTheCluster(t)
	s := newHarbor(t, map[string]modeltest.Dialogue{"keeper": turns(
		does(call("Shell", sh("id -u >who.txt; echo begun; sleep 300", withTimeout(300)))),
		does(call("Shell", sh("id -u | cmp - who.txt && stat -c '%u:%g' who.txt && echo $HOME && echo again >>who.txt"))),
		says("{{.LastToolResult}}"),
	)})
	s.becomesProject()
	s.delegatingAgent("watch", "keeper", nil, onVolume, withShell)
	run := s.run("watch")
	pod := s.pod(run, 1)
	s.execUntil(pod.Name, "sandbox", "test", "-s", "/workspace/who.txt")
	s.killPod(pod)
	ended := s.ends(run, "True Finished")
	user := strconv.Itoa(projectUser)
	if text := ended.Status.Progress.Result.Text; ended.Status.Attempt.Number != 2 || !strings.HasPrefix(text, user+":"+user+"\n/home/agent\n") {
		t.Errorf("attempt %d says %q", ended.Status.Attempt.Number, text)
	}
	if got := s.newShell()("kubectl deckhand cp watch:who.txt - 2>/dev/null"); got != user+"\nagain\n" {
		t.Errorf("the file has %q", got)
	}
	var claim corev1.PersistentVolumeClaim
	if err := cluster.admin.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: ended.Status.Attempt.VolumeClaim}, &claim); err != nil {
		t.Fatal(err)
	}
	if owner := runnerpod.FileOwnerOf(&claim); owner == nil || owner.User != projectUser {
		t.Errorf("the owner of the files is %v", owner)
	}
}
