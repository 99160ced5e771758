package runnerpod

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
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

// volumeOfClaim is the volume of a durable Run. Volumes that other Runs have separately are folders of it.
const volumeOfClaim = "volume-claim"

// volumeOfSource is the volume of the Run that is continued.
const volumeOfSource = "source"

// Sizes of volumes without a setting.
var (
	programSize = resource.MustParse("64Mi") // a program and two sockets
	serverTmp   = resource.MustParse("1Gi")
	skillsSize  = resource.MustParse("1Gi") // 16 folders, and the repositories while they are fetched
)

// volumes returns the volumes of the pod. Mounts of ConfigMaps, Secrets and projections do not set readOnly: the
// kubelet always mounts them read-only, and the field would be repeated in the status of the pod.
func (b builder) volumes() []corev1.Volume {
	out := []corev1.Volume{taskVolume(b.Revision), tokenVolume()}
	out = append(out, b.fileVolumes()...)
	if b.Source != nil {
		out = append(out, corev1.Volume{Name: volumeOfSource, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.Source.Name, ReadOnly: true},
		}})
	}
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
	out = append(out, b.skillVolumes()...)
	if ca := b.defaults.CABundle; ca != nil {
		v := configMap("ca", string(ca.Name))
		v.ConfigMap.Items = []corev1.KeyToPath{{Key: ca.Key, Path: path.Base(task.CAFile)}}
		out = append(out, v)
	}
	return out
}

// fileVolumes returns the volumes of workspace and state: folders of the volume of the Run, or volumes that are deleted
// with the pod. The sandbox has volumes for home and temporary files.
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

// stateMounts returns the mounts that only runners have: the journal and, if other Runs share the files, their common
// records.
func (b builder) stateMounts() []corev1.VolumeMount {
	if !b.sharesVolume() {
		return []corev1.VolumeMount{b.fileMount("state", task.StateDir)}
	}
	return []corev1.VolumeMount{b.fileMount(task.StateFolder(string(b.Run.UID)), task.StateDir), b.fileMount(originFolder, task.OriginDir)}
}

// sourceMounts returns the mounts for taking over the work of the Run that is continued. The home directory is only
// where there are commands, or on the volume. A pod has one volume for a claim: kubelets may not start pods with two.
func (b builder) sourceMounts() []corev1.VolumeMount {
	switch {
	case SharesSource(b.Run):
		return []corev1.VolumeMount{{Name: volumeOfClaim, MountPath: task.SourceDir, ReadOnly: true}}
	case b.Source == nil:
		return nil
	}
	out := []corev1.VolumeMount{{Name: volumeOfSource, MountPath: task.SourceDir, ReadOnly: true}}
	if b.sandbox != nil || b.Run.Status.Attempt.VolumeClaim != "" {
		out = append(out, b.fileMount("home", task.Home))
	}
	return out
}

// fileMount returns the mount of a file volume.
func (b builder) fileMount(name, at string) corev1.VolumeMount {
	if b.Run.Status.Attempt.VolumeClaim != "" {
		return corev1.VolumeMount{Name: volumeOfClaim, MountPath: at, SubPath: name}
	}
	return corev1.VolumeMount{Name: name, MountPath: at}
}

// configMap returns the volume of a required ConfigMap: the kubelet waits for it, and reports that.
func configMap(volume, name string) corev1.Volume {
	mode, no := readable, false
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, DefaultMode: &mode, Optional: &no,
	}}}
}

// volumeOfSkills is the volume of the skills of all agents of the pod.
const volumeOfSkills = "skills"

// skillVolumes returns the volume of the skills, and those of the ConfigMaps that they come from.
func (b builder) skillVolumes() []corev1.Volume {
	if len(b.skills) == 0 {
		return nil
	}
	out := []corev1.Volume{scratch(volumeOfSkills, &skillsSize)}
	for i, skill := range b.skills {
		if skill.ConfigMap != "" {
			out = append(out, configMap(skillVolume(i), skill.ConfigMap))
		}
	}
	return out
}

// skillMounts returns the mount of the skills for a container that reads them.
func (b builder) skillMounts() []corev1.VolumeMount {
	if len(b.skills) == 0 {
		return nil
	}
	return []corev1.VolumeMount{{Name: volumeOfSkills, MountPath: task.SkillsDir, ReadOnly: true}}
}

func skillVolume(i int) string { return "skill-" + strconv.Itoa(i) }

