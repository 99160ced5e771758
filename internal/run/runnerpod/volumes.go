package runnerpod

import (
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Modes of mounted files: the task is no secret, the token and the key are.
var (
	readable int32 = 0o444
	private  int32 = 0o440
)

// tokenSeconds is the life of a runner's token; the kubelet renews it.
const tokenSeconds int64 = 3600

// rootCA is the ConfigMap that every namespace has, with the cluster's CA as ca.crt.
const rootCA = "kube-root-ca.crt"

// volumeOfClaim is the volume of a durable Run: what else is a volume of its own is
// a folder of it.
const volumeOfClaim = "volume-claim"

// Sizes of volumes without a setting.
var (
	programSize = resource.MustParse("64Mi") // a program and two sockets
	serverTmp   = resource.MustParse("1Gi")
)

// volumes are the pod's. Mounts of ConfigMaps, Secrets and projections do not say readOnly: the kubelet
// mounts them read-only whatever they say, and would repeat it in the status of the pod.
func (b builder) volumes() []corev1.Volume {
	out := []corev1.Volume{taskVolume(b.Revision), tokenVolume()}
	out = append(out, b.fileVolumes()...)
	if b.sandbox != nil {
		out = append(out, scratch("sandbox", &programSize))
	}
	for _, s := range b.servers {
		out = append(out, scratch(s.container(), &programSize), scratch(s.tmp(), &serverTmp))
	}
	for _, s := range snapshot.Secrets(b.Revision.Snapshot) {
		out = append(out, secretVolume(s))
	}
	for i, name := range b.Revision.Agent.Workspace.ConfigMaps {
		out = append(out, configMap(filesVolume(i), name))
	}
	if ca := b.defaults.CABundle; ca != nil {
		v := configMap("ca", string(ca.Name))
		v.ConfigMap.Items = []corev1.KeyToPath{{Key: ca.Key, Path: path.Base(task.CAFile)}}
		out = append(out, v)
	}
	return out
}

// fileVolumes are the volumes of workspace and state: folders of the volume of the Run, or
// volumes that are deleted with the pod. Home and temporary files are those of the sandbox.
func (b builder) fileVolumes() []corev1.Volume {
	if b.Run.Status.Attempt.VolumeClaim != "" {
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.Run.Status.Attempt.VolumeClaim}}
		return []corev1.Volume{{Name: volumeOfClaim, VolumeSource: source}}
	}
	size := b.Revision.Agent.Workspace.Size
	out := []corev1.Volume{scratch("state", size), scratch("workspace", size)}
	if b.sandbox != nil {
		out = append(out, scratch("home", size), scratch("tmp", size))
	}
	return out
}

// stateMounts mounts what only runners see: the journal and, where the files are those
// of other Runs too, what all of these know of them.
func (b builder) stateMounts() []corev1.VolumeMount {
	if !b.sharesVolume() {
		return []corev1.VolumeMount{b.fileMount("state", task.StateDir)}
	}
	return []corev1.VolumeMount{b.fileMount(stateFolder(b.Run.UID), task.StateDir), b.fileMount(originFolder, task.OriginDir)}
}

// fileMount mounts what the work makes, wherever it is kept.
func (b builder) fileMount(name, at string) corev1.VolumeMount {
	if b.Run.Status.Attempt.VolumeClaim != "" {
		return corev1.VolumeMount{Name: volumeOfClaim, MountPath: at, SubPath: name}
	}
	return corev1.VolumeMount{Name: name, MountPath: at}
}

// configMap is one that must be there: the kubelet waits for it, and says so.
func configMap(volume, name string) corev1.Volume {
	mode, no := readable, false
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, DefaultMode: &mode, Optional: &no,
	}}}
}

func filesVolume(i int) string { return "files-" + strconv.Itoa(i) }

func filesDir(i int) string { return task.FilesDir + "/" + strconv.Itoa(i) }

func (b builder) caMounts() []corev1.VolumeMount {
	if b.defaults.CABundle == nil {
		return nil
	}
	return []corev1.VolumeMount{{Name: "ca", MountPath: path.Dir(task.CAFile)}}
}

// runnerSecrets are what the runner has: the repository's only to publish.
func (b builder) runnerSecrets() []string {
	var out []string
	s := b.Revision.Snapshot
	s.Workspace.Git = nil
	for _, s := range snapshot.Secrets(s) {
		out = append(out, s.Name)
	}
	if git := b.Revision.Snapshot.Workspace.Git; git != nil && git.Secret != "" && git.Publish && !slices.Contains(out, git.Secret) {
		out = append(out, git.Secret)
	}
	return out
}

// volumeOfTask is the volume with the task and the revision of the Agent.
const volumeOfTask = "task"

// RevisionName returns the name of the ConfigMap of the revision that a pod mounts; empty: none.
func RevisionName(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.Name != volumeOfTask || v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				return source.ConfigMap.Name
			}
		}
	}
	return ""
}

// RevisionVolume returns a volume with no more in it than RevisionName reads.
func RevisionVolume(name string) corev1.Volume {
	return corev1.Volume{Name: volumeOfTask, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
	}}}}
}

// taskVolume is one projected volume, never a subPath: those do not follow a
// changed annotation, and signals are one.
func taskVolume(v *snapshot.Revision) corev1.Volume {
	annotation := func(name, file string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{
			Path:     path.Base(file),
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + name + "']"},
		}
	}
	return projected(volumeOfTask, readable,
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
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: rootCA}}},
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

// secretVolume holds the keys of a Secret that are used, or all if they are not known. It
// is optional: the runner, not the kubelet, says which key of which Secret is missing.
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

// affinity schedules the pods of a volume that only one node may mount on one node. The first
// pod is not bound: it matches its own term.
func (b builder) affinity() *corev1.Affinity {
	if !b.sharesVolume() || !slices.Contains(b.accessModes(), corev1.ReadWriteOnce) {
		return b.template.Affinity
	}
	out := &corev1.Affinity{}
	if b.template.Affinity != nil {
		out = b.template.Affinity.DeepCopy()
	}
	if out.PodAffinity == nil {
		out.PodAffinity = &corev1.PodAffinity{}
	}
	out.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(out.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelVolumeClaim: b.Run.Status.Attempt.VolumeClaim}},
		TopologyKey:   corev1.LabelHostname,
	})
	return out
}

// sharesVolume reports whether other Runs use the volume of the Run.
func (b builder) sharesVolume() bool {
	name, _ := SharedVolumeClaim(b.Run)
	return name != ""
}

// accessModes are those of the volume, which another Run may have created.
func (b builder) accessModes() []corev1.PersistentVolumeAccessMode {
	if b.VolumeClaim != nil {
		return b.VolumeClaim.Spec.AccessModes
	}
	return NewVolumeClaim(b.Input).Spec.AccessModes
}

// originFolder has what the Runs of a volume share: the clone of the repository, and that it
// was fetched.
const originFolder = "origin"

// stateFolder is the folder of a volume with the journal of one Run.
func stateFolder(uid types.UID) string { return "runs/" + string(uid) + "/state" }
