package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

const (
	// memoryLimit is the operator's limit of memory in the chart, in MiB.
	memoryLimit = 256
	// memoryForGo is what cmd/manager lets Go take of it: 80 %.
	memoryForGo = "204MiB"
)

// hostileObjects are large objects of a kind, of which so many MiB are created.
type hostileObjects struct {
	mib  int
	make func(meta metav1.ObjectMeta) client.Object
}

// largest are the largest objects that admission lets through, of each kind that the operator
// caches: how many MiB of them are created.
var largest = map[string]hostileObjects{
	"data of ConfigMaps": {60, func(m metav1.ObjectMeta) client.Object {
		return &corev1.ConfigMap{ObjectMeta: withoutNotes(m), Data: map[string]string{"a": text(mib - 4096)}}
	}},
	"metadata of ConfigMaps": {20, func(m metav1.ObjectMeta) client.Object { return &corev1.ConfigMap{ObjectMeta: m} }},
	"Pods":                   {13, largePod},
	"PersistentVolumeClaims": {13, largeClaim},
	"NetworkPolicies":        {13, largePolicy},
	"RoleBindings":           {13, largeBinding},
	"ServiceAccounts":        {13, largeAccount},
	"Runs": {13, func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.Run{ObjectMeta: m, Spec: v1alpha1.RunSpec{Agent: "none", Prompt: text(32 << 10)}}
	}},
	"Agents": {13, func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.Agent{ObjectMeta: m, Spec: v1alpha1.AgentSpec{Model: "none", Instructions: text(64 << 10)}}
	}},
	"Decisions":           {13, largeDecision},
	"Agents as kept":      {8, largeAgent(specsize.Max - 1024)},
	"Models as kept":      {5, largeModel(specsize.Max - 1024)},
	"Toolsets as kept":    {5, largeToolset(specsize.Max - 1024)},
	"Workflows as kept":   {5, largeWorkflow(specsize.Max - 1024)},
	"Schedules as kept":   {5, largeSchedule(specsize.Max - 1024)},
	"Agents too large":    {40, largeAgent(mib + 300<<10)},
	"Models too large":    {10, largeModel(mib + 300<<10)},
	"Toolsets too large":  {10, largeToolset(mib + 300<<10)},
	"Workflows too large": {10, largeWorkflow(mib + 300<<10)},
	"Schedules too large": {10, largeSchedule(mib + 300<<10)},
}

const mib = 1 << 20

// Users of a namespace write the largest objects. An operator that starts then stays below its
// limit.
func TestTheLargestObjectsFitTheOperatorsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute, and the same without the race detector")
	}
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	for kind, of := range largest {
		fill(t, s, namespace, kind, of)
	}
	t.Setenv("GOMEMLIMIT", memoryForGo)
	lease := operator.Lease{Duration: time.Hour, RenewDeadline: 10 * time.Minute, RetryPeriod: time.Second} // a short one is lost on a slow machine
	process := startProgram(t, withoutRaceDetector(t), processConfig{Namespace: namespace, Lease: lease})
	model := gen.Model()
	model.Namespace, model.Name, model.UID = namespace, "probe", ""
	s.Create(t, model)
	var seen v1alpha1.Model
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := s.Admin.Get(ctx, client.ObjectKeyFromObject(model), &seen)
		return meta.IsStatusConditionTrue(seen.Status.Conditions, v1alpha1.ConditionReady), err
	})
	if err != nil {
		t.Errorf("the operator does not work: %v", err)
	}
	awaitTooLarge(t, s, namespace)
	peak := peakOf(t, process.Process.Pid)
	t.Logf("the operator had at most %d MiB", peak)
	if peak > memoryLimit {
		t.Errorf("the operator had %d MiB, more than its limit of %d", peak, memoryLimit)
	}
	if err := process.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = process.Wait() // it was killed
}

// withoutRaceDetector builds the test binary as the operator is built: the race detector takes more
// memory than the operator has.
func withoutRaceDetector(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "operator.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the operator: %v: %s", err, out)
	}
	return program
}

// fill creates objects until they have so many bytes.
func fill(t *testing.T, s *apitest.Server, namespace, kind string, of hostileObjects) {
	t.Helper()
	one, err := json.Marshal(of.make(notes(namespace, "x")))
	if err != nil {
		t.Fatal(err)
	}
	prefix := strings.ReplaceAll(strings.ToLower(kind), " ", "-")
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range of.mib * mib / len(one) {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := s.Admin.Create(t.Context(), of.make(notes(namespace, fmt.Sprintf("%s-%d", prefix, i)))); err != nil {
				t.Errorf("creating %s: %v", kind, err)
			}
		})
	}
	all.Wait()
}

// notes returns metadata with all labels that select what is cached, and as much else as there may
// be.
func notes(namespace, name string) metav1.ObjectMeta {
	labels := map[string]string{
		"app.kubernetes.io/managed-by": "deckhand", v1alpha1.LabelRevision: "true", v1alpha1.LabelRun: "x", v1alpha1.LabelEgress: "x",
		v1alpha1.LabelAgent: "none", v1alpha1.LabelWorkflow: "none",
	}
	for i := range 1500 {
		labels[fmt.Sprintf("%s.example.com/%s%04d", strings.Repeat("d", 50), strings.Repeat("l", 50), i)] = strings.Repeat("v", 63)
	}
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: map[string]string{"example.com/note": text(250 << 10)}}
}

// withoutNotes returns metadata with the labels of the operator alone.
func withoutNotes(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.Annotations = nil
	for k := range m.Labels {
		if strings.Contains(k, "example.com/") {
			delete(m.Labels, k)
		}
	}
	return m
}

// text returns a text of this length.
func text(length int) string { return strings.Repeat("x", length) }

