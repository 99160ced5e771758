package run

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// mountDelay is how long a pod may take to start before its ConfigMaps are checked, so that a pod that starts in time
// costs no request.
const mountDelay = 3 * time.Second

// missingConfigMap returns which ConfigMap a pod that does not start waits for; empty: all of them exist. The status of
// a pod does not show this, and the event of the kubelet may be late or lost.
func missingConfigMap(ctx context.Context, live client.Reader, s state) (string, error) {
	if s.revision == nil || !isSilent(s, mountDelay) || unschedulable(s.pod()) != "" {
		return "", nil
	}
	for _, required := range runnerpod.RequiredConfigMaps(podInputOf(s, s.attempt())) {
		switch exists, hasKey, err := findConfigMap(ctx, live, s.run.Namespace, required); {
		case err != nil:
			return "", fmt.Errorf("getting ConfigMap %s: %w", required.Name, err)
		case !exists:
			return configMapMissing(s.run.Namespace, required), nil
		case !hasKey:
			return keyMissing(s.run.Namespace, required), nil
		}
	}
	return "", nil
}

// findConfigMap reads a ConfigMap, with its data only if one of its keys is required.
func findConfigMap(ctx context.Context, live client.Reader, namespace string, required runnerpod.RequiredConfigMap) (exists, hasKey bool, err error) {
	key := client.ObjectKey{Namespace: namespace, Name: required.Name}
	if required.Key == "" {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err := live.Get(ctx, key, found)
		return err == nil, true, client.IgnoreNotFound(err)
	}
	var found corev1.ConfigMap
	if err := live.Get(ctx, key, &found); err != nil {
		return false, false, client.IgnoreNotFound(err)
	}
	_, text := found.Data[required.Key]
	_, binary := found.BinaryData[required.Key]
	return true, text || binary, nil
}

// within describes how soon the kubelet tries again to mount a volume.
const within = continues + "within two minutes after it exists"

func configMapMissing(namespace string, required runnerpod.RequiredConfigMap) string {
	file := "FILE"
	if required.Key != "" {
		file = required.Key + "=FILE"
	}
	return fmt.Sprintf("ConfigMap %s (%s) not found in namespace %s; create it: kubectl create configmap %s -n %s --from-file=%s", required.Name, required.Field, namespace, required.Name, namespace, file) + within
}

func keyMissing(namespace string, required runnerpod.RequiredConfigMap) string {
	return fmt.Sprintf("ConfigMap %s (%s) has no key %s in namespace %s; add it: kubectl edit configmap %s -n %s", required.Name, required.Field, required.Key, namespace, required.Name, namespace) + within
}
