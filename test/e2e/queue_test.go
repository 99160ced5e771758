//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// Of many Runs of an Agent at most spec.concurrency are active at any time, and they start in
// the order in which they were created.
func TestConcurrencyOfAnAgent(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{"pilot": turns(modeltest.Turn{Text: "She is in.", DelayMS: 200})})
	s.delegatingAgent("berth", "pilot", nil, func(a *v1alpha1.Agent) { a.Spec.Concurrency = new(int32(2)) })
	watcher, err := client.NewWithWatch(cluster.config, client.Options{Scheme: cluster.admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	seen, err := watcher.Watch(ctx, &v1alpha1.RunList{}, client.InNamespace(s.name))
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	ships := numberedNames("ship", 1, 8)
	for _, name := range ships {
		s.run("berth", func(r *v1alpha1.Run) { r.Name = name })
	}
	active, begun, most := map[string]bool{}, []string(nil), 0
	for over := 0; over < len(ships); {
		change, open := <-seen.ResultChan()
		run, is := change.Object.(*v1alpha1.Run)
		if !open || !is {
			t.Fatalf("the watch ended: %+v", change)
		}
		switch {
		case finished(run) && !active[run.Name]:
			continue
		case finished(run):
			over++
			delete(active, run.Name)
		case run.Status.Attempt != nil:
			if !active[run.Name] {
				begun = append(begun, run.Name)
			}
			active[run.Name] = true
		}
		most = max(most, len(active))
	}
	if most != 2 {
		t.Errorf("%d were active at once", most)
	}
	var all v1alpha1.RunList
	s.list(&all, client.HasLabels{})
	slices.SortFunc(all.Items, func(a, b v1alpha1.Run) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	var came []string
	for i := range all.Items {
		came = append(came, all.Items[i].Name)
		s.ends(&all.Items[i], "True Finished")
	}
	for i, name := range came {
		if at := slices.Index(begun, name); at-i > 1 || i-at > 1 { // two may begin in one moment
			t.Errorf("they came as %v, and began as %v", came, begun)
		}
	}
}

// Nodes that name the workspace of another node work on the same claim. It is deleted or kept
// as spec.retention.keepVolume says.
func TestNodesShareAWorkspace(t *testing.T) {
	t.Parallel()
	s := newHarbor(t, map[string]modeltest.Dialogue{
		"yard":               turns(says("Nobody asked me that.")),
		"yard?Build it.":     turns(does(call("Shell", sh("mkdir -p bin && printf 'echo launched' >bin/ship && ls bin"))), says("Built.")),
		"yard?Test it.":      turns(does(call("Shell", sh("sh bin/ship | tee test.log; sleep 2"))), says("{{.LastToolResult}}")),
		"yard?Paint it.":     turns(does(call("Shell", sh("sed -i s/launched/painted/ bin/ship; sleep 2; cat test.log"))), says("{{.LastToolResult}}")),
		"yard?Break it.":     turns(does(call("Shell", sh("rm -r bin; ls ../runs ../deckhand/state; mount | grep -c runs/"))), says("{{.LastToolResult}}")),
		"yard?Go elsewhere.": turns(does(call("Shell", sh("ls -A; echo nothing"))), says("{{.LastToolResult}}")),
	})
	for name, retain := range map[string]v1alpha1.KeepVolume{"never": v1alpha1.KeepVolumeNever, "always": v1alpha1.KeepVolumeAlways} {
		s.delegatingAgent(name, "yard", nil, onVolume, withShell, func(a *v1alpha1.Agent) { a.Spec.Retention.KeepVolume = retain })
		s.workflow(name, strings.ReplaceAll(`
nodes:
- {name: build, agent: AGENT, prompt: Build it.}
- {name: elsewhere, agent: AGENT, prompt: Go elsewhere., dependsOn: [build]}
- {name: test, agent: AGENT, prompt: Test it., workspace: {from: build}}
- {name: paint, agent: AGENT, prompt: Paint it., workspace: {from: build}, dependsOn: [build]}
- {name: wreck, agent: AGENT, prompt: Break it., workspace: {from: test}, dependsOn: [paint, test]}
`, "AGENT", name))
	}
	claims := map[string]string{}
	for _, name := range []string{"never", "always"} {
		s.start(name)
	}
	for _, name := range []string{"never", "always"} {
		s.settles(s.named(name), "True Finished")
		s.graph(name, "build Succeeded", "elsewhere Succeeded", "test Succeeded", "paint Succeeded", "wreck Succeeded")
		children := s.childrenByName(name)
		at := children[name+"-build"].Status.Attempt.VolumeClaim
		for _, node := range []string{"test", "paint", "wreck"} {
			if got := children[name+"-"+node].Status.Attempt.VolumeClaim; got != at || at == "" {
				t.Errorf("%s has the claim %q, build has %q", node, got, at)
			}
		}
		if got := children[name+"-elsewhere"].Status.Attempt.VolumeClaim; got == at {
			t.Errorf("elsewhere has the claim of build")
		}
		if text := children[name+"-test"].Status.Progress.Result.Text; !strings.Contains(text, "launched") && !strings.Contains(text, "painted") { // meanwhile
			t.Errorf("the test says %s", text)
		}
		s.lacks("elsewhere", children[name+"-elsewhere"].Status.Progress.Result.Text, "bin")
		s.lacks("what the last sees of the others", children[name+"-wreck"].Status.Progress.Result.Text, "journal", "state\n")
		claims[name] = at
	}
	err := until(t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: s.name, Name: claims["never"]}, &corev1.PersistentVolumeClaim{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("the claim that is to be kept never stays: %v", err)
	}
	var kept corev1.PersistentVolumeClaim
	if err := cluster.admin.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: claims["always"]}, &kept); err != nil || kept.DeletionTimestamp != nil {
		t.Errorf("the claim that is to be kept always: %v, %v", kept.DeletionTimestamp, err)
	}
}