func filesVolume(i int) string { return "files-" + strconv.Itoa(i) }

func filesDir(i int) string { return task.FilesDir + "/" + strconv.Itoa(i) }

func (b builder) caMounts() []corev1.VolumeMount {
	if b.defaults.CABundle == nil {
		return nil
	}
	return []corev1.VolumeMount{{Name: "ca", MountPath: path.Dir(task.CAFile)}}
}

// runnerSecrets returns the Secrets of the runner. The repository's is included only to publish.
func (b builder) runnerSecrets() []string {
	out := snapshot.KeySecrets(b.Revision.Snapshot)
	if git := b.Revision.Snapshot.Workspace.Git; git != nil && git.Secret != "" && git.Publish && !slices.Contains(out, git.Secret) {
		out = append(out, git.Secret)
	}
	return out
}

// volumeOfTask is the volume with the task and the revision of the Agent.
const volumeOfTask = "task"

// RevisionName returns the name of the ConfigMap of the revision that a pod mounts, or an empty name.
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

// taskVolume returns one projected volume. It is not mounted with subPath, because such mounts do not show a changed
// annotation, and signals are an annotation.
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

// secretVolume returns a volume with the used keys of a Secret, or with all keys if they are not known. It is optional,
// because the runner reports missing keys, and not the kubelet.
func secretVolume(s snapshot.Secret) corev1.Volume {
	mode, optional := private, true
	source := &corev1.SecretVolumeSource{SecretName: s.Name, Optional: &optional, DefaultMode: &mode}
	for _, key := range s.Keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.Volume{Name: secretVolumeName(s.Name), VolumeSource: corev1.VolumeSource{Secret: source}}
}

// secretVolumeName returns the name of the volume of a Secret. Names of volumes are shorter than those of Secrets, and
// have no dots.
func secretVolumeName(secret string) string {
	const prefix = "secret-"
	if len(prefix)+len(secret) <= 63 && !strings.Contains(secret, ".") {
		return prefix + secret
	}
	return "hashed-" + task.Hash([]byte(secret))[:32]
}

// affinity schedules the pods of a volume that only one node can mount on the same node. The first pod may use any
// node, because it matches its own term.
func (b builder) affinity() *corev1.Affinity {
	var beside []corev1.PodAffinityTerm
	for _, label := range []string{v1alpha1.LabelVolumeClaim, v1alpha1.LabelSourceVolumeClaim} {
		if claim := b.claimOnOneNode(label); claim != "" {
			beside = append(beside, corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: claim}},
				TopologyKey:   corev1.LabelHostname,
			})
		}
	}
	if len(beside) == 0 {
		return b.template.Affinity
	}
	out := &corev1.Affinity{}
	if b.template.Affinity != nil {
		out = b.template.Affinity.DeepCopy()
	}
	if out.PodAffinity == nil {
		out.PodAffinity = &corev1.PodAffinity{}
	}
	out.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(out.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, beside...)
	return out
}

// claimOnOneNode returns the volume that pods with a label share, if only one node can mount it.
func (b builder) claimOnOneNode(label string) string {
	switch {
	case label == v1alpha1.LabelVolumeClaim && b.sharesVolume() && slices.Contains(b.accessModes(), corev1.ReadWriteOnce):
		return b.Run.Status.Attempt.VolumeClaim
	case label == v1alpha1.LabelSourceVolumeClaim && b.Source != nil && slices.Contains(b.Source.Spec.AccessModes, corev1.ReadWriteOnce):
		return b.Source.Name
	}
	return ""
}

// sharesVolume reports whether other Runs use the volume of the Run.
func (b builder) sharesVolume() bool { return hasOwnFolder(b.Run) }

// accessModes returns the access modes of the volume, which another Run may have created.
func (b builder) accessModes() []corev1.PersistentVolumeAccessMode {
	if b.VolumeClaim != nil {
		return b.VolumeClaim.Spec.AccessModes
	}
	return NewVolumeClaim(b.Input).Spec.AccessModes
}

// originFolder has the common data of Runs with the same volume: the clone of the repository, and the record that it
// was fetched.
const originFolder = "origin"

// VolumeClaimPrefix is the prefix of the names of claims. An admission policy lets only the operator create claims with
// it, and pods that can write to them.
const VolumeClaimPrefix = "deckhand-run-"

