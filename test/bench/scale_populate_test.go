//go:build bench

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// populate leaves finished Runs, whose pods are kept, and active ones. One of each
// does its work. The others are copies of it, made while the operator is away, which
// takes a fifth of the requests.
func (s *scale) populate(finished, active int) {
	s.t.Helper()
	s.agent("kept", "24h", 0)
	s.agent("active", "0s", 24*time.Hour)
	was := s.tally.now()
	s.createRuns("original-kept", 1, "kept")
	s.createRuns("original-active", 1, "active")
	s.tally.await("the originals work", func(c counts) bool { return c.terminal == was.terminal+1 && c.started == was.started+2 })
	s.settle()
	begun := time.Now()
	back := s.stopOperator()
	s.copies("original-kept-0", "kept", finished-1)
	s.copies("original-active-0", "active", active-1)
	s.tally.await("all copies are there", func(c counts) bool {
		return c.terminal == was.terminal+finished && c.started == was.started+finished+active
	})
	took := time.Since(begun)
	back()
	s.settle()
	// What the operator writes of Runs that are at rest tells whether copies are good.
	fmt.Printf("%d finished and %d active Runs made in %s; the operator came back and wrote %.0f times\n", finished, active, took.Round(time.Second), s.managerWrites().sum())
}

// stopOperator takes the operator away; the function that it returns brings it back.
func (s *scale) stopOperator() (back func()) {
	s.t.Helper()
	var list appsv1.DeploymentList
	if err := s.client.List(s.t.Context(), &list, client.InNamespace(operatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": "deckhand"}); err != nil || len(list.Items) != 1 {
		s.t.Fatalf("finding the operator's Deployment: %d of them (%v)", len(list.Items), err)
	}
	operator := &list.Items[0]
	was := *operator.Spec.Replicas
	away := true
	s.t.Cleanup(func() {
		if away {
			s.t.Logf("the Deployment %s has no replicas", operator.Name)
		}
	})
	s.replicas(operator, 0)
	return func() { s.replicas(operator, was); away = false }
}

// replicas waits until as many of the operator are ready, and no others there.
func (s *scale) replicas(operator *appsv1.Deployment, n int32) {
	s.t.Helper()
	want := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
	if err := s.client.SubResource("scale").Update(s.t.Context(), operator, client.WithSubResourceBody(want)); err != nil {
		s.t.Fatalf("scaling the operator: %v", err)
	}
	err := wait.PollUntilContextTimeout(s.t.Context(), 200*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		pods, err := s.operatorPods(ctx)
		ready := 0
		for i := range pods {
			for _, c := range pods[i].Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		return len(pods) == int(n) && ready == int(n), err
	})
	if err != nil {
		s.t.Fatalf("waiting for %d operators: %v", n, err)
	}
}

// copies makes n Runs that are like an original, with pods like its own.
func (s *scale) copies(original, prefix string, n int) {
	s.t.Helper()
	run := &v1alpha1.Run{ObjectMeta: s.meta(original)}
	s.get(run, run)
	pod := &corev1.Pod{ObjectMeta: s.meta(run.Status.Attempt.Pod)}
	s.get(pod, pod)
	pod.Spec.NodeName, pod.Spec.SchedulerName = "", "none" // nobody acts as its kubelet
	s.eachOf(n, func(i int) error {
		return s.copyOf(run, pod, fmt.Sprintf("%s-%d", prefix, i))
	})
}

// copyOf makes a Run of a name, and its pod.
func (s *scale) copyOf(original *v1alpha1.Run, itsPod *corev1.Pod, name string) error {
	ctx := s.t.Context()
	run := &v1alpha1.Run{ObjectMeta: s.meta(name), Spec: original.Spec}
	run.Labels, run.Annotations, run.Finalizers = original.Labels, original.Annotations, original.Finalizers
	if err := s.client.Create(ctx, run); err != nil {
		return fmt.Errorf("creating Run %s: %w", name, err)
	}
	var pod corev1.Pod
	renamed := strings.NewReplacer(original.Name, name, string(original.UID), string(run.UID))
	if err := reencode(itsPod, &pod, renamed); err != nil {
		return err
	}
	status := map[string]any{"status": pod.Status}
	pod.ObjectMeta = metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences}
	if err := s.operator.Create(ctx, &pod); err != nil {
		return fmt.Errorf("creating Pod %s: %w", pod.Name, err)
	}
	if err := s.patchStatus(&pod, status); err != nil {
		return err
	}
	renamed = strings.NewReplacer(original.Name, name, string(itsPod.UID), string(pod.UID))
	var told v1alpha1.RunStatus
	if err := reencode(original.Status, &told, renamed); err != nil {
		return err
	}
	return s.patchStatus(run, map[string]any{"status": told})
}

func (s *scale) patchStatus(o client.Object, status map[string]any) error {
	data, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding the status of %s: %w", o.GetName(), err)
	}
	if err := s.client.Status().Patch(s.t.Context(), o, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("patching the status of %s: %w", o.GetName(), err)
	}
	return nil
}

// reencode copies with other names.
func reencode(from, into any, names *strings.Replacer) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if err := json.Unmarshal([]byte(names.Replace(string(data))), into); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}
