package controller_test

import (
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// demand has a namespace require a value of each resource of every container.
func (b *fixture) demand(resources ...corev1.ResourceName) {
	b.t.Helper()
	hard, used := corev1.ResourceList{}, corev1.ResourceList{}
	for _, name := range resources {
		hard[name], used[name] = resource.MustParse("64Gi"), resource.MustParse("0")
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	b.Create(b.t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: used} // no quota controller runs here
	if err := b.Admin.Status().Update(b.t.Context(), quota); err != nil {
		b.t.Fatal(err)
	}
}

// limitContainers gives the containers of a namespace bounds, which are the defaults of containers
// that say nothing.
func (b *fixture) limitContainers(bounds corev1.ResourceList) {
	b.t.Helper()
	b.Create(b.t, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "team"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: bounds}}},
	})
}

// managerPod returns the pod of the operator, with the values of the chart.
func (b *fixture) managerPod() *corev1.Pod {
	b.t.Helper()
	objects, err := apitest.ReadObjects(filepath.Join(apitest.Root(), "test", "render", "testdata", "default.golden.yaml"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, o := range objects {
		text, is := o.(*unstructured.Unstructured)
		if !is || text.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(text.Object, &d); err != nil {
			b.t.Fatal(err)
		}
		b.Create(b.t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: d.Spec.Template.Spec.ServiceAccountName}})
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "manager", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
	}
	b.t.Fatal("the chart has no Deployment")
	return nil
}

// A ResourceQuota that counts a resource requires a value of every container. With the values of the
// chart, pods of Runs, the pod that reads files and the operator have all but a limit of CPU, which
// a LimitRange adds.
func TestPodsFitNamespacesThatDemandResources(t *testing.T) {
	demanded := []corev1.ResourceName{corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsMemory}
	for name, limit := range map[string]func(*fixture){
		"a ResourceQuota": func(b *fixture) { b.demand(demanded...) },
		"a ResourceQuota with limits of CPU, and a LimitRange": func(b *fixture) {
			b.demand(append(demanded, corev1.ResourceLimitsCPU, corev1.ResourceLimitsEphemeralStorage, corev1.ResourceRequestsEphemeralStorage)...)
			b.limitContainers(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("2Gi")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			limit(b)
			b.update(coderOnVolume)
			b.reconcileUntilStable()
			b.expect("Unknown Starting")
			pod, claim := b.onlyPod(), b.claims()[0]
			if len(pod.Spec.InitContainers) == 0 {
				t.Error("the pod has no sandbox")
			}
			b.Create(t, runnerpod.FilesPodOf(&claim).Pod(b.get(), claim.Name, runnerpod.WorkspaceFolder, ""))
			b.Create(t, b.managerPod())
		})
	}
}