func largePod(m metav1.ObjectMeta) client.Object {
	pod := &corev1.Pod{ObjectMeta: withoutNotes(m)}
	for i := range 3000 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("a%d", i), Image: text(200)})
	}
	return pod
}

func largeClaim(m metav1.ObjectMeta) client.Object {
	return &corev1.PersistentVolumeClaim{ObjectMeta: m, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Selector:    &metav1.LabelSelector{MatchLabels: m.Labels},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

func largePolicy(m metav1.ObjectMeta) client.Object {
	p := &networkingv1.NetworkPolicy{ObjectMeta: withoutNotes(m)}
	for i := range 5000 {
		peer := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{fmt.Sprintf("%s%d", strings.Repeat("l", 50), i): strings.Repeat("v", 63)}}}
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{peer}})
	}
	return p
}

func largeBinding(m metav1.ObjectMeta) client.Object {
	b := &rbacv1.RoleBinding{ObjectMeta: m, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}
	for i := range 1000 {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprintf("%s%d", text(500), i)})
	}
	return b
}

func largeAccount(m metav1.ObjectMeta) client.Object {
	a := &corev1.ServiceAccount{ObjectMeta: m}
	for i := range 1000 {
		a.Secrets = append(a.Secrets, corev1.ObjectReference{Name: fmt.Sprintf("%s%d", text(200), i)})
	}
	return a
}

// Functions that make an object whose spec has a field of so many bytes that no schema bounds.

func largeAgent(size int) func(metav1.ObjectMeta) client.Object {
	return func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.Agent{ObjectMeta: withoutNotes(m), Spec: v1alpha1.AgentSpec{
			Model: "none", Instructions: "Work.", Inference: &v1alpha1.Inference{Extra: raw(size)},
		}}
	}
}

func largeModel(size int) func(metav1.ObjectMeta) client.Object {
	return func(m metav1.ObjectMeta) client.Object {
		model := &v1alpha1.Model{ObjectMeta: withoutNotes(m), Spec: gen.Model().Spec}
		model.Spec.Inference = &v1alpha1.Inference{Extra: raw(size)}
		return model
	}
}

func largeToolset(size int) func(metav1.ObjectMeta) client.Object {
	return func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.Toolset{ObjectMeta: withoutNotes(m), Spec: v1alpha1.ToolsetSpec{Requests: &v1alpha1.Requests{
			BaseURL: "https://api.example.com",
			Tools:   []v1alpha1.RequestTool{{Name: "post", Description: "Posts.", Method: "POST", Path: "/", Body: raw(size)}},
		}}}
	}
}

func largeWorkflow(size int) func(metav1.ObjectMeta) client.Object {
	return func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.Workflow{ObjectMeta: withoutNotes(m), Spec: v1alpha1.WorkflowSpec{
			Nodes: []v1alpha1.Node{{Name: "a", Agent: "none", Prompt: "Work.", Input: raw(size)}},
		}}
	}
}

func largeSchedule(size int) func(metav1.ObjectMeta) client.Object {
	return func(m metav1.ObjectMeta) client.Object {
		return &v1alpha1.Schedule{ObjectMeta: withoutNotes(m), Spec: v1alpha1.ScheduleSpec{
			Schedule: "0 0 1 1 *", Suspend: true,
			RunTemplate: v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Agent: "none", Prompt: "Work.", Input: raw(size)}},
		}}
	}
}

// raw returns a JSON object of so many bytes.
func raw(size int) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(`{"a":"` + text(size) + `"}`)}
}

// awaitTooLarge waits until each kind says of an object why it is not used.
func awaitTooLarge(t *testing.T, s *apitest.Server, namespace string) {
	t.Helper()
	for kind, conditions := range map[string]func(o client.Object) []metav1.Condition{
		"Agent":    func(o client.Object) []metav1.Condition { return o.(*v1alpha1.Agent).Status.Conditions },
		"Model":    func(o client.Object) []metav1.Condition { return o.(*v1alpha1.Model).Status.Conditions },
		"Toolset":  func(o client.Object) []metav1.Condition { return o.(*v1alpha1.Toolset).Status.Conditions },
		"Workflow": func(o client.Object) []metav1.Condition { return o.(*v1alpha1.Workflow).Status.Conditions },
		"Schedule": func(o client.Object) []metav1.Condition { return o.(*v1alpha1.Schedule).Status.Conditions },
	} {
		made, err := s.Admin.Scheme().New(v1alpha1.GroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		object, key := made.(client.Object), client.ObjectKey{Namespace: namespace, Name: strings.ToLower(kind) + "s-too-large-0"}
		err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			err := s.Admin.Get(ctx, key, object)
			c := meta.FindStatusCondition(conditions(object), v1alpha1.ConditionReady)
			return c != nil && c.Reason == v1alpha1.ReasonTooLarge && strings.Contains(c.Message, "spec has 1324 KiB"), err
		})
		if err != nil {
			t.Errorf("%s %s: %v: %v", kind, key.Name, err, conditions(object))
		}
	}
}

// largeDecision returns a Decision with a name that admission lets through.
func largeDecision(m metav1.ObjectMeta) client.Object {
	_, number, _ := strings.Cut(m.Name, "-")
	m.Name = "x.a.1" + number
	return &v1alpha1.Decision{ObjectMeta: m, Spec: v1alpha1.DecisionSpec{Run: "x", Request: "a", Type: v1alpha1.DecisionAnswer, Value: text(4 << 10), By: "admin"}}
}

// peakOf returns the most memory that a process had, in MiB.
func peakOf(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(after + " 0 0")[0])
	if err != nil || kib == 0 {
		t.Fatalf("the process has no VmHWM: %v", err)
	}
	return kib >> 10
}