// VolumeClaimName returns the name of the volume with the files and the journal of a Run. It depends on the UID: a Run
// never gets the volume of another Run with the same name.
func VolumeClaimName(run *v1alpha1.Run) string {
	if SharesSource(run) {
		return run.Status.ContinuedFrom.VolumeClaim
	}
	if claim, _ := SharedVolumeClaim(run); claim != "" {
		return claim
	}
	return volumeClaimName(run.Name, string(run.UID))
}

// volumeClaimName returns a name with a hash of unique.
func volumeClaimName(name, unique string) string {
	hash := "-" + task.Hash([]byte(unique))[:8]
	if most := 63 - len(VolumeClaimPrefix) - len(hash); len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	return VolumeClaimPrefix + name + hash
}

// Defaults of Workspace, as its godoc promises.
const (
	defaultSize           = "1Gi"
	defaultClaimRetention = 24 * time.Hour
)

// NewVolumeClaim returns the volume that the current attempt of a Run mounts.
func NewVolumeClaim(in Input) *corev1.PersistentVolumeClaim {
	run, v := in.Run, in.Revision
	ws := v.Agent.Workspace
	retention := defaultClaimRetention
	if ws.Retention != nil {
		retention = ws.Retention.Duration
	}
	mode := cmp.Or(ws.AccessMode, corev1.ReadWriteOnce)
	owner := VolumeOwner(run)
	annotations := map[string]string{
		v1alpha1.AnnotationRetain:    string(ws.Retain),
		v1alpha1.AnnotationRetention: retention.String(),
		v1alpha1.AnnotationFilesPod:  string(ToJSON(filesPodOf(in))),
	}
	if ids := newBuilder(in).userAndGroups(); ids.group != nil { // else it is the choice of the cluster
		annotations[v1alpha1.AnnotationFileOwner] = FileOwner{User: *ids.user, Group: *ids.fsGroup}.String()
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace,
			Name:      run.Status.Attempt.VolumeClaim,
			Labels: map[string]string{
				"app.kubernetes.io/name":       "deckhand-runner",
				"app.kubernetes.io/managed-by": "deckhand",
				v1alpha1.LabelRun:              owner.Name,
				v1alpha1.LabelAgent:            snapshot.Label(v.Agent.Name),
			},
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{mode},
			StorageClassName: ws.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: newBuilder(in).size()}},
		},
	}
}

// size returns the size of the files. That of a claim is at least the size of the claim whose files are copied to it;
// without a claim, the Agent's is the limit.
func (b builder) size() resource.Quantity {
	if SharesSource(b.Run) && b.VolumeClaim != nil {
		return b.VolumeClaim.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	size := resource.MustParse(defaultSize)
	own := b.Revision.Agent.Workspace.Size
	if own != nil {
		size = *own
	}
	if b.Source != nil && (own == nil || b.Run.Status.Attempt.VolumeClaim != "") {
		if other := b.Source.Spec.Resources.Requests[corev1.ResourceStorage]; other.Cmp(size) > 0 {
			size = other
		}
	}
	return size
}

// SharedVolumeClaimName returns the name of the volume that children of a Run share, if their files begin with the node
// root.
func SharedVolumeClaimName(parent *v1alpha1.Run, root string) string {
	return volumeClaimName(parent.Name, string(parent.UID)+"/"+root)
}

// RetentionExpired reports whether the retention of a volume of a finished Run has passed, or how much of it is left.
// Before the volume is deleted, it must not be [InUse].
func RetentionExpired(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim, now time.Time) (done bool, left time.Duration) {
	if claim.DeletionTimestamp != nil {
		return false, 0
	}
	switch stored.Retain(claim.Annotations[v1alpha1.AnnotationRetain]) {
	case stored.RetainNever:
		return true, 0
	case stored.RetainAlways:
	case stored.RetainOnFailure:
		if runstatus.OutcomeOf(run.Status).Status == metav1.ConditionTrue {
			return true, 0
		}
	}
	left = Retention(claim, defaultClaimRetention) - runstatus.SinceCompletion(run, now)
	return left <= 0, max(left, 0)
}

// InUse reports whether a pod that may be active mounts a volume.
func InUse(claim string, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return IsAlive(&pod) && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		})
	})
}

// Retention returns how long an object is kept after its Run has finished.
func Retention(o client.Object, standard time.Duration) time.Duration {
	d, err := time.ParseDuration(o.GetAnnotations()[v1alpha1.AnnotationRetention])
	if err != nil {
		return standard
	}
	return d
}
