//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// modelsName is what the scripted server is called, in any namespace.
const modelsName = "models"

// A page is what the server answers beside its script; see test/modelserver.
type page struct {
	Status      int               `json:"status,omitempty"`
	ContentType string            `json:"contentType,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        string            `json:"body,omitempty"`
	Repeat      int               `json:"repeat,omitempty"`
	DelayMS     int64             `json:"delayMS,omitempty"`
}

// serve runs the scripted server in a namespace, as a Service of each of the
// names, and waits until it is there.
func serve(ctx context.Context, namespace string, script modeltest.Script, pages map[string]page, names ...string) error {
	data := map[string]string{}
	for file, v := range map[string]any{"script.json": script, "pages.json": pages} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		data[file] = string(text)
	}
	labels := map[string]string{"app": modelsName}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: modelsName, Labels: labels}
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: meta, Data: data}, deployment(meta)}
	for _, name := range append(names, modelsName) {
		meta.Name = name
		objects = append(objects, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		}})
	}
	for _, o := range objects {
		if err := cluster.admin.Create(ctx, o); err != nil {
			return fmt.Errorf("serving models: %w", err)
		}
	}
	return until(ctx, func(ctx context.Context) (bool, error) {
		for _, name := range append(names, modelsName) {
			if there, err := hasEndpoints(ctx, namespace, name); !there || err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// hasEndpoints says whether a Service has endpoints: before that, connections to it
// are refused.
func hasEndpoints(ctx context.Context, namespace, service string) (bool, error) {
	var slices discoveryv1.EndpointSliceList
	err := cluster.admin.List(ctx, &slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				return true, nil
			}
		}
	}
	return false, err
}

// deployment is the server, as the restricted Pod Security Standard wants it.
func deployment(meta metav1.ObjectMeta) *appsv1.Deployment {
	image := os.Getenv("E2E_MODELSERVER_IMAGE")
	if image == "" {
		image = "deckhand.test/modelserver:dev"
	}
	yes, no, user := true, false, int64(65532)
	script := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: modelsName}}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
			Spec: corev1.PodSpec{
				AutomountServiceAccountToken: &no,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: &yes, RunAsUser: &user,
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				TerminationGracePeriodSeconds: new(int64),
				Containers: []corev1.Container{{
					Name: modelsName, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
					Args: []string{"--listen", ":8080", "--script", "/script/script.json", "--pages", "/script/pages.json"},
					// A server that is slow because the machine is busy stays an endpoint.
					ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 30, FailureThreshold: 10, ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)},
					}},
					SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					},
					VolumeMounts: []corev1.VolumeMount{{Name: "script", MountPath: "/script"}},
				}},
				Volumes: []corev1.Volume{{Name: "script", VolumeSource: corev1.VolumeSource{ConfigMap: &script}}},
			},
		},
	}}
}
