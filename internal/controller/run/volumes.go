package run

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Modes of mounted files: the task is no secret, the token and the key are.
var (
	readable int32 = 0o444
	private  int32 = 0o440
)

// tokenSeconds is the life of a runner's token; the kubelet renews it.
const tokenSeconds int64 = 3600

// rootCA is the ConfigMap with the cluster's CA that every namespace has.
const rootCA = "kube-root-ca.crt"

func volumes(w world) []corev1.Volume {
	size := w.version.Sources.AgentSpec.Workspace.Size
	out := []corev1.Volume{
		taskVolume(w.version),
		tokenVolume(),
		scratch("state", size),
		scratch("workspace", size),
	}
	for _, s := range snapshot.Secrets(w.version.Snapshot) {
		out = append(out, secretVolume(s))
	}
	return out
}

// taskVolume is one projected volume, never a subPath: those do not follow a
// changed annotation, and signals are one.
func taskVolume(v *snapshot.Version) corev1.Volume {
	annotation := func(name, file string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{
			Path:     path.Base(file),
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + name + "']"},
		}
	}
	return projected("task", readable,
		corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			annotation(v1alpha1.AnnotationTask, task.TaskFile),
			annotation(v1alpha1.AnnotationSignals, task.SignalsFile),
		}}},
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: snapshot.Name(v.Hash)},
			Items:                []corev1.KeyToPath{{Key: snapshot.RunnerKey, Path: path.Base(task.SnapshotFile)}},
		}},
	)
}

func tokenVolume() corev1.Volume {
	seconds := tokenSeconds
	return projected("token", private,
		corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: rootCA},
			Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
	)
}

func projected(name string, mode int32, sources ...corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: sources},
	}}
}

func scratch(name string, size *resource.Quantity) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: size},
	}}
}

// secretVolume holds the keys of a Secret that somebody uses. It is optional: the
// runner, not the kubelet, says which key of which Secret is missing.
func secretVolume(s snapshot.Secret) corev1.Volume {
	mode, optional := private, true
	source := &corev1.SecretVolumeSource{SecretName: s.Name, Optional: &optional, DefaultMode: &mode}
	for _, key := range s.Keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.Volume{Name: secretVolumeName(s.Name), VolumeSource: corev1.VolumeSource{Secret: source}}
}

// secretVolumeName is the name of the volume of a Secret. Names of volumes are
// shorter than those of Secrets, and have no dots.
func secretVolumeName(secret string) string {
	const prefix = "secret-"
	if len(prefix)+len(secret) <= 63 && !strings.Contains(secret, ".") {
		return prefix + secret
	}
	return "hashed-" + task.Hash([]byte(secret))[:32]
}
